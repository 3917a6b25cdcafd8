"""EURNNCell against the released codes' numbers, complex NumPy and the laws of the EUNN."""

import json
import pathlib
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

from rum_keras.eurnn_cell import EURNNCell
from rum_keras.unitary import unitarity_error
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# Of the code of Jing et al., and of that of RUM where its W is unitary.
FILES = [
    "eunn_standalone_real_cap2",
    "eunn_standalone_complex_cap2",
    "eunn_standalone_complex_fft8",
    "eunn_rumrepo_real_fft8",
    "eunn_rumrepo_real_odd_cap2",
    "eunn_rumrepo_complex_cap2",
    "eunn_rumrepo_complex_cap4",
    "eunn_rumrepo_complex_odd_cap2",
]


def load(name):
    with np.load(GOLDEN / f"{name}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    return arrays, json.loads(str(arrays.pop("meta")))


def pair(z):
    return np.concatenate([z.real, z.imag], axis=-1) if np.iscomplexobj(z) else z


def weights_of(arrays, prefix="w"):
    """Returns the weights ("w") or their gradients ("g") of a file by the names of the cell's."""
    found = {}
    for key, value in arrays.items():
        if key.startswith(prefix + "_"):
            found[key.rsplit(".", 1)[-1].removeprefix("eunn")] = value
    weights = {"bias": found["modReLUBias"]}
    weights["kernel"] = found["U"] if "U" in found else np.hstack([found["U_re"], found["U_im"]])
    for angle in ("theta", "phi"):
        parts = [found[key] for key in sorted(found) if key.split("_")[0] == angle]
        if len(parts) == 1:
            weights[angle] = parts[0].ravel()
        elif parts:  # The rows of even and of odd layers.
            layers = sum(map(len, parts))
            rows = [parts[layer % 2][layer // 2] for layer in range(layers)]
            weights[angle] = np.concatenate(rows)
    if "omega" in found:
        weights["omega"] = found["omega"]
    return weights


def golden_cell(name, dtype):
    arrays, meta = load(name)
    cell = EURNNCell(
        meta["hidden"],
        capacity=meta["capacity"],
        fft=meta["fft"],
        complex_=meta["complex"],
        epsilon=1e-2 if "standalone" in name else 1e-5,
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
        x, h0 = arrays["x"].astype(dtype), pair(arrays["h0"]).astype(dtype)
        c = np.concatenate([arrays[key] for key in ("c", "c_imag") if key in arrays], axis=-1)

        def loss(x, h0):
            return keras.ops.sum(layer(x, initial_state=[h0])[0] * c.astype(dtype))

        outputs, state = layer(x, initial_state=[h0])
        np.testing.assert_allclose(outputs, pair(arrays["y"]), rtol=0, atol=atol)
        np.testing.assert_allclose(state, pair(arrays["hT"]), rtol=0, atol=atol)
        _, (g_x, g_h0) = backend.value_and_gradients(loss, x, h0)
        _, actual = backend.weight_gradients(layer, lambda: loss(x, h0))
        wanted = {**weights_of(arrays, "g"), "x": arrays["g_x"]}
        actual["x"] = g_x
        if "g_h0" in arrays:
            wanted["h0"], actual["h0"] = arrays["g_h0"], g_h0
        for key, want in wanted.items():
            scale = max(1, np.abs(want).max())
            np.testing.assert_allclose(
                actual[key], want, rtol=0, atol=gradient_atol * scale, err_msg=key
            )

    @parameterized.parameters(*FILES)
    def test_the_recurrent_matrix_equals_the_released_codes(self, name):
        arrays, cell = golden_cell(name, FLOAT)
        W = pair(arrays["W_rows"])
        actual = cell.recurrent_matrix()[: cell.units]
        np.testing.assert_allclose(actual, W, atol=tolerance(1e-12, 1e-6))

    def test_the_singular_matrix_of_the_released_code_of_rum_is_not_reproduced(self):
        arrays, cell = golden_cell("eunn_rumrepo_real_cap2", FLOAT)
        self.assertLess(np.linalg.svd(arrays["W_rows"], compute_uv=False).min(), 1e-12)
        self.assertLess(unitarity_error(cell.recurrent_matrix()), tolerance(1e-13, 1e-6))


class NumpyTest(parameterized.TestCase):
    @parameterized.parameters((6, False, False), (7, True, False), (8, True, True))
    def test_outputs_equal_complex_numpy(self, units, complex_, fft):
        bias = keras.initializers.RandomUniform(-0.5, 0.5)
        cell = EURNNCell(
            units, 3, fft, complex_, kernel_initializer="normal", bias_initializer=bias, dtype=FLOAT
        )
        x = inputs(time=20)
        actual = keras.layers.RNN(cell, return_sequences=True, dtype=FLOAT)(x)
        weights = {v.name: backend.to_numpy(v).astype("float64") for v in cell.weights}
        V, b, epsilon = weights["kernel"], weights["bias"], cell.epsilon
        if complex_:
            V = V[:, :units] + 1j * V[:, units:]
        h, expected = np.zeros((len(x), units), V.dtype), []
        for t in range(x.shape[1]):
            z = self.transformed(h, weights, fft) + x[:, t] @ V
            r = np.abs(z) + epsilon
            h = (z / r if complex_ else np.sign(z)) * np.maximum(r + b, 0)
            expected.append(pair(h))
        np.testing.assert_allclose(
            actual, np.stack(expected, axis=1), rtol=0, atol=tolerance(1e-10, 2e-5)
        )

    def transformed(self, h, weights, fft):
        """Applies the three layers of rotations one pair at a time."""
        h, units, angle = h.copy(), h.shape[-1], 0
        for layer in range(3):
            if fft:
                distance = units >> (layer + 1)
                first = [
                    block * 2 * distance + offset
                    for offset in range(distance)
                    for block in range(units // (2 * distance))
                ]
            else:
                distance, first = 1, range(layer % 2, units - 1, 2)
            for p in first:
                theta, q = weights["theta"][angle], p + distance
                phase = np.exp(1j * weights["phi"][angle]) if "phi" in weights else 1.0
                cosine, sine = np.cos(theta), phase * np.sin(theta)
                h[:, p], h[:, q] = (
                    cosine * h[:, p] - sine * h[:, q],
                    np.sin(theta) * h[:, p] + phase * cosine * h[:, q],
                )
                angle += 1
        return h * np.exp(1j * weights["omega"]) if "omega" in weights else h


class LawsTest(parameterized.TestCase):
    @settings(max_examples=8, deadline=None)
    @given(st.integers(2, 9), st.data(), st.booleans())
    def test_the_recurrent_matrix_is_unitary(self, units, data, complex_):
        capacity = data.draw(st.integers(1, units))
        cell = EURNNCell(units, capacity, complex_=complex_, dtype=FLOAT)
        cell.build((None, 1))
        self.assertLess(unitarity_error(cell.recurrent_matrix()), tolerance(1e-13, 5e-6))

    @parameterized.product(
        fft=[False, True], complex_=[False, True], dtype=sorted({"float32", FLOAT})
    )
    def test_the_norm_survives_500_steps(self, fft, complex_, dtype):
        cell = EURNNCell(64, fft=fft, complex_=complex_, dtype=dtype)
        cell.build((None, 1))
        W = cell.recurrent_matrix()
        h = np.random.default_rng(0).normal(size=(3, cell.state_size)).astype(dtype)
        norm = np.linalg.norm(h, axis=-1)
        for _ in range(500):
            h = keras.ops.matmul(h, W)
        drift = np.abs(np.linalg.norm(backend.to_numpy(h), axis=-1) / norm - 1).max()
        self.assertLess(drift, 1e-4 if dtype == "float32" else 1e-11)

    def test_the_cell_keeps_the_norm_without_input_bias_and_epsilon(self):
        cell = EURNNCell(6, complex_=True, epsilon=0.0, dtype=FLOAT)
        h = inputs(features=12)[:, 0]
        cell.build((None, 4))
        _, (state,) = cell(np.zeros((2, 4), FLOAT), [h])
        np.testing.assert_allclose(
            np.linalg.norm(state, axis=-1), np.linalg.norm(h, axis=-1), rtol=1e-6
        )

    def test_two_layers_mix_neighbours_and_fft_mixes_all(self):
        tunable, fft = EURNNCell(8), EURNNCell(8, fft=True)
        for cell in (tunable, fft):
            cell.build((None, 1))
        reached = np.abs(backend.to_numpy(tunable.recurrent_matrix())) > 0
        self.assertEqual(reached.sum(axis=1).max(), 4)
        reached = np.abs(backend.to_numpy(fft.recurrent_matrix())) > 0
        self.assertTrue(reached.all())


class WeightsTest(parameterized.TestCase):
    @parameterized.parameters(({}, 63), ({"fft": True}, 192), ({"capacity": 3}, 95))
    def test_the_number_of_angles(self, options, expected):
        cell = EURNNCell(64, **options)
        cell.build((None, 4))
        self.assertEqual(cell.theta.shape, (expected,))

    @parameterized.parameters(
        (26, False, 1399), (26, True, 2798), (36, False, 1899), (36, True, 3798)
    )
    def test_the_number_of_parameters_of_the_recall_task(self, features, complex_, expected):
        cell = EURNNCell(50, complex_=complex_)
        cell.build((None, features))
        self.assertEqual(sum(np.prod(v.shape) for v in cell.trainable_weights), expected)

    @parameterized.parameters(("kernel", 0.01), ("theta", np.pi), ("phi", np.pi), ("omega", np.pi))
    def test_weights_are_initially_uniform_as_in_the_released_code(self, name, limit):
        cell = EURNNCell(200, complex_=True)
        cell.build((None, 20))
        values = backend.to_numpy(getattr(cell, name))
        self.assertBetween(np.abs(values).max(), 0.95 * limit, limit)
        self.assertEqual(np.abs(backend.to_numpy(cell.bias)).max(), 0)

    @parameterized.parameters(
        ({"units": 6, "fft": True}, "`units` must be a power of two"),
        ({"units": 1}, "`units` must be at least 2"),
        ({"units": -3}, "`units`"),
        ({"units": 6, "capacity": 7}, "`capacity`"),
        ({"units": 6, "capacity": 0}, "`capacity`"),
        ({"units": 6, "epsilon": -0.1}, "`epsilon`"),
    )
    def test_bad_arguments_are_named(self, options, named):
        with self.assertRaisesRegex(ValueError, named):
            EURNNCell(**options)


class ComplexInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return EURNNCell(7, capacity=3, complex_=True, kernel_initializer="normal", dtype=dtype)


if __name__ == "__main__":
    absltest.main()
