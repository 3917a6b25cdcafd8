"""rotate, rotation_matrix and rotation_angle."""

import pathlib
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rum_keras import rotate, rotation_angle, rotation_matrix
from tests import backend
from tests.backend import tolerance

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
# The rows where the released code computes the paper's formula without its floors.
COMPARABLE = ("generic", "huge", "tiny_a_1e-5", "unit_axes_orthogonal", "zero_v")

vectors = hnp.arrays(
    np.float64, (3, 5), elements=st.floats(-10, 10).filter(lambda x: x == 0 or abs(x) > 1e-3)
)


float64_only = unittest.skipIf(backend.FLOAT == "float32", "Keras on JAX has no float64")


def golden(name="rotation_tf"):
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def rows(arrays, prefixes):
    return np.array([str(label).startswith(prefixes) for label in arrays["labels"]])


class GoldenTest(parameterized.TestCase):
    @parameterized.parameters("rotation_tf", "rotation_pytorch")
    def test_equals_the_released_code_where_its_floors_do_not_matter(self, name):
        g = golden(name)
        keep = rows(g, COMPARABLE)
        a, b, v = (g[key][keep] for key in "abv")
        rotated = backend.to_numpy(rotate(a, b, v))
        scale = np.abs(v).max()
        np.testing.assert_allclose(
            rotated, g["rotated"][keep], rtol=tolerance(1e-9), atol=tolerance(1e-9) * scale
        )
        matrix = backend.to_numpy(rotation_matrix(a, b))
        np.testing.assert_allclose(matrix, g["R"][keep], rtol=0, atol=tolerance(1e-9))

    @parameterized.parameters("rotation_tf", "rotation_pytorch")
    def test_gradients_equal_the_released_codes(self, name):
        g = golden(name)
        keep = rows(g, COMPARABLE)
        c = g["c"][keep]
        _, gradients = backend.value_and_gradients(
            lambda a, b, v: keras.ops.sum(rotate(a, b, v) * c), *(g[key][keep] for key in "abv")
        )
        for gradient, key in zip(gradients, "abv", strict=True):
            want = g[f"g_{key}"][keep]
            np.testing.assert_allclose(
                gradient,
                want,
                rtol=tolerance(1e-8, 1e-4),
                atol=tolerance(1e-9) * np.abs(want).max(),
            )

    @parameterized.parameters("rotation_tf", "rotation_pytorch")
    def test_matrix_gradients_equal_the_released_codes(self, name):
        g = golden(name)
        keep = rows(g, COMPARABLE)
        c = g["C2"][keep]
        _, gradients = backend.value_and_gradients(
            lambda a, b: keras.ops.sum(rotation_matrix(a, b) * c), g["a"][keep], g["b"][keep]
        )
        for gradient, key in zip(gradients, "ab", strict=True):
            want = g[f"gR_{key}"][keep]
            np.testing.assert_allclose(
                gradient,
                want,
                rtol=tolerance(1e-8, 1e-4),
                atol=tolerance(1e-9) * np.abs(want).max(),
            )

    @float64_only
    def test_near_parallel_vectors_are_rotated_exactly(self):
        g = golden()
        keep = rows(g, "near_parallel") & g["exact_defined"]
        rotated = backend.to_numpy(rotate(*(g[key][keep] for key in "abv")))
        np.testing.assert_allclose(rotated, g["exact_rotated"][keep], rtol=0, atol=1e-12)

    @float64_only
    def test_near_antiparallel_vectors_are_rotated_as_well_as_rounding_of_the_inputs_allows(self):
        g = golden()
        keep = rows(g, "near_antiparallel") & g["exact_defined"]
        a, b, v = (g[key][keep] for key in "abv")
        error = np.abs(backend.to_numpy(rotate(a, b, v)) - g["exact_rotated"][keep]).max(axis=-1)
        angle = np.pi - np.arccos(np.clip(g["exact_costh"][keep], -1, 1))
        angle = np.maximum(angle, 1e-8)
        np.testing.assert_array_less(error, 1e-14 / angle)

    @float64_only
    def test_angles_equal_the_exact_ones(self):
        g = golden()
        keep = g["exact_defined"] & ~rows(g, ("tiny", "zero"))
        angle = backend.to_numpy(rotation_angle(g["a"][keep], g["b"][keep]))
        np.testing.assert_allclose(np.cos(angle), g["exact_costh"][keep], rtol=0, atol=1e-12)

    def test_float32_is_finite_and_orthogonal_on_every_row(self):
        g = golden()
        a, b, v, c = (g[key].astype("float32") for key in ("a", "b", "v", "c"))
        matrix = backend.to_numpy(rotation_matrix(a, b))
        products = matrix @ matrix.transpose(0, 2, 1)
        np.testing.assert_allclose(products, np.broadcast_to(np.eye(8), products.shape), atol=2e-6)
        _, gradients = backend.value_and_gradients(
            lambda a, b, v: keras.ops.sum(rotate(a, b, v) * c), a, b, v
        )
        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients))


