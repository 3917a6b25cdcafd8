"""Sums of gradients have one order: no graph of a gradient holds an AddN of three or more."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.ops import gen_math_ops

from zoo import ordered_sums


def gradient_of_a_loop(x):
    """The gradient of a value used four times, in each step of a loop and after it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y * y + tf.sin(y) * tf.exp(-y)), (0, x)
        )[1]
        y = y * x + tf.sin(x) * tf.exp(-x)
    return tape.gradient(y, x)


def parts_of_sums(concrete):
    """How many inputs each AddN has, in the graph and the functions that it calls."""
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return [node.attr["N"].i for node in nodes if node.op == "AddN"]


class OrderedSumsTest(absltest.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, gen_math_ops, "add_n", gen_math_ops.add_n)
        gen_math_ops.add_n = ordered_sums._add_n

    def test_no_gradient_is_a_sum_of_three_or_more_at_once(self):
        x = tf.constant(np.linspace(0.1, 0.5, 5), tf.float64)
        before = tf.function(gradient_of_a_loop).get_concrete_function(x)
        self.assertGreater(max(parts_of_sums(before)), 2)  # What the next line is there for.
        ordered_sums.install()
        after = tf.function(gradient_of_a_loop).get_concrete_function(x)
        self.assertLessEqual(max(parts_of_sums(after), default=0), 2)
        np.testing.assert_allclose(after(x), before(x), rtol=1e-14)

    def test_a_sum_begins_with_its_first_part(self):
        ordered_sums.install()
        parts = [tf.constant(value, tf.float32) for value in (1e8, -1e8, 1.0)]
        self.assertEqual(float(tf.add_n(parts)), 1.0)
        self.assertEqual(float(tf.add_n(parts[::-1])), 0.0)

    def test_whole_numbers_are_added_too(self):
        ordered_sums.install()
        self.assertEqual(int(tf.add_n([tf.constant(part) for part in (1, 2, 3)])), 6)


if __name__ == "__main__":
    absltest.main()
