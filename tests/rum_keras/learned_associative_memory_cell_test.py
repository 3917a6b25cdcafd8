"""LearnedAssociativeMemoryCell against its definition and the fast weights it generalizes."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.fast_weights_cell import FastWeightsCell
from rum_keras.learned_associative_memory_cell import LearnedAssociativeMemoryCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, flat, inputs


def norm(z, gain, offset):
    mean, variance = z.mean(-1, keepdims=True), z.var(-1, keepdims=True)
    return (z - mean) / np.sqrt(variance + 1e-3) * gain + offset


def reference_step(cell, x, h, memories):
    """Returns the next `h` and memories, from the definition, in float64."""
    w = {weight.name: backend.to_numpy(weight).astype("float64") for weight in cell.weights}
    z = x @ w["kernel"] + h @ w["recurrent_kernel"] + w["bias"]
    gates = x @ w["gate_kernel"] + h @ w["gate_recurrent_kernel"] + w["gate_bias"]
    gates = np.split(1 / (1 + np.exp(-gates)), 2 * cell.memories, axis=-1)
    h = np.maximum(norm(z, w["gain"], w["offset"]), 0)
    for _ in range(cell.inner_steps):
        pull = np.einsum("kbij,bj->bi", memories, h)
        h = np.maximum(norm(z + pull, w["gain"], w["offset"]), 0)
    keep, write = np.stack(gates[: cell.memories]), np.stack(gates[cell.memories :])
    memories = memories * np.einsum("kbi,kbj->kbij", keep, keep)
    return h, memories + np.einsum("kbi,kbj->kbij", write * h, write * h)


def layer_with_random_weights(**options):
    cell = LearnedAssociativeMemoryCell(6, dtype=FLOAT, **options)
    layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
    layer.build((None, None, 4))
    rng = np.random.default_rng(1)
    for weight in cell.weights:
        weight.assign(rng.normal(size=weight.shape) * 0.5 + (1 if weight.name == "gain" else 0))
    return layer


class LearnedAssociativeMemoryCellTest(parameterized.TestCase):
    @parameterized.parameters((1, 1), (3, 2))
    def test_equals_the_definition(self, memories, inner_steps):
        layer = layer_with_random_weights(memories=memories, inner_steps=inner_steps)
        x = inputs(time=20)
        h, A, outputs = np.zeros((2, 6)), np.zeros((memories, 2, 6, 6)), []
        for t in range(20):
            h, A = reference_step(layer.cell, x[:, t], h, A)
            outputs.append(h)
        actual, last, *states = flat(layer(x))
        atol = tolerance(1e-10, 1e-4)
        np.testing.assert_allclose(actual, np.stack(outputs, 1), rtol=0, atol=atol)
        np.testing.assert_allclose(last, h, rtol=0, atol=atol)
        np.testing.assert_allclose(np.stack(states), A.reshape(memories, 2, 36), rtol=0, atol=atol)

    def test_memories_stay_symmetric_and_positive_semidefinite(self):
        _, _, *memories = flat(layer_with_random_weights()(inputs(time=20)))
        for memory in memories:
            memory = memory.reshape(2, 6, 6)
            np.testing.assert_array_equal(memory, memory.transpose(0, 2, 1))
            self.assertGreaterEqual(np.linalg.eigvalsh(memory).min(), -tolerance(1e-9, 1e-4))

    @parameterized.parameters(1, 2)
    def test_constant_gates_give_fast_weights(self, memories):
        plain = FastWeightsCell(6, decay=0.8, rate=0.3, dtype=FLOAT)
        cell = LearnedAssociativeMemoryCell(
            6, memories, decay=0.8, rate=0.3, gate_initializer="zeros", dtype=FLOAT
        )
        layers = [
            keras.layers.RNN(one, return_sequences=True, dtype=FLOAT) for one in (plain, cell)
        ]
        x = inputs(time=20)
        layers[0].build(x.shape)
        layers[1].build(x.shape)
        for weight in plain.weights:
            getattr(cell, weight.name).assign(weight)
        one, other = (flat(layer(x))[0] for layer in layers)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance(1e-10))

    def test_two_memories_have_the_published_number_of_parameters(self):
        cell = LearnedAssociativeMemoryCell(50)
        cell.build((None, 36))
        self.assertEqual(cell.count_params(), 5 * 50 * (36 + 50 + 1) + 2 * 50)

    def test_arguments_out_of_range_are_named(self):
        for name, value in (("memories", 0), ("decay", 1.0), ("rate", 2.0)):
            with self.assertRaisesRegex(ValueError, f"`{name}` .*{value}"):
                LearnedAssociativeMemoryCell(**{"units": 6, name: value})


class LearnedAssociativeMemoryInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return LearnedAssociativeMemoryCell(6, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
