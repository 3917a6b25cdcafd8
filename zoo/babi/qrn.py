"""Query-Reduction Network, QRN."""

import math
from typing import Any

import keras
from keras import ops

from zoo.babi.sentences import position_encoded_sum, question_answering


def linear_recurrence(keep: Any, new: Any, reverse: bool = False) -> Any:
    """Solves `h_t = keep_t * h_{t-1} + new_t`, `h_0 = 0`, for all `t` at once.

    Each round joins every step with what came before it, over twice as many steps as the round
    before. That is exact, where the released code's sums of logarithms need a floor for the gates.

    Args:
        keep: float, `(batch, time, units or 1)`.
        new: float, `(batch, time, units)`.
        reverse: whether to go from the last step to the first.

    Returns:
        `h`, `(batch, time, units)`.

    Example:

    >>> h = linear_recurrence(np.full((1, 3, 1), 0.5, "float32"), np.ones((1, 3, 1), "float32"))
    >>> np.asarray(h)[0, :, 0].tolist()
    [1.0, 1.5, 1.75]
    """
    time, distance = new.shape[1], 1

    def earlier(values, fill):
        width = (0, distance) if reverse else (distance, 0)
        moved = ops.pad(values, [(0, 0), width, (0, 0)], constant_values=fill)
        return moved[:, distance:] if reverse else moved[:, :time]

    while distance < time:
        new = new + keep * earlier(new, 0)
        keep = keep * earlier(keep, 1)
        distance *= 2
    return new


