"""The callbacks that protect a run: exact restart, the best model, and a stop before NaN is saved.

They write to a temporary name and rename it, and in an order (row of the log, best model,
checkpoint) that lets a run be killed between any two of them: the checkpoint is what counts, and
what is newer than it is written again, the same.
"""

import os
import pathlib
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf

from zoo.batches import Batches


class StopOnNaN(keras.callbacks.Callback):
    """Ends the run at the first step whose loss is not finite, before anything is saved.

    `fit` logs the mean loss of the epoch so far, which is not finite from the very step whose own
    loss is not; and it fetches that mean every step anyway, so the check costs nothing.

    Raises:
        SystemExit: at that step, with its number.
    """

    def __init__(self, checkpoint: "Checkpoint"):
        super().__init__()
        self._checkpoint = checkpoint

    def on_train_batch_end(self, batch, logs=None):
        if not np.isfinite(logs["loss"]):
            step = self._checkpoint.step + 1
            sys.exit(
                f"The loss became {logs['loss']} at step {step}, batch {batch} of the epoch. "
                f"{self._checkpoint.kept()} Try a smaller --learning_rate, or --clip_norm=1, in "
                "another --workdir."
            )


class SaveBest(keras.callbacks.Callback):
    """Keeps the model of the epoch with the lowest validation loss.

    Unlike `keras.callbacks.ModelCheckpoint` it never leaves half a file, nor the variables of the
    optimizer in it, and `best`, the loss to beat, is a variable, for `Checkpoint` to save.

    Args:
        path: the `.keras` file. None: only keeps count (workers other than the chief).
    """

    def __init__(self, path: pathlib.Path | None):
        super().__init__()
        self.best = tf.Variable(np.inf, dtype=tf.float64)
        self._path = path

    def on_epoch_end(self, epoch, logs=None):
        if not logs["val_loss"] < self.best.numpy():
            return
        self.best.assign(logs["val_loss"])
        if self._path:
            temporary = self._path.with_name(".best.keras")
            _save_without_optimizer(self.model, temporary)
            os.replace(temporary, self._path)


def _save_without_optimizer(model: keras.Model, path: pathlib.Path) -> None:
    """Saves a model alone: with `include_optimizer=False`, Keras writes the optimizer too."""
    optimizer, model.optimizer = model.optimizer, None
    try:
        model.save(path)
    finally:
        model.optimizer = optimizer


def load_best(path: pathlib.Path, recipe: str) -> keras.Model:
    """Loads what `SaveBest` saved, without mixed precision.

    A CPU computes half precision slower, and not as a GPU that trained in it did: what was trained
    in mixed precision is used in the precision of its weights.

    Args:
        path: The best.keras.
        recipe: The module that trained it. What its model needs has been imported.

    Raises:
        ValueError: If it is damaged, or no model of this recipe.
    """
    try:
        model = keras.saving.load_model(path, compile=False)
    except (KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is damaged, or no model of this version of {recipe}: {str(error)[:200]}"
        ) from error
    for layer in model._flatten_layers():
        layer.dtype_policy = layer.variable_dtype
    return model


