"""Tests of what the memory networks share."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests import backend
from tests.zoo.babi.position_encoding import formula
from zoo.babi.sentences import attention, position_encoded_sum


class PositionEncodingTest(parameterized.TestCase):
    @parameterized.parameters(1, 2, 5)
    def test_sums_are_those_of_the_formula(self, words):
        vectors = np.random.default_rng(0).normal(size=(2, words, 6))
        sums = position_encoded_sum(vectors.astype("float32"), np.ones((2, words), bool))
        for row in range(2):
            np.testing.assert_allclose(sums[row], formula(vectors[row]), atol=1e-5)

    def test_padding_counts_nowhere(self):
        vectors = np.random.default_rng(0).normal(size=(1, 5, 6)).astype("float32")
        real = np.array([[False, True, True, False, True]])
        sums = position_encoded_sum(vectors, real)
        np.testing.assert_allclose(sums[0], formula(vectors[0, real[0]]), atol=1e-5)

    def test_a_sentence_without_words_is_zero(self):
        sums = position_encoded_sum(np.ones((1, 3, 4), "float32"), np.zeros((1, 3), bool))
        np.testing.assert_array_equal(sums, np.zeros((1, 4)))


class AttentionTest(parameterized.TestCase):
    @parameterized.parameters(0.0, 100.0, -1e6)
    def test_it_is_the_softmax_of_the_real_ones(self, offset):
        scores = np.array([[1.0, 2.0, 50.0, 1.5]], "float32") + np.float32(offset)
        real = np.array([[True, True, False, True]])
        p = keras.ops.convert_to_numpy(attention(scores, real))
        expected = np.exp(scores[real] - scores[real].max())
        np.testing.assert_allclose(p[real], expected / expected.sum(), atol=1e-6)
        self.assertEqual(p[0, 2], 0)

    @parameterized.parameters("float16", "float32")
    def test_with_nothing_real_it_is_zero_with_zero_gradients(self, dtype):
        scores = np.array([[1.0, -300.0]], dtype)
        _, (gradient,) = backend.value_and_gradients(
            lambda scores: keras.ops.sum(attention(scores, np.zeros((1, 2), bool)) * 3), scores
        )
        np.testing.assert_array_equal(gradient, np.zeros((1, 2)))
        np.testing.assert_array_equal(attention(scores, np.zeros((1, 2), bool)), [[0, 0]])


if __name__ == "__main__":
    absltest.main()
