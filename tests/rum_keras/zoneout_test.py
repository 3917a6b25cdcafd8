"""Zoneout against its definition: what is kept, how often, and in which steps."""

import unittest
from unittest import mock

import keras
import numpy as np
from absl.testing import absltest, parameterized

import rum_keras
from rum_keras.zoneout import StepNoise, Zoneout
from tests import backend
from tests.rum_keras.cell_checks import CellChecks, flat, inputs


class CountingCell(keras.layers.Layer):
    """Its two equal states grow by 1 in each step: whatever is kept can be counted."""

    state_size = [6, 6]
    output_size = 6

    def call(self, inputs, states):
        return states[0] + 1, [states[0] + 1, states[1] + 1]


def kept(rates=(0.3, 0.6), batch=3, time=40, seed=1, layer=None):
    """Returns in which steps the two states were kept, (batch, time, units)."""
    cell = Zoneout(CountingCell(), rates, seed=seed)
    layer = layer or keras.layers.RNN(cell, return_state=True, unroll=True)
    history = [[np.zeros((batch, 6))], [np.zeros((batch, 6))]]

    def recorded(old, new, *args, **kwargs):
        values = StepNoise.zone_out(layer.cell, old, new, *args, **kwargs)
        history[kwargs.get("stream", args[-1])].append(backend.to_numpy(values))
        return values

    with mock.patch.object(layer.cell, "zone_out", recorded):
        layer(np.zeros((batch, time, 1), "float32"), training=True)
    return [np.diff(np.stack(states, 1), axis=1) == 0 for states in history]


