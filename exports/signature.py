"""What an exported function reads and answers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

# Of an input, by the Python type of the values in the requests.
DTYPES = {str: tf.string, int: tf.int32, float: tf.float32}


class Signature(NamedTuple):
    """A function of the graph, and requests to try it with.

    The names and types of its inputs are those of the first request: strings, integers (int32) or
    floats (float32), each (batch,).

    Args:
        answer: A function that takes the inputs as tensors, by name, and returns a dictionary of
            tensors, (batch, ...).
        requests: Inputs that every version is tried and warmed up with, each a dictionary from
            name to the values of the batch. Begin with well-formed ones.
        tracked: Lookup tables that `answer` uses; Keras finds only what is in the model.

    Example:

    >>> Signature(lambda text: {"size": tf.strings.length(text)}, [{"text": ["abc"]}]).specs()
    [TensorSpec(shape=(None,), dtype=tf.string, name='text')]
    """

    answer: Callable[..., dict[str, tf.Tensor]]
    requests: Sequence[Mapping[str, list]]
    tracked: Sequence = ()

    def specs(self) -> list[tf.TensorSpec]:
        """Returns the inputs as `tf.function` takes them: in the order of `answer`'s arguments."""
        return [
            tf.TensorSpec([None], self._dtype(name), name=name)
            for name in inspect.signature(self.answer).parameters
        ]

    def tensor(self, name: str, values: list) -> tf.Tensor:
        """Returns the values of an input as a tensor of its type."""
        return tf.constant(values, self._dtype(name))

    def _dtype(self, name: str) -> tf.DType:
        return DTYPES[type(self.requests[0][name][0])]
