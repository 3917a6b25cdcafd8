"""Trains on associative recall; see zoo/run.py for what it leaves behind.

python -m zoo.recall.train --flagfile=zoo/recall/table1_rum_lambda1_t30.flags --workdir=runs/r
"""

import math

import keras
import numpy as np
from absl import app, flags

from datasets import recall
from zoo import cells, multi_worker, run
from zoo.recall.model import recall_model

FLAGS = flags.FLAGS
BASELINE = ("chance, 10 %", math.log(10))


def test_figures(model: keras.Model, sequences: np.ndarray, digits: np.ndarray) -> dict:
    """Returns the test figures: the part of digits recalled, and the mean cross-entropy."""
    logits = model.predict(sequences, batch_size=FLAGS.batch_size, verbose=0)
    loss = keras.losses.sparse_categorical_crossentropy(digits, logits, from_logits=True)
    return {"accuracy": np.mean(logits.argmax(-1) == digits), "loss": np.mean(loss)}


def learning_rate() -> float | keras.optimizers.schedules.LearningRateSchedule:
    """Returns the learning rate, 0.3 times as high from each step of --learning_rate_drops on."""
    drops = [int(step) for step in FLAGS.learning_rate_drops]
    if not drops:
        return FLAGS.learning_rate
    rates = [FLAGS.learning_rate * 0.3**drop for drop in range(len(drops) + 1)]
    # The rate of step b, counted from 0, is the last that holds up to the boundary b.
    return keras.optimizers.schedules.PiecewiseConstantDecay([step - 1 for step in drops], rates)


def main(_) -> None:
    """Trains, tests, and leaves a working folder."""
    strategy = run.start()
    with strategy.scope():
        model = recall_model(cells.layer_from_flags(), FLAGS.length)
        model.compile(
            keras.optimizers.RMSprop(
                learning_rate(), rho=FLAGS.rho, global_clipnorm=FLAGS.clip_norm
            ),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=run.jit_compile(),
        )
    train, validation, test = (
        recall.load(split, FLAGS.length, FLAGS.seed) for split in ("train", "validation", "test")
    )
    checkpoint, callbacks = run.callbacks(model, run.batches(train), BASELINE)
    fit = multi_worker.fit if FLAGS.strategy == "multi_worker" else keras.Model.fit
    for epoch, batches in checkpoint.epochs():  # One a call: the first may begin in its middle.
        fit(
            model,
            batches,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=validation,
            validation_batch_size=FLAGS.batch_size,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
    run.finish(test_figures, test, BASELINE, checkpoint.seconds)


if __name__ == "__main__":
    cells.define_flags()
    flags.DEFINE_integer("length", 30, "T, twice the number of pairs.", lower_bound=2)
    flags.register_validator("length", lambda length: length % 2 == 0, "must be even: 2 a pair")
    flags.DEFINE_float("learning_rate", 1e-3, "Of RMSProp.", lower_bound=0.0)
    flags.DEFINE_list(
        "learning_rate_drops", [], "Steps, rising, after which the learning rate is 0.3 of before."
    )
    flags.register_validator(
        "learning_rate_drops",
        lambda drops: (
            all(step.isdecimal() and int(step) > 0 for step in drops)
            and sorted(set(map(int, drops))) == list(map(int, drops))
        ),
        "must be rising numbers of steps, as in 50000,75000",
    )
    flags.DEFINE_float("rho", 0.9, "Decay of the mean square in RMSProp.", 0.0, 1.0)
    app.run(main)
