"""The model of the copying memory task: one-hot input, a recurrent layer, a readout a step."""

import math

import keras

INPUT_SYMBOLS = 10
OUTPUT_SYMBOLS = 9


def copying_model(layer: keras.Layer, delay: int | None = None) -> keras.Model:
    """Returns a model that says at each step which symbol is due.

    Args:
        layer: a recurrent layer that returns sequences, (batch, time, units).
        delay: T, which fixes the number of steps at T + 20 (`datasets.copying`); None takes
            sequences of any length.

    Returns:
        A functional model from ids, int32 (batch, time), to logits (batch, time, 9).

    Raises:
        ValueError: if `layer` does not return sequences.

    Example:

    >>> model = copying_model(keras.layers.LSTM(100, return_sequences=True), delay=500)
    >>> model.output_shape
    (None, 520, 9)
    """
    ids = keras.Input((None if delay is None else delay + 20,), dtype="int32", name="ids")
    outputs = layer(keras.ops.one_hot(ids, INPUT_SYMBOLS))
    if len(outputs.shape) != 3:
        raise ValueError(
            "layer must return sequences, (batch, time, units), but it returns shape "
            f"{tuple(outputs.shape)}: make it with return_sequences=True."
        )
    # As the released code has it: the scale is that of the input width, not of the units.
    limit = math.sqrt(6 / (OUTPUT_SYMBOLS + INPUT_SYMBOLS))
    readout = keras.layers.Dense(
        OUTPUT_SYMBOLS,
        kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
        bias_initializer=keras.initializers.Constant(0.01),
        name="readout",
    )
    return keras.Model(ids, readout(outputs), name="copying")
