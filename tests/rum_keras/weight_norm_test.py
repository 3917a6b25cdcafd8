"""Layers with weight normalization against NumPy, Keras' own layers and released numbers."""

import os
import pathlib
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from rum_keras.weight_norm import WeightNormConv1D, WeightNormDense
from tests import backend
from tests.backend import FLOAT, tolerance

GOLDEN = pathlib.Path(__file__).parents[1] / "golden/convs2s_weight_norm.npz"


def normal(*shape, seed=0, dtype=FLOAT):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def make_layer(kind, **options):
    """Returns a built layer of 6 units for inputs (batch, time, 4), with weights of no pattern."""
    options = {"dtype": FLOAT, **options}
    if kind == "dense":
        layer = WeightNormDense(6, **options)
    else:
        layer = WeightNormConv1D(6, 3, padding=kind, **options)
    layer.build((None, None, 4))
    for i, weight in enumerate(layer.weights):
        weight.assign(normal(*weight.shape, seed=i))
    return layer


def plain_layer(layer):
    """Returns Keras' layer with the weights that weight normalization amounts to, by NumPy."""
    v, g = backend.to_numpy([layer.v, layer.g])
    if v.ndim == 2:
        plain = keras.layers.Dense(6, dtype=FLOAT)
    else:
        plain = keras.layers.Conv1D(6, 3, padding=layer.padding, dtype=FLOAT)
    plain.build((None, None, 4))
    norms = np.sqrt((v.reshape(-1, 6).astype("float64") ** 2).sum(0))
    plain.set_weights([g * v / norms, backend.to_numpy(layer.bias)])
    return plain


