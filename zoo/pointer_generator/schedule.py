"""When training ends."""

import keras

from zoo.pointer_generator.adagrad import ClippedAdagrad


class EarlyStopping(keras.callbacks.Callback):
    """Ends training when the validation loss was not lowered for some epochs.

    The loss to beat and the epochs since are variables of the optimizer, which checkpoints hold: a
    run that goes on, goes on with them. (`keras.callbacks.EarlyStopping` forgets at every call of
    `fit`, and recipes call it once an epoch.) Adds the norm of the latest gradient to the log.

    Args:
        patience: Epochs without gain that end training; 0: none do.
    """

    def __init__(self, patience: int):
        super().__init__()
        self._patience = patience

    def ended(self, optimizer: keras.optimizers.Optimizer) -> bool:
        """Whether there were as many epochs without gain."""
        since = _number(_adagrad(optimizer).epochs_without_gain)
        return bool(self._patience) and since >= self._patience

    def on_epoch_end(self, epoch, logs=None):
        optimizer = _adagrad(self.model.optimizer)
        logs["gradient_norm"] = _number(optimizer.gradient_norm)
        if logs["val_loss"] < _number(optimizer.lowest_loss):
            optimizer.lowest_loss.assign(logs["val_loss"])
            optimizer.epochs_without_gain.assign(0.0)
            return
        optimizer.epochs_without_gain.assign(_number(optimizer.epochs_without_gain) + 1)
        if self.ended(optimizer):
            print(
                f"The validation loss is not below {_number(optimizer.lowest_loss):.4f} since "
                f"{self._patience} epochs: the end.",
                flush=True,
            )
            self.model.stop_training = True


def _adagrad(optimizer: keras.optimizers.Optimizer) -> ClippedAdagrad:
    """The optimizer itself, where mixed_float16 wraps it to scale losses."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _number(variable: keras.Variable) -> float:
    """The value of a variable, which may have one on each replica, all the same."""
    return float(keras.ops.convert_to_numpy(variable))