class Checkpoint(keras.callbacks.Callback):
    """Saves all that decides what a run does next, and starts it again from there.

    That is: weights, states of random generators, optimizer, metrics of the epoch so far, the loss
    of the best model, the step, and the seconds spent. With `Batches`, a run that is killed at any
    moment and started again makes the steps of one that never was, bit for bit on one device.
    (`keras.callbacks.BackupAndRestore` of Keras 3.15 forgets random states and the place in the
    epoch.)

    It must be the last of the callbacks: a checkpoint at the end of an epoch means that the
    epoch's row in the log and best model have been written.

    Args:
        model: compiled model.
        directory: where checkpoints are.
        batches: the training batches.
        every: steps between two checkpoints; the end of an epoch has one in any case.
        best: the callback that keeps the best model.
        command: what to type to go on; used in messages.
        write_to: where to write, if not to `directory`: workers that are not the chief must take
            part in saving, but what they write is thrown away.
        agree: takes whether this process was asked to stop and returns whether any was.

    Raises:
        SystemExit: if the newest checkpoint cannot be read or is of another model; if weights
            about to be saved are not finite; after SIGTERM or Ctrl-C, with 128 + signal number.
    """

    def __init__(
        self,
        model: keras.Model,
        directory: pathlib.Path,
        batches: Batches,
        every: int,
        best: SaveBest,
        command: str = "",
        write_to: pathlib.Path | None = None,
        agree: Callable[[bool], bool] = bool,
    ):
        super().__init__()
        self.set_model(model)
        self.step = 0
        self._first = 0
        self._directory = directory
        self._batches = batches
        self._every = every
        self._command = command
        self._agree = agree
        self._signal = None
        self._started = time.monotonic()
        self._step = tf.Variable(0, dtype=tf.int64)
        self._seconds = tf.Variable(0.0, dtype=tf.float64)
        self._earlier = 0.0
        self._checkpoint = tf.train.Checkpoint(
            variables=_variables(model, batches),
            best=best.best,
            step=self._step,
            seconds=self._seconds,
        )
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(write_to or directory), max_to_keep=2, checkpoint_name="step"
        )
        self._latest = self._newest()
        if self._latest:
            self._restore()

    @property
    def epoch(self) -> int:
        """The number of the epoch that the next step is in; after the last step, of epochs."""
        if self.step >= self._batches.steps:
            return self._batches.epochs
        return self.step // self._batches.steps_per_epoch

    @property
    def seconds(self) -> float:
        """The time spent, over all restarts, from reading the model to now."""
        return self._earlier + time.monotonic() - self._started

    def epochs(self) -> Iterator[tuple[int, tf.data.Dataset]]:
        """What is left to do: each epoch and its batches, the first perhaps not from its start.

        Until the last is done, SIGTERM and Ctrl-C save and end the run. A second one ends it at
        once.
        """
        before = {s: signal.signal(s, self._on_signal) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            while self.epoch < self._batches.epochs and not self.model.stop_training:
                first = self.step % self._batches.steps_per_epoch
                yield self.epoch, self._batches.epoch(self.epoch, first)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def kept(self) -> str:
        """A sentence that says what is on disk."""
        if not self._latest:
            return "Nothing had been saved."
        return f"{self._latest} is kept, and the best model so far."

    def on_epoch_begin(self, epoch, logs=None):
        self._first = self.step
        if self.step % self._batches.steps_per_epoch:
            # `fit` has just cleared the metrics of an epoch that the checkpoint is in the midst of.
            self._checkpoint.restore(self._latest).assert_existing_objects_matched()

    def on_train_batch_end(self, batch, logs=None):
        # Not one more than before: `steps_per_execution` of `compile` may be more than one.
        before, self.step = self.step, self._first + batch + 1
        if self.step == self._batches.steps or self.step % self._batches.steps_per_epoch == 0:
            return  # Left to the end of the epoch, when its row and best model are written too.
        # Not by `model.stop_training`: a signal may come between here and where `fit` looks at it,
        # and `fit` would then take the epoch as done.
        stop = self._agree(self._signal is not None)
        if stop or self.step // self._every > before // self._every:
            self._save()
        if stop:
            self._exit()

    def on_epoch_end(self, epoch, logs=None):
        self._save()
        if self._agree(self._signal is not None):
            self._exit()

    def _save(self):
        for weight in self.model.trainable_variables:
            if not np.all(np.isfinite(keras.ops.convert_to_numpy(weight))):
                sys.exit(
                    f"{weight.path} is not finite after step {self.step}. {self.kept()} Try a "
                    "smaller --learning_rate, or --clip_norm=1, in another --workdir."
                )
        self._step.assign(self.step)
        self._seconds.assign(self.seconds)
        self._latest = self._manager.save(checkpoint_number=self.step)

    def _newest(self) -> str | None:
        """The newest checkpoint; None where there is none yet."""
        state = tf.train.get_checkpoint_state(str(self._directory))
        if state is None:
            return None
        found = [
            p for p in reversed(state.all_model_checkpoint_paths) if os.path.exists(f"{p}.index")
        ]
        if not found:
            sys.exit(
                f"{self._directory}/checkpoint names checkpoints that are gone. Bring them back, "
                "or remove the working folder to start anew."
            )
        return found[0]

    def _restore(self):
        try:
            self._checkpoint.restore(self._latest).assert_existing_objects_matched()
        except (tf.errors.OpError, AssertionError, IndexError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            sys.exit(
                f"Cannot start from {self._latest}: {reason} If the code of the model has changed, "
                "go back to the version that wrote it, or choose another --workdir. If the file "
                f"is damaged, remove {self._latest}.* to go on from the checkpoint before it."
            )
        self.step = int(self._step.numpy())
        self._earlier = float(self._seconds.numpy())
        print(f"Going on from step {self.step}: {self._latest}", flush=True)

    def _on_signal(self, number, frame):
        if self._signal:
            sys.exit(128 + number)
        self._signal = signal.Signals(number)

    def _exit(self):
        why = f"by {self._signal.name}" if self._signal else "together with another worker"
        print(
            f"Stopped {why} at step {self.step} of {self._batches.steps}, saved in "
            f"{self._directory}. Go on with: {self._command}",
            file=sys.stderr,
            flush=True,
        )
        sys.exit(128 + (self._signal or signal.SIGTERM))


def _variables(model: keras.Model, batches: Batches) -> list[tf.Variable]:
    """All variables of a compiled model, its optimizer and its metrics, made if need be."""
    with model.distribute_strategy.scope():
        model.optimizer.build(model.trainable_variables)
        # Metrics make their variables when they see a batch. There is no public way to do this
        # without running the model.
        model._symbolic_build(data_batch=next(iter(batches.epoch(0))))
    variables = model.variables + model.optimizer.variables + model.metrics_variables
    unique = {id(variable): variable.value for variable in variables}
    return list(unique.values())
