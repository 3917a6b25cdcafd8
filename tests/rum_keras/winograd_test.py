"""Minimal filtering gives what the convolution gives, and its gradients."""

import keras
import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras.winograd import winograd_conv1d
from tests import backend
from tests.backend import FLOAT, tolerance


class WinogradTest(parameterized.TestCase):
    @parameterized.parameters(1, 2, 3, 6, 7)
    def test_outputs_and_gradients_are_those_of_the_convolution(self, time):
        random = np.random.default_rng(time)
        x, kernel = (random.normal(size=size).astype(FLOAT) for size in ((2, time, 4), (3, 4, 6)))
        upstream = random.normal(size=(2, time, 6)).astype(FLOAT)

        def loss_of(convolution):
            return lambda x, kernel: ops.sum(convolution(x, kernel) * upstream)

        def plain(x, kernel):
            return ops.conv(x, kernel, padding="same", data_format="channels_last")

        np.testing.assert_allclose(
            winograd_conv1d(x, kernel), plain(x, kernel), atol=tolerance(1e-12)
        )
        expected, gradients = backend.value_and_gradients(loss_of(plain), x, kernel)
        actual, ours = backend.value_and_gradients(loss_of(winograd_conv1d), x, kernel)
        np.testing.assert_allclose(actual, expected, atol=tolerance(1e-10, 1e-4))
        for one, other in zip(ours, gradients, strict=True):
            np.testing.assert_allclose(one, other, atol=tolerance(1e-12, 1e-5))

    @parameterized.parameters(4, 5)
    def test_an_activation_acts_on_each_step(self, time):
        random = np.random.default_rng(0)
        x, kernel = random.normal(size=(2, time, 4)), random.normal(size=(3, 4, 6))
        x, kernel = x.astype(FLOAT), kernel.astype(FLOAT)
        actual = winograd_conv1d(x, kernel, ops.glu)
        np.testing.assert_allclose(actual, ops.glu(winograd_conv1d(x, kernel)), atol=1e-6)

    def test_float32_is_as_exact_as_the_convolution_but_for_a_small_factor(self):
        random = np.random.default_rng(0)
        x, kernel = random.normal(size=(2, 9, 64)), random.normal(size=(3, 64, 5)) / 14
        padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
        exact = sum(padded[:, i : i + 9] @ kernel[i] for i in range(3))
        actual = winograd_conv1d(x.astype("float32"), kernel.astype("float32"))
        np.testing.assert_allclose(actual, exact, atol=3e-6)

    @absltest.skipIf(keras.backend.backend() != "tensorflow", "tf.function is TensorFlow's")
    def test_a_graph_takes_any_batch_and_time(self):
        import tensorflow as tf

        kernel = np.random.default_rng(0).normal(size=(3, 4, 6)).astype("float32")
        graph = tf.function(
            lambda x: winograd_conv1d(x, kernel),
            input_signature=[tf.TensorSpec((None, None, 4), tf.float32)],
        )
        for time in (1, 4, 5):
            x = np.random.default_rng(1).normal(size=(2, time, 4)).astype("float32")
            np.testing.assert_allclose(graph(x), winograd_conv1d(x, kernel), atol=1e-6)

    def test_other_kernels_are_refused(self):
        with self.assertRaisesRegex(ValueError, "three taps, received 2"):
            winograd_conv1d(np.ones((2, 5, 4), "float32"), np.ones((2, 4, 6), "float32"))


if __name__ == "__main__":
    absltest.main()