@keras.saving.register_keras_serializable(package="rum_keras")
class QRN(keras.layers.Layer):
    """Reads a story sentence by sentence and turns the question, at each, into an easier one.

    With `x_t` the vector of sentence `t` and `q_t` what is asked at it, at first the question's
    vector everywhere, a layer computes (all of size units, gates of size units or 1)

    ```
    z_t  = sigmoid(W_z (x_t * q_t) + b_z)         update gate
    r_t  = sigmoid(W_r (x_t * q_t) + b_r)         reset gate
    h~_t = tanh(W_h [x_t; q_t] + b_h)             what the sentence makes of the question
    h_t  = z_t * r_t * h~_t + (1 - z_t) * h_{t-1}
    ```

    forwards and backwards, with a reset gate for each direction, and the sum of both is the `q_t`
    of the next layer. The last layer reads forwards and without reset gate, and the answer is read
    from its last `h_t`.

    Nothing in a gate depends on `h_{t-1}`, so all sentences are computed at once. Padding has
    `z_t = 0`.

    Args: all those of `qrn` by the same names, but `sentences` and `words`, which are those of its
    input.

    Call arguments:
        inputs: A pair of int tensors: the story `(batch, sentences, words)`, the question
            `(batch, words)`; 0 is padding, anywhere.

    Raises:
        ValueError: for an argument outside of its range.

    Reference:
        [Seo et al., 2017](https://arxiv.org/abs/1606.04582), Equations 1 to 6, Sections 2.2, 2.3.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int,
        *,
        units: int,
        layers: int,
        reset_gate: bool,
        vector_gates: bool,
        gate_bias: float,
        shared_layers: bool,
        weight_decay: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name in ("vocabulary", "answers", "units", "layers"):
            if not locals()[name] >= 1:
                raise ValueError(f"`{name}` must be positive, received {locals()[name]}.")
        if weight_decay < 0:
            raise ValueError(f"`weight_decay` must not be negative, received {weight_decay}.")
        self.vocabulary, self.answers, self.units, self.layers = vocabulary, answers, units, layers
        self.reset_gate, self.vector_gates, self.gate_bias = reset_gate, vector_gates, gate_bias
        self.shared_layers, self.weight_decay = shared_layers, weight_decay

    def build(self, input_shape):
        limit = math.sqrt(3)
        uniform = keras.initializers.RandomUniform(-limit, limit)
        self.embedding = self._matrix("embedding", (self.vocabulary + 1, self.units), uniform)
        # Gates of a direction's own for each but the last layer: update, reset to and fro.
        gates = 3 if self.reset_gate and self.layers > 1 else 1
        size = self.units if self.vector_gates else 1
        self.gate_kernels, self.gate_biases, self.kernels, self.biases = [], [], [], []
        for layer in range(1 if self.shared_layers else self.layers):
            shape = (self.units, gates * size)
            self.gate_kernels.append(self._matrix(f"gate_kernel_{layer}", shape))
            self.gate_biases.append(
                self.add_weight(
                    shape=(gates * size,),
                    initializer=self._gate_bias_initializer,
                    name=f"gate_bias_{layer}",
                )
            )
            self.kernels.append(self._matrix(f"kernel_{layer}", (2 * self.units, self.units)))
            self.biases.append(self._bias(f"bias_{layer}", self.units))
        self.readout_kernel = self._matrix("readout_kernel", (self.units, self.answers))
        self.readout_bias = self._bias("readout_bias", self.answers)
        self.built = True

    def _matrix(self, name, shape, initializer="glorot_uniform"):
        return self.add_weight(
            shape=shape,
            initializer=initializer,
            regularizer=keras.regularizers.L2(self.weight_decay / 2),
            name=name,
        )

    def _bias(self, name, size):
        return self.add_weight(shape=(size,), initializer="zeros", name=name)

    def _gate_bias_initializer(self, shape, dtype=None):
        """The update gate starts closed by the bias, resets by half."""
        size = self.units if self.vector_gates else 1
        update = ops.full((size,), -self.gate_bias, dtype=dtype)
        return ops.concatenate([update, ops.zeros((shape[0] - size,), dtype=dtype)])

    def call(self, inputs):
        story, question = inputs
        x, q = self._encode(story), self._encode(question)[:, None]
        q = ops.broadcast_to(q, ops.shape(x))
        real = ops.any(ops.not_equal(story, 0), axis=-1, keepdims=True)
        for layer in range(self.layers):
            q = self._layer(layer, x, q, ops.cast(real, x.dtype))
        return ops.matmul(q[:, -1], self.readout_kernel) + self.readout_bias

    def _encode(self, words):
        vectors = ops.take(self.embedding, words, axis=0)
        # QRN's position encoding is in the scale of MemN2N's paper, half of that of its code.
        return 0.5 * position_encoded_sum(vectors, ops.not_equal(words, 0))

    def _layer(self, layer, x, q, real):
        """Returns what is asked at each sentence of the next layer, or, after the last, `h_t`."""
        k = 0 if self.shared_layers else layer
        gates = ops.sigmoid(ops.matmul(x * q, self.gate_kernels[k]) + self.gate_biases[k])
        new = ops.matmul(ops.concatenate([x, q], axis=-1), self.kernels[k]) + self.biases[k]
        size = self.units if self.vector_gates else 1
        z = gates[..., :size] * real
        new, keep = z * ops.tanh(new), 1 - z
        if layer == self.layers - 1:
            return linear_recurrence(keep, new)
        forward = backward = new
        if self.reset_gate:
            forward = new * gates[..., size : 2 * size]
            backward = new * gates[..., 2 * size :]
        return linear_recurrence(keep, forward) + linear_recurrence(keep, backward, reverse=True)

    def compute_output_shape(self, input_shape):
        return (input_shape[0][0], self.answers)

    def get_config(self):
        names = (
            *("vocabulary", "answers", "units", "layers", "reset_gate", "vector_gates"),
            *("gate_bias", "shared_layers", "weight_decay"),
        )
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


def qrn(
    vocabulary: int,
    answers: int,
    sentences: int,
    words: int,
    *,
    units: int = 200,
    layers: int = 2,
    reset_gate: bool = True,
    vector_gates: bool = False,
    gate_bias: float = 2.5,
    shared_layers: bool = True,
    weight_decay: float = 5e-4,
) -> keras.Model:
    """Returns a QRN over padded stories, with the paper's settings for 10,000 questions.

    For 1,000 the paper has 50 units and a weight decay of 1e-3.

    Args:
        vocabulary: number of words, whose ids are 1, 2, ...; 0 is padding.
        answers: number of answers.
        sentences: sentences of a story, with padding.
        words: words of the longest sentence or question; nothing depends on it.
        units: the size of all vectors.
        layers: how many times the question is reduced.
        reset_gate: whether there are reset gates.
        vector_gates: whether a gate has a value for each unit, or one for all.
        gate_bias: at the start `b_z` is minus this, so that most sentences change nothing.
        shared_layers: whether all layers have the same weights.
        weight_decay: half of it, times the square of each matrix, is added to the loss.

    Returns:
        A functional model from `story`, int32 (batch, sentences, words), and `question`, int32
        (batch, words), to logits (batch, answers).

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> qrn(vocabulary=9, answers=5, sentences=3, words=4).output_shape
    (None, 5)
    """
    network = QRN(
        vocabulary,
        answers,
        units=units,
        layers=layers,
        reset_gate=reset_gate,
        vector_gates=vector_gates,
        gate_bias=gate_bias,
        shared_layers=shared_layers,
        weight_decay=weight_decay,
        name="qrn",
    )
    return question_answering(network, sentences)
