"""Trains a character-level language model of the Penn Treebank; zoo/run.py: what it leaves behind.

python -m zoo.ptb.train --flagfile=zoo/ptb/small_fs_rum_2.flags --data=FOLDER --workdir=runs/p
"""

import math
import os
import sys
import time

import keras
import numpy as np
from absl import app, flags

from datasets import ptb
from zoo import run
from zoo.ptb import evaluate, layers
from zoo.ptb.clipped_adam import ClippedAdam
from zoo.ptb.model import BitsPerCharacter, CharacterModel, SummedCrossentropy
from zoo.ptb.windows import Windows, evaluation_windows, steps_per_pass

FLAGS = flags.FLAGS


class Throughput(keras.callbacks.Callback):
    """Adds the characters that an epoch trained on in a second to the figures of the log.

    The first step of each epoch, which may compile, and validation do not count. It must be the
    first of the callbacks.
    """

    def __init__(self, characters: int):
        super().__init__()
        self._characters = characters

    def on_epoch_begin(self, epoch, logs=None):
        self._steps = 0

    def on_train_batch_end(self, batch, logs=None):
        if not self._steps:
            self._start = time.monotonic()
        self._steps += 1
        self._stop = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        seconds = self._stop - self._start
        # 0 where a run went on with the last step of an epoch.
        rate = (self._steps - 1) * self._characters / seconds if seconds else 0.0
        logs["characters_per_second"] = rate


