"""FastWeightsCell against its definition, with the matrix and as attention to the past."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.fast_weights_cell import FastWeightsCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, flat, inputs


def norm(z, gain, offset):
    mean, variance = z.mean(-1, keepdims=True), z.var(-1, keepdims=True)
    return (z - mean) / np.sqrt(variance + 1e-3) * gain + offset


def attention(cell, x):
    """Returns the states of all steps without a matrix: by attention to the past ones."""
    w = {weight.name: backend.to_numpy(weight).astype("float64") for weight in cell.weights}
    h, past = np.zeros((len(x), cell.units)), []
    for t in range(x.shape[1]):
        z = x[:, t] @ w["kernel"] + h @ w["recurrent_kernel"] + w["bias"]
        h = np.maximum(norm(z, w["gain"], w["offset"]), 0)
        for _ in range(cell.inner_steps):
            pull = sum(
                cell.rate * cell.decay ** (t - 1 - tau) * (one * h).sum(-1, keepdims=True) * one
                for tau, one in enumerate(past)
            )
            h = np.maximum(norm(z + pull, w["gain"], w["offset"]), 0)
        past.append(h)
    return np.stack(past, 1)


def layer_with_random_weights(**options):
    cell = FastWeightsCell(6, dtype=FLOAT, **options)
    layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
    layer.build((None, None, 4))
    rng = np.random.default_rng(1)
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape) * 0.5 + (1 if weight.name == "gain" else 0))
    return layer


class FastWeightsCellTest(parameterized.TestCase):
    @parameterized.parameters(0, 1, 3)
    def test_the_matrix_gives_the_same_as_attention_to_the_past(self, inner_steps):
        layer = layer_with_random_weights(inner_steps=inner_steps, decay=0.8, rate=0.3)
        x = inputs(time=20)
        np.testing.assert_allclose(
            flat(layer(x))[0], attention(layer.cell, x), rtol=0, atol=tolerance(1e-10, 1e-4)
        )

    def test_the_memory_is_the_decayed_sum_of_products_of_states(self):
        layer = layer_with_random_weights(decay=0.8, rate=0.3)
        h, last, memory = flat(layer(inputs()))
        weights = 0.3 * 0.8 ** np.arange(4, -1, -1)
        expected = np.einsum("t,bti,btj->bij", weights, h, h)
        np.testing.assert_allclose(
            memory.reshape(2, 6, 6), expected, rtol=0, atol=tolerance(1e-10, 1e-4)
        )
        np.testing.assert_array_equal(last, h[:, -1])
        self.assertGreaterEqual(np.linalg.eigvalsh(memory.reshape(2, 6, 6)).min(), -1e-5)

    def test_rate_zero_is_a_recurrent_network_with_layer_normalization(self):
        layer = layer_with_random_weights(rate=0.0, inner_steps=2)
        plain = layer_with_random_weights(inner_steps=0)
        np.testing.assert_allclose(
            *(flat(one(inputs()))[0] for one in (layer, plain)), rtol=0, atol=tolerance(1e-12)
        )

    def test_starts_from_the_papers_initial_weights(self):
        cell = FastWeightsCell(6)
        cell.build((None, 4))
        np.testing.assert_allclose(backend.to_numpy(cell.recurrent_kernel), 0.05 * np.eye(6))
        np.testing.assert_array_equal(backend.to_numpy(cell.gain), np.ones(6))
        for weight in (cell.bias, cell.offset):
            np.testing.assert_array_equal(backend.to_numpy(weight), np.zeros(6))
        self.assertEqual(cell.count_params(), 4 * 6 + 6 * 6 + 6 + 2 * 6)

    def test_arguments_out_of_range_are_named(self):
        for name, value in (
            ("units", 0),
            ("decay", 1.1),
            ("rate", -0.1),
            ("inner_steps", 1.5),
            ("epsilon", 0.0),
        ):
            with self.assertRaisesRegex(ValueError, f"`{name}` .*{value}"):
                FastWeightsCell(**{"units": 6, name: value})


class FastWeightsInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return FastWeightsCell(6, inner_steps=2, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
