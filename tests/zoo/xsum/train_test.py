"""The recipe: schedule, restarts, two devices, and what a run leaves behind."""

import json
import pathlib
import tempfile

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from datasets import topics
from tests.zoo import recipe
from tests.zoo.recipe import rows, saved
from tests.zoo.xsum import tiny_run
from zoo import progress
from zoo.xsum.nesterov import Nesterov
from zoo.xsum.schedule import DropLearningRate

FLAGS = (
    "--units=6 --filters=5 --encoder_layers=1 --decoder_layers=1 --output_units=4 --batch_size=2 "
    "--max_tokens=0 --steps=6 --steps_per_epoch=3 --checkpoint_every=2 --learning_rate=0.1"
).split()


def train(data, workdir, *more, killed_at=None):
    """Runs the recipe and returns the process when it has ended."""
    options = f"--data={data}", f"--workdir={workdir}", *FLAGS, *more
    return recipe.train("xsum", *options, killed_at=killed_at)


class RecipeTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.data, _ = tiny_run.write(cls.folder)
        topics.infer(cls.data, processes=1)
        cls.whole = cls.folder / "whole"
        cls.process = train(cls.data, cls.whole)

    def test_a_run_leaves_its_figures_and_all_that_summarizing_takes(self):
        self.assertEqual(self.process.returncode, 0, self.process.stderr)
        metrics = json.loads((self.whole / "metrics.json").read_text())
        self.assertEqual(metrics["recipe"], "zoo.xsum.train")
        test = metrics["test"]
        self.assertAlmostEqual(test["perplexity"], np.exp(test["loss"]), delta=1e-3)
        for left in ("best.keras", "vocabulary.txt", "topics/topics.npz", "corpus.json"):
            self.assertTrue((self.whole / left).exists(), left)
        log = progress.read_log(self.whole / "log.csv")
        self.assertEqual([row["step"] for row in log], [3, 6])
        for row in log:
            self.assertAlmostEqual(row["val_perplexity"], np.exp(row["val_loss"]), delta=1e-3)
            self.assertGreater(row["tokens_per_second"], 0)
            self.assertLessEqual(row["learning_rate"], 0.1001)
        self.assertRegex(self.process.stdout, r"parameters; a pass is 2 steps\n")

    def test_a_run_killed_between_checkpoints_ends_as_one_that_was_not(self):
        workdir = self.folder / "killed"
        self.assertEqual(train(self.data, workdir, killed_at=5).returncode, -9)
        again = train(self.data, workdir)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("Going on from step 4", again.stdout)
        expected = saved(self.whole)
        for name, value in saved(workdir).items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
        self.assertEqual(rows(workdir), rows(self.whole))

    def test_two_devices_train_like_one(self):
        # Without dropout, whose noise each replica draws for itself.
        one, two = self.folder / "one", self.folder / "two"
        devices = ("--strategy=mirrored", "--logical_devices=2")
        for workdir, more in ((one, ()), (two, devices)):
            done = train(self.data, workdir, "--dropout=0", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
        for row, other in zip(rows(two), rows(one), strict=True):
            np.testing.assert_allclose(list(row.values()), list(other.values()), rtol=1e-4)
        ours, theirs = (
            keras.models.load_model(folder / "best.keras", compile=False).weights
            for folder in (two, one)
        )
        for weight, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(weight, other, rtol=1e-4, atol=1e-6, err_msg=weight.path)


class DropLearningRateTest(parameterized.TestCase):
    def make(self, rate=0.1, patience=0):
        """Returns the callback and its model."""
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(Nesterov(rate))
        model.optimizer.build([])
        callback = DropLearningRate(lowest=1e-4, patience=patience)
        callback.set_model(model)
        return callback, model

    def test_the_rate_drops_after_each_epoch_that_gains_nothing_until_it_is_too_low(self):
        callback, model = self.make()
        losses = [3.0, 2.0, 2.0, 1.9, 1.8999, 1.5, 1.6, 1.4, 1.4]
        rates = []
        for epoch, loss in enumerate(losses):
            self.assertFalse(model.stop_training)
            callback.on_epoch_end(epoch, {"val_loss": loss})
            rates.append(float(model.optimizer.learning_rate))
        expected = [0.1, 0.1, 0.01, 0.01, 1e-3, 1e-3, 1e-4, 1e-4, 1e-5]
        np.testing.assert_allclose(rates, expected, rtol=1e-5)
        self.assertTrue(model.stop_training)
        self.assertTrue(callback.ended(model.optimizer))

    def test_with_patience_only_epochs_without_gain_in_a_row_count(self):
        callback, model = self.make(patience=1)
        rates = []
        for epoch, loss in enumerate([3.0, 3.1, 2.9, 3.0, 3.0, 3.0, 3.0]):
            callback.on_epoch_end(epoch, {"val_loss": loss})
            rates.append(float(model.optimizer.learning_rate))
        np.testing.assert_allclose(rates, [0.1] * 4 + [0.01] * 2 + [1e-3], rtol=1e-5)

    def test_what_it_goes_by_is_in_the_variables_of_the_optimizer(self):
        callback, model = self.make()
        for epoch, loss in enumerate([3.0, 3.5]):
            callback.on_epoch_end(epoch, {"val_loss": loss})
        again, other = self.make()
        for ours, theirs in zip(other.optimizer.variables, model.optimizer.variables, strict=True):
            ours.assign(theirs)
        again.on_epoch_end(2, {"val_loss": 3.2})
        self.assertAlmostEqual(float(other.optimizer.learning_rate), 1e-3)


class NesterovTest(parameterized.TestCase):
    def test_with_a_constant_rate_it_is_that_of_keras(self):
        steps = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
        ours, theirs = (keras.Variable(np.ones(4, "float32")) for _ in range(2))
        optimizer = Nesterov(0.1, 0.9, clip_norm=1e9)
        other = keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)
        for gradient in steps:
            optimizer.apply([gradient], [ours])
            other.apply([tf.constant(gradient)], [theirs])
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)

    def test_rows_that_a_gradient_names_twice_count_together_in_its_norm(self):
        variable = keras.Variable(np.zeros((3, 1), "float32"))
        rows = tf.IndexedSlices(tf.constant([[3.0], [1.0]]), tf.constant([1, 1]), (3, 1))
        Nesterov(1.0, 0.5, clip_norm=2.0).apply([rows], [variable])
        np.testing.assert_allclose(variable, [[0], [-3], [0]], rtol=1e-5)


if __name__ == "__main__":
    absltest.main()
