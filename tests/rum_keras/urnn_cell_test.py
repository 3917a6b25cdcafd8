"""URNNCell against complex NumPy and the laws of a unitary recurrence."""

import os
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.unitary import unitarity_error
from rum_keras.urnn_cell import URNNCell
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs


def built(units=6, features=4, dtype=FLOAT, **options):
    cell = URNNCell(units, dtype=dtype, **options)
    cell.build((None, features))
    return cell


def numpy_matrix(cell):
    """The complex W = D3 R2 F^-1 D2 Pi R1 F D1, acting on column vectors."""
    n = cell.units
    D = [np.diag(np.exp(1j * angles)) for angles in backend.to_numpy(cell.theta).astype("float64")]
    R = []
    for row in backend.to_numpy(cell.reflection).astype("float64"):
        v = row[:n] + 1j * row[n:]
        R.append(np.eye(n) - 2 * np.outer(v, v.conj()) / np.vdot(v, v))
    F = np.fft.fft(np.eye(n), norm="ortho")
    Pi = np.eye(n)[backend.to_numpy(cell.permutation)]
    return D[2] @ R[1] @ F.conj() @ D[1] @ Pi @ R[0] @ F @ D[0]


def numpy_outputs(cell, x, W=None):
    """The outputs (batch, time, units), complex, from the cell's weights in float64."""
    weights = {v.name: backend.to_numpy(v).astype("float64") for v in cell.weights}
    n, epsilon = cell.units, cell.epsilon
    W = numpy_matrix(cell) if W is None else W
    V = weights["kernel"][:, :n] + 1j * weights["kernel"][:, n:]
    h = np.tile(weights["initial_state"][:n] + 1j * weights["initial_state"][n:], (len(x), 1))
    outputs = []
    for t in range(x.shape[1]):
        z = h @ W.T + x[:, t] @ V
        h = z * np.maximum(np.abs(z) + weights["bias"], 0) / (np.abs(z) + epsilon)
        outputs.append(h)
    return np.stack(outputs, axis=1)


def pair(z):
    return np.concatenate([z.real, z.imag], axis=-1)


class NumpyTest(parameterized.TestCase):
    @parameterized.parameters((6, 1e-5), (7, 0.01))
    def test_outputs_equal_complex_numpy(self, units, epsilon):
        bias = keras.initializers.RandomUniform(-0.5, 0.5)
        cell = built(units, epsilon=epsilon, bias_initializer=bias)
        x = inputs(time=20)
        actual = keras.layers.RNN(cell, return_sequences=True, dtype=FLOAT)(x)
        expected = pair(numpy_outputs(cell, x))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(1e-10, 2e-5))

    def test_all_zero_states_mean_the_learned_start_and_others_are_taken_as_they_are(self):
        cell = built()
        layer = keras.layers.RNN(cell, return_state=True, dtype=FLOAT)
        x, ones = inputs(), np.ones((2, 1), FLOAT)
        start = np.tile(backend.to_numpy(cell.initial_state), (2, 1))
        expected, h, started = backend.to_numpy(layer(x))
        np.testing.assert_array_equal(h, expected)
        np.testing.assert_array_equal(started, ones)
        np.testing.assert_array_equal(layer(x, initial_state=[start, ones])[0], expected)
        zeros = backend.to_numpy(layer(x, initial_state=[0 * start, ones])[0])
        self.assertGreater(np.abs(zeros - expected).max(), 0.01)


class LawsTest(parameterized.TestCase):
    @parameterized.parameters("float32", FLOAT)
    def test_the_norm_survives_500_steps(self, dtype):
        cell = built(128, dtype=dtype)
        W = cell.recurrent_matrix()
        h = np.random.default_rng(0).normal(size=(3, 256)).astype(dtype)
        norm = np.linalg.norm(h, axis=-1)
        for _ in range(500):
            h = keras.ops.matmul(h, W)
        drift = np.abs(np.linalg.norm(backend.to_numpy(h), axis=-1) / norm - 1).max()
        self.assertLess(drift, 1e-4 if dtype == "float32" else 1e-11)

    @parameterized.parameters(1, 7, 128)
    def test_the_recurrent_matrix_is_unitary(self, units):
        error = unitarity_error(built(units).recurrent_matrix())
        self.assertLess(error, tolerance(1e-13, 1e-5))

    def test_it_stays_unitary_where_a_reflection_vanishes(self):
        cell = built(reflection_initializer="zeros")
        self.assertLess(unitarity_error(cell.recurrent_matrix()), tolerance(1e-13, 1e-5))

    def test_the_recurrent_matrix_is_computed_once_per_sequence(self):
        class Counting(URNNCell):
            count = 0

            def recurrent_matrix(self):
                self.count += 1
                return super().recurrent_matrix()

        cells = [Counting(6), Counting(3)]
        keras.layers.RNN(cells, unroll=True)(inputs(dtype="float32"))
        before = [cell.count for cell in cells]
        keras.layers.RNN(cells, unroll=True)(inputs(dtype="float32"))
        self.assertEqual(
            [cell.count - old for cell, old in zip(cells, before, strict=True)], [1, 1]
        )


class WeightsTest(parameterized.TestCase):
    def test_a_model_of_the_paper_has_6153_parameters(self):
        model = keras.Sequential(
            [
                keras.Input((None, 10)),
                keras.layers.RNN(URNNCell(128), return_sequences=True),
                keras.layers.Dense(9),
            ]
        )
        self.assertEqual(sum(np.prod(v.shape) for v in model.trainable_weights), 6153)
        self.assertEqual([v.name for v in model.non_trainable_weights], ["permutation"])

    def test_the_permutation_is_random_and_saved(self):
        def model():
            return keras.Sequential([keras.Input((3, 4)), keras.layers.RNN(URNNCell(50))])

        one, other = model(), model()
        saved = backend.to_numpy(one.layers[0].cell.permutation)
        self.assertSequenceEqual(sorted(saved.tolist()), range(50))
        self.assertNotEqual(
            saved.tolist(), backend.to_numpy(other.layers[0].cell.permutation).tolist()
        )
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.weights.h5")
            one.save_weights(path)
            other.load_weights(path)
        x = inputs(time=3, dtype="float32")
        np.testing.assert_array_equal(backend.to_numpy(one(x)), backend.to_numpy(other(x)))

    def test_a_seed_fixes_the_permutation(self):
        keras.utils.set_random_seed(7)
        one = backend.to_numpy(built(50).permutation)
        keras.utils.set_random_seed(7)
        np.testing.assert_array_equal(one, backend.to_numpy(built(50).permutation))

    @parameterized.parameters(
        ("kernel", np.sqrt(6 / (20 + 400))),
        ("bias", 0.01),
        ("initial_state", np.sqrt(3 / 400)),
        ("theta", np.pi),
        ("reflection", np.sqrt(6 / (2 + 400))),
    )
    def test_weights_are_initially_uniform_as_in_the_paper(self, name, limit):
        values = backend.to_numpy(getattr(built(200, features=20), name))
        self.assertBetween(np.abs(values).max(), 0.95 * limit, limit)
        self.assertBetween(np.std(values), 0.5 * limit, 0.65 * limit)

    @parameterized.parameters(
        ({"units": 0}, "`units`"), ({"units": 2.5}, "`units`"), ({"epsilon": -1}, "`epsilon`")
    )
    def test_bad_arguments_are_named(self, options, named):
        with self.assertRaisesRegex(ValueError, named):
            URNNCell(**{"units": 6, **options})


class InKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return URNNCell(6, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
