"""Powers of rotations against their definition, laws and the power that cannot be trained."""

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st

import rum_keras
from rum_keras.fractional_rotation import fractional_rotation
from tests import backend
from tests.backend import FLOAT, tolerance
from tests.rum_keras.cell_checks import CellChecks, inputs

LAMBDAS = (0.01, 0.3, 0.5, 0.9)


def plane_rotation(*angles, size=None):
    """Returns the rotation by these angles in the planes of axes 0 and 1, 2 and 3, and so on."""
    R = np.eye(size or 2 * len(angles))
    for plane, angle in enumerate(angles):
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        R[2 * plane : 2 * plane + 2, 2 * plane : 2 * plane + 2] = block
    return R


def random_orthogonal(size, seed=0, determinant=1):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    Q[:, 0] *= determinant * np.linalg.det(Q)
    return Q


def power(R, lambda_, dtype=FLOAT):
    return backend.to_numpy(fractional_rotation(np.asarray(R, dtype), lambda_))


def reference_power(R, lambda_):
    identity = np.eye(R.shape[-1])
    numerator = (1 + lambda_) * R + (1 - lambda_) * identity
    return numerator @ np.linalg.inv((1 - lambda_) * R + (1 + lambda_) * identity)


def principal_power(R, lambda_):
    """Returns exp(lambda log R), by the eigenvectors, which are orthogonal."""
    values, vectors = np.linalg.eig(R)
    powers = np.exp(1j * lambda_ * np.angle(values))
    return (vectors * powers @ np.linalg.inv(vectors)).real


