"""LSTM cells with layer normalization."""

from typing import Any

import keras
import numpy as np
from keras import ops


def layer_norm(values: Any, gain: Any, offset: Any, epsilon: float) -> Any:
    """Normalizes over the last axis, never in half precision, and returns the dtype of `values`."""
    dtype = keras.backend.standardize_dtype(values.dtype)
    precise = dtype if dtype == "float64" else "float32"
    values, gain, offset = (ops.cast(tensor, precise) for tensor in (values, gain, offset))
    centered = values - ops.mean(values, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
    return ops.cast(centered * ops.rsqrt(variance + epsilon) * gain + offset, dtype)


@keras.saving.register_keras_serializable(package="rum_keras")
class LayerNormLSTMCell(keras.layers.LSTMCell):
    """LSTM cell with layer normalization of its gates and of its cell state.

    Two different models have this name. With `LN` the normalization over units, followed by a gain
    and an offset, `normalization="joint"`, that of the Fast-Slow RNN, normalizes each gate's whole
    pre-activation:

    ```
    z_k  = LN_k(x_t W_k + h_{t-1} U_k + b_k)      for k = i, f, c, o              (batch, units)
    c_t  = sigmoid(z_f) * c_{t-1} + sigmoid(z_i) * tanh(z_c)                      (batch, units)
    h_t  = sigmoid(z_o) * tanh(LN(c_t))                                           (batch, units)
    ```

    and `normalization="separate"`, that of tensorflow-addons, the two products of all gates at
    once, and the cell state that is kept, too:

    ```
    z    = LN(x_t W) + LN(h_{t-1} U) + b                                      (batch, 4 units)
    c_t  = LN(sigmoid(z_f) * c_{t-1} + sigmoid(z_i) * tanh(z_c))                  (batch, units)
    h_t  = sigmoid(z_o) * tanh(c_t)                                               (batch, units)
    ```

    Weights: `kernel` (features, 4 units), `recurrent_kernel` (units, 4 units) and `bias`
    (4 units) in Keras' order i | f | c | o; joint: `gain` and `offset` (4 units); separate:
    `kernel_gain`, `kernel_offset`, `recurrent_gain` and `recurrent_offset` (4 units); both:
    `state_gain` and `state_offset` (units). State: `[h, c]`.

    Args:
        units: Positive integer, the size of `h` and `c`.
        normalization: `"joint"` or `"separate"`.
        epsilon: Positive float, added to the variances.
        kernel_initializer: Initializer of `kernel`, as one matrix (tensorflow-addons:
            `"glorot_uniform"`).
        recurrent_initializer: Initializer of `recurrent_kernel`, as one matrix.
        unit_forget_bias: Whether the forget gate starts from 1: in `offset` (joint; it would be
            normalized away in `bias`), or in `bias` (separate).
        **kwargs: All other arguments of `keras.layers.LSTMCell`. The dropout masks are the same
            for all gates.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h` and `c`, shape `(batch, units)` each.
        training: Whether dropout is random.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.LayerNormLSTMCell(6))
    >>> tuple(layer(np.ones((2, 3, 4), "float32")).shape)
    (2, 6)

    Reference:
        [Ba et al., 2016](https://arxiv.org/abs/1607.06450), Equations 20 to 22;
        [Mujika et al., 2017](https://arxiv.org/abs/1705.08639), Section 4.
    """

    def __init__(
        self,
        units: int,
        normalization: str = "joint",
        epsilon: float = 1e-3,
        kernel_initializer: Any = "orthogonal",
        recurrent_initializer: Any = "orthogonal",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            **kwargs,
        )
        if normalization not in ("joint", "separate"):
            raise ValueError(
                f'`normalization` must be "joint" or "separate", received {normalization!r}.'
            )
        if not epsilon > 0:
            raise ValueError(f"`epsilon` must be positive, received {epsilon}.")
        self.normalization = normalization
        self.epsilon = epsilon
        self.dropout_mask_count = None  # One mask, not one for each gate.

    def build(self, input_shape):
        joint = self.normalization == "joint"
        for name, rows, kind in (
            ("kernel", input_shape[-1], "kernel"),
            ("recurrent_kernel", self.units, "recurrent"),
        ):
            weight = self.add_weight(
                shape=(rows, 4 * self.units),
                name=name,
                initializer=getattr(self, f"{kind}_initializer"),
                regularizer=getattr(self, f"{kind}_regularizer"),
                constraint=getattr(self, f"{kind}_constraint"),
            )
            setattr(self, name, weight)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(4 * self.units,),
                name="bias",
                initializer=self.bias_initializer if joint else self._forgetting_bias,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        for norm in ("",) if joint else ("kernel_", "recurrent_"):
            self._add_norm(norm, 4 * self.units, self._forgetting_offset if joint else "zeros")
        self._add_norm("state_", self.units, "zeros")
        self.built = True

    def _add_norm(self, prefix, size, offset_initializer):
        for part, initializer in (("gain", "ones"), ("offset", offset_initializer)):
            weight = self.add_weight(shape=(size,), name=prefix + part, initializer=initializer)
            setattr(self, prefix + part, weight)

    def _forgetting_bias(self, shape, dtype=None):
        return self.bias_initializer(shape, dtype) + self._forgetting_offset(shape, dtype)

    def _forgetting_offset(self, shape, dtype=None):
        return ops.cast(np.repeat([0, int(self.unit_forget_bias), 0, 0], self.units), dtype)

    def call(self, inputs, states, training=False):
        h, c = states
        if training and self.dropout:
            inputs = inputs * self.get_dropout_mask(inputs)
        if training and self.recurrent_dropout:
            h = h * self.get_recurrent_dropout_mask(h)
        x, z = ops.matmul(inputs, self.kernel), ops.matmul(h, self.recurrent_kernel)
        if self.normalization == "separate":
            x = self._normalized(x, "kernel_")
            z = self._normalized(z, "recurrent_")
        z = x + z if self.bias is None else x + z + self.bias
        if self.normalization == "joint":
            z = self._normalized(z, "", gates=4)
        i, f, candidate, o = ops.split(z, 4, axis=-1)
        c = self.recurrent_activation(f) * c
        c = c + self.recurrent_activation(i) * self.activation(candidate)
        normalized = self._normalized(c, "state_")
        if self.normalization == "separate":
            c = normalized
        h = self.recurrent_activation(o) * self.activation(normalized)
        return h, [h, c]

    def _normalized(self, values, prefix, gates=1):
        """Normalizes each of the gates with the gain and the offset of that prefix."""
        size = values.shape[-1]
        gain, offset = (
            ops.reshape(getattr(self, prefix + part), (gates, size // gates))
            for part in ("gain", "offset")
        )
        values = ops.reshape(values, (-1, gates, size // gates))
        return ops.reshape(layer_norm(values, gain, offset, self.epsilon), (-1, size))

    def get_config(self):
        config = super().get_config()
        return {**config, "normalization": self.normalization, "epsilon": self.epsilon}
