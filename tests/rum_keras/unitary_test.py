"""Unitary matrices in real form, and the paper's multiplicative step, against complex NumPy."""

import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras import unitary
from tests import backend
from tests.backend import FLOAT, tolerance


def random_complex(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))


def random_unitary(n, seed=0):
    return np.linalg.qr(random_complex(n, seed))[0]


def pair(z):
    return np.concatenate([z.real, z.imag], axis=-1).astype(FLOAT)


def unpair(z):
    re, im = np.split(np.asarray(z), 2, axis=-1)
    return re + 1j * im


class RealFormTest(parameterized.TestCase):
    def test_products_of_real_forms_are_real_forms_of_products(self):
        V, W = random_complex(4), random_complex(4, seed=1)
        real = [unitary.real_form(matrix.real, matrix.imag) for matrix in (V, W, V @ W)]
        np.testing.assert_allclose(
            ops.matmul(real[0], real[1]), real[2], atol=tolerance(1e-12, 1e-5)
        )

    def test_the_conjugate_transpose_is_the_transpose(self):
        V = random_complex(4)
        adjoint = V.conj().T
        np.testing.assert_array_equal(
            ops.transpose(unitary.real_form(V.real, V.imag)),
            unitary.real_form(adjoint.real, adjoint.imag),
        )


class UnitarityErrorTest(parameterized.TestCase):
    def test_it_is_the_greatest_deviation(self):
        self.assertAlmostEqual(float(unitary.unitarity_error(1.5 * np.eye(3))), 1.25)
        W = random_unitary(5)
        error = unitary.unitarity_error(unitary.real_form(W.real, W.imag))
        self.assertLess(error, tolerance(1e-14, 1e-6))


class RandomUnitaryTest(parameterized.TestCase):
    def test_it_is_unitary_and_another_one_each_time(self):
        W, other = (unpair(unitary.random_unitary((50, 100), FLOAT)) for _ in range(2))
        np.testing.assert_allclose(W @ W.conj().T, np.eye(50), atol=tolerance(1e-12, 1e-5))
        self.assertGreater(np.abs(W - other).max(), 0.1)

    def test_its_eigenvalues_are_spread_over_the_circle(self):
        angles = np.angle(np.linalg.eigvals(unpair(unitary.random_unitary((64, 128), FLOAT))))
        quadrants, _ = np.histogram(angles, bins=4, range=(-np.pi, np.pi))
        self.assertBetween(quadrants.min(), 12, 16)


class CayleyStepTest(parameterized.TestCase):
    def test_equals_complex_numpy(self):
        W, G, rate = random_unitary(4), random_complex(4, seed=1), 0.3
        A = G @ W.conj().T - W @ G.conj().T
        identity = np.eye(4)
        expected = np.linalg.solve(identity + rate / 2 * A, (identity - rate / 2 * A) @ W)
        actual = unitary.cayley_step(*map(ops.convert_to_tensor, (pair(W), pair(G))), rate)
        np.testing.assert_allclose(unpair(actual), expected, atol=tolerance(1e-12, 1e-5))

    def test_without_gradient_nothing_moves(self):
        W = ops.convert_to_tensor(pair(random_unitary(4)))
        np.testing.assert_allclose(
            unitary.cayley_step(W, ops.zeros_like(W), 0.3), W, atol=tolerance(1e-15, 1e-6)
        )

    def test_the_loss_falls_at_the_rate_of_the_paper(self):
        target, W = random_unitary(4), random_unitary(4, seed=1)

        def loss(W):
            return np.sum(np.abs(W - target) ** 2)

        G = 2 * (W - target)
        A = G @ W.conj().T - W @ G.conj().T
        W_, G_ = map(ops.convert_to_tensor, (pair(W), pair(G)))
        rate = tolerance(1e-6, 1e-2)
        ends = [loss(unpair(unitary.cayley_step(W_, G_, s * rate))) for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * rate)
        expected = -np.sum(np.abs(A) ** 2) / 2
        self.assertAlmostEqual(slope / expected, 1, delta=tolerance(1e-6, 3e-2))

    def test_it_descends_to_any_unitary_matrix(self):
        target = ops.convert_to_tensor(pair(random_unitary(4)))
        W = ops.convert_to_tensor(pair(random_unitary(4, seed=1)))
        losses = []
        for _ in range(150):
            losses.append(float(ops.sum(ops.square(W - target))))
            W = unitary.cayley_step(W, 2 * (W - target), 0.1)
        self.assertLess(losses[-1], 1e-6 * losses[0])
        falling = [
            after <= before + 1e-10 for before, after in zip(losses, losses[1:], strict=False)
        ]
        self.assertTrue(all(falling))

    def test_300_steps_in_float32_stay_unitary(self):
        W = ops.cast(pair(random_unitary(8)), "float32")
        rng = np.random.default_rng(2)
        step = unitary.cayley_step
        for gradient in rng.normal(size=(300, 8, 16)).astype("float32"):
            W = step(W, ops.convert_to_tensor(gradient), 0.01)
        error = unitary.unitarity_error(unitary.real_form(*ops.split(W, 2, axis=1)))
        self.assertLess(error, 1e-6)


class OrthogonalizedTest(parameterized.TestCase):
    def test_the_error_is_squared(self):
        W = random_unitary(6).real
        W = np.linalg.qr(W)[0] + 1e-3 * np.random.default_rng(0).normal(size=(6, 6))
        W = W.astype(FLOAT)
        errors = [float(unitary.unitarity_error(V)) for V in (W, unitary.orthogonalized(W))]
        self.assertLess(errors[1], 3 * errors[0] ** 2)


class TurnTest(parameterized.TestCase):
    def test_equals_complex_numpy(self):
        z, angle = random_complex(3), np.array([0.3, -2.0, 5.0])
        re, im = backend.to_numpy(unitary.turn(z.real, z.imag, angle))
        np.testing.assert_allclose(re + 1j * im, z * np.exp(1j * angle), atol=1e-6)


if __name__ == "__main__":
    absltest.main()
