"""The callbacks that show a run: log, TensorBoard, lines on the console, rate of work, a figure."""

import csv
import os
import pathlib
import sys
import time

import keras
import tensorflow as tf
from matplotlib.figure import Figure

from zoo.batches import Batches
from zoo.checkpoint import Checkpoint


class Log(keras.callbacks.Callback):
    """Writes the figures of each epoch to log.csv and to TensorBoard.

    log.csv is replaced as a whole after each epoch, so there is never half a row. A run that goes
    on drops the rows of epochs that are newer than its checkpoint; it will write them again.

    Args:
        workdir: the run's folder.
        checkpoint: says which epochs are done.

    Raises:
        SystemExit: if rows of epochs that are done are missing.
    """

    def __init__(self, workdir: pathlib.Path, checkpoint: Checkpoint):
        super().__init__()
        self._checkpoint = checkpoint
        self._path = workdir / "log.csv"
        self._rows = [row for row in read_log(self._path) if row["epoch"] < checkpoint.epoch]
        if [row["epoch"] for row in self._rows] != list(range(checkpoint.epoch)):
            sys.exit(
                f"{self._path} does not have the rows of epochs 0 to {checkpoint.epoch - 1}, which "
                "are done: bring the file back, or remove the working folder to start anew."
            )
        if self._rows:
            self._write()
        else:
            self._path.unlink(missing_ok=True)  # Of an epoch that will be done again.
        self._events = tf.summary.create_file_writer(str(workdir / "tensorboard"))

    def on_epoch_end(self, epoch, logs=None):
        self._rows.append({"epoch": epoch, "step": self._checkpoint.step, **logs})
        self._write()
        with self._events.as_default(self._checkpoint.step):
            for name, value in logs.items():
                tf.summary.scalar(name, value)
        self._events.flush()

    def _write(self):
        temporary = self._path.with_name(".log.csv")
        with temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, self._rows[-1].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows)
        os.replace(temporary, self._path)


class Progress(keras.callbacks.Callback):
    """Prints now and then, and after each epoch, a line: step, loss, rate and time left.

    Args:
        checkpoint: says which step it is.
        batches: the training batches.
        baseline: what the loss is to be compared with, as (its name, its loss).
        seconds: between two lines.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        batches: Batches,
        baseline: tuple[str, float],
        seconds: float = 10.0,
    ):
        super().__init__()
        self._checkpoint = checkpoint
        self._batches = batches
        self._baseline = baseline
        self._interval = seconds
        self._start = None
        self._printed = time.monotonic()
        self._validating = 0.0

    def on_train_batch_end(self, batch, logs=None):
        step, now = self._checkpoint.step + 1, time.monotonic()
        if self._start is None:  # The first step, which compiles, says nothing about the rate.
            self._start = (step, now)
        elif now > self._printed + self._interval:
            self._print(step, logs)

    def on_test_begin(self, logs=None):
        self._validating -= time.monotonic()

    def on_test_end(self, logs=None):
        self._validating += time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        self._print(self._checkpoint.step, logs)

    def _print(self, step: int, logs: dict):
        self._printed = time.monotonic()
        others = [f"{name} {value:.4f}" for name, value in logs.items() if name != "loss"]
        label, loss = self._baseline
        figures = [f"loss {logs['loss']:.4f} ({label}: {loss:.4f})", *others]
        steps = step - self._start[0]
        if steps:
            # Time left counts validation as well, at its share of the time so far.
            elapsed = self._printed - self._start[1]
            rate = steps / max(elapsed - self._validating, 1e-9)
            left = (self._batches.steps - step) * elapsed / steps
            examples = rate * self._batches.batch_size
            figures.append(f"{rate:.1f} steps/s {examples:.0f} examples/s {_duration(left)} left")
        print(f"step {step}/{self._batches.steps}", *figures, sep="  ", flush=True)


class TokensPerSecond(keras.callbacks.Callback):
    """Adds `tokens_per_second` to the log: of summaries, without validation or compilation.

    The model is one that counts the tokens of an epoch in `token_loss.count`. Comes before `Log`.
    """

    def __init__(self):
        super().__init__()
        self._compiled = False

    def on_epoch_begin(self, epoch, logs=None):
        self._start = None
        if self._compiled:
            self._begin()

    def on_train_batch_end(self, batch, logs=None):
        if self._start is None:  # The first step compiles.
            self._compiled = True
            self._begin()

    def on_test_begin(self, logs=None):
        if self._start is not None:
            seconds = time.monotonic() - self._start[0]
            self._rate = (self._count() - self._start[1]) / max(seconds, 1e-9)

    def on_epoch_end(self, epoch, logs=None):
        logs["tokens_per_second"] = round(self._rate, 1)

    def _begin(self):
        self._start = (time.monotonic(), self._count())

    def _count(self):
        # Of all replicas together.
        return float(keras.ops.convert_to_numpy(self.model.token_loss.count))


def read_log(path: pathlib.Path) -> list[dict]:
    """Reads a log.csv: a dictionary a row, `epoch` and `step` as int, the others as float."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {
                key: int(text) if key in ("epoch", "step") else float(text)
                for key, text in row.items()
            }
            for row in csv.DictReader(file)
        ]


def draw_loss(workdir: pathlib.Path, baseline: tuple[str, float]) -> None:
    """Draws figures/loss.png from log.csv, with the baseline as a line."""
    rows = read_log(workdir / "log.csv")
    steps = [row["step"] for row in rows]
    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    axes.plot(steps, [row["loss"] for row in rows], label="training")
    axes.plot(steps, [row["val_loss"] for row in rows], label="validation")
    axes.axhline(baseline[1], color="gray", linestyle="--", label=baseline[0])
    axes.set(xlabel="steps", ylabel="loss (nats)", yscale="log")
    axes.legend()
    folder = workdir / "figures"
    folder.mkdir(exist_ok=True)
    axes.figure.savefig(folder / ".loss.png", dpi=150)
    os.replace(folder / ".loss.png", folder / "loss.png")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
