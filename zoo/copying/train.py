"""Trains on the copying memory task; see zoo/run.py for what it leaves behind.

python -m zoo.copying.train --flagfile=zoo/copying/figure4_rum_lambda1.flags --workdir=runs/c
"""

import keras
import numpy as np
from absl import app, flags

from datasets import copying
from zoo import cells, multi_worker, run
from zoo.copying.model import copying_model

FLAGS = flags.FLAGS
RECALLED = 10  # The last steps, at which the symbols are due.


def test_figures(model: keras.Model, inputs: np.ndarray, targets: np.ndarray) -> dict:
    """Returns the test figures: accuracy of all steps and of the last ten, mean cross-entropy."""
    logits = model.predict(inputs, batch_size=FLAGS.batch_size, verbose=0)
    loss = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    right = logits.argmax(-1) == targets
    return {
        "accuracy": np.mean(right),
        "recalled": np.mean(right[:, -RECALLED:]),
        "loss": np.mean(loss),
    }


def main(_) -> None:
    """Trains, tests, and leaves a working folder."""
    strategy = run.start()
    with strategy.scope():
        model = copying_model(cells.layer_from_flags(return_sequences=True), FLAGS.delay)
        model.compile(
            keras.optimizers.RMSprop(
                FLAGS.learning_rate, rho=FLAGS.rho, global_clipnorm=FLAGS.clip_norm
            ),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=run.jit_compile(),
        )
    train, validation, test = (
        copying.load(split, FLAGS.delay, FLAGS.seed) for split in ("train", "validation", "test")
    )
    baseline = ("memoryless", copying.memoryless_loss(FLAGS.delay))
    checkpoint, callbacks = run.callbacks(model, run.batches(train), baseline)
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
    run.finish(test_figures, test, baseline, checkpoint.seconds)


if __name__ == "__main__":
    cells.define_flags()
    flags.DEFINE_integer("delay", 500, "T, steps from the last symbol to the marker.", 1)
    flags.DEFINE_float("learning_rate", 1e-3, "Of RMSProp.", lower_bound=0.0)
    flags.DEFINE_float("rho", 0.9, "Decay of the mean square in RMSProp.", 0.0, 1.0)
    app.run(main)
