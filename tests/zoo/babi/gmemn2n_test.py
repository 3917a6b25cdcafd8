"""Tests of GMemN2N."""

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests.zoo.babi.memn2n_equations import QUESTION, STORY, expected_logits
from tests.zoo.babi.network_checks import (
    ANSWERS,
    SENTENCES,
    VOCABULARY,
    WORDS,
    NetworkChecks,
    examples,
    strengthened,
)
from zoo.babi.gmemn2n import gmemn2n


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    return gmemn2n(VOCABULARY, ANSWERS, sentences, words, **{"units": 6, **options})


def set_gates(model, bias):
    for variable in model.trainable_variables:
        if variable.name.startswith("gate_bias"):
            variable.assign(np.full(variable.shape, bias))


class GMemN2NTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    @parameterized.product(tying=("adjacent", "layerwise"), gates=("hop", "global"))
    def test_logits_are_those_of_the_equations(self, tying, gates):
        model = make(3, tying=tying, gates=gates)
        weights = strengthened(model, 10)
        h = weights.get("recurrent_kernel", np.eye(6))

        def update(u, o, hop):
            gate = hop if gates == "hop" else 0
            z = u @ weights[f"gate_kernel_{gate}"] + weights[f"gate_bias_{gate}"]
            t = 1 / (1 + np.exp(-z))
            return o * t + (u @ h) * (1 - t)

        expected = expected_logits(weights, update, tying=tying)
        actual = self.logits(model, STORY[None], QUESTION[None])
        np.testing.assert_allclose(actual[0], expected, rtol=1e-4, atol=1e-4)

    def test_with_closed_gates_the_story_is_not_read(self):
        model = make()
        set_gates(model, -100)
        story, question = examples()
        expected = self.logits(model, story, question)
        np.testing.assert_array_equal(self.logits(model, story[::-1], question), expected)

    def test_with_open_gates_the_last_reading_is_all_there_is(self):
        model = make(hops=1)
        set_gates(model, 100)
        network = model.layers[-1]
        story, question = examples()
        age, real = network._ages(story)
        memories = keras.ops.convert_to_numpy(network._remember(story, age, real, 1))
        p = keras.ops.convert_to_numpy(network.read(story, question)[1])[:, 0]
        o = np.einsum("bs,bsu->bu", p, memories)
        expected = o @ keras.ops.convert_to_numpy(network.readout_kernel)
        np.testing.assert_allclose(self.logits(model, story, question), expected, atol=1e-6)

    def test_wrong_gates_are_named(self):
        with self.assertRaisesRegex(ValueError, '"hop" or "global", received \'none\''):
            make(gates="none")


if __name__ == "__main__":
    absltest.main()
