"""GORUCell against the released codes' numbers, NumPy and the laws of its gates."""

import json
import pathlib
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.goru_cell import GORUCell
from rum_keras.unitary import unitarity_error
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# Of the code of Jing et al., and of that of RUM where its O is orthogonal.
FILES = [
    "goru_standalone_cap2",
    "goru_standalone_fft8",
    "goru_rumrepo_fft8",
    "goru_rumrepo_odd_cap2",
]


def load(name):
    with np.load(GOLDEN / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    return arrays, json.loads(str(arrays.pop("meta")))


def weights_of(arrays, prefix="w"):
    """Returns the weights ("w") or their gradients ("g") of a file by the names of the cell's."""
    found = {
        key.rsplit(".", 1)[-1]: value
        for key, value in arrays.items()
        if key.startswith(prefix + "_")
    }
    return {
        "kernel": found["U"],
        "recurrent_kernel": np.hstack([found["W_r"], found["W_g"]]),
        "bias": np.hstack([found["bias_c"], found["bias_r"], found["bias_g"]]),
        "theta": np.concatenate([found[key].ravel() for key in sorted(found) if "theta" in key]),
    }


def golden_cell(name, dtype):
    arrays, meta = load(name)
    cell = GORUCell(
        meta["hidden"],
        capacity=meta["capacity"],
        fft=meta["fft"],
        epsilon=1e-3 if "standalone" in name else 1e-5,
        dtype=dtype,
    )
    cell.build((None, arrays["x"].shape[-1]))
    for weight, value in weights_of(arrays).items():
        getattr(cell, weight).assign(value)
    return arrays, cell


class GoldenTest(parameterized.TestCase):
    @parameterized.parameters(*FILES)
    def test_equals_the_released_codes(self, name):
        self.check(name, FLOAT, tolerance(1e-9, 5e-5), tolerance(1e-9, 1e-4))

    @parameterized.parameters(*FILES)
    @unittest.skipIf(FLOAT == "float32", "the test above runs in float32")
    def test_equals_the_released_codes_in_float32(self, name):
        self.check(name, "float32", 5e-5, 1e-4)

    def check(self, name, dtype, atol, gradient_atol):
        arrays, cell = golden_cell(name, dtype)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=dtype)
        x, h0, c = (arrays[key].astype(dtype) for key in ("x", "h0", "c"))

        def loss(x, h0):
            return keras.ops.sum(layer(x, initial_state=[h0])[0] * c)

        outputs, state = layer(x, initial_state=[h0])
        np.testing.assert_allclose(outputs, arrays["y"], rtol=0, atol=atol)
        np.testing.assert_allclose(state, arrays["hT"], rtol=0, atol=atol)
        _, (g_x, g_h0) = backend.value_and_gradients(loss, x, h0)
        _, actual = backend.weight_gradients(layer, lambda: loss(x, h0))
        actual |= {"x": g_x, "h0": g_h0}
        wanted = weights_of(arrays, "g") | {"x": arrays["g_x"], "h0": arrays["g_h0"]}
        for key, want in wanted.items():
            scale = max(1, np.abs(want).max())
            np.testing.assert_allclose(
                actual[key], want, rtol=0, atol=gradient_atol * scale, err_msg=key
            )

    @parameterized.parameters(*FILES)
    def test_the_recurrent_matrix_equals_the_released_codes(self, name):
        arrays, cell = golden_cell(name, FLOAT)
        np.testing.assert_allclose(
            cell.recurrent_matrix(), arrays["W_rows"], atol=tolerance(1e-12, 1e-6)
        )

    def test_the_singular_matrix_of_the_released_code_of_rum_is_not_reproduced(self):
        arrays, cell = golden_cell("goru_rumrepo_cap2", FLOAT)
        self.assertLess(np.linalg.svd(arrays["W_rows"], compute_uv=False).min(), 1e-12)
        self.assertLess(unitarity_error(cell.recurrent_matrix()), tolerance(1e-13, 1e-6))