class FractionalRotationTest(parameterized.TestCase):
    def assert_all_close(self, actual, expected, float64=1e-12, float32=1e-5):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance(float64, float32))

    def test_is_exact_at_0_and_1(self):
        R = np.stack([random_orthogonal(5, seed) for seed in range(3)]).astype(FLOAT)
        np.testing.assert_array_equal(power(R, 1), R)
        np.testing.assert_array_equal(power(R, 0), np.broadcast_to(np.eye(5), R.shape))

    @parameterized.product(lambda_=LAMBDAS, determinant=[1, -1])
    def test_equals_the_definition(self, lambda_, determinant):
        R = random_orthogonal(6, determinant=determinant)
        self.assert_all_close(power(R, lambda_), reference_power(R, lambda_))

    @given(angle=st.floats(-3.1, 3.1), lambda_=st.floats(1e-3, 1))
    @settings(max_examples=25, deadline=None)
    def test_the_tangent_of_half_the_angle_is_multiplied(self, angle, lambda_):
        expected = plane_rotation(2 * np.arctan(lambda_ * np.tan(angle / 2)), size=4)
        self.assert_all_close(
            power(plane_rotation(angle, size=4), lambda_), expected, 1e-11, float32=1e-4
        )

    @parameterized.parameters(*LAMBDAS)
    def test_small_angles_are_multiplied_up_to_the_third_order(self, lambda_):
        R = plane_rotation(0.2, 0.1)
        difference = np.abs(power(R, lambda_) - principal_power(R, lambda_)).max()
        self.assertLess(difference, lambda_ * 0.2**3 / 11 + tolerance(1e-12, 1e-6))

    @parameterized.parameters(*LAMBDAS)
    def test_powers_of_powers_multiply(self, lambda_):
        R = random_orthogonal(5)
        self.assert_all_close(power(power(R, 0.4), lambda_), power(R, 0.4 * lambda_), 1e-11)

    @parameterized.product(
        lambda_=(1e-3, *LAMBDAS, 0.999),
        angles=[(0.0, 0.0), (np.pi, 0.5), (np.pi, np.pi), (np.pi - 1e-3, 1e-3 - np.pi)],
        reflected=[False, True],
    )
    def test_is_orthogonal_near_half_turns_and_for_reflections(self, lambda_, angles, reflected):
        basis = random_orthogonal(5)
        R = plane_rotation(*angles, size=5)
        R[4, 4] = -1 if reflected else 1
        actual = power(basis @ R @ basis.T, lambda_, dtype="float32").astype("float64")
        np.testing.assert_allclose(actual @ actual.T, np.eye(5), rtol=0, atol=1e-6)
        self.assertAlmostEqual(np.linalg.det(actual), -1 if reflected else 1, delta=1e-5)

    @parameterized.parameters(*LAMBDAS)
    def test_deviations_from_orthogonality_are_reduced(self, lambda_):
        noise = np.random.default_rng(0).normal(size=(6, 6))
        actual = power(random_orthogonal(6) + 1e-3 * lambda_ * noise, lambda_)
        self.assert_all_close(actual @ actual.T, np.eye(6), 1e-4, 1e-4)

    @parameterized.parameters(*LAMBDAS)
    def test_is_continuous_at_half_turns_where_the_principal_power_jumps(self, lambda_):
        before, after = (plane_rotation(np.pi + offset, 0.3) for offset in (-1e-3, 1e-3))
        step = np.abs(power(before, lambda_) - power(after, lambda_)).max()
        self.assertLess(step, 2.1e-3 / lambda_)
        jump = np.abs(principal_power(before, lambda_) - principal_power(after, lambda_)).max()
        self.assertGreater(jump, 1.9 * np.sin(np.pi * lambda_))

    @parameterized.product(lambda_=LAMBDAS, case=["identity", "random", "half turns", "reflection"])
    def test_gradients_equal_finite_differences(self, lambda_, case):
        R = {
            "identity": np.eye(4),
            "random": random_orthogonal(4),
            "half turns": plane_rotation(np.pi, np.pi),
            "reflection": random_orthogonal(4, determinant=-1),
        }[case]
        rng = np.random.default_rng(1)
        c = rng.normal(size=(4, 4)).astype(FLOAT)
        skew = rng.normal(size=(4, 4))
        tangent = R @ (skew - skew.T)

        def loss(R):
            return keras.ops.sum(fractional_rotation(R, lambda_) * c)

        _, (gradient,) = backend.value_and_gradients(loss, R.astype(FLOAT))
        self.assertTrue(np.isfinite(gradient).all())
        ends = [(reference_power(R + sign * 1e-6 * tangent, lambda_) * c).sum() for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / 2e-6
        self.assertAlmostEqual(
            (gradient * tangent).sum(), slope, delta=tolerance(1e-6, 1e-3) * (1 + abs(slope))
        )
        # The bound: 1 / lambda times the norms of c and of the direction.
        bound = np.linalg.norm(c) * np.linalg.norm(tangent) / lambda_
        self.assertLessEqual(abs(slope), 1.001 * bound)

    @parameterized.parameters("float16", "bfloat16")
    def test_half_precision_is_computed_in_float32(self, dtype):
        R = keras.ops.cast(random_orthogonal(5), dtype)
        actual = fractional_rotation(R, 0.5)
        self.assertEqual(keras.backend.standardize_dtype(actual.dtype), dtype)
        expected = power(backend.to_numpy(keras.ops.cast(R, "float32")), 0.5, "float32")
        actual = backend.to_numpy(keras.ops.cast(actual, "float32"))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-2)

    @parameterized.parameters(-0.1, 1.1, 1e-4, float("nan"), True)
    def test_a_power_out_of_range_is_named(self, lambda_):
        for function in (
            lambda: fractional_rotation(np.eye(3), lambda_),
            lambda: rum_keras.RUMCell(6, lambda_=lambda_),
        ):
            with self.assertRaisesRegex(ValueError, f"`lambda_` must be 0 .*received {lambda_}"):
                function()

    def test_a_matrix_that_is_not_square_is_named(self):
        with self.assertRaisesRegex(ValueError, r"`R` must be of shape .* \(2, 3\)"):
            fractional_rotation(np.ones((2, 3)), 0.5)