class WeightNormTest(parameterized.TestCase):
    @parameterized.parameters("dense", "valid", "same", "causal")
    def test_equals_the_layer_of_keras_with_weights_of_length_g_along_v(self, kind):
        layer, x = make_layer(kind), normal(2, 5, 4, seed=9)
        expected = backend.to_numpy(plain_layer(layer)(x))
        np.testing.assert_allclose(layer(x), expected, rtol=0, atol=tolerance(1e-12))
        self.assertEqual(layer.compute_output_shape(x.shape), expected.shape)

    @parameterized.parameters("dense", "same")
    def test_a_kernel_computed_before_gives_the_same(self, kind):
        layer, x = make_layer(kind), normal(2, 5, 4, seed=9)
        kernel = layer.effective_kernel()
        np.testing.assert_array_equal(layer(x, kernel=kernel), layer(x))
        bias = np.broadcast_to(backend.to_numpy(layer.bias), (2, 5, 6))
        np.testing.assert_array_equal(layer(x, kernel=0 * kernel), bias)

    @parameterized.parameters("dense", "same")
    def test_the_kernel_starts_as_the_initializer_drew_it(self, kind):
        layer = WeightNormDense(6) if kind == "dense" else WeightNormConv1D(6, 3)
        layer.build((None, None, 4))
        np.testing.assert_allclose(layer.effective_kernel(), layer.v, rtol=1e-6)
        np.testing.assert_array_equal(layer.bias, np.zeros(6))

    @parameterized.parameters("dense", "same")
    def test_weights_are_named_after_the_paper(self, kind):
        layer = make_layer(kind)
        shapes = {weight.name: tuple(weight.shape) for weight in layer.weights}
        v = (4, 6) if kind == "dense" else (3, 4, 6)
        self.assertEqual(shapes, {"v": v, "g": (6,), "bias": (6,)})

    @parameterized.parameters("dense", "same")
    def test_the_length_of_v_does_not_matter_and_its_gradient_is_orthogonal_to_it(self, kind):
        layer, x = make_layer(kind), normal(2, 5, 4, seed=9)
        before = backend.to_numpy(layer(x))
        _, gradients = backend.weight_gradients(
            layer, lambda: keras.ops.sum(keras.ops.square(layer(x)))
        )
        v = backend.to_numpy(layer.v)
        along = (gradients["v"] * v).reshape(-1, 6).sum(0)
        np.testing.assert_allclose(along, np.zeros(6), rtol=0, atol=tolerance(1e-10, 2e-4))
        self.assertGreater(abs(gradients["v"]).max(), 1)
        layer.v.assign(7 * v)
        np.testing.assert_allclose(layer(x), before, rtol=0, atol=tolerance(1e-12))

    @parameterized.parameters("dense", "same")
    def test_gradients_of_weights_equal_finite_differences(self, kind):
        layer, x = make_layer(kind), normal(2, 5, 4, seed=9)
        c = normal(2, 5, 6, seed=8)

        def loss():
            return keras.ops.sum(layer(x) * c)

        _, gradients = backend.weight_gradients(layer, loss)
        step = tolerance(1e-6, 1e-2)
        for weight in layer.trainable_variables:
            value, along = backend.to_numpy(weight), normal(*weight.shape, seed=7)
            ends = []
            for sign in (1, -1):
                weight.assign(value + sign * step * along)
                ends.append(float(loss()))
            weight.assign(value)
            slope = (ends[0] - ends[1]) / (2 * step)
            actual = float((gradients[weight.name] * along).sum())
            self.assertAlmostEqual(actual, slope, delta=tolerance(1e-6, 2e-2), msg=weight.name)

    @parameterized.parameters("dense", "same")
    def test_zero_weights_give_the_bias_and_finite_gradients(self, kind):
        layer, x = make_layer(kind), normal(2, 5, 4, seed=9)
        layer.v.assign(0 * layer.v)
        output = np.broadcast_to(backend.to_numpy(layer.bias), (2, 5, 6))
        np.testing.assert_array_equal(layer(x), output)
        _, gradients = backend.weight_gradients(layer, lambda: keras.ops.sum(layer(x)))
        self.assertTrue(all(np.isfinite(gradient).all() for gradient in gradients.values()))

    @parameterized.parameters("dense", "same")
    def test_half_precision_does_not_overflow_in_the_norm(self, kind):
        layer = make_layer(kind, dtype="mixed_float16")
        reference = make_layer(kind, dtype="float32")
        for one in (layer, reference):
            one.v.assign(300 * backend.to_numpy(one.v))
        x = normal(2, 5, 4, seed=9, dtype="float32")
        actual = layer(x)
        self.assertEqual(keras.backend.standardize_dtype(actual.dtype), "float16")
        np.testing.assert_allclose(
            backend.to_numpy(keras.ops.cast(actual, "float32")), reference(x), rtol=0, atol=0.03
        )

    def test_activation_and_missing_bias(self):
        layer = make_layer("dense", activation="relu", use_bias=False)
        x = normal(2, 5, 4, seed=9)
        linear = x @ backend.to_numpy(layer.effective_kernel())
        np.testing.assert_allclose(layer(x), np.maximum(linear, 0), atol=tolerance(1e-12))
        self.assertLen(layer.weights, 2)

    def test_a_causal_output_does_not_see_the_future(self):
        layer, x = make_layer("causal"), normal(2, 5, 4, seed=9)
        changed = x.copy()
        changed[:, 3:] += 1
        difference = abs(backend.to_numpy(layer(changed)) - backend.to_numpy(layer(x)))
        self.assertEqual(difference[:, :3].max(), 0)
        self.assertGreater(difference[:, 3].min(), 0)

    def test_a_model_survives_a_keras_file_without_custom_objects(self):
        sequence = keras.Input((None, 4))
        hidden = WeightNormConv1D(5, 2, padding="causal", activation="relu")(sequence)
        model = keras.Model(sequence, WeightNormDense(6, use_bias=False)(hidden))
        for i, weight in enumerate(model.weights):
            weight.assign(normal(*weight.shape, seed=i))
        x = normal(2, 5, 4, dtype="float32")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            model.save(path)
            loaded = keras.saving.load_model(path)
        np.testing.assert_array_equal(loaded(x), model(x))

    def test_equals_the_released_code_of_topic_convs2s(self):
        with np.load(GOLDEN) as arrays:
            arrays = dict(arrays)
        for name in ("linear", "convolution"):
            v, g = arrays[f"{name}_v"], arrays[f"{name}_g"]
            if name == "linear":  # PyTorch's: (units, features)
                layer, v = WeightNormDense(len(v), dtype=FLOAT), v.T
            else:
                layer = WeightNormConv1D(v.shape[-1], len(v), padding="same", dtype=FLOAT)
            layer.build((None, None, v.shape[-2]))
            layer.v.assign(v)
            layer.g.assign(g.reshape(-1))
            want = arrays[f"{name}_effective"]
            want = want.T if name == "linear" else want
            np.testing.assert_allclose(layer.effective_kernel(), want, rtol=0, atol=1e-6)

    def test_arguments_out_of_range_are_named(self):
        for make, message in (
            (lambda: WeightNormDense(0), "`units` must be positive, received 0"),
            (lambda: WeightNormConv1D(0, 3), "`filters` must be positive, received 0"),
            (lambda: WeightNormConv1D(6, 0), "`kernel_size` must be positive, received 0"),
            (lambda: WeightNormConv1D(6, 3, "full"), "\"causal\", received 'full'"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                make()


if __name__ == "__main__":
    absltest.main()