class LawsTest(parameterized.TestCase):
    @given(a=vectors, b=vectors, v=vectors)
    @settings(max_examples=60, deadline=None)
    def test_norms_are_preserved(self, a, b, v):
        rotated = backend.to_numpy(rotate(a, b, v))
        norms = np.linalg.norm(v, axis=-1)
        np.testing.assert_allclose(
            np.linalg.norm(rotated, axis=-1), norms, rtol=tolerance(1e-12), atol=tolerance(1e-12)
        )

    @given(a=vectors, b=vectors, v=vectors)
    @settings(max_examples=60, deadline=None)
    def test_the_matrix_is_orthogonal_and_applies_the_rotation(self, a, b, v):
        matrix = backend.to_numpy(rotation_matrix(a, b))
        products = matrix @ matrix.transpose(0, 2, 1)
        np.testing.assert_allclose(
            products, np.broadcast_to(np.eye(5), products.shape), atol=tolerance(1e-12)
        )
        applied = np.einsum("bij,bj->bi", matrix, v)
        np.testing.assert_allclose(
            applied, backend.to_numpy(rotate(a, b, v)), atol=tolerance(1e-11, 1e-4)
        )

    def test_the_direction_of_a_goes_to_the_direction_of_b(self):
        a, b = np.random.default_rng(0).normal(size=(2, 7, 5))
        rotated = backend.to_numpy(rotate(a, b, a))
        want = b * np.linalg.norm(a, axis=-1, keepdims=True)
        want = want / np.linalg.norm(b, axis=-1, keepdims=True)
        np.testing.assert_allclose(rotated, want, atol=tolerance(1e-14))

    def test_the_complement_of_the_plane_is_fixed(self):
        a, b, v = np.random.default_rng(1).normal(size=(3, 6))
        plane, _ = np.linalg.qr(np.stack([a, b], axis=1))
        v = v - plane @ (plane.T @ v)
        np.testing.assert_allclose(backend.to_numpy(rotate(a, b, v)), v, atol=tolerance(1e-14))

    def test_the_inverse_exchanges_a_and_b(self):
        a, b, v = np.random.default_rng(2).normal(size=(3, 4, 6))
        back = backend.to_numpy(rotate(b, a, rotate(a, b, v)))
        np.testing.assert_allclose(back, v, atol=tolerance(1e-13))

    def test_the_determinant_is_one(self):
        a, b = np.random.default_rng(3).normal(size=(2, 4, 6))
        determinant = np.linalg.det(backend.to_numpy(rotation_matrix(a, b)))
        np.testing.assert_allclose(determinant, 1.0, atol=tolerance(1e-12))

    @float64_only
    def test_gradients_equal_finite_differences(self):
        rng = np.random.default_rng(4)
        arrays = list(rng.normal(size=(3, 6)))
        c, step = rng.normal(size=6), 1e-6

        def loss(a, b, v):
            return keras.ops.sum(rotate(a, b, v) * c)

        _, gradients = backend.value_and_gradients(loss, *arrays)
        for index, gradient in enumerate(gradients):
            along = rng.normal(size=6)
            ends = []
            for sign in (1, -1):
                moved = list(arrays)
                moved[index] = moved[index] + sign * step * along
                ends.append(float(backend.to_numpy(loss(*moved))))
            difference = (ends[0] - ends[1]) / (2 * step)
            self.assertAlmostEqual(float(gradient @ along), difference, delta=1e-8)


