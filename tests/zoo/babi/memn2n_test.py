"""Tests of MemN2N."""

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
from zoo.babi.memn2n import memn2n


def make(sentences=SENTENCES, words=WORDS, **options):
    keras.utils.set_random_seed(1)
    options = {"units": 6, "answers": ANSWERS, **options}
    return memn2n(VOCABULARY, sentences=sentences, words=words, **options)


class MemN2NTest(NetworkChecks, parameterized.TestCase):
    def make(self, sentences, words):
        return make(sentences, words)

    @parameterized.parameters("adjacent", "layerwise")
    def test_logits_are_those_of_the_equations(self, tying):
        model = make(3, tying=tying)
        weights = strengthened(model, 10)
        h = weights.get("recurrent_kernel", np.eye(6))
        expected = expected_logits(weights, lambda u, o, _: u @ h + o, tying=tying)
        actual = self.logits(model, STORY[None], QUESTION[None])
        np.testing.assert_allclose(actual[0], expected, rtol=1e-4, atol=1e-4)

    def test_attention_is_on_real_sentences_alone(self):
        _, p = make().layers[-1].read(*examples())
        p = keras.ops.convert_to_numpy(p)
        self.assertEqual(p.shape, (3, 3, SENTENCES))
        np.testing.assert_allclose(p.sum(-1), 1, atol=1e-6)
        np.testing.assert_array_equal(p[1, :, 2:], 0)
        self.assertGreater(p[0].min(), 0)

    def test_only_the_newest_sentences_are_remembered(self):
        model = make(memory=2)
        story, question = examples()
        other = story.copy()
        other[0, :2] = other[0, 1::-1]
        expected = self.logits(model, story, question)
        np.testing.assert_array_equal(self.logits(model, other, question), expected)

    @parameterized.parameters(True, False)
    def test_the_order_of_words_counts_by_their_encoding_alone(self, position_encoding):
        model = make(position_encoding=position_encoding)
        story, question = examples()
        other = self.logits(model, story[:1, :, ::-1], question[:1])
        same = np.allclose(other, self.logits(model, story[:1], question[:1]), atol=1e-6)
        self.assertEqual(same, not position_encoding)

    @parameterized.parameters(True, False)
    def test_the_order_of_sentences_counts_by_their_encoding_alone(self, temporal_encoding):
        model = make(temporal_encoding=temporal_encoding)
        story, question = examples()
        other = self.logits(model, story[:1, ::-1], question[:1])
        same = np.allclose(other, self.logits(model, story[:1], question[:1]), atol=1e-6)
        self.assertEqual(same, not temporal_encoding)

    def test_a_linear_start_has_no_softmax_for_so_many_steps(self):
        network = make(hops=1, linear_start=2, random_noise=0.0).layers[-1]
        story, question = examples()
        for linear in (True, True, False):
            _, p = network.read(story, question, training=True)
            sums = keras.ops.convert_to_numpy(p).sum(-1)
            self.assertEqual(np.allclose(sums, 1), not linear)
        np.testing.assert_array_equal(network.steps, 3)

    def test_inference_is_no_step_of_the_linear_start(self):
        network = make(linear_start=2).layers[-1]
        network([*examples()])
        np.testing.assert_array_equal(network.steps, 0)

    def test_random_noise_keeps_the_order_and_moves_at_most_so_far(self):
        network = make(12, random_noise=0.5).layers[-1]
        story = np.ones((200, 12, 3), "int32")
        story[100:, 6:] = 0
        age, real = network._ages(story)
        time = keras.ops.convert_to_numpy(network._noisy(age, real))
        for times, sentences in ((time[:100], 12), (time[100:, :6], 6)):
            self.assertLess(np.diff(times, axis=1).max(), 0)  # The newest comes last.
            self.assertGreaterEqual(times.min(), 0)
            self.assertEqual(times.max(), sentences + sentences // 2 - 1)
            self.assertGreater(len(np.unique(times, axis=0)), 20)

    def test_without_draws_of_empty_memories_noise_changes_nothing(self):
        network = make(random_noise=0.0).layers[-1]
        story, question = examples()
        np.testing.assert_array_equal(
            network([story, question], training=True), network([story, question])
        )

    def test_a_tied_readout_compares_with_the_words_as_the_last_hop_reads_them(self):
        model = make(answers=VOCABULARY, tied_readout=True)
        weights = strengthened(model)
        self.assertNotIn("readout_kernel", weights)
        model.layers[-1].embeddings[-1].assign(np.eye(VOCABULARY + 1, 6))
        logits = self.logits(model, *examples())
        np.testing.assert_array_equal(logits[:, 5:], 0)  # No unit for the words 6 to 8.
        self.assertGreater(abs(logits[:, :5]).min(), 0)

    @parameterized.parameters(
        ({"tying": "none"}, '"adjacent" or "layerwise"'),
        ({"hops": 0}, "`hops` must be positive, received 0"),
        ({"random_noise": 1.5}, "received 0 and 1.5"),
        ({"tied_readout": True}, "received 5 and 8"),
    )
    def test_a_wrong_argument_is_named(self, options, message):
        with self.assertRaisesRegex(ValueError, message):
            make(**options)


if __name__ == "__main__":
    absltest.main()
