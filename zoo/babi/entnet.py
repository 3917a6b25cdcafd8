"""Recurrent Entity Network, EntNet."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from zoo.babi.sentences import question_answering


def normalized(values: Any) -> Any:
    """Returns vectors `(..., units)` of norm 1, computed in no less than single precision.

    A vector of zeros stays one, with finite gradients.
    """
    dtype = keras.backend.standardize_dtype(values.dtype)
    precise = ops.cast(values, dtype if dtype == "float64" else "float32")
    square = ops.sum(ops.square(precise), axis=-1, keepdims=True)
    return ops.cast(precise * ops.rsqrt(ops.maximum(square, 1e-12)), dtype)


def phi(activation: str, **kwargs: Any) -> keras.Layer:
    """Returns the activation by name; "prelu" starts as the identity."""
    if activation == "prelu":
        return keras.layers.PReLU(alpha_initializer="ones", **kwargs)
    return keras.layers.Activation(activation, dtype=kwargs["dtype"])


@keras.saving.register_keras_serializable(package="rum_keras")
class EntityMemoryCell(keras.layers.Layer):
    """The step of `EntNet`: what a sentence does to the slots.

    ```
    g_j  = sigmoid(s_t^T h_j + s_t^T w_j)
    h~_j = phi(U h_j + V w_j + W s_t)
    h_j  = h_j + g_j h~_j,   then   h_j / |h_j|
    ```

    What does not change from step to step is given, not computed at each: the states are `h_j`,
    `w_j` and `V w_j` of all slots, (slots units) each, of which the last two stay as they are.

    Args:
        units: Positive integer, the size of a slot.
        slots: Positive integer, their number.
        normalize: Whether states have norm 1.
        activation: `phi`: `"prelu"`, or the name of an activation of Keras.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, `(batch, 2 units)`: `s_t` and `W s_t` side by side.
        states: List of the states, `(batch, slots units)` each.
    """

    def __init__(
        self, units: int, slots: int, normalize: bool, activation: str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.units, self.slots = units, slots
        self.normalize, self.activation = normalize, activation
        self.output_size = slots * units
        self.state_size = [slots * units] * 3
        self.phi = phi(activation, shared_axes=[1], dtype=self.dtype_policy)

    def build(self, input_shape):
        self.state_kernel = self.add_weight(
            shape=(self.units, self.units),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
            name="state_kernel",
        )
        self.phi.build((None, self.slots, self.units))
        self.built = True

    def call(self, inputs, states):
        h, keys, key_part = (ops.reshape(v, (-1, self.slots, self.units)) for v in states)
        s, sentence_part = inputs[:, None, : self.units], inputs[:, None, self.units :]
        g = ops.sigmoid(ops.sum(s * (h + keys), axis=-1, keepdims=True))
        new = self.phi(ops.matmul(h, self.state_kernel) + key_part + sentence_part)
        h = h + g * new
        h = normalized(h) if self.normalize else h
        h = ops.reshape(h, (-1, self.output_size))
        return h, [h, *states[1:]]

    def get_config(self):
        names = ("units", "slots", "normalize", "activation")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="rum_keras")
class EntNet(keras.layers.Layer):
    """Keeps a memory of what is true of each of several entities, and changes it as it reads.

    Slot `j` has a key `w_j` that says which entity it is for, and its state `h_j`, at first `w_j`,
    that says what is known of it. Sentence `s_t` changes the slots it is about (all of size units,
    `g_j` a number):

    ```
    s_t  = sum_i f_i * e_i                        over the words of the sentence
    g_j  = sigmoid(s_t^T h_j + s_t^T w_j)
    h~_j = phi(U h_j + V w_j + W s_t)
    h_j  = h_j + g_j h~_j,   then   h_j / |h_j|   which makes room by forgetting
    ```

    and the question `q`, encoded like a sentence, by a mask of its own, is answered by

    ```
    p_j  = softmax(q^T h_j)                       over slots
    u    = sum_j p_j h_j
    y    = R phi(q + H u)                         logits
    ```

    `f_i` is a learned mask for the place `i` of a word, at first 1, and `phi` a PReLU whose slope
    for negative values is at first 1: the identity. Padding changes no slot.

    Args: all those of `entnet` by the same names, but `sentences`, which are those of its input.

    Call arguments:
        inputs: A pair of int tensors: the story `(batch, sentences, words)`, the question
            `(batch, words)`; 0 is padding, which comes after the words of a sentence; sentences
            that are padding may be anywhere.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Henaff et al., 2017](https://arxiv.org/abs/1612.03969), Equations 1 to 6.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        words: int,
        *,
        units: int,
        slots: int,
        key_words: Sequence[int] | None,
        word_mask: bool,
        normalize: bool,
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in ("vocabulary", "answers", "words", "units", "slots"):
            if not locals()[name] >= 1:
                raise ValueError(f"`{name}` must be positive, received {locals()[name]}.")
        if key_words is not None and (
            len(key_words) != slots or not all(1 <= word <= vocabulary for word in key_words)
        ):
            raise ValueError(
                f"`key_words` must be {slots} ids of words, 1 to {vocabulary}, one a slot, "
                f"received {list(key_words)}."
            )
        self.vocabulary, self.answers, self.words = vocabulary, answers, words
        self.units, self.slots, self.word_mask = units, slots, word_mask
        self.key_words = None if key_words is None else list(key_words)
        self.normalize, self.activation = normalize, activation
        cell = EntityMemoryCell(units, slots, normalize, activation, dtype=self.dtype_policy)
        self.reader = keras.layers.RNN(cell, return_state=True, dtype=self.dtype_policy)
        self.phi = phi(activation, dtype=self.dtype_policy)

    def build(self, input_shape):
        square = (self.units, self.units)
        self.embedding = self._weight("embedding", (self.vocabulary + 1, self.units))
        if self.word_mask:
            shape = (self.words, self.units)
            self.story_mask = self._weight("story_mask", shape, "ones")
            self.question_mask = self._weight("question_mask", shape, "ones")
        if self.key_words is None:
            self.keys = self._weight("keys", (self.slots, self.units))
        self.key_kernel = self._weight("key_kernel", square)
        self.sentence_kernel = self._weight("sentence_kernel", square)
        self.output_kernel = self._weight("output_kernel", square)
        self.readout_kernel = self._weight("readout_kernel", (self.units, self.answers))
        self.reader.build((None, None, 2 * self.units))
        self.phi.build((None, self.units))
        self.built = True

    def _weight(self, name, shape, initializer=None):
        initializer = initializer or keras.initializers.RandomNormal(stddev=0.1)
        return self.add_weight(shape=shape, initializer=initializer, name=name)

    def call(self, inputs):
        story, question = inputs
        q = self._encode(question, "question_mask")
        h = self.memory(story)
        p = ops.softmax(ops.einsum("bju,bu->bj", h, q), axis=-1)
        u = ops.einsum("bj,bju->bu", p, h)
        y = self.phi(q + ops.matmul(u, self.output_kernel))
        return ops.matmul(y, self.readout_kernel)

    def memory(self, story: Any) -> Any:
        """Returns the states of the slots, `(batch, slots, units)`, after the story.

        Args:
            story: int, `(batch, sentences, words)`.
        """
        s = self._encode(story, "story_mask")
        real = ops.any(ops.not_equal(story, 0), axis=-1)
        keys = self.keys if self.key_words is None else ops.take(self.embedding, self.key_words, 0)
        keys = ops.cast(keys, s.dtype)
        inputs = ops.concatenate([s, ops.matmul(s, self.sentence_kernel)], axis=-1)
        size = self.slots * self.units
        keys, key_part = (
            ops.broadcast_to(ops.reshape(values, (1, size)), (ops.shape(s)[0], size))
            for values in (keys, ops.matmul(keys, self.key_kernel))
        )
        # The state, since the output is 0, not the key, where a story has no sentence at all.
        _, h, _, _ = self.reader(inputs, initial_state=[keys, keys, key_part], mask=real)
        return ops.reshape(h, (-1, self.slots, self.units))

    def _encode(self, words, mask):
        real = ops.cast(ops.not_equal(words, 0), self.compute_dtype)
        vectors = ops.cast(ops.take(self.embedding, words, axis=0), self.compute_dtype)
        if self.word_mask:
            vectors = vectors * ops.cast(getattr(self, mask), vectors.dtype)[: ops.shape(words)[-1]]
        return ops.einsum("...w,...wu->...u", real, vectors)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], self.answers)

    def get_config(self):
        names = (
            *("vocabulary", "answers", "words", "units", "slots", "key_words", "word_mask"),
            *("normalize", "activation"),
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def entnet(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 100,
    slots: int = 20,
    key_words: Sequence[int] | None = None,
    word_mask: bool = True,
    normalize: bool = True,
    activation: str = "prelu",
) -> keras.Model:
    """Returns an EntNet over padded stories, with the paper's settings.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question.
        units: the size of all vectors.
        slots: number of entities that are remembered.
        key_words: ids of the words whose embeddings are the keys, one a slot; None: keys that are
            weights of their own.
        word_mask: whether there is a learned mask; if not, `f_i = 1`: a bag of words.
        normalize: whether states have norm 1.
        activation: `phi`: "prelu", or the name of an activation of Keras.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), and `question`, int32
        (batch, words), to logits (batch, answers).

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> entnet(vocabulary=9, answers=5, sentences=3, words=4).output_shape
    (None, 5)
    """
    network = EntNet(
        vocabulary,
        answers,
        words,
        units=units,
        slots=slots,
        key_words=key_words,
        word_mask=word_mask,
        normalize=normalize,
        activation=activation,
        name="entnet",
    )
    return question_answering(network, sentences)
