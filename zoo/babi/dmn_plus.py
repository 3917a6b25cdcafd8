"""Dynamic Memory Network, improved: DMN+."""

import math
from typing import Any

import keras
from keras import ops

from zoo.babi.sentences import attention, position_encoded_sum, question_answering


@keras.saving.register_keras_serializable(package="rum_keras")
class AttentionGRUCell(keras.layers.Layer):
    """GRU cell whose update gate is the attention on its input.

    ```
    r_i  = sigmoid(W_r f_i + U_r h_{i-1} + b_r)                    (batch, units)
    h~_i = tanh(W_h f_i + r_i * (U_h h_{i-1}) + b_h)               (batch, units)
    h_i  = g_i h~_i + (1 - g_i) h_{i-1}                            (batch, units)
    ```

    with `f_i` (batch, features) and the attention `g_i` (batch, 1), so that where there is no
    attention the state stays. Weights, r | h: `kernel` (features, 2 units), `recurrent_kernel`
    (units, 2 units), `bias` (2 units).

    Args:
        units: Positive integer, the size of the state.
        kernel_regularizer: Regularizer of both kernels.
        **kwargs: Arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor `(batch, features + 1)`, `f_i` and `g_i` side by side.
        states: List of `h`, `(batch, units)`.

    Reference:
        [Xiong et al., 2016](https://arxiv.org/abs/1603.01417), Equations 11 and 12.
    """

    def __init__(self, units: int, kernel_regularizer: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not units >= 1:
            raise ValueError(f"`units` must be positive, received {units}.")
        self.units = self.state_size = self.output_size = units
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)

    def build(self, input_shape):
        for name, rows, initializer in (
            ("kernel", input_shape[-1] - 1, "glorot_uniform"),
            ("recurrent_kernel", self.units, "orthogonal"),
        ):
            weight = self.add_weight(
                shape=(rows, 2 * self.units),
                initializer=initializer,
                regularizer=self.kernel_regularizer,
                name=name,
            )
            setattr(self, name, weight)
        self.bias = self.add_weight(shape=(2 * self.units,), initializer="zeros", name="bias")
        self.built = True

    def call(self, inputs, states):
        h = states[0]
        f, g = inputs[:, :-1], inputs[:, -1:]
        from_input = ops.matmul(f, self.kernel) + self.bias
        from_state = ops.matmul(h, self.recurrent_kernel)
        r = ops.sigmoid(from_input[:, : self.units] + from_state[:, : self.units])
        new = ops.tanh(from_input[:, self.units :] + r * from_state[:, self.units :])
        h = g * new + (1 - g) * h
        return h, [h]

    def get_config(self):
        regularizer = keras.regularizers.serialize(self.kernel_regularizer)
        return {**super().get_config(), "units": self.units, "kernel_regularizer": regularizer}


