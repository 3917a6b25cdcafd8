"""NASCell against a NumPy reference and laws of its equations."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.nas_cell import NASCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, flat, inputs


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def relu(z):
    return np.maximum(z, 0)


def reference_step(weights, x, h, c):
    """Returns the next `h` and `c`, leaf by leaf, in float64."""
    leaves = [sigmoid, relu, sigmoid, relu, np.tanh, sigmoid, np.tanh, sigmoid]
    pairs = zip(
        leaves,
        np.split(x @ weights["kernel"], 8, axis=-1),
        np.split(h @ weights["recurrent_kernel"] + weights.get("bias", 0), 8, axis=-1),
        strict=True,
    )
    leaf = [f(x_k * m_k if k == 3 else x_k + m_k) for k, (f, x_k, m_k) in enumerate(pairs)]
    c = np.tanh(np.tanh(leaf[0] * leaf[1]) + c) * np.tanh(leaf[2] + leaf[3])
    right = np.tanh(np.tanh(leaf[4] * leaf[5]) + sigmoid(leaf[6] + leaf[7]))
    h = np.tanh(c * right)
    return h @ weights["projection_kernel"] if "projection_kernel" in weights else h, c


def weights_of(cell):
    return {weight.name: backend.to_numpy(weight).astype("float64") for weight in cell.weights}


def randomize(cell, scale=0.7):
    rng = np.random.default_rng(3)
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape) * scale)


class NASCellTest(parameterized.TestCase):
    @parameterized.product(projection=[None, 5], use_bias=[False, True])
    def test_equals_the_definition(self, projection, use_bias):
        cell = NASCell(6, projection=projection, use_bias=use_bias, dtype=FLOAT)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
        x = inputs(time=20)
        layer.build(x.shape)
        randomize(cell)
        weights = weights_of(cell)
        rng = np.random.default_rng(1)
        h, c = (rng.normal(size=(2, size)) for size in cell.state_size)
        actual = flat(layer(x, initial_state=[h.astype(FLOAT), c.astype(FLOAT)]))
        outputs = []
        for step in range(20):
            h, c = reference_step(weights, x[:, step].astype("float64"), h, c)
            outputs.append(h)
        for one, other in zip(actual, [np.stack(outputs, axis=1), h, c], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-10))

    def test_the_first_state_is_the_output_and_the_second_is_the_cell_state(self):
        cell = NASCell(6, projection=5)
        output, (h, c) = cell(np.ones((2, 4), "float32"), cell.get_initial_state(2))
        np.testing.assert_array_equal(backend.to_numpy(output), backend.to_numpy(h))
        self.assertEqual((tuple(h.shape), tuple(c.shape)), ((2, 5), (2, 6)))

    def test_without_input_and_states_all_stays_zero(self):
        # l_0 l_1 = 0, so a = 0, c = 0 and h = 0: the cell has a fixed point there, unlike the LSTM.
        layer = keras.layers.RNN(NASCell(6), return_state=True)
        for value in flat(layer(np.zeros((2, 5, 4), "float32"))):
            np.testing.assert_array_equal(value, 0)

    def test_states_stay_inside_of_the_unit_cube(self):
        layer = keras.layers.RNN(NASCell(6), return_sequences=True, return_state=True)
        x = 10 * inputs(time=20, dtype="float32")
        layer.build(x.shape)
        randomize(layer.cell, scale=3.0)
        for value in flat(layer(x)):
            self.assertLessEqual(np.abs(value).max(), 1.0)

    @parameterized.parameters(
        # 8 units (features + size of h) + units projection; Table 3's larger layers without them.
        (4, 6, {}, 480),
        (4, 6, {"use_bias": True}, 480 + 48),
        (4, 6, {"projection": 5}, 432 + 30),
        (128, 800, {}, 5_939_200),
    )
    def test_number_of_parameters(self, features, units, options, count):
        cell = NASCell(units, **options)
        cell.build((None, features))
        self.assertEqual(cell.count_params(), count)

    def test_the_first_weights_are_glorot_uniform(self):
        cell = NASCell(6, projection=5)
        cell.build((None, 4))
        for weight in cell.weights:
            limit = np.sqrt(6 / sum(weight.shape))
            largest = np.abs(backend.to_numpy(weight)).max()
            self.assertTrue(0.8 * limit < largest <= limit, (weight.name, largest, limit))

    def test_dropout_drops_the_same_inputs_in_all_steps(self):
        cell = NASCell(6, dropout=0.5, recurrent_dropout=0.3, seed=1)
        layer = keras.layers.RNN(cell)
        x = inputs(dtype="float32")
        plain = flat(layer(x))[0]
        first, second = (flat(layer(x, training=True))[0] for _ in range(2))
        self.assertFalse(np.array_equal(first, second))
        self.assertFalse(np.array_equal(first, plain))
        mask = cell.get_dropout_mask(x[:, 0])
        self.assertIs(cell.get_dropout_mask(x[:, 1]), mask)

    def test_weights_take_regularizers_and_constraints(self):
        cell = NASCell(
            6, projection=5, kernel_regularizer="l2", projection_constraint="non_neg", use_bias=True
        )
        cell.build((None, 4))
        again = NASCell.from_config(cell.get_config())
        again.build((None, 4))
        for one in (cell, again):
            self.assertIsInstance(one.kernel.regularizer, keras.regularizers.L2)
            self.assertIsInstance(one.projection_kernel.constraint, keras.constraints.NonNeg)
            self.assertIsNone(one.recurrent_kernel.regularizer)

    @parameterized.named_parameters(
        ("units", dict(units=0), "`units` must be a positive integer, received units=0"),
        ("projection", dict(units=6, projection=2.5), "`projection` must be a positive integer"),
        ("dropout", dict(units=6, dropout=1.0), "`dropout` must be a probability"),
        ("recurrent", dict(units=6, recurrent_dropout=-0.1), "`recurrent_dropout` must be"),
    )
    def test_a_bad_argument_is_named(self, arguments, message):
        with self.assertRaisesRegex(ValueError, message):
            NASCell(**arguments)


class NASCellInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        # Biases away from zero: from all-zero states, m_3 = b_3 = 0 would be the kink of a relu.
        bias_initializer = keras.initializers.RandomNormal(stddev=0.5, seed=1)
        return NASCell(6, use_bias=True, bias_initializer=bias_initializer, dtype=dtype)


class ProjectedInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return NASCell(6, projection=5, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
