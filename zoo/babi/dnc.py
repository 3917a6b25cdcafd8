"""Differentiable Neural Computer, DNC."""

from typing import Any

import keras
from keras import ops

from zoo.babi.dnc_cell import DNCCell
from zoo.babi.sentences import question_answering


@keras.saving.register_keras_serializable(package="rum_keras")
class DNC(keras.layers.Layer):
    """Reads a story word by word, then the question, by a `DNCCell`; the last output answers.

    Args: all those of `dnc` by the same names, but `sentences` and `words`, which are those of its
    input.

    Call arguments:
        inputs: A pair of int tensors: the story `(batch, sentences, words)`, the question
            `(batch, words)`; 0 is padding, anywhere: the cell does not see it.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        *,
        units: int,
        memory: int,
        width: int,
        read_heads: int,
        clip: float,
        usage_gradient: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vocabulary, self.answers = vocabulary, answers
        self._options = dict(
            units=units,
            memory=memory,
            width=width,
            read_heads=read_heads,
            clip=clip,
            usage_gradient=usage_gradient,
        )
        self.cell = DNCCell(**self._options, dtype=self.dtype_policy)
        self.reader = keras.layers.RNN(self.cell, dtype=self.dtype_policy)
        self.readout = keras.layers.Dense(answers, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.reader.build((None, None, self.vocabulary))
        self.readout.build((None, self.cell.output_size))
        self.built = True

    def call(self, inputs):
        story, question = inputs
        told = ops.reshape(story, (ops.shape(story)[0], -1))
        ids = ops.concatenate([told, question], axis=1)
        words = ops.one_hot(ids - 1, self.vocabulary, dtype=self.compute_dtype)
        return self.readout(self.reader(words, mask=ops.not_equal(ids, 0)))

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], self.answers)

    def get_config(self):
        sizes = {"vocabulary": self.vocabulary, "answers": self.answers}
        return {**super().get_config(), **sizes, **self._options}


def dnc(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 256,
    memory: int = 256,
    width: int = 64,
    read_heads: int = 4,
    clip: float = 20.0,
    usage_gradient: bool = False,
) -> keras.Model:
    """Returns a DNC over padded stories, with the paper's sizes.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question; nothing depends on it.
        units: the size of the controller, an LSTM.
        memory: number of locations.
        width: size of a location.
        read_heads: number of heads that read.
        clip: largest absolute value of the controller's output.
        usage_gradient: whether gradients pass from the usage to the write weighting before it: in
            the paper they do, in the authors' code they do not.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), and `question`, int32
        (batch, words), to logits (batch, answers).

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> dnc(vocabulary=9, answers=5, sentences=3, words=4, units=8, memory=6).output_shape
    (None, 5)
    """
    network = DNC(
        vocabulary,
        answers,
        units=units,
        memory=memory,
        width=width,
        read_heads=read_heads,
        clip=clip,
        usage_gradient=usage_gradient,
        name="dnc",
    )
    return question_answering(network, sentences)
