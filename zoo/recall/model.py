"""The model of associative recall: one-hot input, a recurrent layer, a 10-way readout."""

import math

import keras

from datasets import recall

DIGITS = 10


def recall_model(layer: keras.Layer, length: int) -> keras.Model:
    """Returns a model that names the digit a sequence of pairs asks for.

    Args:
        layer: a recurrent layer that returns its last output, (batch, units).
        length: T, twice the number of pairs (`datasets.recall`).

    Returns:
        A functional model from ids, int32 (batch, length + 3), to logits (batch, 10).

    Raises:
        ValueError: if `layer` returns sequences.

    Example:

    >>> model = recall_model(keras.layers.LSTM(50), length=30)
    >>> model.output_shape
    (None, 10)
    """
    vocabulary = recall.vocabulary_size(length)
    ids = keras.Input((length + 3,), dtype="int32", name="ids")
    last = layer(keras.ops.one_hot(ids, vocabulary))
    if len(last.shape) != 2:
        raise ValueError(
            "layer must return its last output, (batch, units), but it returns shape "
            f"{tuple(last.shape)}: make it with return_sequences=False."
        )
    # As the released code has it: the scale is that of the input width, not of the units.
    limit = math.sqrt(6 / (DIGITS + vocabulary))
    readout = keras.layers.Dense(
        DIGITS,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.Constant(0.01),
        name="readout",
    )
    return keras.Model(ids, readout(last), name="recall")
