"""The unitary evolution RNN of Arjovsky et al. as a Keras cell."""

import math
from typing import Any

import keras
from keras import ops

from rum_keras.rotation import DIRECTION_FLOOR, direction
from rum_keras.unitary import real_form, turn
from rum_keras.unitary_cell import ComplexUnitaryCell, uniform


@keras.saving.register_keras_serializable(package="rum_keras")
class URNNCell(ComplexUnitaryCell):
    """Cell with a unitary recurrent matrix made of Fourier transforms and reflections.

    The state is a vector of n = `units` complex numbers. A unitary W keeps its norm, and so
    gradients neither vanish nor explode; 7 n parameters make it up:

    ```
    h_t = modReLU(W h_{t-1} + V x_t, b)             state                      n complex numbers
    W   = D_3 R_2 F^-1 D_2 Pi R_1 F D_1             recurrent matrix           (n, n), unitary
    D_k = diag(exp(i theta_k))                      phases                     theta_k (n)
    R_k = I - 2 v_k v_k^H / |v_k|^2                 reflections                v_k (n), complex
    modReLU(z, b) = z ReLU(|z| + b) / (|z| + epsilon)                          b (n), real
    ```

    F is the unitary Fourier transform, Pi a fixed permutation, h_0 is learned. The output is
    `[Re h_t, Im h_t]`, which a `Dense` layer reads out.

    Weights: `kernel` (features, 2 units), [Re V', Im V']; `bias` (units); `initial_state`
    (2 units), [Re h_0, Im h_0]; `theta` (3, units); `reflection` (2, 2 units), [Re v_k, Im v_k];
    `permutation` (units), integers, not trainable but saved.

    States: `[Re h, Im h]`, shape (batch, 2 units), and whether h is one, 1, or still to be h_0, 0,
    shape (batch, 1): all-zero states, as Keras initializes and resets them, mean the learned h_0.
    They are float32 (float64 in a float64 layer) under a mixed precision policy, too.

    W is computed once per sequence, as a matrix, where `keras.layers.RNN` runs the cell. (The
    released code applies the reflections of the conjugate of v_k: the same family.)

    Args:
        units: Positive integer n, the number of complex units.
        epsilon: Non-negative float, of modReLU.
        kernel_initializer: Initializer of `kernel`.
        bias_initializer: Initializer of `bias`. By default uniform in [-0.01, 0.01].
        initial_state_initializer: Initializer of `initial_state`. By default uniform in [-a, a],
            a = sqrt(3 / (2 units)): the squared norm of h_0 is 1 on average.
        theta_initializer: Initializer of `theta`. By default uniform in [-pi, pi].
        reflection_initializer: Initializer of `reflection`.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, features)`.
        states: List of `[Re h, Im h]`, shape `(batch, 2 * units)`, and 0 or 1, shape `(batch, 1)`.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = keras.layers.RNN(rum_keras.URNNCell(6), return_sequences=True)
    >>> layer(np.ones((2, 3, 4), "float32")).shape
    TensorShape([2, 3, 12])

    Reference:
        [Arjovsky et al., 2016](https://arxiv.org/abs/1511.06464), Sections 3 and 4.
    """

    def __init__(
        self,
        units: int,
        epsilon: float = 1e-5,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = None,
        initial_state_initializer: Any = "lecun_uniform",
        theta_initializer: Any = None,
        reflection_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            epsilon,
            kernel_initializer,
            bias_initializer or uniform(0.01),
            initial_state_initializer,
            **kwargs,
        )
        self.theta_initializer = keras.initializers.get(theta_initializer or uniform(math.pi))
        self.reflection_initializer = keras.initializers.get(reflection_initializer)

    def build(self, input_shape):
        super().build(input_shape)
        n = self.units
        self.theta = self.add_weight(shape=(3, n), name="theta", initializer=self.theta_initializer)
        self.reflection = self.add_weight(
            shape=(2, 2 * n), name="reflection", initializer=self.reflection_initializer
        )
        self.permutation = self.add_weight(
            shape=(n,),
            name="permutation",
            initializer=_random_permutation,
            dtype="int32",
            trainable=False,
        )

    def recurrent_matrix(self) -> Any:
        """Returns W as a real matrix, shape `(2 units, 2 units)`.

        `matmul([Re h, Im h], recurrent_matrix())` is `[Re W h, Im W h]`.
        """
        theta, reflection = self.precise(self.theta, self.reflection)
        re = ops.eye(self.units, dtype=self.compute_dtype)  # Row i becomes W e_i.
        re, im = turn(re, ops.zeros_like(re), theta[0])
        re, im = _fourier(re, im)
        re, im = _reflect(re, im, reflection[0])
        re, im = (ops.take(part, self.permutation, axis=1) for part in (re, im))
        re, im = turn(re, im, theta[1])
        re, im = _fourier(re, -im)  # F^-1 z = conj(F conj(z))
        re, im = _reflect(re, -im, reflection[1])
        return real_form(*turn(re, im, theta[2]))

    def get_config(self):
        return {**super().get_config(), **self.serialize("theta", "reflection")}


def _random_permutation(shape, dtype=None):
    return ops.cast(ops.argsort(keras.initializers.RandomUniform()(shape)), dtype)


def _fourier(re, im):
    """Returns the unitary Fourier transform of each row."""
    scale = 1 / math.sqrt(re.shape[-1])
    re, im = ops.fft((re, im))
    return scale * re, scale * im


def _reflect(re, im, vector):
    """Returns `z - 2 v (v^H z) / |v|^2` for each row z; z itself where v vanishes."""
    v_re, v_im = ops.split(direction(vector, DIRECTION_FLOOR)[0], 2)
    product_re = ops.matmul(re, v_re) + ops.matmul(im, v_im)
    product_im = ops.matmul(im, v_re) - ops.matmul(re, v_im)
    product_re, product_im = 2 * product_re[:, None], 2 * product_im[:, None]
    re = re - product_re * v_re + product_im * v_im
    return re, im - product_re * v_im - product_im * v_re
