"""The copying memory task in the graph: a line of symbols in, the ten recalled symbols out.

A text is the sequence itself, one character `0` to `9` a step: ten data symbols `1` to `8`,
delay - 1 blanks `0`, the marker `9`, ten blanks `0`; delay + 20 characters. The answer is what
the model says in the last ten steps (`0` where it says blank). Any other text gets the copy ""
and probability 0.
"""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from exports.signature import Signature

DATA = 10  # data symbols, and steps of answer


def delay(model: keras.Model) -> int:
    """Returns the delay that a copying model was built for.

    Args:
        model: A model of `zoo.copying.model.copying_model`, input (batch, delay + 20).

    Raises:
        ValueError: If the number of steps is unknown or too small.
    """
    steps = model.input_shape[1]
    if steps is None or steps <= 2 * DATA:
        raise ValueError(
            "A copying model must read delay + 20 steps, delay >= 1, to be exported, but its "
            f"input shape is {model.input_shape}: build it with copying_model(layer, delay)."
        )
    return steps - 2 * DATA


def example_texts(model: keras.Model) -> list[str]:
    """Returns well-formed texts for `model`."""
    tail = "0" * (delay(model) - 1) + "9" + "0" * DATA
    return [data + tail for data in ("1234567812", "8765432187", "1111111111", "3141526535")]


def signatures(model: keras.Model, run: Path | None = None) -> dict[str, Signature]:
    """Returns what is exported of `model`; nothing of the folder `run` is needed."""
    texts = example_texts(model)
    batches = (texts[:1], texts, [*texts[:1], "", "malformed", *texts[-1:]])
    requests = [{"text": batch} for batch in batches]
    return {"serving_default": Signature(endpoint(model), requests)}


def endpoint(model: keras.Model) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    """Makes the function that TensorFlow Serving calls.

    Args:
        model: A copying model, int32 ids (batch, delay + 20) to logits (batch, delay + 20, 9).

    Returns:
        A function of `text`, strings (batch,), to `copy`, strings (batch,), the likeliest
        symbol of each of the last ten steps, and `probability`, float32 (batch,), the product
        of their ten probabilities; or "" and 0.

    Raises:
        ValueError: If the model does not read delay + 20 steps.
    """
    filler = example_texts(model)[0]
    filler_ids = np.array(list(filler), "int32")

    def answer(text):
        # Whatever a client sends, at most these delay + 20 bytes of it are decoded.
        right_size = tf.strings.length(text) == len(filler)
        symbols = tf.io.decode_raw(tf.where(right_size, text, filler), tf.uint8)
        # The reshape is for a batch of 0, of which decode_raw makes shape (0, 0).
        ids = tf.reshape(tf.cast(symbols, tf.int32), [-1, len(filler)]) - ord("0")
        data, rest = ids[:, :DATA], ids[:, DATA:]
        well_formed = tf.reduce_all((data >= 1) & (data <= 8), axis=1)
        well_formed &= tf.reduce_all(rest == filler_ids[DATA:], axis=1) & right_size
        logits = model(tf.where(well_formed[:, None], ids, filler_ids), training=False)
        log_probabilities = tf.nn.log_softmax(tf.cast(logits[:, -DATA:], tf.float32))
        copy = tf.gather(list("012345678"), tf.argmax(log_probabilities, axis=2))
        joint = tf.exp(tf.reduce_sum(tf.reduce_max(log_probabilities, axis=2), axis=1))
        return {
            "copy": tf.where(well_formed, tf.strings.reduce_join(copy, axis=1), ""),
            "probability": tf.where(well_formed, joint, 0.0),
        }

    return answer
