"""Adagrad as TensorFlow 1 has it, its clipping, and early stopping by its variables."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from zoo.pointer_generator.adagrad import ClippedAdagrad
from zoo.pointer_generator.schedule import EarlyStopping


class ClippedAdagradTest(parameterized.TestCase):
    def test_steps_are_those_of_the_formula(self):
        gradients = np.random.default_rng(0).normal(size=(4, 5))
        variable = keras.Variable(np.ones(5, "float32"))
        optimizer = ClippedAdagrad(0.15, 0.1, clip_norm=2.0)
        p, a = np.ones(5), np.full(5, 0.1)
        for gradient in gradients:
            optimizer.apply([tf.constant(gradient, tf.float32)], [variable])
            norm = np.linalg.norm(gradient)
            self.assertAlmostEqual(float(optimizer.gradient_norm), norm, places=5)
            clipped = gradient * min(1, 2 / norm)
            a += clipped**2
            p -= 0.15 * clipped / np.sqrt(a)
        self.assertGreater(np.linalg.norm(gradients, axis=1).max(), 2)
        np.testing.assert_allclose(variable, p, rtol=1e-5)

    def test_rows_that_a_gradient_names_twice_count_together(self):
        variable = keras.Variable(np.zeros((3, 1), "float32"))
        rows = tf.IndexedSlices(tf.constant([[3.0], [1.0]]), tf.constant([1, 1]), (3, 1))
        optimizer = ClippedAdagrad(1.0, 0.1, clip_norm=2.0)
        optimizer.apply([rows], [variable])
        self.assertAlmostEqual(float(optimizer.gradient_norm), 4, places=5)
        np.testing.assert_allclose(variable, [[0], [-2 / np.sqrt(4.1)], [0]], rtol=1e-5)

    def test_without_a_largest_norm_nothing_is_clipped(self):
        variable = keras.Variable(np.zeros(1, "float32"))
        ClippedAdagrad(1.0, 0.1, clip_norm=None).apply([tf.constant([9.0])], [variable])
        np.testing.assert_allclose(variable, [-9 / np.sqrt(81.1)], rtol=1e-5)

    def test_its_configuration_makes_it_again(self):
        optimizer = ClippedAdagrad(0.3, 0.2, clip_norm=1.5)
        again = ClippedAdagrad.from_config(optimizer.get_config())
        self.assertEqual(again.get_config(), optimizer.get_config())
        self.assertEqual(again.clip_norm, 1.5)

    @parameterized.parameters(
        ({"initial_accumulator_value": 0.0}, "initial_accumulator_value"),
        ({"clip_norm": 0.0}, "clip_norm"),
    )
    def test_what_divides_must_be_positive(self, options, name):
        with self.assertRaisesRegex(ValueError, f"`{name}` must be positive"):
            ClippedAdagrad(**options)


class EarlyStoppingTest(absltest.TestCase):
    def make(self, patience):
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile(ClippedAdagrad())
        model.optimizer.build([])
        callback = EarlyStopping(patience)
        callback.set_model(model)
        return callback, model

    def test_training_ends_after_epochs_without_gain(self):
        callback, model = self.make(patience=2)
        for epoch, loss in enumerate([3.0, 2.0, 2.5, 1.9, 1.9, 2.0]):
            self.assertFalse(model.stop_training)
            self.assertFalse(callback.ended(model.optimizer))
            callback.on_epoch_end(epoch, {"val_loss": loss})
        self.assertTrue(model.stop_training)
        self.assertTrue(callback.ended(model.optimizer))

    def test_what_it_goes_by_is_in_the_variables_of_the_optimizer(self):
        callback, model = self.make(patience=2)
        for epoch, loss in enumerate([2.0, 2.5]):
            callback.on_epoch_end(epoch, {"val_loss": loss})
        again, other = self.make(patience=2)
        for ours, theirs in zip(other.optimizer.variables, model.optimizer.variables, strict=True):
            ours.assign(theirs)
        again.on_epoch_end(2, {"val_loss": 2.2})
        self.assertTrue(other.stop_training)

    def test_without_patience_no_epoch_ends_it(self):
        callback, model = self.make(patience=0)
        for epoch in range(9):
            callback.on_epoch_end(epoch, {"val_loss": 1.0})
        self.assertFalse(model.stop_training)


if __name__ == "__main__":
    absltest.main()
