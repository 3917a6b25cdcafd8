"""Tests of EntNet."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests import backend
from tests.zoo.babi.network_checks import (
    ANSWERS,
    EXAMPLES,
    SENTENCES,
    VOCABULARY,
    WORDS,
    NetworkChecks,
    examples,
    strengthened,
)
from zoo.babi.entnet import entnet, normalized


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    options = {"units": 6, "slots": 5, **options}
    return entnet(VOCABULARY, ANSWERS, sentences, words, **options)


def sentence(weights, ids, mask):
    f = weights.get(mask, np.ones((WORDS, 6)))
    return sum(f[i] * weights["embedding"][word] for i, word in enumerate(ids) if word)


def expected_logits(weights, story, question, phi, normalize=True):
    """The logits of one example, by the paper's equations, slot by slot."""
    h = [w.copy() for w in weights["keys"]]
    for ids in story[story.any(-1)]:
        s = sentence(weights, ids, "story_mask")
        for j, w in enumerate(weights["keys"]):
            g = 1 / (1 + np.exp(-(s @ h[j] + s @ w)))
            new = h[j] @ weights["state_kernel"] + w @ weights["key_kernel"]
            new = phi(new + s @ weights["sentence_kernel"], "memory")
            h[j] = h[j] + g * new
            if normalize:
                h[j] = h[j] / np.linalg.norm(h[j])
    q = sentence(weights, question, "question_mask")
    p = np.exp([q @ state for state in h])
    u = sum(part * state for part, state in zip(p / p.sum(), h, strict=True))
    return phi(q + u @ weights["output_kernel"], "output") @ weights["readout_kernel"]


class EntNetTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    def enlarged(self, weights, model):
        """With masks for more words, which are never used."""
        names = [weight.name for weight in model.weights]
        for place in (names.index("story_mask"), names.index("question_mask")):
            weights[place] = np.concatenate([weights[place], np.full((2, 6), 9.0, "float32")])
        return weights

    @parameterized.product(activation=("prelu", "tanh"), normalize=(True, False))
    def test_logits_are_those_of_the_equations(self, activation, normalize):
        model = make(activation=activation, normalize=normalize)
        network = model.layers[-1]
        rng = np.random.default_rng(0)
        for variable in model.trainable_variables:
            if variable.name.endswith(("mask", "alpha")):
                variable.assign(rng.uniform(0.1, 0.9, variable.shape))
            else:
                variable.assign(variable * 3)
        weights = strengthened(model)

        def phi(values, place):
            if activation == "tanh":
                return np.tanh(values)
            layer = network.phi if place == "output" else network.reader.cell.phi
            return np.where(values > 0, values, np.ravel(layer.get_weights()[0]) * values)

        story, question = examples()
        for row, logits in enumerate(self.logits(model, story, question)):
            expected = expected_logits(weights, story[row], question[row], phi, normalize)
            np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)

    def test_states_have_norm_1_after_a_story(self):
        h = keras.ops.convert_to_numpy(make().layers[-1].memory(examples()[0]))
        self.assertEqual(h.shape, (EXAMPLES, 5, 6))
        np.testing.assert_allclose(np.linalg.norm(h, axis=-1), 1, atol=1e-6)

    def test_states_before_any_sentence_are_the_keys(self):
        network = make().layers[-1]
        h = network.memory(np.zeros((2, SENTENCES, WORDS), "int32"))
        for row in range(2):
            np.testing.assert_array_equal(h[row], network.keys)

    def test_keys_may_be_words(self):
        model = make(key_words=[4, 2, 8, 1, 7])
        weights = strengthened(model)
        self.assertNotIn("keys", weights)
        h = model.layers[-1].memory(np.zeros((1, SENTENCES, WORDS), "int32"))
        np.testing.assert_array_equal(h[0], weights["embedding"][[4, 2, 8, 1, 7]])

    @parameterized.parameters(True, False)
    def test_the_order_of_words_counts_by_the_mask_alone(self, word_mask):
        model = make(word_mask=word_mask)
        for variable in model.trainable_variables:
            if variable.name.endswith("mask"):
                variable.assign(np.arange(18).reshape(3, 6) / 18)
        story, question = examples()
        other = self.logits(model, story[2:, :, ::-1], question[2:])
        expected = self.logits(model, story[2:], question[2:])
        self.assertEqual(np.allclose(other, expected, atol=1e-6), not word_mask)

    @parameterized.parameters("float16", "float32")
    def test_a_vector_of_zeros_has_no_direction_but_a_gradient(self, dtype):
        zeros = np.zeros((1, 3), dtype)
        np.testing.assert_array_equal(normalized(zeros), zeros)
        _, (gradient,) = backend.value_and_gradients(
            lambda values: keras.ops.sum(normalized(values)), zeros.astype("float32")
        )
        self.assertTrue(np.isfinite(gradient).all())

    @parameterized.parameters(
        ({"slots": 0}, "`slots` must be positive, received 0"),
        ({"key_words": [1, 2]}, r"must be 5 ids of words, 1 to 8.*\[1, 2\]"),
        ({"key_words": [0, 1, 2, 3, 4]}, r"must be 5 ids of words, 1 to 8.*\[0, 1"),
    )
    def test_a_wrong_argument_is_named(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            make(**options)


if __name__ == "__main__":
    absltest.main()
