"""Fast weights: a recurrent network that attends to its recent past."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from rum_keras.layer_norm_lstm_cell import layer_norm


@keras.saving.register_keras_serializable(package="rum_keras")
class FastWeightsCell(keras.layers.Layer):
    """Recurrent cell with fast weights and layer normalization (FW-LN).

    Besides its trained, slow weights the network has a matrix of fast weights `A`, an
    auto-associative memory that stores each hidden state and forgets exponentially. In each step
    the state settles under its pull:

    ```
    z_t     = x_t C + h_{t-1} W + b                                             (batch, units)
    h_t^0   = f(LN(z_t))                                                        (batch, units)
    h_t^s   = f(LN(z_t + A_{t-1} h_t^{s-1}))    for s = 1, ..., S               (batch, units)
    h_t     = h_t^S
    A_t     = decay A_{t-1} + rate h_t h_t'                              (batch, units, units)
    ```

    Without `A` that is attention to the past states, with weights `h_tau . h` that decay:
    `A_{t-1} h = rate sum_tau decay^(t - 1 - tau) h_tau (h_tau . h)`.

    Weights: `kernel` C (features, units), `recurrent_kernel` W (units, units), `bias` b (units);
    `gain` and `offset` (units) of `LN`, the same in all inner steps.

    State: `h` (batch, units) and the flat `A` (batch, units * units), initially zero; float32
    (float64 in a float64 layer) under a mixed precision policy, too.

    Args:
        units: Positive integer, the size of `h`.
        decay: Float in [0, 1], lambda in the paper.
        rate: Non-negative float, the fast learning rate, eta in the paper.
        inner_steps: Non-negative integer S, how often the state is updated by `A` in a step.
        activation: The activation f.
        use_bias: Whether there is `b`.
        epsilon: Positive float, added to the variances.
        kernel_initializer: Initializer of C.
        recurrent_initializer: Initializer of W. By default (`None`) the paper's, 0.05 times the
            identity.
        bias_initializer: Initializer of b.
        kernel_regularizer, recurrent_regularizer, bias_regularizer: Regularizers of the weights.
        kernel_constraint, recurrent_constraint, bias_constraint: Constraints of the weights.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `h`, shape `(batch, units)`, and `A`, shape `(batch, units * units)`.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.FastWeightsCell(6, decay=0.9), return_state=True)
    >>> output, h, memory = layer(np.ones((2, 3, 4), "float32"))
    >>> tuple(output.shape), tuple(memory.shape)
    ((2, 6), (2, 36))

    Reference:
        [Ba et al., 2016](https://arxiv.org/abs/1610.06258), Equations 1 to 5.
    """

    def __init__(
        self,
        units: int,
        decay: float = 0.95,
        rate: float = 0.5,
        inner_steps: int = 1,
        activation: str | Callable = "relu",
        use_bias: bool = True,
        epsilon: float = 1e-3,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None,
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        # autocast would round the states to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        if not units > 0:
            raise ValueError(f"`units` must be a positive integer, received {units}.")
        if not 0 <= decay <= 1 or not rate >= 0:
            raise ValueError(
                f"`decay` must be in [0, 1] and `rate` not negative, received {decay} and {rate}."
            )
        if inner_steps != int(inner_steps) or inner_steps < 0:
            raise ValueError(f"`inner_steps` must be an integer from 0, received {inner_steps}.")
        if not epsilon > 0:
            raise ValueError(f"`epsilon` must be positive, received {epsilon}.")
        self.units = int(units)
        self.decay = decay
        self.rate = rate
        self.inner_steps = int(inner_steps)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.epsilon = epsilon
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(
            recurrent_initializer or keras.initializers.Identity(gain=0.05)
        )
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = keras.constraints.get(kernel_constraint)
        self.recurrent_constraint = keras.constraints.get(recurrent_constraint)
        self.bias_constraint = keras.constraints.get(bias_constraint)
        self.state_size = [self.units, self.units**2]
        self.output_size = self.units

    @property
    def compute_dtype(self) -> str:
        """The dtype of states and memory: never half precision. `RNN` casts states to it."""
        return "float64" if self.dtype_policy.compute_dtype == "float64" else "float32"

    def build(self, input_shape):
        self.kernel = self._add_kind("kernel", (input_shape[-1], self.units), "kernel")
        self.recurrent_kernel = self._add_kind(
            "recurrent_kernel", (self.units, self.units), "recurrent"
        )
        self.bias = self._add_kind("bias", (self.units,), "bias") if self.use_bias else None
        self.gain = self.add_weight(shape=(self.units,), name="gain", initializer="ones")
        self.offset = self.add_weight(shape=(self.units,), name="offset", initializer="zeros")
        self.built = True

    def _add_kind(self, name, shape, kind):
        """Adds a weight with the initializer, regularizer and constraint of its kind."""
        parts = ("initializer", "regularizer", "constraint")
        options = {part: getattr(self, f"{kind}_{part}") for part in parts}
        return self.add_weight(shape=shape, name=name, **options)

    def call(self, inputs, states):
        h, A = states[0], self._matrix(states[1])
        z = self._affine(inputs, h, self.kernel, self.recurrent_kernel, self.bias)
        h = self._settle(z, A)
        A = self.decay * A + self.rate * h[:, :, None] * h[:, None, :]
        return self._output(h), [h, self._vector(A)]

    def _affine(self, inputs, h, kernel, recurrent_kernel, bias):
        """Returns `x C + h W + b`; the products are in the compute dtype of the policy."""
        dtype = self.dtype_policy.compute_dtype
        inputs, h, kernel, recurrent_kernel = (
            ops.cast(tensor, dtype) for tensor in (inputs, h, kernel, recurrent_kernel)
        )
        z = ops.cast(
            ops.matmul(inputs, kernel) + ops.matmul(h, recurrent_kernel), self.compute_dtype
        )
        return z if bias is None else z + ops.cast(bias, z.dtype)

    def _settle(self, z, A):
        """Returns `h_t`, after the inner steps under the memory `A`."""
        h = self.activation(layer_norm(z, self.gain, self.offset, self.epsilon))
        for _ in range(self.inner_steps):
            pulled = z + ops.squeeze(ops.matmul(A, h[:, :, None]), -1)
            h = self.activation(layer_norm(pulled, self.gain, self.offset, self.epsilon))
        return h

    def _matrix(self, state):
        return ops.reshape(state, (-1, self.units, self.units))

    def _vector(self, matrix):
        return ops.reshape(matrix, (-1, self.units**2))

    def _output(self, h):
        return ops.cast(h, self.dtype_policy.compute_dtype)

    def get_initial_state(self, batch_size=None):
        """Returns all-zero states: no past."""
        return [ops.zeros((batch_size, size), self.compute_dtype) for size in self.state_size]

    def get_config(self):
        config = super().get_config()
        for name in ("units", "decay", "rate", "inner_steps", "use_bias", "epsilon"):
            config[name] = getattr(self, name)
        config["activation"] = keras.activations.serialize(self.activation)
        for kind in ("kernel", "recurrent", "bias"):
            for part in ("initializer", "regularizer", "constraint"):
                value = getattr(self, f"{kind}_{part}")
                config[f"{kind}_{part}"] = keras.saving.serialize_keras_object(value)
        return config
