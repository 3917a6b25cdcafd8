"""HyperLSTMCell against a NumPy reference, and against the LSTM that it is when nothing changes."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.hyper_lstm_cell import HyperLSTMCell
from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, flat, inputs


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def norm(z, gain, offset):
    mean, variance = z.mean(-1, keepdims=True), z.var(-1, keepdims=True)
    return (z - mean) / np.sqrt(variance + 1e-3) * gain + offset


def gated(w, pre_activations, c):
    """Returns the next `h` and `c` of a layer-normalized LSTM."""
    gains, offsets = np.split(w["gain"], 4), np.split(w["offset"], 4)
    i, f, j, o = map(norm, pre_activations, gains, offsets)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
    return sigmoid(o) * np.tanh(norm(c, w["state_gain"], w["state_offset"])), c


def reference_step(w, hyper, x, h, c, hyper_h, hyper_c):
    """Returns the next states, gate by gate, in float64."""
    z = np.concatenate([x, h], axis=-1) @ hyper["kernel"] + hyper_h @ hyper["recurrent_kernel"]
    hyper_h, hyper_c = gated(hyper, np.split(z, 4, axis=-1), hyper_c)
    embeddings = np.split(hyper_h @ w["embedding_kernel"] + w["embedding_bias"], 8, axis=-1)
    shift_embeddings = np.split(hyper_h @ w["shift_embedding_kernel"], 4, axis=-1)
    xs, hs = np.split(x @ w["kernel"], 4, -1), np.split(h @ w["recurrent_kernel"], 4, -1)
    biases = np.split(w["bias"], 4)
    pre_activations = [
        (embeddings[k] @ w["scale_kernel"][k]) * xs[k]
        + (embeddings[4 + k] @ w["scale_kernel"][4 + k]) * hs[k]
        + shift_embeddings[k] @ w["shift_kernel"][k]
        + biases[k]
        for k in range(4)
    ]
    return *gated(w, pre_activations, c), hyper_h, hyper_c


def weights_of(cell):
    """Returns the weights of the main cell and those of the hyper cell, by name."""
    weights, hyper_weights = {}, {}
    for weight in cell.weights:
        group = hyper_weights if "hyper_cell" in weight.path else weights
        group[weight.name] = backend.to_numpy(weight).astype("float64")
    return weights, hyper_weights


def randomize(weights, seed=0):
    rng = np.random.default_rng(seed)
    for weight in weights:
        weight.assign(rng.normal(size=weight.shape) * 0.7 + (0.5 if "gain" in weight.name else 0))


def make_cell(**options):
    return HyperLSTMCell(6, hyper_units=5, embedding_units=3, **options)


class HyperLSTMCellTest(parameterized.TestCase):
    def test_equals_the_definition(self):
        cell = make_cell(dtype=FLOAT)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
        x = inputs(time=20)
        layer.build(x.shape)
        randomize(cell.weights)
        weights, hyper_weights = weights_of(cell)
        self.assertLen(weights, 12)
        rng = np.random.default_rng(1)
        states = [rng.normal(size=(2, size)).astype(FLOAT) for size in (6, 6, 5, 5)]
        actual = flat(layer(x, initial_state=states))
        outputs = []
        for step in range(20):
            states = reference_step(weights, hyper_weights, x[:, step].astype("float64"), *states)
            outputs.append(states[0])
        for one, other in zip(actual, [np.stack(outputs, axis=1), *states], strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-10, 5e-5))

    def test_with_constant_embeddings_it_is_an_lstm_with_rescaled_kernels(self):
        cell = make_cell(dtype=FLOAT)
        cell.build((None, 4))
        randomize(cell.weights)
        for weight in (cell.embedding_kernel, cell.shift_embedding_kernel):
            weight.assign(np.zeros(weight.shape))
        embeddings = backend.to_numpy(cell.embedding_bias).reshape(8, 3)
        scales = np.einsum("kz,kzn->kn", embeddings, backend.to_numpy(cell.scale_kernel))
        self.assert_equals_rescaled_lstm(cell, scales[:4].reshape(-1), scales[4:].reshape(-1))

    def test_at_first_it_is_an_lstm_with_kernels_scaled_by_a_tenth(self):
        cell = make_cell(dtype=FLOAT)
        cell.build((None, 4))
        # Keras makes constants in float32.
        self.assert_equals_rescaled_lstm(cell, 0.1, 0.1, atol=1e-7)

    def assert_equals_rescaled_lstm(self, cell, x_scales, h_scales, atol=1e-12):
        plain = LayerNormLSTMCell(6, dtype=FLOAT)
        plain.build((None, 4))
        for weight in plain.weights:
            weight.assign(getattr(cell, weight.name))
        plain.kernel.assign(backend.to_numpy(cell.kernel) * x_scales)
        plain.recurrent_kernel.assign(backend.to_numpy(cell.recurrent_kernel) * h_scales)
        x = inputs(time=7)
        actual, expected = (
            flat(keras.layers.RNN(c, return_sequences=True, dtype=FLOAT)(x)) for c in (cell, plain)
        )
        np.testing.assert_allclose(actual[0], expected[0], rtol=0, atol=tolerance(atol))

    def test_every_scale_is_a_tenth_at_first(self):
        cell = HyperLSTMCell(6)
        cell.build((None, 4))
        embedding = backend.to_numpy(cell.embedding_bias).reshape(8, 16)
        scales = np.einsum("kz,kzn->kn", embedding, backend.to_numpy(cell.scale_kernel))
        np.testing.assert_allclose(scales, 0.1, rtol=1e-6)
        np.testing.assert_array_equal(backend.to_numpy(cell.embedding_kernel), 0)
        np.testing.assert_array_equal(backend.to_numpy(cell.shift_kernel), 0)
        deviation = backend.to_numpy(cell.shift_embedding_kernel).std()
        self.assertAlmostEqual(deviation, 0.01, delta=0.001)

    def test_the_forget_gates_of_both_cells_start_open(self):
        cell = make_cell()
        cell.build((None, 4))
        for one, units in ((cell, 6), (cell.hyper_cell, 5)):
            offset = backend.to_numpy(one.offset)
            np.testing.assert_array_equal(offset, np.repeat([0, 1, 0, 0], units))

    def test_the_kernels_change_with_what_was_read_before(self):
        # Equal main states and inputs, other hyper states: only the scales differ.
        cell = make_cell()
        cell.build((None, 4))
        randomize(cell.weights)
        x, h, c = (np.ones((2, size), "float32") for size in (4, 6, 6))
        states = [np.full((2, 5), value, "float32") for value in (0.0, 0.9)]
        first, second = (backend.to_numpy(cell(x, [h, c, s, s])[0]) for s in states)
        self.assertGreater(np.abs(first - second).max(), 1e-3)

    def test_number_of_parameters_of_table_3(self):
        # Two layers of 1,000 units over 50 one-hot symbols, and the softmax: 14.4 million.
        count = 1000 * 50 + 50
        for features in (50, 1000):
            cell = HyperLSTMCell(1000, kernel_initializer="zeros", recurrent_initializer="zeros")
            cell.build((None, features))
            count += cell.count_params()
        self.assertEqual(count, 14_406_690)

    def test_options_are_those_of_an_lstm(self):
        cell = make_cell(use_bias=False, kernel_regularizer="l2", recurrent_dropout=0.5, seed=1)
        layer = keras.layers.RNN(cell)
        x = inputs(dtype="float32")
        plain, dropped = (flat(layer(x, training=training))[0] for training in (False, True))
        self.assertFalse(np.array_equal(plain, dropped))
        self.assertIsNone(cell.bias)
        again = HyperLSTMCell.from_config(cell.get_config())
        self.assertIsInstance(again.kernel_regularizer, keras.regularizers.L2)
        self.assertEqual(again.get_config(), cell.get_config())

    @parameterized.named_parameters(
        ("hyper", dict(units=6, hyper_units=0), "`hyper_units` must be a positive integer"),
        ("embedding", dict(units=6, embedding_units=1.5), "`embedding_units` must be a positive"),
        ("epsilon", dict(units=6, epsilon=0.0), "`epsilon` must be positive"),
        ("normalization", dict(units=6, normalization="separate"), "normalization"),
    )
    def test_a_bad_argument_is_named(self, arguments, message):
        with self.assertRaisesRegex((ValueError, TypeError), message):
            HyperLSTMCell(**arguments)


class HyperLSTMCellInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return make_cell(dtype=dtype)


if __name__ == "__main__":
    absltest.main()