class DegenerateTest(parameterized.TestCase):
    @parameterized.named_parameters(
        ("zero_a", [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
        ("zero_b", [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]),
        ("both_zero", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ("equal", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        ("parallel", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]),
    )
    def test_is_the_identity(self, a, b):
        matrix = backend.to_numpy(rotation_matrix(np.array(a), np.array(b)))
        np.testing.assert_allclose(matrix, np.eye(3), atol=tolerance(1e-15))
        self.assertLess(abs(float(rotation_angle(np.array(a), np.array(b)))), tolerance(1e-7, 1e-3))

    def test_opposite_vectors_give_the_reflection_of_the_released_code(self):
        a = np.array([1.0, 2.0, 2.0])
        matrix = backend.to_numpy(rotation_matrix(a, -3 * a))
        np.testing.assert_allclose(
            matrix, np.eye(3) - 2 * np.outer(a, a) / 9, atol=tolerance(1e-15)
        )
        self.assertAlmostEqual(float(rotation_angle(a, -3 * a)), np.pi, places=6)

    @parameterized.parameters(1.0, 2.0, -1.0)
    def test_one_dimension_is_finite(self, b):
        value, gradients = backend.value_and_gradients(
            lambda a, b, v: keras.ops.sum(rotate(a, b, v)),
            *(np.array([x]) for x in (1.0, b, 0.5)),
        )
        self.assertEqual(float(value), 0.5 * np.sign(b))
        self.assertTrue(np.isfinite(gradients).all())

    @parameterized.parameters("float16", "bfloat16")
    def test_half_precision_is_computed_in_float32(self, dtype):
        a, b, v = (
            keras.ops.cast(x, dtype) for x in ([1e-4, 0.0, 0.0], [0.0, 300.0, 400.0], [1.0, 2.0, 3])
        )
        rotated = rotate(a, b, v)
        self.assertEqual(keras.backend.standardize_dtype(rotated.dtype), dtype)
        rotated = backend.to_numpy(keras.ops.cast(rotated, "float32"))
        np.testing.assert_allclose(np.linalg.norm(rotated), np.sqrt(14), rtol=1e-2)


class ArgumentsTest(parameterized.TestCase):
    def test_leading_dimensions_broadcast(self):
        rng = np.random.default_rng(5)
        a, b, v = rng.normal(size=(2, 1, 5)), rng.normal(size=(3, 5)), rng.normal(size=5)
        rotated = backend.to_numpy(rotate(a, b, v))
        self.assertEqual(rotated.shape, (2, 3, 5))
        np.testing.assert_allclose(rotated[1, 2], backend.to_numpy(rotate(a[1, 0], b[2], v)))
        self.assertEqual(tuple(rotation_matrix(a, b).shape), (2, 3, 5, 5))
        self.assertEqual(tuple(rotation_angle(a, b).shape), (2, 3))

    def test_different_sizes_are_refused(self):
        with self.assertRaisesRegex(ValueError, "equal last dimensions.*'v': \\(4,\\)"):
            rotate(np.ones(3), np.ones(3), np.ones(4))

    def test_scalars_are_refused(self):
        with self.assertRaisesRegex(ValueError, "last dimension of size N"):
            rotation_angle(1.0, np.ones(3))


if __name__ == "__main__":
    absltest.main()