class FadingMemoryTest(parameterized.TestCase):
    def test_the_memory_is_the_power_of_the_last_one_times_the_rotation(self):
        cell = rum_keras.RUMCell(6, lambda_=0.7, dtype=FLOAT)
        layer = keras.layers.RNN(cell, return_sequences=True, return_state=True, dtype=FLOAT)
        x = inputs(batch=1, time=20)
        outputs, h, memory = (value[0] for value in backend.to_numpy(layer(x)))
        kernel, recurrent, bias = (backend.to_numpy(w).astype("float64") for w in cell.weights)
        R, h = np.eye(6), np.zeros(6)
        for step in range(20):
            projected = x[0, step] @ kernel + bias
            z = h @ recurrent
            target, gate = projected[:6] + z[:6], 1 / (1 + np.exp(-projected[6:12] - z[6:]))
            embedded = projected[12:]
            rotation = backend.to_numpy(
                rum_keras.rotation_matrix(embedded.astype(FLOAT), target.astype(FLOAT))
            )
            R = reference_power(R, 0.7) @ rotation
            h = gate * h + (1 - gate) * np.maximum(embedded + R @ h, 0)
            np.testing.assert_allclose(outputs[step], h, rtol=0, atol=tolerance(1e-10, 1e-4))
        np.testing.assert_allclose(
            memory.reshape(6, 6) + np.eye(6), R, rtol=0, atol=tolerance(1e-10, 1e-4)
        )

    def test_the_memory_fades_while_nothing_is_read(self):
        cell = rum_keras.RUMCell(6, lambda_=0.5, use_bias=False)
        layer = keras.layers.RNN(cell, return_state=True)
        x = inputs(time=9, dtype="float32")
        x[:, 1:] = 0
        _, _, first = backend.to_numpy(layer(x[:, :1]))
        _, _, last = backend.to_numpy(layer(x))
        expected = reference_power(first.reshape(-1, 6, 6) + np.eye(6), 0.5**8)
        np.testing.assert_allclose(last.reshape(-1, 6, 6) + np.eye(6), expected, rtol=0, atol=1e-5)

    def test_between_0_and_1_lie_the_two_known_cells(self):
        layers = [
            keras.layers.RNN(rum_keras.RUMCell(6, lambda_=lambda_))
            for lambda_ in (0.999999, 1.0, 1, 0)
        ]
        x = inputs(dtype="float32")
        for layer in layers:
            layer.build(x.shape)
            layer.set_weights(layers[0].get_weights())
        nearly, one, integer, zero = (backend.to_numpy(layer(x)) for layer in layers)
        np.testing.assert_allclose(nearly, integer, rtol=0, atol=1e-4)
        np.testing.assert_array_equal(one, integer)
        self.assertGreater(np.abs(zero - integer).max(), 1e-2)
        self.assertEqual([type(layer.cell.lambda_) for layer in layers], [float, int, int, int])

    @parameterized.product(lambda_=[1e-3, 0.5], case=["random", "antiparallel", "nearly"])
    def test_the_memory_stays_orthogonal_and_the_gradients_finite(self, lambda_, case):
        # eta bounds the state; the target is the embedded input, turned by about pi in two cases.
        cell = rum_keras.RUMCell(4, lambda_=lambda_, eta=1.0, activation="tanh")
        cell.build((None, 4))
        embedded, target = np.eye(4), -np.eye(4)
        if case != "antiparallel":
            noise = np.random.default_rng(1).normal(size=(4, 4))
            target = noise if case == "random" else target + 1e-4 * noise
        cell.kernel.assign(np.concatenate([target, np.eye(4), embedded], axis=-1))
        cell.recurrent_kernel.assign(np.zeros((4, 8)))
        cell.bias.assign(np.zeros(12))
        layer = keras.layers.RNN(cell, return_state=True)
        x = inputs(time=40, dtype="float32")
        R = backend.to_numpy(layer(x)[2]).reshape(-1, 4, 4).astype("float64") + np.eye(4)
        products = R @ R.transpose(0, 2, 1)
        np.testing.assert_allclose(products, np.broadcast_to(np.eye(4), R.shape), atol=2e-6)
        _, gradients = backend.weight_gradients(layer, lambda: keras.ops.sum(layer(x)[0] ** 2))
        for name, gradient in gradients.items():
            self.assertTrue(np.isfinite(gradient).all(), name)

    def test_the_layer_steps_through_the_cell(self):
        layer = rum_keras.RUM(6, lambda_=0.5)
        x = inputs(dtype="float32")
        expected = keras.layers.RNN(layer.cell)(x)
        np.testing.assert_array_equal(
            backend.to_numpy(layer(x, training=True)), backend.to_numpy(expected)
        )


class FadingMemoryInKerasTest(CellChecks, parameterized.TestCase):
    def make_cell(self, dtype=None):
        return rum_keras.RUMCell(6, lambda_=0.7, eta=1.0, dtype=dtype)


if __name__ == "__main__":
    absltest.main()
