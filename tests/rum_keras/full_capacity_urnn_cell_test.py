"""FullCapacityURNNCell against complex NumPy; it stays unitary under any optimizer."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.full_capacity_urnn_cell import FullCapacityURNNCell
from rum_keras.unitary import unitarity_error
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs

GENERATOR = keras.initializers.RandomNormal(stddev=0.3, seed=3)


def built(units=6, features=4, dtype=FLOAT, **options):
    cell = FullCapacityURNNCell(units, dtype=dtype, **options)
    cell.build((None, features))
    return cell


def weights_of(cell):
    return {v.name: backend.to_numpy(v).astype("float64") for v in cell.weights}


def numpy_matrix(cell):
    """The complex W of row vectors, h W, from the cell's weights."""
    weights, n = weights_of(cell), cell.units
    W = weights["unitary_kernel"][:, :n] + 1j * weights["unitary_kernel"][:, n:]
    if cell.multiplicative:
        return W
    A = np.zeros((n, n), complex)
    for i in range(n):
        A[i, i] = 2j * weights["generator"][i, i]
        for j in range(i + 1, n):
            A[i, j] = weights["generator"][i, j] + 1j * weights["generator"][j, i]
            A[j, i] = -A[i, j].conjugate()
    return np.linalg.inv(np.eye(n) + A) @ (np.eye(n) - A) @ W


def numpy_outputs(cell, x):
    weights, n, W = weights_of(cell), cell.units, numpy_matrix(cell)
    V = weights["kernel"][:, :n] + 1j * weights["kernel"][:, n:]
    h = np.tile(weights["initial_state"][:n] + 1j * weights["initial_state"][n:], (len(x), 1))
    outputs = []
    for t in range(x.shape[1]):
        z = h @ W + x[:, t] @ V
        h = z * np.maximum(np.abs(z) + weights["bias"], 0) / (np.abs(z) + cell.epsilon)
        outputs.append(np.concatenate([h.real, h.imag], axis=-1))
    return np.stack(outputs, axis=1)


class NumpyTest(parameterized.TestCase):
    @parameterized.parameters(False, True)
    def test_outputs_equal_complex_numpy(self, multiplicative):
        cell = built(multiplicative=multiplicative, generator_initializer=GENERATOR)
        x = inputs(time=20)
        actual = keras.layers.RNN(cell, return_sequences=True, dtype=FLOAT)(x)
        expected = numpy_outputs(cell, x)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(1e-10, 2e-5))


class LawsTest(parameterized.TestCase):
    @parameterized.parameters("float32", FLOAT)
    def test_the_norm_survives_500_steps(self, dtype):
        W = built(64, dtype=dtype, generator_initializer=GENERATOR).recurrent_matrix()
        h = np.random.default_rng(0).normal(size=(3, 128)).astype(dtype)
        norm = np.linalg.norm(h, axis=-1)
        for _ in range(500):
            h = keras.ops.matmul(h, W)
        drift = np.abs(np.linalg.norm(backend.to_numpy(h), axis=-1) / norm - 1).max()
        self.assertLess(drift, 5e-5 if dtype == "float32" else 1e-11)

    @parameterized.product(units=[1, 7, 64], dtype=sorted({"float32", FLOAT}))
    def test_any_generator_gives_a_unitary_matrix(self, units, dtype):
        generator = keras.initializers.RandomNormal(stddev=3.0)
        cell = built(units, dtype=dtype, generator_initializer=generator)
        limit = 1.3e-6 if dtype == "float32" else 1e-14
        self.assertLess(unitarity_error(cell.recurrent_matrix()), limit)

    @parameterized.parameters("sgd", "adam", "lion")
    def test_it_is_trained_and_stays_unitary_under_any_optimizer(self, name):
        optimizer = keras.optimizers.get(name)
        optimizer.learning_rate = 0.1
        cell = built()
        before = backend.to_numpy(cell.recurrent_matrix())
        for _ in range(20):
            _, gradients = backend.weight_gradients(
                cell, lambda: keras.ops.sum(cell.recurrent_matrix()[0] ** 3)
            )
            optimizer.apply([keras.ops.convert_to_tensor(gradients["generator"])], [cell.generator])
        after = cell.recurrent_matrix()
        self.assertGreater(np.abs(backend.to_numpy(after) - before).max(), 0.1)
        self.assertLess(unitarity_error(after), tolerance(1e-13, 1e-5))


class WeightsTest(parameterized.TestCase):
    # 2 n x of the kernel, n of the bias, 2 n of the start, and n^2 or, as in the paper, 2 n^2.
    @parameterized.parameters((False, 48 + 6 + 12 + 36), (True, 48 + 6 + 12 + 72))
    def test_parameters_are_as_many_as_derived(self, multiplicative, expected):
        cell = built(multiplicative=multiplicative)
        self.assertEqual(sum(np.prod(v.shape) for v in cell.trainable_weights), expected)

    def test_a_unitary_matrix_can_be_given(self):
        cell = built(2, recurrent_initializer=lambda shape, dtype: np.eye(*shape))
        np.testing.assert_allclose(cell.recurrent_matrix(), np.eye(4), atol=1e-6)

    @parameterized.parameters("bias", "initial_state")
    def test_weights_are_initially_uniform_as_in_the_released_code(self, name):
        values = backend.to_numpy(getattr(built(200), name))
        self.assertBetween(np.abs(values).max(), 0.0095, 0.01)

    def test_bad_arguments_are_named(self):
        with self.assertRaisesRegex(ValueError, "`units`"):
            FullCapacityURNNCell(0)


class InKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return FullCapacityURNNCell(6, generator_initializer=GENERATOR, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