class ZoneoutTest(parameterized.TestCase):
    def test_each_state_is_kept_with_the_probability_of_its_rate(self):
        for mask, rate in zip(kept(batch=25), (0.3, 0.6), strict=True):
            error = np.sqrt(rate * (1 - rate) / mask.size)
            self.assertAlmostEqual(mask.mean(), rate, delta=4 * error)

    def test_masks_differ_between_steps_rows_units_and_states(self):
        first, second = kept(rates=0.5)
        for axis in range(3):
            for one in range(first.shape[axis]):
                for other in range(one):
                    different = first.take(one, axis) != first.take(other, axis)
                    self.assertTrue(different.any(), f"axis {axis}: {one} and {other}")
        self.assertTrue((first != second).any())

    def test_masks_are_independent_between_steps_rows_and_states(self):
        first, second = kept(rates=0.5, batch=25)
        pairs = [
            (first[:, 1:], first[:, :-1]),
            (first[1:], first[:-1]),
            (first[..., 1:], first[..., :-1]),
            (first, second),
        ]
        for one, other in pairs:
            self.assertAlmostEqual((one == other).mean(), 0.5, delta=2 / np.sqrt(one.size))

    def test_masks_repeat_with_the_seed_and_differ_between_seeds_and_sequences(self):
        cell = Zoneout(CountingCell(), 0.5, seed=1)
        layer = keras.layers.RNN(cell, return_state=True, unroll=True)
        first, second = kept(layer=layer)[0], kept(layer=layer)[0]
        np.testing.assert_array_equal(first, kept(rates=0.5)[0])
        self.assertTrue((first != second).any())
        self.assertTrue((first != kept(rates=0.5, seed=2)[0]).any())

    def test_inference_is_the_mean_of_training(self):
        keras.utils.set_random_seed(0)
        cell = Zoneout(keras.layers.LSTMCell(6), [0.2, 0.7], seed=1)
        rng = np.random.default_rng(0)
        x, h, c = (rng.normal(size=(1, size)).astype("float32") for size in (4, 6, 6))
        cell.build((None, 4))
        _, expected = cell(x, [h, c])
        rows = 10_000
        _, sampled = cell(
            *(np.repeat(x, rows, 0), [np.repeat(s, rows, 0) for s in (h, c)]), training=True
        )
        for want, values in zip(flat(expected), flat(sampled), strict=True):
            values = values.astype("float64")
            error = values.std(0) / np.sqrt(rows)
            np.testing.assert_array_less(abs(values.mean(0) - want[0]), 4 * error + 1e-6)

    def test_inference_mixes_old_and_new_states_by_the_rates(self):
        plain = keras.layers.LSTMCell(6)
        cell = Zoneout(plain, [0.2, 0.7])
        rng = np.random.default_rng(0)
        x, h, c = (rng.normal(size=(2, size)).astype("float32") for size in (4, 6, 6))
        cell.build((None, 4))
        _, (new_h, new_c) = backend.to_numpy(plain(x, [h, c]))
        output, states = backend.to_numpy(cell(x, [h, c]))
        np.testing.assert_allclose(states[0], 0.2 * h + 0.8 * new_h, atol=1e-6)
        np.testing.assert_allclose(states[1], 0.7 * c + 0.3 * new_c, atol=1e-6)
        np.testing.assert_array_equal(output, states[0])

    @parameterized.parameters(False, True)
    def test_rate_zero_is_the_plain_cell_bit_for_bit(self, training):
        plain = keras.layers.LSTMCell(6)
        x = inputs(dtype="float32")
        wrapped = keras.layers.RNN(Zoneout(plain, 0.0), return_sequences=True, return_state=True)
        layer = keras.layers.RNN(plain, return_sequences=True, return_state=True)
        for one, other in zip(
            flat(wrapped(x, training=training)), flat(layer(x, training=training)), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    @parameterized.parameters(False, True)
    def test_rate_one_keeps_the_initial_states(self, training):
        layer = keras.layers.RNN(Zoneout(keras.layers.LSTMCell(6), 1.0), return_state=True)
        states = [np.full((2, 6), value, "float32") for value in (0.25, -2.0)]
        output, *last = flat(
            layer(inputs(dtype="float32"), initial_state=states, training=training)
        )
        np.testing.assert_array_equal(last, states)
        np.testing.assert_array_equal(output, states[0])

    def test_the_output_is_the_zoned_out_state_in_training(self):
        layer = keras.layers.RNN(Zoneout(keras.layers.GRUCell(6), 0.5), return_state=True)
        output, state = flat(layer(inputs(dtype="float32"), training=True))
        np.testing.assert_array_equal(output, state)

    def test_only_training_draws_random_numbers_and_moves_on_the_seed(self):
        cell = Zoneout(keras.layers.GRUCell(6), 0.5, seed=1)
        layer = keras.layers.RNN(cell)
        with mock.patch.object(keras.random, "uniform", side_effect=AssertionError):
            layer(inputs(dtype="float32"))
        self.assertEqual(backend.to_numpy(cell.seed_generator.state).tolist(), [1, 0])
        layer(inputs(dtype="float32"), training=True)
        self.assertEqual(backend.to_numpy(cell.seed_generator.state).tolist(), [1, 1])

    def test_compiled_training_draws_anew_in_every_batch_also_around_dropout(self):
        cells = [
            Zoneout(keras.layers.GRUCell(6, dropout=0.2, recurrent_dropout=0.1), 0.5, seed=1),
            Zoneout(rum_keras.RUMCell(5, lambda_=1, dropout=0.2), [0.4, 0.0], seed=2),
        ]
        model = keras.Sequential([keras.Input((None, 4)), keras.layers.RNN(cells)])
        model.compile("sgd", "mse")
        x = inputs(batch=4, dtype="float32")
        model.fit(x, np.zeros((4, 5)), batch_size=2, epochs=2, verbose=0)
        states = [backend.to_numpy(cell.seed_generator.state).tolist() for cell in cells]
        self.assertEqual(states, [[1, 4], [2, 4]])
        self.assertFalse(np.array_equal(*(flat(model(x, training=True))[0] for _ in range(2))))

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "tf.distribute is TensorFlow's")
    def test_trains_in_replicas(self):
        import tensorflow as tf

        strategy = tf.distribute.MirroredStrategy(tf.config.list_logical_devices("CPU"))
        with strategy.scope():
            cell = Zoneout(keras.layers.GRUCell(6), 0.5, seed=1)
            model = keras.Sequential([keras.Input((5, 4)), keras.layers.RNN(cell)])
            model.compile("sgd", "mse")
        model.fit(inputs(batch=4, dtype="float32"), np.zeros((4, 6)), batch_size=2, verbose=0)
        self.assertEqual(backend.to_numpy(cell.seed_generator.state).tolist(), [1, 2])

    @parameterized.parameters(1.5, -0.1, ([0.1, 0.2, 0.3],))
    def test_rates_that_are_no_probability_of_each_state_are_named(self, rates):
        with self.assertRaisesRegex(ValueError, "`rates` must be a probability, or 2"):
            Zoneout(keras.layers.LSTMCell(6), rates)

    def test_cells_it_cannot_wrap_are_named(self):
        with self.assertRaisesRegex(ValueError, "must be its first state, of size 6.*size 7"):
            Zoneout(rum_keras.RUMCell(6, return_angle=True), 0.1)
        stack = keras.layers.StackedRNNCells([keras.layers.GRUCell(6)])
        with self.assertRaisesRegex(ValueError, "each cell"):
            Zoneout(stack, 0.1)


class ZoneoutInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return Zoneout(keras.layers.LSTMCell(6, dtype=dtype), [0.1, 0.5], seed=1)


if __name__ == "__main__":
    absltest.main()