def texts() -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Returns the characters that ids stand for, and the ids of the three splits.

    Raises:
        SystemExit: if the data is not where --data says, or is no such data.
    """
    symbols, ids = None, []
    try:
        for split in ptb.SPLITS:
            of_split, symbols = ptb.load(FLAGS.data, split, symbols, FLAGS.form)
            ids.append(of_split)
    except (OSError, ValueError) as error:
        sys.exit(f"--data={FLAGS.data}: {error}")
    if "\n" not in symbols:
        sys.exit(f"--data={FLAGS.data}: the train split has no ends of lines, where texts start.")
    return symbols, *ids


def count_steps(characters: int) -> None:
    """Sets --steps from --epochs, passes over the text, and --max_steps.

    Raises:
        SystemExit: if the text is too short for a step.
    """
    try:
        passes = steps_per_pass(characters, FLAGS.batch_size, FLAGS.window)
    except ValueError as error:
        sys.exit(f"zoo.ptb.train: {error}")
    if not FLAGS["steps_per_epoch"].present:
        FLAGS.steps_per_epoch = passes
    if FLAGS.epochs:
        FLAGS.steps = FLAGS.epochs * passes
    if FLAGS.max_steps:
        FLAGS.steps = min(FLAGS.steps, FLAGS.max_steps)
    # A run is known by its steps; it may go on for more epochs.
    FLAGS.epochs = FLAGS.max_steps = None


def learning_rate(passes: int) -> float | keras.optimizers.schedules.LearningRateSchedule:
    """Returns the learning rate, which changes at epochs, each of `passes` steps."""
    rates = [float(rate) for rate in FLAGS.learning_rates]
    epochs = [float(epoch) for epoch in FLAGS.learning_rate_epochs]
    if len(rates) == 1:
        return rates[0]
    # The rate of step b, counted from 0, is the last that holds up to the boundary b.
    boundaries = [round(epoch * passes) - 1 for epoch in epochs]
    return keras.optimizers.schedules.PiecewiseConstantDecay(boundaries, rates)


def compiled_model(symbols: str, passes: int) -> CharacterModel:
    """Returns the model that the flags describe.

    Its loss is that of the papers, summed over time, whose gradient is clipped.

    Args:
        symbols: the characters that ids stand for.
        passes: steps of a pass over the text.

    Raises:
        SystemExit: if the model does not take a flag, or refuses its value.
    """
    try:
        model = CharacterModel(
            symbols,
            layers.layers_from_flags(),
            FLAGS.embedding_units or None,
            layers.dropout_from_flags(),
            FLAGS.variational_dropout,
            FLAGS.tie_embedding,
            training_rows=FLAGS.batch_size,
            evaluation_rows=FLAGS.evaluation_rows,
        )
    except ValueError as error:
        sys.exit(f"zoo.ptb.train: {error}")
    model.compile(
        ClippedAdam(learning_rate(passes), FLAGS.clip_norm, epsilon=1e-8),
        loss=SummedCrossentropy(),
        metrics=[BitsPerCharacter()],
        jit_compile=run.jit_compile(),
    )
    return model


def numbers(texts: list[str]) -> bool:
    """Whether texts are finite numbers, none below 0."""
    try:
        return all(0 <= float(text) < math.inf for text in texts)
    except ValueError:
        return False


def test_figures(model: CharacterModel, ids: np.ndarray) -> dict:
    """Returns the bits per character of the test split, every character counted."""
    bits = evaluate.bits_per_character(model, ids, FLAGS.evaluation_rows, FLAGS.window)
    return {"bits_per_character": bits}


def main(_) -> None:
    """Trains, tests, and leaves a working folder."""
    if FLAGS.strategy == "multi_worker":
        sys.exit("This recipe carries states from step to step on one machine: --strategy=mirrored")
    layers.check_flags()
    symbols, train, validation, test = texts()
    count_steps(len(train))
    strategy = run.start()
    windows = Windows(train, FLAGS.batch_size, FLAGS.window, FLAGS.steps, FLAGS.steps_per_epoch)
    rows, line_end = FLAGS.evaluation_rows, symbols.index("\n")
    validation = evaluation_windows(validation, rows, FLAGS.window, line_end)
    with strategy.scope():
        model = compiled_model(symbols, windows.steps_per_pass)
    baseline = (f"{len(symbols)} kinds by chance", FLAGS.window * math.log(len(symbols)))
    checkpoint, callbacks = run.callbacks(model, windows, baseline)
    throughput = Throughput(FLAGS.batch_size * FLAGS.window)
    for epoch, data in checkpoint.epochs():  # One a call: the first may begin in its middle.
        model.fit(
            data,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=validation,
            callbacks=[throughput, *callbacks],
            shuffle=False,
            verbose=0,
        )
    run.finish(test_figures, (test,), baseline, checkpoint.seconds)


if __name__ == "__main__":
    layers.define_flags()
    folder = os.path.join(os.environ.get("RUM_KERAS_DATA", "data"), "ptb")
    flags.DEFINE_string("data", folder, "Folder or archive of the text; see datasets/ptb.py.")
    flags.DEFINE_enum("form", "bytes", list(ptb.SIZES), "Reading of the data; see datasets/ptb.py.")
    flags.DEFINE_integer("window", 150, "Characters of each row a step.", lower_bound=1)
    flags.DEFINE_integer("epochs", None, "Passes over the text, instead of --steps.", 1)
    flags.DEFINE_integer("max_steps", None, "Fewer steps than that.", lower_bound=1)
    flags.DEFINE_integer(
        "evaluation_rows", 20, "Parts of the text that are evaluated at once.", lower_bound=1
    )
    flags.DEFINE_list("learning_rates", ["2e-3"], "Of Adam, one after the other.")
    flags.DEFINE_list("learning_rate_epochs", [], "Epochs after which the next one holds.")
    for name in ("learning_rates", "learning_rate_epochs"):
        flags.register_validator(name, numbers, "must be numbers, with commas between them")
    flags.register_multi_flags_validator(
        ["learning_rates", "learning_rate_epochs"],
        lambda f: len(f["learning_rates"]) == len(f["learning_rate_epochs"]) + 1,
        "must be one more than --learning_rate_epochs, which lie between them",
    )
    flags.FLAGS.set_default("workdir", "runs/ptb")
    app.run(main)
