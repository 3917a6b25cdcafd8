"""p(topic | document) inside a TensorFlow graph, for exports: what `topic_inference` computes."""

import tensorflow as tf

from datasets import topic_inference
from datasets.topic_model import Topics


class TopicInference(tf.Module):
    """Words in, topics out, with core operations; a module for `ExportArchive.track`.

    Args:
        topics: trained topics.
        steps: number of steps of the inference; the one of the training data.
    """

    def __init__(self, topics: Topics, steps: int = topic_inference.STEPS):
        super().__init__()
        ids = topics.word_ids
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(ids), tf.string), tf.constant(list(ids.values()), tf.int64)
            ),
            default_value=-1,
        )
        self._expected = tf.Variable(topics.expected, trainable=False)
        self._alpha = tf.Variable(topics.alpha, trainable=False, dtype=tf.float64)
        self._steps = steps

    def __call__(self, words: tf.RaggedTensor) -> tf.Tensor:
        """Infers the topics of documents.

        Args:
            words: strings (batch, words), lowercase tokens of whole documents.

        Returns:
            p(topic | document), float32 (batch, topics).
        """
        ids = tf.ragged.map_flat_values(self._table.lookup, words)
        return tf.map_fn(
            self._infer,
            ids,
            fn_output_signature=tf.TensorSpec([self._alpha.shape[0]], tf.float32),
        )

    def _infer(self, ids: tf.Tensor) -> tf.Tensor:
        known = tf.sort(tf.boolean_mask(ids, ids >= 0))
        words, _, counts = tf.unique_with_counts(known)
        beta = tf.cast(tf.gather(self._expected, words), tf.float64)
        counts = tf.cast(counts, tf.float64)

        def step(number, gamma):
            theta = tf.exp(tf.math.digamma(gamma) - tf.math.digamma(tf.reduce_sum(gamma)))
            shares = counts / (tf.linalg.matvec(beta, theta) + 1e-100)
            gamma = self._alpha + theta * tf.linalg.matvec(beta, shares, transpose_a=True)
            return number + 1, gamma

        _, gamma = tf.while_loop(
            lambda number, gamma: number < self._steps,
            step,
            (tf.constant(0), tf.ones_like(self._alpha)),
        )
        return tf.cast(gamma / tf.reduce_sum(gamma), tf.float32)