@keras.saving.register_keras_serializable(package="rum_keras")
class DMNPlus(keras.layers.Layer):
    """Reads a story in both directions, then goes through it several times with the question.

    With `x_i` the position-encoded sum of the words of sentence `i`, the facts `f_i` let sentences
    know of each other, and each of `hops` episodes gives its attention `g_i`, a number, to facts
    that match the question `q` or the memory `m`, at first `q` (all else of size units):

    ```
    f_i  = GRU forwards (x)_i + GRU backwards (x)_i        q = GRU (words of the question)
    z_i  = [f_i * q; f_i * m; |f_i - q|; |f_i - m|]
    g    = softmax(W_2 tanh(W_1 z_i + b_1) + b_2)          over sentences
    c    = last state of AttentionGRUCell over f_i, g_i    or sum_i g_i f_i ("soft")
    m    = relu(W_t [m; c; q] + b_t)                       in episode t
    ```

    and the answer is `W_a [m; q] + b_a`. Padding is never attended to.

    Args: all those of `dmn_plus` by the same names, but `sentences` and `words`, which are those of
    its input.

    Call arguments:
        inputs: A pair of int tensors: the story `(batch, sentences, words)`, the question
            `(batch, words)`; 0 is padding, anywhere.
        training: Whether dropout is random.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Xiong et al., 2016](https://arxiv.org/abs/1603.01417), Equations 5 to 13.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        *,
        units: int,
        hops: int,
        episode: str,
        tied_updates: bool,
        dropout: float,
        weight_decay: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in ("vocabulary", "answers", "units", "hops"):
            if not locals()[name] >= 1:
                raise ValueError(f"`{name}` must be positive, received {locals()[name]}.")
        if episode not in ("gru", "soft"):
            raise ValueError(f'`episode` must be "gru" or "soft", received {episode!r}.')
        if weight_decay < 0:
            raise ValueError(f"`weight_decay` must not be negative, received {weight_decay}.")
        self.vocabulary, self.answers, self.units, self.hops = vocabulary, answers, units, hops
        self.episode, self.tied_updates = episode, tied_updates
        self.dropout, self.weight_decay = dropout, weight_decay
        self._make_layers()

    def _make_layers(self):
        decay = keras.regularizers.L2(self.weight_decay / 2)
        options = {"kernel_regularizer": decay, "dtype": self.dtype_policy}
        limit, units = math.sqrt(3), self.units

        def reader(**kwargs):
            cell = keras.layers.GRUCell(units, recurrent_regularizer=decay, **options)
            return keras.layers.RNN(cell, dtype=self.dtype_policy, **kwargs)

        self.embedding = keras.layers.Embedding(
            self.vocabulary + 1,
            units,
            embeddings_initializer=keras.initializers.RandomUniform(-limit, limit),
            embeddings_regularizer=decay,
            dtype=self.dtype_policy,
        )
        self.question_reader = reader()
        self.forward_reader = reader(return_sequences=True)
        self.backward_reader = reader(return_sequences=True, go_backwards=True)
        self.first_score = keras.layers.Dense(units, "tanh", **options)
        self.second_score = keras.layers.Dense(1, **options)
        if self.episode == "gru":
            cell = AttentionGRUCell(units, **options)
            self.episode_reader = keras.layers.RNN(cell, dtype=self.dtype_policy)
        self.updates = [
            keras.layers.Dense(units, "relu", **options)
            for _ in range(1 if self.tied_updates else self.hops)
        ]
        self.readout = keras.layers.Dense(self.answers, **options)
        self.sentence_dropout = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy)
        self.memory_dropout = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        units, sequence = self.units, (None, None, self.units)
        self.embedding.build((None, None))
        for layer in (self.question_reader, self.forward_reader, self.backward_reader):
            layer.build(sequence)
        self.first_score.build((None, None, 4 * units))
        self.second_score.build(sequence)
        if self.episode == "gru":
            self.episode_reader.build((None, None, units + 1))
        for layer in self.updates:
            layer.build((None, 3 * units))
        self.readout.build((None, 2 * units))
        self.built = True

    def call(self, inputs, training=False):
        return self.read(*inputs, training=training)[0]

    def read(self, story: Any, question: Any, training: bool = False) -> tuple[Any, Any]:
        """Answers, and says what it looked at.

        Args:
            story: int, `(batch, sentences, words)`.
            question: int, `(batch, words)`.
            training: as for a call.

        Returns:
            The logits `(batch, answers)` and the attention of each episode on each sentence,
            `(batch, hops, sentences)`.
        """
        q = self.question_reader(self.embedding(question), mask=ops.not_equal(question, 0))
        real = ops.any(ops.not_equal(story, 0), axis=-1)
        f = self._facts(story, real, training)
        m, found = q, []
        for hop in range(self.hops):
            g = self._attend(f, q, m, real)
            if self.episode == "gru":
                c = self.episode_reader(ops.concatenate([f, g[..., None]], axis=-1))
            else:
                c = ops.einsum("bs,bsu->bu", g, f)
            update = self.updates[0 if self.tied_updates else hop]
            m = update(ops.concatenate([m, c, q], axis=-1))
            found.append(g)
        m = self.memory_dropout(m, training=training)
        return self.readout(ops.concatenate([m, q], axis=-1)), ops.stack(found, axis=1)

    def _facts(self, story, real, training):
        x = position_encoded_sum(self.embedding(story), ops.not_equal(story, 0))
        x = self.sentence_dropout(x, training=training)
        backward = self.backward_reader(x, mask=real)
        return self.forward_reader(x, mask=real) + ops.flip(backward, axis=1)

    def _attend(self, f, q, m, real):
        q, m = q[:, None], m[:, None]
        z = ops.concatenate([f * q, f * m, ops.abs(f - q), ops.abs(f - m)], axis=-1)
        return attention(self.second_score(self.first_score(z))[..., 0], real)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], self.answers)

    def get_config(self):
        names = (
            *("vocabulary", "answers", "units", "hops", "episode", "tied_updates", "dropout"),
            "weight_decay",
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def dmn_plus(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 80,
    hops: int = 3,
    episode: str = "gru",
    tied_updates: bool = False,
    dropout: float = 0.1,
    weight_decay: float = 1e-3,
) -> keras.Model:
    """Returns a DMN+ over padded stories, with the paper's settings.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question; nothing depends on it.
        units: the size of all vectors.
        hops: number of episodes.
        episode: "gru" for attention in a GRU, "soft" for a sum weighted by it.
        tied_updates: whether all episodes have the same `W_t`, `b_t`.
        dropout: part of the sentences' vectors, and of the last memory, that training leaves out.
        weight_decay: half of it, times the square of each matrix, is added to the loss.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), and `question`, int32
        (batch, words), to logits (batch, answers).

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> dmn_plus(vocabulary=9, answers=5, sentences=3, words=4).output_shape
    (None, 5)
    """
    network = DMNPlus(
        vocabulary,
        answers,
        units=units,
        hops=hops,
        episode=episode,
        tied_updates=tied_updates,
        dropout=dropout,
        weight_decay=weight_decay,
        name="dmn_plus",
    )
    return question_answering(network, sentences)
