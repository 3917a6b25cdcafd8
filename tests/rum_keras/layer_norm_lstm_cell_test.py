"""LayerNormLSTMCell against the released Fast-Slow code's numbers and a NumPy reference."""

import pathlib

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras import released_lstm
from tests.rum_keras.cell_checks import CellChecks, flat, inputs

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def norm(z, gain, offset):
    mean, variance = z.mean(-1, keepdims=True), z.var(-1, keepdims=True)
    return (z - mean) / np.sqrt(variance + 1e-3) * gain + offset


def reference_step(cell, x, h, c):
    """Returns the next `h` and `c`, from the definition, in float64."""
    w = {weight.name: backend.to_numpy(weight).astype("float64") for weight in cell.weights}
    z = x @ w["kernel"], h @ w["recurrent_kernel"]
    if cell.normalization == "joint":
        gates = np.split(z[0] + z[1] + w["bias"], 4, axis=-1)
        gains, offsets = np.split(w["gain"], 4), np.split(w["offset"], 4)
        i, f, j, o = map(norm, gates, gains, offsets)
    else:
        z = norm(z[0], w["kernel_gain"], w["kernel_offset"]) + norm(
            z[1], w["recurrent_gain"], w["recurrent_offset"]
        )
        i, f, j, o = np.split(z + w["bias"], 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
    normalized = norm(c, w["state_gain"], w["state_offset"])
    c = c if cell.normalization == "joint" else normalized
    return sigmoid(o) * np.tanh(normalized), c


def randomize(cell, seed=0):
    rng = np.random.default_rng(seed)
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape) * 0.7 + (0.5 if "gain" in weight.name else 0))


