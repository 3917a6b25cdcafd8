"""Tests of p(topic | document), in NumPy and in a graph."""

import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized
from gensim.models import LdaModel
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from datasets import topic_inference
from datasets.topic_model import Topics
from datasets.topics_in_graph import TopicInference

WORDS = [f"w{i}" for i in range(30)]
TOPIC_WORDS = np.random.default_rng(0).gamma(0.2, 5, size=(4, 30)) + 0.01
TOPICS = Topics.of(
    WORDS, {word: i for i, word in enumerate(WORDS)}, TOPIC_WORDS, [0.4, 0.1, 0.2, 0.3]
)
DOCUMENTS = st.lists(st.sampled_from(WORDS + ["unknown"]), max_size=40)


def reference(words, steps):
    """The E step word by word, with the responsibilities of every token written out."""
    expected = np.exp(
        digamma(TOPICS.topic_words.astype(float))
        - digamma(TOPICS.topic_words.astype(float).sum(axis=1, keepdims=True))
    )
    gamma = np.ones(4)
    for _ in range(steps):
        theta = np.exp(digamma(gamma) - digamma(gamma.sum()))
        gamma = TOPICS.alpha.copy()
        for word in words:
            if word in TOPICS.word_ids:
                shares = theta * expected[:, TOPICS.word_ids[word]]
                gamma += shares / shares.sum()
    return gamma / gamma.sum()


class TopicInferenceTest(parameterized.TestCase):
    @settings(deadline=None, max_examples=20)
    @given(DOCUMENTS)
    def test_it_is_the_e_step_of_latent_dirichlet_allocation(self, words):
        found = TOPICS.infer(words)
        self.assertEqual(found.dtype, np.float32)
        expected = reference(words, topic_inference.STEPS)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
        self.assertAlmostEqual(found.sum(), 1, places=6)

    @settings(deadline=None, max_examples=20)
    @given(DOCUMENTS, st.randoms())
    def test_the_order_of_the_words_does_not_matter(self, words, random):
        found = TOPICS.infer(words)
        random.shuffle(words)
        np.testing.assert_array_equal(TOPICS.infer(words), found)

    @parameterized.parameters(([],), (["unknown", "??"],))
    def test_a_document_without_a_known_word_has_the_prior(self, words):
        np.testing.assert_allclose(TOPICS.infer(words), [0.4, 0.1, 0.2, 0.3], rtol=1e-6)

    def test_words_of_one_topic_give_that_topic(self):
        for topic in range(4):
            share = TOPIC_WORDS[topic] / TOPIC_WORDS.sum(axis=0)
            words = [WORDS[share.argmax()]] * 50
            self.assertEqual(TOPICS.infer(words).argmax(), topic)

    def test_gensim_finds_the_same_but_for_its_random_start(self):
        lda = LdaModel(
            id2word=dict(enumerate(WORDS)),
            num_topics=4,
            alpha=TOPICS.alpha,
            iterations=2000,
            gamma_threshold=1e-9,
            random_state=1,
            dtype=np.float64,
        )
        lda.state.sstats = TOPICS.topic_words.astype(np.float64) - lda.eta
        lda.sync_state()
        for seed in range(5):
            ids = np.random.default_rng(seed).integers(0, 6, 60)
            bag = list(zip(*np.unique(ids, return_counts=True), strict=True))
            expected = [p for _, p in lda.get_document_topics(bag, minimum_probability=0.0)]
            found = topic_inference.infer(ids, TOPICS.expected, TOPICS.alpha, steps=2000)
            np.testing.assert_allclose(found, expected, atol=2e-4)

    def test_a_topic_that_never_saw_a_word_keeps_all_numbers_finite(self):
        expected = topic_inference.expected_topic_words(np.full([2, 3], 1e-3))
        found = topic_inference.infer(np.array([0, 2]), expected, np.array([1e-3, 1e-3]))
        np.testing.assert_allclose(found, [0.5, 0.5], rtol=1e-6)


class TopicsInGraphTest(parameterized.TestCase):
    @settings(deadline=None, max_examples=5)
    @given(st.lists(DOCUMENTS, min_size=1, max_size=4))
    def test_the_graph_finds_the_same_in_any_batch(self, documents):
        graph = TopicInference(TOPICS)
        found = graph(tf.ragged.constant(documents + [["w1"]], dtype=tf.string)).numpy()
        expected = [TOPICS.infer(words) for words in documents + [["w1"]]]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)

    def test_it_is_exported_with_core_operations_and_reloaded(self):
        graph = TopicInference(TOPICS)

        class Module(tf.Module):
            def __init__(self):
                super().__init__()
                self.topics = graph

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
            def __call__(self, text):
                return self.topics(tf.strings.split(text))

        module = Module()
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder)
            found = tf.saved_model.load(folder)(tf.constant(["w1 w2 w1", "", "huh"])).numpy()
        expected = [TOPICS.infer(words) for words in (["w1", "w2", "w1"], [], [])]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        operations = module.__call__.get_concrete_function().graph.get_operations()
        self.assertFalse([op.type for op in operations if ">" in op.type])


if __name__ == "__main__":
    absltest.main()
