"""The modReLU activation against the released codes' numbers and its laws."""

import pathlib

import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from rum_keras.modrelu import modrelu
from tests import backend
from tests.backend import FLOAT, tolerance

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/modrelu.npz"


def golden():
    with np.load(GOLDEN) as file:
        return {key: file[key] for key in file.files if key != "meta"}


def pair(z):
    return np.concatenate([z.real, z.imag], axis=-1)


class GoldenTest(parameterized.TestCase):
    @parameterized.parameters(
        ("y_real", 1e-5), ("y_real_gorustandalone", 1e-3), ("y_real_eunnstandalone", 1e-2)
    )
    def test_real_equals_the_released_codes(self, key, epsilon):
        arrays = golden()
        actual = modrelu(arrays["z"].astype(FLOAT), arrays["b"].astype(FLOAT), epsilon)
        np.testing.assert_allclose(actual, arrays[key], rtol=0, atol=tolerance(1e-12, 1e-6))

    @parameterized.parameters(("y_complex", 1e-5), ("y_complex_eunnstandalone", 1e-2))
    def test_complex_equals_the_released_codes(self, key, epsilon):
        arrays = golden()
        z, b = pair(arrays["zc"]).astype(FLOAT), arrays["b"].astype(FLOAT)
        actual = modrelu(z, b, epsilon, complex_=True)
        np.testing.assert_allclose(actual, pair(arrays[key]), rtol=0, atol=tolerance(1e-12, 1e-6))

    def test_gradients_equal_the_released_code(self):
        arrays = golden()
        b, c = arrays["b"].astype(FLOAT), arrays["c"].astype(FLOAT)
        _, (g_z, g_b) = backend.value_and_gradients(
            lambda z, b: ops.sum(modrelu(z, b) * c), arrays["z"].astype(FLOAT), b
        )
        np.testing.assert_allclose(g_z, arrays["g_z_real"], rtol=0, atol=tolerance(1e-12, 1e-6))
        np.testing.assert_allclose(g_b, arrays["g_b_real"], rtol=0, atol=tolerance(1e-12, 1e-6))
        c = np.concatenate([c, arrays["c_imag"].astype(FLOAT)], axis=-1)
        _, (_, g_b) = backend.value_and_gradients(
            lambda z, b: ops.sum(modrelu(z, b, complex_=True) * c),
            pair(arrays["zc"]).astype(FLOAT),
            b,
        )
        np.testing.assert_allclose(g_b, arrays["g_b_complex"], rtol=0, atol=tolerance(1e-9, 1e-5))


class LawsTest(parameterized.TestCase):
    @settings(max_examples=30, deadline=None)
    @given(
        re=st.floats(-5, 5),
        im=st.floats(-5, 5),
        bias=st.floats(-3, 3),
        phase=st.floats(-3, 3),
    )
    def test_turning_the_input_turns_the_output(self, re, im, bias, phase):
        z = np.array([re + 1j * im])
        turned = modrelu(pair(z * np.exp(1j * phase)).astype(FLOAT), [bias], 0.1, complex_=True)
        re, im = np.asarray(modrelu(pair(z).astype(FLOAT), [bias], 0.1, complex_=True))
        expected = pair(np.array([(re + 1j * im) * np.exp(1j * phase)]))
        np.testing.assert_allclose(turned, expected, rtol=0, atol=tolerance(1e-10, 2e-5))

    @parameterized.product(complex_=[False, True], epsilon=[0.0, 1e-5])
    def test_gradients_at_zero_are_finite(self, complex_, epsilon):
        z, b = np.zeros((2, 6), FLOAT), np.full(3 if complex_ else 6, 0.5, FLOAT)
        value, gradients = backend.value_and_gradients(
            lambda z, b: ops.sum(modrelu(z, b, epsilon, complex_)), z, b
        )
        self.assertEqual(value, 0)
        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients))

    def test_without_bias_and_epsilon_it_is_the_identity(self):
        z = np.random.default_rng(0).normal(size=(2, 6)).astype(FLOAT)
        np.testing.assert_allclose(modrelu(z, np.zeros(6, FLOAT), 0.0), z)
        np.testing.assert_allclose(modrelu(z, np.zeros(3, FLOAT), 0.0, complex_=True), z, rtol=1e-6)


if __name__ == "__main__":
    absltest.main()
