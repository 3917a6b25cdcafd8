"""Gradients that are summed in one order, so that a seed repeats a run to its last digit.

TensorFlow adds what reaches a tensor from three or more places with the op AddN. Its CPU kernel
begins with a part whose memory it may overwrite, and which parts those are depends on how far
other threads are: the last digit of the sum is chance. A run that was killed and started again
met it within some steps, since its first steps are timed otherwise.
"""

import functools

import tensorflow as tf

# Not public, but what the gradients of the tape, of loops and of branches all call.
from tensorflow.python.ops import gen_math_ops

_add_n = gen_math_ops.add_n


def install() -> None:
    """Makes TensorFlow add three or more gradients one after another, for the whole process.

    Example:

    >>> install()
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x + x
    >>> float(tape.gradient(y, x))
    7.0
    """
    gen_math_ops.add_n = _add_in_order
    # This optimization would merge the sums into AddN again.
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})


def _add_in_order(inputs, name=None):
    # Two parts have one sum in either order, and what is not floating-point is exact (or a list).
    if len(inputs) < 3 or not inputs[0].dtype.is_floating:
        return _add_n(inputs, name=name)
    return functools.reduce(gen_math_ops.add_v2, inputs)
