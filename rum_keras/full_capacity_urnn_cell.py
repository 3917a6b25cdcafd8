"""The full-capacity unitary RNN of Wisdom et al. as a Keras cell."""

from typing import Any

import keras
from keras import ops

from rum_keras.unitary import cayley, orthogonalized, random_unitary, real_form
from rum_keras.unitary_cell import ComplexUnitaryCell, uniform


@keras.saving.register_keras_serializable(package="rum_keras")
class FullCapacityURNNCell(ComplexUnitaryCell):
    """Cell whose recurrent matrix can be any unitary matrix.

    The step is that of `URNNCell`, here in row vectors, with n = `units` complex numbers:

    ```
    h_t = modReLU(h_{t-1} W + x_t V, b)             state                      n complex numbers
    W   = (I + A)^-1 (I - A) W_0                    recurrent matrix           (n, n), unitary
    A   = (S - S') + i (T + T')                     skew-Hermitian             (n, n)
    ```

    S is the strictly upper triangle of the weight `generator`, T the rest: as many numbers, n^2, as
    a unitary matrix has degrees of freedom. Whatever an optimizer does to them, W stays unitary.
    (It cannot reach exactly the matrices for which W W_0^-1 has an eigenvalue of -1, a set without
    volume.)

    With `multiplicative=True` W_0 itself is trained, as in the paper, by steps on the manifold of
    unitary matrices, which `CayleyRMSprop` takes. Any other optimizer leaves the manifold:
    `unitarity_error(cell.recurrent_matrix())` says how far.

    Weights: `kernel` (features, 2 units), [Re V, Im V]; `bias` (units); `initial_state`
    (2 units), [Re h_0, Im h_0]; `unitary_kernel` (units, 2 units), [Re W_0, Im W_0];
    `generator` (units, units), unless `multiplicative`.

    States: `[Re h, Im h]`, shape (batch, 2 units), and whether h is one, 1, or still to be h_0, 0,
    shape (batch, 1): all-zero states, as Keras initializes and resets them, mean the learned h_0.
    They are float32 (float64 in a float64 layer) under a mixed precision policy, too.

    W is computed once per sequence where `keras.layers.RNN` runs the cell: that costs O(n^3), a
    step O(n^2).

    Args:
        units: Positive integer n, the number of complex units.
        multiplicative: Whether W_0 is trained, by `CayleyRMSprop`, rather than A.
        epsilon: Non-negative float, of modReLU.
        kernel_initializer: Initializer of `kernel`.
        recurrent_initializer: Initializer of `unitary_kernel`, a unitary matrix. By default
            uniformly distributed.
        generator_initializer: Initializer of `generator`.
        bias_initializer: Initializer of `bias`. By default uniform in [-0.01, 0.01].
        initial_state_initializer: Initializer of `initial_state`. By default the same, as in the
            released code.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `[Re h, Im h]`, shape `(batch, 2 * units)`, and 0 or 1, shape `(batch, 1)`.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.FullCapacityURNNCell(6), return_sequences=True)
    >>> layer(np.ones((2, 3, 4), "float32")).shape
    TensorShape([2, 3, 12])

    Reference:
        [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), Section 4.
    """

    def __init__(
        self,
        units: int,
        multiplicative: bool = False,
        epsilon: float = 1e-5,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = None,
        generator_initializer: Any = "zeros",
        bias_initializer: Any = None,
        initial_state_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            epsilon,
            kernel_initializer,
            bias_initializer or uniform(0.01),
            initial_state_initializer or uniform(0.01),
            **kwargs,
        )
        self.multiplicative = multiplicative
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.generator_initializer = keras.initializers.get(generator_initializer)

    def build(self, input_shape):
        super().build(input_shape)
        n = self.units
        self.unitary_kernel = self.add_weight(
            shape=(n, 2 * n),
            name="unitary_kernel",
            initializer=self.recurrent_initializer or random_unitary,
            trainable=self.multiplicative,
        )
        if not self.multiplicative:
            self.generator = self.add_weight(
                shape=(n, n), name="generator", initializer=self.generator_initializer
            )

    def recurrent_matrix(self) -> Any:
        """Returns W as a real matrix, shape `(2 units, 2 units)`.

        `matmul([Re h, Im h], recurrent_matrix())` is `[Re h W, Im h W]`.
        """
        (unitary,) = self.precise(self.unitary_kernel)
        W = real_form(*ops.split(unitary, 2, axis=1))
        if self.multiplicative:
            return W
        (generator,) = self.precise(self.generator)
        S, T = ops.triu(generator, 1), ops.tril(generator)
        A = real_form(S - ops.transpose(S), T + ops.transpose(T))
        return orthogonalized(ops.matmul(cayley(A), W))

    def get_config(self):
        config = {**super().get_config(), **self.serialize("recurrent", "generator")}
        return {**config, "multiplicative": self.multiplicative}
