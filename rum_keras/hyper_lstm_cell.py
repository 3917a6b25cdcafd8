"""The HyperLSTM: a small LSTM that changes the weights of a large one in every step."""

from typing import Any

import keras
from keras import ops

from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell

INITIAL_SCALE = 0.1  # Of the released code: small enough for the gates not to saturate at first.
SHIFT_DEVIATION = 0.01  # Standard deviation of the first A_k^b, of the released code.


@keras.saving.register_keras_serializable(package="rum_keras")
class HyperLSTMCell(LayerNormLSTMCell):
    """LSTM cell whose kernels a smaller LSTM rescales in every step, for `keras.layers.RNN`.

    The hyper cell reads input and state of the main cell. Its state is embedded in a few numbers
    for each product and gate, and these give the scale of each row of the main cell's matrices,
    which so differ from step to step, and a part of its bias. For the gates `k = i, f, c, o`, with
    `LN` the normalization over units followed by a gain and an offset,

    ```
    h^_t, c^_t = LayerNormLSTM([x_t, h_{t-1}], h^_{t-1}, c^_{t-1})            (batch, hyper_units)
    z_k^x = h^_t A_k^x + a_k^x                                          (batch, embedding_units)
    z_k^h = h^_t A_k^h + a_k^h,    z_k^b = h^_t A_k^b                   (batch, embedding_units)
    d_k^x = z_k^x D_k^x,    d_k^h = z_k^h D_k^h                    scales         (batch, units)
    y_k   = LN_k(d_k^x * (x_t W_k) + d_k^h * (h_{t-1} U_k) + z_k^b D_k^b + b_k)   (batch, units)
    c_t   = sigmoid(y_f) * c_{t-1} + sigmoid(y_i) * tanh(y_c)                     (batch, units)
    h_t   = sigmoid(y_o) * tanh(LN(c_t))                                          (batch, units)
    ```

    At first `A^x`, `A^h` and `D^b` are zero and all scales are 0.1, so training starts from a
    layer-normalized LSTM. As in the released code, embeddings are of the hyper cell's new state.

    Weights: `kernel` (features, 4 units), `recurrent_kernel` (units, 4 units), `bias`, `gain`,
    `offset` (4 units) in Keras' order i | f | c | o; `state_gain`, `state_offset` (units);
    `embedding_kernel` (hyper_units, 8 embedding_units) and `embedding_bias` (8 embedding_units),
    for x and then h, each in that order; `scale_kernel` (8, embedding_units, units);
    `shift_embedding_kernel` (hyper_units, 4 embedding_units); `shift_kernel`
    (4, embedding_units, units); and those of `hyper_cell`, a `LayerNormLSTMCell` without `bias`.
    State: `[h, c, h^, c^]`.

    Args:
        units: Positive integer, the size of `h` and `c`.
        hyper_units: Positive integer, the size of `h^` and `c^`.
        embedding_units: Positive integer N_z, the size of each embedding. (Two layers of 1,000
            units with the default sizes, over one-hot inputs, are the paper's model of 14.41
            million parameters.)
        epsilon: Positive float, added to the variances.
        kernel_initializer: Initializer of `kernel` and the hyper cell's, each as one matrix.
        recurrent_initializer: Initializer of `recurrent_kernel` and the hyper cell's, each as one
            matrix.
        **kwargs: All other arguments of `keras.layers.LSTMCell`, for the main cell. The dropout
            masks are the same for all gates and for the hyper cell.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h` and `c`, shape `(batch, units)` each, and `h^` and `c^`, shape
            `(batch, hyper_units)` each.
        training: Whether dropout is random.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> cell = rum_keras.HyperLSTMCell(6, hyper_units=5, embedding_units=3)
    >>> tuple(keras.layers.RNN(cell)(np.ones((2, 3, 4), "float32")).shape)
    (2, 6)

    Reference:
        [Ha et al., 2017](https://arxiv.org/abs/1609.09106), the HyperLSTM of the appendix.
    """

    def __init__(
        self,
        units: int,
        hyper_units: int = 128,
        embedding_units: int = 16,
        epsilon: float = 1e-3,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            normalization="joint",
            epsilon=epsilon,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            **kwargs,
        )
        for name, size in {"hyper_units": hyper_units, "embedding_units": embedding_units}.items():
            if isinstance(size, bool) or size != int(size) or size <= 0:
                raise ValueError(f"`{name}` must be a positive integer, received {name}={size!r}.")
        self.hyper_units = hyper_units
        self.embedding_units = embedding_units
        self.hyper_cell = LayerNormLSTMCell(
            hyper_units,
            epsilon=epsilon,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            use_bias=False,
            name="hyper_cell",
            dtype=self.dtype_policy,
        )
        self.state_size = [units, units, hyper_units, hyper_units]

    def build(self, input_shape):
        super().build(input_shape)
        self.hyper_cell.build((None, input_shape[-1] + self.units))
        n, z = self.units, self.embedding_units
        self.embedding_kernel = self.add_weight(
            shape=(self.hyper_units, 8 * z), name="embedding_kernel", initializer="zeros"
        )
        self.embedding_bias = self.add_weight(
            shape=(8 * z,), name="embedding_bias", initializer="ones"
        )
        self.scale_kernel = self.add_weight(
            shape=(8, z, n),
            name="scale_kernel",
            initializer=keras.initializers.Constant(INITIAL_SCALE / z),
        )
        self.shift_embedding_kernel = self.add_weight(
            shape=(self.hyper_units, 4 * z),
            name="shift_embedding_kernel",
            initializer=keras.initializers.RandomNormal(stddev=SHIFT_DEVIATION),
        )
        self.shift_kernel = self.add_weight(
            shape=(4, z, n), name="shift_kernel", initializer="zeros"
        )

    def call(self, inputs, states, training=False):
        h, c, *hyper_states = states
        if training and self.dropout:
            inputs = inputs * self.get_dropout_mask(inputs)
        if training and self.recurrent_dropout:
            h = h * self.get_recurrent_dropout_mask(h)
        hyper_h, hyper_states = self.hyper_cell(ops.concatenate([inputs, h], -1), hyper_states)
        embedding = ops.matmul(hyper_h, self.embedding_kernel) + self.embedding_bias
        scale_x, scale_h = ops.split(self._generate(embedding, self.scale_kernel), 2, axis=-1)
        embedding = ops.matmul(hyper_h, self.shift_embedding_kernel)
        y = scale_x * ops.matmul(inputs, self.kernel)
        y = y + scale_h * ops.matmul(h, self.recurrent_kernel)
        y = y + self._generate(embedding, self.shift_kernel)
        if self.bias is not None:
            y = y + self.bias
        i, f, candidate, o = ops.split(self._normalized(y, "", gates=4), 4, axis=-1)
        c = self.recurrent_activation(f) * c
        c = c + self.recurrent_activation(i) * self.activation(candidate)
        h = self.recurrent_activation(o) * self.activation(self._normalized(c, "state_"))
        return h, [h, c, *hyper_states]

    def _generate(self, embedding, kernel):
        """Returns the product of each block of embeddings with its kernel, (batch, all units)."""
        blocks = kernel.shape[0]
        embedding = ops.reshape(embedding, (-1, blocks, self.embedding_units))
        generated = ops.einsum("bkz,kzn->bkn", embedding, kernel)
        return ops.reshape(generated, (-1, blocks * self.units))

    def get_initial_state(self, batch_size=None):
        """Returns all-zero states."""
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in self.state_size]

    def get_config(self):
        config = super().get_config()
        del config["normalization"]
        sizes = {"hyper_units": self.hyper_units, "embedding_units": self.embedding_units}
        return {**config, **sizes}
