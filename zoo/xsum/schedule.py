"""The learning rates of the summarizer's recipe."""

import keras

from zoo.xsum.nesterov import Nesterov


class DropLearningRate(keras.callbacks.Callback):
    """Divides the learning rate by ten after each epoch that lowers the validation loss no more.

    Training ends when it is below `lowest`. Rate and loss to beat are variables of the optimizer,
    which checkpoints hold: a run that goes on, goes on with them. (Keras's `ReduceLROnPlateau`
    forgets at every call of `fit`, and recipes call it once an epoch.)

    Args:
        lowest: the learning rate to stop below.
        patience: epochs without gain, one after the other, that do not count yet. The released
            code has none.
        threshold: part of the loss that an epoch must gain.
    """

    def __init__(self, lowest: float = 1e-4, patience: int = 0, threshold: float = 1e-4):
        super().__init__()
        self._lowest = lowest
        self._patience = patience
        self._threshold = threshold

    def ended(self, optimizer: keras.optimizers.Optimizer) -> bool:
        """Whether the learning rate is below the lowest."""
        # Not by a rounding error: 0.1 divided by ten three times is not 1e-4 in float32.
        return _read(_nesterov(optimizer).learning_rate) < self._lowest * (1 - 1e-3)

    def on_epoch_end(self, epoch, logs=None):
        optimizer = _nesterov(self.model.optimizer)
        rate = logs["learning_rate"] = _read(optimizer.learning_rate)
        if logs["val_loss"] < _read(optimizer.lowest_loss) * (1 - self._threshold):
            optimizer.lowest_loss.assign(logs["val_loss"])
            optimizer.epochs_without_gain.assign(0)
            return
        waited = _read(optimizer.epochs_without_gain) + 1
        if waited <= self._patience:
            optimizer.epochs_without_gain.assign(waited)
            return
        optimizer.epochs_without_gain.assign(0)
        optimizer.learning_rate.assign(rate * 0.1)
        if self.ended(optimizer):
            print(f"The learning rate is below {self._lowest:g}: the end.", flush=True)
            self.model.stop_training = True


def _nesterov(optimizer: keras.optimizers.Optimizer) -> Nesterov:
    """The optimizer itself, where mixed_float16 wraps it to scale losses."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _read(variable: keras.Variable) -> float:
    """The value of a variable, of all replicas together."""
    return float(keras.ops.convert_to_numpy(variable))
