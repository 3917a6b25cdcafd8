"""The gated orthogonal recurrent unit of Jing et al. as a Keras cell."""

import math
from typing import Any

import keras
from keras import ops

from rum_keras.eunn import eunn_matrix, eunn_pairs
from rum_keras.modrelu import modrelu
from rum_keras.unitary_cell import UnitaryCell, uniform


@keras.saving.register_keras_serializable(package="rum_keras")
class GORUCell(UnitaryCell):
    """Cell with an orthogonal recurrent matrix, that remembers, and gates, that forget (GORU).

    A GRU whose candidate sees the state through the orthogonal matrix O of an EUNN (see
    `EURNNCell`, real), with n = `units`:

    ```
    r_t = sigmoid(x_t U_r + h_{t-1} W_r + b_r)                  reset gate     (batch, n)
    g_t = sigmoid(x_t U_g + h_{t-1} W_g + b_g)                  update gate    (batch, n)
    c_t = modReLU(x_t U_c + r_t * (O h_{t-1}), b_c)             candidate      (batch, n)
    h_t = g_t * h_{t-1} + (1 - g_t) * c_t                       new state      (batch, n)
    modReLU(z, b) = sign(z) ReLU(|z| + epsilon + b)
    ```

    All units take part for every n. (The released code of RUM sets the last unit to zero in every
    even layer where n is even, so that its O is singular, and O is not orthogonal for an odd
    capacity or an FFT style whose n is no power of two. This is not reproduced: O is that of the
    code of Jing et al., extended to odd n and capacities.)

    Weights: `kernel` (features, 3 n), in the order candidate | reset gate | update gate;
    `recurrent_kernel` (n, 2 n), reset | update; `bias` (3 n), candidate | reset | update; `theta`
    (angles), layer by layer.

    State: h, shape (batch, n), float32 (float64 in a float64 layer) under a mixed precision policy,
    too. O is computed once per sequence where `keras.layers.RNN` runs the cell.

    Args:
        units: Integer n, at least 2; a power of two with `fft`.
        capacity: Integer from 1 to `units`, the number of layers of O. Without meaning with `fft`.
        fft: Whether the pairs that O rotates are those of a fast Fourier transform.
        epsilon: Non-negative float, of modReLU: 1e-5 in the code of RUM, 1e-3 in that of Jing et
            al.
        recurrent_activation: Activation of the gates.
        kernel_initializer: Initializer of `kernel`. By default uniform in [-0.01, 0.01].
        recurrent_initializer: Initializer of `recurrent_kernel`. By default the same.
        bias_initializer: Initializer of `bias`. By default that of Jing et al.: 0.01 for the
            candidate, 2 for the reset gate, and uniform in [-a, a], a = sqrt(3 / n), for the update
            gate. (The code of RUM starts the candidate's at 2.)
        angle_initializer: Initializer of `theta`. By default uniform in [-pi, pi].
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of h, shape `(batch, units)`.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.GORUCell(6), return_sequences=True)
    >>> layer(np.ones((2, 3, 4), "float32")).shape
    TensorShape([2, 3, 6])

    Reference:
        [Jing et al., 2019](https://arxiv.org/abs/1706.02761).
    """

    def __init__(
        self,
        units: int,
        capacity: int = 2,
        fft: bool = False,
        epsilon: float = 1e-5,
        recurrent_activation: Any = "sigmoid",
        kernel_initializer: Any = None,
        recurrent_initializer: Any = None,
        bias_initializer: Any = None,
        angle_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, complex_=False, epsilon=epsilon, **kwargs)
        self.capacity = capacity
        self.fft = fft
        self.pairs = eunn_pairs(self.units, capacity, fft)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.kernel_initializer = keras.initializers.get(kernel_initializer or uniform(0.01))
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer or uniform(0.01))
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.angle_initializer = keras.initializers.get(angle_initializer or uniform(math.pi))

    def build(self, input_shape):
        n = self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], 3 * n), name="kernel", initializer=self.kernel_initializer
        )
        self.recurrent_kernel = self.add_weight(
            shape=(n, 2 * n), name="recurrent_kernel", initializer=self.recurrent_initializer
        )
        self.bias = self.add_weight(
            shape=(3 * n,), name="bias", initializer=self.bias_initializer or _initial_bias
        )
        self.theta = self.add_weight(
            shape=(sum(len(first) for first, _ in self.pairs),),
            name="theta",
            initializer=self.angle_initializer,
        )
        self.built = True

    def call(self, inputs, states, training=False):
        nested = isinstance(states, (list, tuple))
        state = states[0] if nested else states
        h, n = ops.cast(state, self.compute_dtype), self.units
        (bias,) = self.precise(self.bias)
        x = self.project(inputs, self.kernel)
        gates = x[:, n:] + self.project(h, self.recurrent_kernel) + bias[n:]
        r, g = ops.split(self.recurrent_activation(gates), 2, axis=-1)
        z = x[:, :n] + r * ops.matmul(h, self.matrix_of_sequence())
        h = g * h + (1 - g) * modrelu(z, bias[:n], self.epsilon)
        output = ops.cast(h, self.dtype_policy.compute_dtype)
        new_state = ops.cast(h, state.dtype)
        return output, [new_state] if nested else new_state

    def recurrent_matrix(self) -> Any:
        """Returns the transpose of O, shape `(units, units)`: `O h` is its product with a row h."""
        return eunn_matrix(self.units, self.pairs, *self.precise(self.theta))

    def get_config(self):
        config = super().get_config()
        config |= self.serialize("kernel", "recurrent", "bias", "angle")
        activation = keras.activations.serialize(self.recurrent_activation)
        return {
            **config,
            "capacity": self.capacity,
            "fft": self.fft,
            "recurrent_activation": activation,
        }


def _initial_bias(shape, dtype=None):
    n = shape[0] // 3
    update = keras.initializers.GlorotUniform()((n,), dtype)
    return ops.concatenate([ops.full((n,), 0.01, dtype), ops.full((n,), 2.0, dtype), update])