class NumpyTest(parameterized.TestCase):
    def test_outputs_equal_numpy(self):
        random = keras.initializers.RandomNormal(stddev=0.7)
        cell = GORUCell(
            6,
            capacity=3,
            kernel_initializer=random,
            recurrent_initializer=random,
            bias_initializer=random,
            dtype=FLOAT,
        )
        x = inputs(time=20)
        actual = keras.layers.RNN(cell, return_sequences=True, dtype=FLOAT)(x)
        U, W, b, _ = (backend.to_numpy(v).astype("float64") for v in cell.weights)
        O = backend.to_numpy(cell.recurrent_matrix())  # noqa: E741, the paper's letter
        h, expected = np.zeros((len(x), 6)), []
        for t in range(x.shape[1]):
            candidate, reset, update = np.split(x[:, t] @ U, 3, axis=-1)
            r = 1 / (1 + np.exp(-(reset + h @ W[:, :6] + b[6:12])))
            g = 1 / (1 + np.exp(-(update + h @ W[:, 6:] + b[12:])))
            z = candidate + r * (h @ O)
            c = np.sign(z) * np.maximum(np.abs(z) + 1e-5 + b[:6], 0)
            h = g * h + (1 - g) * c
            expected.append(h)
        np.testing.assert_allclose(
            actual, np.stack(expected, axis=1), rtol=0, atol=tolerance(1e-10, 2e-5)
        )


class LawsTest(parameterized.TestCase):
    def cell(self, reset, update):
        """A cell without candidate's bias and input, its gates at these logits."""

        def bias(shape, dtype):
            return np.repeat([0.0, reset, update], shape[0] // 3)

        cell = GORUCell(6, bias_initializer=bias, recurrent_initializer="zeros", dtype=FLOAT)
        cell.build((None, 4))
        return cell

    @parameterized.parameters((50, -50, True), (0, 0, False))
    def test_open_gates_keep_the_norm(self, reset, update, kept):
        h, cell = inputs(features=6)[:, 0], self.cell(reset, update)
        _, (state,) = cell(np.zeros((2, 4), FLOAT), [h])
        norms = np.linalg.norm(h, axis=-1), np.linalg.norm(state, axis=-1)
        self.assertEqual(bool(np.allclose(*norms, rtol=1e-4)), kept)

    def test_a_closed_update_gate_keeps_the_state(self):
        h, cell = inputs(features=6)[:, 0], self.cell(0, 50)
        _, (state,) = cell(inputs()[:, 0], [h])
        np.testing.assert_allclose(state, h, atol=1e-6)


class WeightsTest(parameterized.TestCase):
    @parameterized.parameters((26, 9_099), (36, 10_599))
    def test_the_number_of_parameters_of_the_recall_task(self, features, expected):
        cell = GORUCell(50)
        cell.build((None, features))
        self.assertEqual(sum(np.prod(v.shape) for v in cell.trainable_weights), expected)

    def test_weights_are_initially_those_of_the_released_code(self):
        cell = GORUCell(300)
        cell.build((None, 20))
        candidate, reset, update = np.split(backend.to_numpy(cell.bias), 3)
        np.testing.assert_allclose(candidate, 0.01)
        np.testing.assert_allclose(reset, 2)
        for values, limit in (
            (cell.kernel, 0.01),
            (cell.recurrent_kernel, 0.01),
            (update, 0.1),
            (cell.theta, np.pi),
        ):
            self.assertBetween(np.abs(backend.to_numpy(values)).max(), 0.95 * limit, limit)

    @parameterized.parameters(
        ({"units": 6, "fft": True}, "`units` must be a power of two"),
        ({"units": 6, "capacity": 7}, "`capacity`"),
    )
    def test_bad_arguments_are_named(self, options, named):
        with self.assertRaisesRegex(ValueError, named):
            GORUCell(**options)


class InKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return GORUCell(7, capacity=3, kernel_initializer="normal", dtype=dtype)


if __name__ == "__main__":
    absltest.main()
