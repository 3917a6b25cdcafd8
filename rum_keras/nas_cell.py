"""The recurrent cell found by neural architecture search."""

from typing import Any

import keras
from keras import ops

# Not exported by Keras, but `keras.layers.RNN` makes dropout masks, the same in all steps, only for
# subclasses of it.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell


@keras.saving.register_keras_serializable(package="rum_keras")
class NASCell(keras.layers.Layer, DropoutRNNCell):
    """Cell that a search over recurrent cells found for language modelling, for `keras.layers.RNN`.

    Eight pairs of products of input and state are combined by a tree of eight leaves; only the
    fourth pair is multiplied. With `k = 0, ..., 7`,

    ```
    x_k  = x_t W_k,    m_k = h_{t-1} U_k + b_k                                    (batch, units)
    l_k  = f_k(x_k + m_k),    l_3 = relu(x_3 * m_3)                               (batch, units)
    a_t  = tanh(tanh(l_0 * l_1) + c_{t-1})                                        (batch, units)
    c_t  = a_t * tanh(l_2 + l_3)                                                  (batch, units)
    h_t  = tanh(c_t * tanh(tanh(l_4 * l_5) + sigmoid(l_6 + l_7)))                 (batch, units)
    h_t  = h_t P                               if `projection` is given      (batch, projection)
    ```

    where `f_1` is relu, `f_4` and `f_6` are tanh, and `f_0`, `f_2`, `f_5` and `f_7` are sigmoid.

    Weights: `kernel` (features, 8 units), `recurrent_kernel` (units or projection, 8 units), with
    `use_bias` `bias` (8 units), and `projection_kernel` (units, projection). State: `[h, c]`, as in
    Keras' LSTM. (In tensorflow-addons, whose values are the same, it is `[c, h]`.)

    Args:
        units: Positive integer, the size of `c` and, without `projection`, of `h`.
        projection: Positive integer, the size to which `h` is projected, or `None`.
        use_bias: Whether there are biases. The paper's cell has none.
        kernel_initializer: Initializer of `kernel`, as one matrix.
        recurrent_initializer: Initializer of `recurrent_kernel`, as one matrix.
        projection_initializer: Initializer of `projection_kernel`.
        bias_initializer: Initializer of `bias`.
        kernel_regularizer, recurrent_regularizer, projection_regularizer, bias_regularizer:
            Regularizers of the weights.
        kernel_constraint, recurrent_constraint, projection_constraint, bias_constraint:
            Constraints of the weights.
        dropout: Float in [0, 1), the fraction of inputs dropped, the same ones in all steps.
        recurrent_dropout: Float in [0, 1), the fraction of `h_{t-1}` dropped, the same in all
            steps.
        seed: Integer seed of dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h`, shape `(batch, units)` or `(batch, projection)`, and `c`, shape
            `(batch, units)`.
        training: Whether dropout is random.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.NASCell(6, projection=5))
    >>> tuple(layer(np.ones((2, 3, 4), "float32")).shape)
    (2, 5)

    Reference:
        [Zoph & Le, 2017](https://arxiv.org/abs/1611.01578), Section 4.2 and Appendix A.
    """

    def __init__(
        self,
        units: int,
        projection: int | None = None,
        use_bias: bool = False,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "glorot_uniform",
        projection_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        projection_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        projection_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, size in {"units": units, "projection": projection}.items():
            if size is not None and (isinstance(size, bool) or size != int(size) or size <= 0):
                raise ValueError(f"`{name}` must be a positive integer, received {name}={size!r}.")
        for name, rate in {"dropout": dropout, "recurrent_dropout": recurrent_dropout}.items():
            if not 0 <= rate < 1:
                raise ValueError(f"`{name}` must be a probability below 1, received {rate}.")
        self.units = units
        self.projection = projection
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.projection_initializer = keras.initializers.get(projection_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.projection_regularizer = keras.regularizers.get(projection_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.projection_constraint = keras.constraints.get(projection_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.output_size = units if projection is None else projection
        self.state_size = [self.output_size, units]

    def build(self, input_shape):
        self.kernel = self._add_weight("kernel", (input_shape[-1], 8 * self.units))
        self.recurrent_kernel = self._add_weight(
            "recurrent", (self.output_size, 8 * self.units), "recurrent_kernel"
        )
        self.bias = self._add_weight("bias", (8 * self.units,)) if self.use_bias else None
        self.projection_kernel = None
        if self.projection is not None:
            self.projection_kernel = self._add_weight(
                "projection", (self.units, self.projection), "projection_kernel"
            )
        self.built = True

    def _add_weight(self, kind, shape, name=None):
        return self.add_weight(
            shape=shape,
            name=name or kind,
            initializer=getattr(self, f"{kind}_initializer"),
            regularizer=getattr(self, f"{kind}_regularizer"),
            constraint=getattr(self, f"{kind}_constraint"),
        )

    def call(self, inputs, states, training=False):
        h, c = states
        if training and self.dropout:
            inputs = inputs * self.get_dropout_mask(inputs)
        if training and self.recurrent_dropout:
            h = h * self.get_recurrent_dropout_mask(h)
        x, m = ops.matmul(inputs, self.kernel), ops.matmul(h, self.recurrent_kernel)
        if self.bias is not None:
            m = m + self.bias
        x, m = ops.split(x, 8, axis=-1), ops.split(m, 8, axis=-1)
        a = ops.sigmoid(x[0] + m[0]) * ops.relu(x[1] + m[1])
        b = ops.sigmoid(x[2] + m[2]) + ops.relu(x[3] * m[3])
        c = ops.tanh(ops.tanh(a) + c) * ops.tanh(b)
        d = ops.tanh(x[4] + m[4]) * ops.sigmoid(x[5] + m[5])
        e = ops.tanh(x[6] + m[6]) + ops.sigmoid(x[7] + m[7])
        h = ops.tanh(c * ops.tanh(ops.tanh(d) + ops.sigmoid(e)))
        if self.projection_kernel is not None:
            h = ops.matmul(h, self.projection_kernel)
        return h, [h, c]

    def get_initial_state(self, batch_size=None):
        """Returns all-zero states."""
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in self.state_size]

    def get_config(self):
        config = super().get_config()
        for name in ("units", "projection", "use_bias", "dropout", "recurrent_dropout", "seed"):
            config[name] = getattr(self, name)
        for weight in ("kernel", "recurrent", "projection", "bias"):
            for kind in ("initializer", "regularizer", "constraint"):
                value = getattr(self, f"{weight}_{kind}")
                config[f"{weight}_{kind}"] = keras.saving.serialize_keras_object(value)
        return config
