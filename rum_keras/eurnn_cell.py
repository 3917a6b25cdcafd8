"""The efficient unitary RNN of Jing et al. as a Keras cell."""

import math
from typing import Any

import keras
from keras import ops

from rum_keras.eunn import eunn_matrix, eunn_pairs
from rum_keras.modrelu import modrelu
from rum_keras.unitary_cell import UnitaryCell, uniform


@keras.saving.register_keras_serializable(package="rum_keras")
class EURNNCell(UnitaryCell):
    """Cell whose unitary recurrent matrix is a product of rotations of pairs of units (EUNN).

    The number of layers of rotations, the capacity L, tunes how much of the unitary matrices W
    reaches, from L = 2 to all of them for L = n = `units`:

    ```
    h_t = modReLU(W h_{t-1} + V x_t, b)                                        state (n)
    W   = D F_L ... F_2 F_1                                                    (n, n), unitary
    F_l : (p, q) -> (cos(theta) p - exp(i phi) sin(theta) q,                   for each pair of
                     sin(theta) p + exp(i phi) cos(theta) q)                   units of layer l
    D   = diag(exp(i omega))
    modReLU(z, b) = z / r ReLU(r + b),  r = |z| + epsilon                      b (n), real
    ```

    Odd layers rotate the units (0, 1), (2, 3), ..., even ones (1, 2), (3, 4), ...; with `fft`
    those at a distance of n / 2, n / 4, ..., 1, which connects all units in log2(n) layers. Real
    numbers, the default, do without phi and D, and W is orthogonal.

    All units take part for every n. (The released code of RUM sets the last unit to zero in every
    even layer where n is even, so that its real W is singular, and its complex FFT style is not
    unitary. Neither is reproduced: W is that of the code of Jing et al., extended to odd n and L.)

    Weights: `kernel` (features, n), V', and with `complex_` (features, 2 n), [Re V', Im V']; `bias`
    (n); `theta` (angles), layer by layer; with `complex_` also `phi` (angles) and `omega` (n).

    State and output: h, shape (batch, n), with `complex_` [Re h, Im h], shape (batch, 2 n). The
    state is float32 (float64 in a float64 layer) under a mixed precision policy, too. W is computed
    once per sequence where `keras.layers.RNN` runs the cell.

    Args:
        units: Integer n, at least 2; a power of two with `fft`.
        capacity: Integer L from 1 to `units`, the number of layers. Without meaning with `fft`.
        fft: Whether the pairs are those of a fast Fourier transform.
        complex_: Whether state and W are complex.
        epsilon: Non-negative float, of modReLU: 1e-5 in the code of RUM, 1e-2 in that of Jing et
            al.
        kernel_initializer: Initializer of `kernel`. By default uniform in [-0.01, 0.01].
        bias_initializer: Initializer of `bias`.
        angle_initializer: Initializer of `theta`, `phi` and `omega`. By default uniform in
            [-pi, pi].
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of the state, shape `(batch, n)`, with `complex_` `(batch, 2 * n)`.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> cell = rum_keras.EURNNCell(6, capacity=4, complex_=True)
    >>> layer = keras.layers.RNN(cell, return_sequences=True)
    >>> layer(np.ones((2, 3, 4), "float32")).shape
    TensorShape([2, 3, 12])

    Reference:
        [Jing et al., 2017](https://arxiv.org/abs/1612.05231).
    """

    def __init__(
        self,
        units: int,
        capacity: int = 2,
        fft: bool = False,
        complex_: bool = False,
        epsilon: float = 1e-5,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        angle_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, complex_, epsilon, **kwargs)
        self.capacity = capacity
        self.fft = fft
        self.pairs = eunn_pairs(self.units, capacity, fft)
        self.kernel_initializer = keras.initializers.get(kernel_initializer or uniform(0.01))
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.angle_initializer = keras.initializers.get(angle_initializer or uniform(math.pi))

    def build(self, input_shape):
        self.kernel = self.add_weight(
            shape=(input_shape[-1], self.state_size),
            name="kernel",
            initializer=self.kernel_initializer,
        )
        self.bias = self.add_weight(
            shape=(self.units,), name="bias", initializer=self.bias_initializer
        )
        angles = sum(len(first) for first, _ in self.pairs)
        sizes = {"theta": angles}
        if self.complex_:
            sizes |= {"phi": angles, "omega": self.units}
        for name, size in sizes.items():
            weight = self.add_weight(shape=(size,), name=name, initializer=self.angle_initializer)
            setattr(self, name, weight)
        self.built = True

    def call(self, inputs, states, training=False):
        nested = isinstance(states, (list, tuple))
        state = states[0] if nested else states
        (bias,) = self.precise(self.bias)
        h = ops.cast(state, self.compute_dtype)
        z = ops.matmul(h, self.matrix_of_sequence()) + self.project(inputs, self.kernel)
        h = modrelu(z, bias, self.epsilon, self.complex_)
        output = ops.cast(h, self.dtype_policy.compute_dtype)
        new_state = ops.cast(h, state.dtype)
        return output, [new_state] if nested else new_state

    def recurrent_matrix(self) -> Any:
        """Returns W as a real matrix, shape `(units, units)`; with `complex_` its real form.

        `matmul(h, recurrent_matrix())` is `W h`, or `[Re W h, Im W h]` of `h = [Re h, Im h]`.
        """
        names = ("theta", "phi", "omega") if self.complex_ else ("theta",)
        angles = self.precise(*(getattr(self, name) for name in names))
        return eunn_matrix(self.units, self.pairs, *angles)

    def get_config(self):
        config = {**super().get_config(), **self.serialize("kernel", "bias", "angle")}
        for name in ("capacity", "fft", "complex_"):
            config[name] = getattr(self, name)
        return config
