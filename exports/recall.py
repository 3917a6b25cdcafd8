"""Associative recall in the graph: a line of letters, digits and a question in, a digit out.

A text has the form `a1s2d3f4g5??d`: pairs of a letter and a digit, two question marks, and the
letter that is asked for; here the answer is `3`. A model trained on sequences of length T reads
exactly T/2 pairs. The letters are any distinct ones of A-Z and a-z (case matters): in training
they are a uniform permutation of the ids 1..T/2, so a text's letters are given their
alphabetical rank (ASCII: capitals first). Any other text gets the digit "" and probability 0.
"""

import string
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from exports.signature import Signature

LETTERS = string.ascii_lowercase + string.ascii_uppercase


def pairs(model: keras.Model) -> int:
    """Returns the number of letter-digit pairs, T/2, that a recall model reads.

    Args:
        model: A model of `zoo.recall.model.recall_model`, input (batch, T + 3).

    Raises:
        ValueError: If the number of steps is unknown or does not fit the text form.
    """
    steps = model.input_shape[1]
    if steps is None or steps < 5 or steps % 2 == 0 or steps - 3 > 2 * len(LETTERS):
        raise ValueError(
            "A recall model must read T + 3 steps, T even, from 2 to "
            f"{2 * len(LETTERS)}, to be exported, but its input shape is {model.input_shape}: "
            "build it with recall_model(layer, length=T)."
        )
    return (steps - 3) // 2


def example_texts(model: keras.Model) -> list[str]:
    """Returns well-formed texts, one for each of the first letters, for `model`."""
    letters = LETTERS[: pairs(model)]
    facts = "".join(f"{letter}{(3 * i + 1) % 10}" for i, letter in enumerate(letters))
    return [f"{facts}??{letter}" for letter in letters[:4]]


def signatures(model: keras.Model, run: Path | None = None) -> dict[str, Signature]:
    """Returns what is exported of `model`; nothing of the folder `run` is needed."""
    texts = example_texts(model)
    batches = (texts[:1], texts, [*texts[:1], "", "malformed", *texts[-1:]])
    requests = [{"text": batch} for batch in batches]
    return {"serving_default": Signature(endpoint(model), requests)}


def _ids(text: tf.Tensor, pair_count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Reads the ids (batch, T + 3) of well-formed texts, and whether the letters make sense."""
    # The reshape is for a batch of 0, of which decode_raw makes shape (0, 0).
    symbols = tf.reshape(tf.io.decode_raw(text, tf.uint8), [-1, 2 * pair_count + 3])
    symbols = tf.cast(symbols, tf.int32)
    letters, query = symbols[:, : 2 * pair_count : 2], symbols[:, -1:]
    digits = symbols[:, 1 : 2 * pair_count : 2] - ord("0")

    def rank(letter):
        return tf.reduce_sum(tf.cast(letters[:, None, :] < letter[:, :, None], tf.int32), axis=-1)

    same = tf.cast(letters[:, None, :] == letters[:, :, None], tf.int32)
    distinct = tf.reduce_sum(same, axis=[1, 2]) == pair_count
    known = tf.reduce_any(letters == query, axis=1)
    facts = tf.stack([rank(letters) + 1, digits + pair_count + 1], axis=2)
    facts = tf.reshape(facts, [-1, 2 * pair_count])
    blanks = tf.zeros_like(facts[:, :2])
    return tf.concat([facts, blanks, rank(query) + 1], axis=1), distinct & known


def endpoint(model: keras.Model) -> Callable[[tf.Tensor], dict[str, tf.Tensor]]:
    """Makes the function that TensorFlow Serving calls.

    Args:
        model: A recall model, int32 ids (batch, T + 3) to logits (batch, 10).

    Returns:
        A function of `text`, strings (batch,), to `digit`, strings (batch,), and `probability`,
        float32 (batch,): the likeliest digit and its probability, or "" and 0.

    Raises:
        ValueError: If the model does not read T + 3 steps.
    """
    pair_count = pairs(model)
    # Whatever a client sends, at most these T + 3 bytes of it reach the model.
    form = rf"(?:[A-Za-z][0-9]){{{pair_count}}}\?\?[A-Za-z]"
    filler = example_texts(model)[0]

    def answer(text):
        well_formed = tf.strings.regex_full_match(text, form)
        ids, sensible = _ids(tf.where(well_formed, text, filler), pair_count)
        probabilities = tf.nn.softmax(tf.cast(model(ids, training=False), tf.float32))
        digit = tf.gather(list(string.digits), tf.argmax(probabilities, axis=1))
        answered = well_formed & sensible
        return {
            "digit": tf.where(answered, digit, ""),
            "probability": tf.where(answered, tf.reduce_max(probabilities, axis=1), 0.0),
        }

    return answer