class LayerNormLSTMCellTest(parameterized.TestCase):
    @parameterized.parameters(
        (FLOAT, tolerance(1e-9, 5e-5), tolerance(1e-9, 1e-4)), ("float32", 5e-5, 1e-4)
    )
    def test_joint_equals_the_released_code(self, dtype, atol, gradient_atol):
        with np.load(GOLDEN / "lnlstm.npz") as arrays:
            arrays = dict(arrays)
        cell = LayerNormLSTMCell(6, dtype=dtype)
        cell.build((None, 4))
        released_lstm.assign(cell, arrays, "m")
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=dtype)
        x, h, c = (arrays[name].astype(dtype) for name in ("x", "h0", "c0"))
        for actual, name in zip(
            flat(layer(x, initial_state=[h, c])), ("y", "hT", "cT"), strict=True
        ):
            np.testing.assert_allclose(actual, arrays[name], rtol=0, atol=atol)

        def loss(x, h, c):
            return keras.ops.sum(layer(x, initial_state=[h, c])[0] * arrays["c"].astype(dtype))

        _, gradients = backend.value_and_gradients(loss, x, h, c)
        _, weights = backend.weight_gradients(layer, lambda: loss(x, h, c))
        expected = released_lstm.gradients(arrays, "m")
        self.assertEqual(set(weights), set(expected))
        pairs = [(weights[name], expected[name]) for name in expected]
        pairs += zip(gradients, (arrays[f"g_{name}"] for name in ("x", "h0", "c0")), strict=True)
        for actual, want in pairs:
            scale = max(1, abs(want).max())
            np.testing.assert_allclose(actual, want, rtol=0, atol=gradient_atol * scale)

    @parameterized.parameters("joint", "separate")
    def test_equals_the_definition(self, normalization):
        cell = LayerNormLSTMCell(6, normalization, dtype=FLOAT)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
        x = inputs(time=20)
        layer.build(x.shape)
        randomize(cell)
        h = c = np.zeros((2, 6))
        outputs = []
        for t in range(20):
            h, c = reference_step(cell, x[:, t], h, c)
            outputs.append(h)
        for actual, want in zip(flat(layer(x)), (np.stack(outputs, 1), h, c), strict=True):
            np.testing.assert_allclose(actual, want, rtol=0, atol=tolerance(1e-10))

    @parameterized.parameters(("joint", "offset"), ("separate", "bias"))
    def test_the_forget_gate_starts_open_and_all_other_offsets_at_zero(self, normalization, name):
        cell = LayerNormLSTMCell(6, normalization)
        cell.build((None, 4))
        for weight in cell.weights:
            value = backend.to_numpy(weight)
            if weight.name == name:
                np.testing.assert_array_equal(value, np.repeat([0, 1, 0, 0], 6))
            elif "offset" in weight.name or weight.name == "bias":
                np.testing.assert_array_equal(value, 0 * value)
            elif "gain" in weight.name:
                np.testing.assert_array_equal(value, 0 * value + 1)
            else:
                np.testing.assert_allclose(value @ value.T, np.eye(len(value)), atol=1e-5)

    def test_gains_and_offsets_that_undo_the_normalization_give_an_lstm(self):
        plain = keras.layers.LSTMCell(6, dtype=FLOAT)
        cell = LayerNormLSTMCell(6, epsilon=1e-12, dtype=FLOAT)
        plain.build((None, 4))
        cell.build((None, 4))
        rng = np.random.default_rng(0)
        x, h, c = (rng.normal(size=(1, size)).astype(FLOAT) for size in (4, 6, 6))
        for name in ("kernel", "recurrent_kernel"):
            getattr(cell, name).assign(getattr(plain, name))
        z = x @ backend.to_numpy(plain.kernel) + h @ backend.to_numpy(plain.recurrent_kernel)
        gates = z.reshape(4, 6)
        cell.gain.assign(np.repeat(gates.std(-1), 6))
        cell.offset.assign(np.repeat(gates.mean(-1), 6) + np.repeat([0, 1, 0, 0], 6))
        _, (expected_h, expected_c) = backend.to_numpy(plain(x, [h, c]))
        cell.state_gain.assign(np.full(6, expected_c.std()))
        cell.state_offset.assign(np.full(6, expected_c.mean()))
        actual_h, (_, actual_c) = backend.to_numpy(cell(x, [h, c]))
        np.testing.assert_allclose(actual_c, expected_c, rtol=0, atol=tolerance(1e-9))
        np.testing.assert_allclose(actual_h, expected_h, rtol=0, atol=tolerance(1e-9))

    def test_joint_outputs_do_not_change_with_the_scale_of_the_kernels(self):
        cell = LayerNormLSTMCell(6, epsilon=1e-12, dtype=FLOAT)
        layer = keras.layers.RNN(cell, dtype=FLOAT)
        before = flat(layer(inputs()))[0]
        for weight in (cell.kernel, cell.recurrent_kernel):
            weight.assign(7.0 * weight)
        np.testing.assert_allclose(flat(layer(inputs()))[0], before, rtol=0, atol=tolerance(1e-9))

    @parameterized.parameters(("joint", 240 + 84), ("separate", 240 + 132))
    def test_number_of_parameters(self, normalization, count):
        cell = LayerNormLSTMCell(6, normalization)
        cell.build((None, 4))
        self.assertEqual(cell.count_params(), count)

    def test_dropout_masks_stay_the_same_in_a_sequence(self):
        cell = LayerNormLSTMCell(6, dropout=0.5, recurrent_dropout=0.3, seed=1)
        layer = keras.layers.RNN(cell)
        x = inputs(dtype="float32")
        first, second = (flat(layer(x, training=True))[0] for _ in range(2))
        self.assertFalse(np.array_equal(first, second))
        mask = cell.get_dropout_mask(x[:, 0])
        self.assertIs(cell.get_dropout_mask(x[:, 1]), mask)
        self.assertContainsSubset(set(np.unique(backend.to_numpy(mask))), {0.0, 2.0})

    def test_arguments_out_of_range_are_named(self):
        with self.assertRaisesRegex(ValueError, '"joint" or "separate", received \'both\''):
            LayerNormLSTMCell(6, "both")
        with self.assertRaisesRegex(ValueError, "`epsilon` must be positive"):
            LayerNormLSTMCell(6, epsilon=0.0)


class LayerNormLSTMInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return LayerNormLSTMCell(6, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
