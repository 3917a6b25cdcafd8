"""Beam search in graphs: XLA, SavedModels, jax.jit, and sizes that are not known."""

import os
import tempfile
import unittest

import keras
import numpy as np
from absl.testing import absltest, parameterized
from keras import ops

from rum_keras.beam_search import beam_search
from tests import backend
from tests.rum_keras.beam_search_tables import search, step_of, table


class GraphTest(parameterized.TestCase):
    options = {"beam": 3, "max_length": 5, "blocked_ngram": 2, "min_length": 1}

    def expected(self):
        return search(table(6), codes=(4, 0), attend=True, **self.options)

    def in_graph(self, codes):
        return beam_search(
            step_of(table(6), attend=True), codes, ops.zeros_like(codes), end_id=0, **self.options
        )

    def assert_equal(self, actual):
        for one, other in zip(actual, self.expected(), strict=True):
            np.testing.assert_allclose(backend.to_numpy(one), other, rtol=1e-5)

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "tf.function is TensorFlow's")
    def test_a_function_compiled_by_xla_gives_the_same(self):
        import tensorflow as tf

        compiled = tf.function(self.in_graph, [tf.TensorSpec([None], tf.int32)], jit_compile=True)
        self.assert_equal(compiled(tf.constant([4, 0])))

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "SavedModels are TensorFlow's")
    def test_a_saved_model_gives_the_same_by_core_ops(self):
        import tensorflow as tf

        module = tf.Module()
        module.serve = tf.function(
            lambda codes: self.in_graph(codes)._asdict(), [tf.TensorSpec([None], tf.int32)]
        )
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(module, os.path.join(folder, "1"), {"serve": module.serve})
            loaded = tf.saved_model.load(os.path.join(folder, "1")).signatures["serve"]
            result = loaded(tf.constant([4, 0]))
        self.assert_equal([result[name] for name in self.expected()._fields])

    @unittest.skipIf(keras.backend.backend() != "jax", "jax.jit is JAX's")
    def test_a_jitted_function_gives_the_same(self):
        import jax

        self.assert_equal(jax.jit(self.in_graph)(np.asarray([4, 0], "int32")))

    @unittest.skipIf(keras.backend.backend() != "tensorflow", "TensorFlow's unknown dimensions")
    def test_a_vocabulary_of_unknown_size_gives_the_same(self):
        import tensorflow as tf

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
        def compiled(log_probabilities):
            codes = tf.constant([4, 0])
            step = step_of(log_probabilities, attend=True)
            return beam_search(step, codes, 0 * codes, end_id=0, **self.options)

        self.assert_equal(compiled(table(6)))


if __name__ == "__main__":
    absltest.main()
