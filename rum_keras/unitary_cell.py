"""What cells with a unitary recurrent matrix have in common."""

from typing import Any

import keras
from keras import ops

# Not exported by Keras, but the only cells that `keras.layers.RNN` lets compute something once per
# sequence, rather than once per step, are subclasses of it.
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell

from rum_keras.modrelu import modrelu


class UnitaryCell(keras.layers.Layer, DropoutRNNCell):
    """Base of cells whose recurrent matrix is computed from its parameters once per sequence.

    A subclass defines `recurrent_matrix()`, which returns the real matrix W of `h W`, and calls
    `self.matrix_of_sequence()` in `call`. In half precision W would stop being orthogonal: states
    and W are float32 (float64 in a float64 layer).
    """

    def __init__(self, units: int, complex_: bool, epsilon: float, **kwargs: Any) -> None:
        # autocast would round the states to half precision under a mixed policy.
        super().__init__(autocast=False, **kwargs)
        if isinstance(units, bool) or units != int(units) or units <= 0:
            raise ValueError(f"`units` must be a positive integer, received units={units!r}.")
        if not epsilon >= 0:
            raise ValueError(
                f"`epsilon`, added to the norm in modReLU, must not be negative, received "
                f"epsilon={epsilon!r}."
            )
        self.units = int(units)
        self.complex_ = complex_
        self.epsilon = epsilon
        self.state_size = self.output_size = self.units * (2 if complex_ else 1)
        self._matrix = None

    @property
    def compute_dtype(self) -> str:
        """The dtype of states and W: never half precision. `RNN` casts states to it."""
        return "float64" if self.dtype_policy.compute_dtype == "float64" else "float32"

    def recurrent_matrix(self) -> Any:
        """Returns W, shape `(output_size, output_size)`, of the product `h W` with a row vector."""
        raise NotImplementedError

    def matrix_of_sequence(self) -> Any:
        """Returns W, as computed before the loop over the steps if `RNN` runs it."""
        return self.recurrent_matrix() if self._matrix is None else self._matrix

    # `RNN` calls these before and after its loop.
    def get_dropout_mask(self, step_input):
        self._matrix = self.recurrent_matrix()

    def reset_dropout_mask(self):
        self._matrix = None

    def get_recurrent_dropout_mask(self, step_input):
        return None

    def project(self, inputs: Any, kernel: Any) -> Any:
        """Returns `inputs kernel`: computed in the policy's dtype, returned in that of states."""
        dtype = self.dtype_policy.compute_dtype
        product = ops.matmul(ops.cast(inputs, dtype), ops.cast(kernel, dtype))
        return ops.cast(product, self.compute_dtype)

    def precise(self, *weights: Any) -> list[Any]:
        """Returns the values of the weights in the dtype of the states."""
        return [ops.cast(weight, self.compute_dtype) for weight in weights]

    def serialize(self, *names: str) -> dict[str, Any]:
        """Returns the configuration of the initializers of these weights."""
        initializers = [f"{name}_initializer" for name in names]
        return {
            key: keras.saving.serialize_keras_object(getattr(self, key)) for key in initializers
        }

    def get_initial_state(self, batch_size=None):
        sizes = self.state_size if isinstance(self.state_size, list) else [self.state_size]
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    def get_config(self):
        return {**super().get_config(), "units": self.units, "epsilon": self.epsilon}


def uniform(limit: float) -> keras.initializers.Initializer:
    """Returns the initializer that is uniform in [-limit, limit]."""
    return keras.initializers.RandomUniform(-limit, limit)


class ComplexUnitaryCell(UnitaryCell):
    """Base of `h_t = modReLU(W h_{t-1} + V x_t, b)` in complex numbers, with a learned h_0.

    Its states are h and whether a step has been taken, 0 or 1: all-zero, as Keras initializes and
    resets states, means h_0. (A state h - h_0 would do as well, but where steps are masked Keras on
    JAX takes the first state for the last output.) A subclass adds the parameters of W.
    """

    def __init__(
        self,
        units: int,
        epsilon: float,
        kernel_initializer: Any,
        bias_initializer: Any,
        initial_state_initializer: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, complex_=True, epsilon=epsilon, **kwargs)
        self.state_size = [self.output_size, 1]
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.initial_state_initializer = keras.initializers.get(initial_state_initializer)

    def build(self, input_shape):
        n = self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], 2 * n), name="kernel", initializer=self.kernel_initializer
        )
        self.bias = self.add_weight(shape=(n,), name="bias", initializer=self.bias_initializer)
        self.initial_state = self.add_weight(
            shape=(2 * n,), name="initial_state", initializer=self.initial_state_initializer
        )
        self.built = True

    def call(self, inputs, states, training=False):
        h, started = (ops.cast(state, self.compute_dtype) for state in states)
        start, bias = self.precise(self.initial_state, self.bias)
        h = h + (1 - started) * start
        z = ops.matmul(h, self.matrix_of_sequence()) + self.project(inputs, self.kernel)
        h = modrelu(z, bias - self.epsilon, self.epsilon, complex_=True)
        output = ops.cast(h, self.dtype_policy.compute_dtype)
        new_states = [h, ops.ones_like(started)]
        pairs = zip(new_states, states, strict=True)
        return output, [ops.cast(new, old.dtype) for new, old in pairs]

    def get_config(self):
        return {**super().get_config(), **self.serialize("kernel", "bias", "initial_state")}
