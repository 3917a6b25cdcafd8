"""Layers with weight normalization: the length and the direction of weights, apart."""

from typing import Any

import keras
from keras import ops


def _norm(v: Any) -> Any:
    """Returns the norm of each output unit's weights, shape `(units,)`, and 1 where it is 0."""
    square = ops.sum(ops.square(v), axis=tuple(range(len(v.shape) - 1)))
    # Directions of zero weights do not exist: 1 keeps outputs at 0 and gradients finite.
    return ops.sqrt(ops.where(square > 0, square, ops.ones_like(square)))


class _WeightNorm(keras.Layer):
    """What the layers below share: weights v, g and b, and the kernel made of them."""

    def __init__(self, activation, use_bias, kernel_initializer, bias_initializer, **kwargs):
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def _add_weights(self, kernel_shape):
        units = kernel_shape[-1]
        # Not cast: squares overflow in half precision.
        self.v = self.add_weight(
            shape=kernel_shape, name="v", initializer=self.kernel_initializer, autocast=False
        )
        self.g = self.add_weight(
            shape=(units,), name="g", initializer=self._initial_g, autocast=False
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(units,), name="bias", initializer=self.bias_initializer
            )

    def _initial_g(self, shape, dtype=None):
        v = ops.convert_to_tensor(self.v)
        return ops.cast(
            ops.sqrt(ops.sum(ops.square(v), axis=tuple(range(len(v.shape) - 1)))), dtype
        )

    def effective_kernel(self) -> Any:
        """Returns w = g v / |v|, in the shape of v and in the layer's compute dtype.

        Loops that call the layer many times with the same weights compute it once, before:
        `layer(inputs, kernel=layer.effective_kernel())`.
        """
        v = ops.convert_to_tensor(self.v)
        return ops.cast(v * (self.g / _norm(v)), self.compute_dtype)

    def _finish(self, outputs):
        if self.bias is not None:
            outputs = outputs + self.bias
        return self.activation(outputs)

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


@keras.saving.register_keras_serializable(package="rum_keras")
class WeightNormDense(_WeightNorm):
    """Densely connected layer with weight normalization.

    ```
    w = g v / |v|                      for each column, an output unit           (features, units)
    y = activation(x w + b)                                                         (..., units)
    ```

    so that the length g of a unit's weights and their direction v / |v| are learned apart. At the
    start g = |v|, and w is v as the initializer drew it. Units with v = 0 give `activation(b)`.

    Weights: `v` (features, units), `g` (units) and `bias` (units). `effective_kernel()` is w.

    Args:
        units: Positive integer, the size of the output.
        activation: Activation function or its name; None is linear.
        use_bias: Whether b is added.
        kernel_initializer: Initializer of `v`. ConvS2S draws from a normal distribution of
            variance (1 - dropout) / features, which is
            `keras.initializers.VarianceScaling(1 - dropout, "fan_in", "untruncated_normal")`.
        bias_initializer: Initializer of `bias`.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(..., features)`.
        kernel: None, or `effective_kernel()`, computed before.

    Raises:
        ValueError: if `units` is not positive.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.WeightNormDense(6)
    >>> tuple(layer(np.ones((2, 3, 4), "float32")).shape)
    (2, 3, 6)

    Reference:
        [Salimans and Kingma, 2016](https://arxiv.org/abs/1602.07868), Equation 2.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(activation, use_bias, kernel_initializer, bias_initializer, **kwargs)
        if units < 1:
            raise ValueError(f"`units` must be positive, received {units}.")
        self.units = units
        self.supports_masking = True

    def build(self, input_shape):
        self._add_weights((input_shape[-1], self.units))
        self.built = True

    def call(self, inputs, kernel=None):
        kernel = self.effective_kernel() if kernel is None else kernel
        return self._finish(ops.matmul(inputs, kernel))

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="rum_keras")
class WeightNormConv1D(_WeightNorm):
    """Convolution over time with weight normalization.

    ```
    w   = g v / |v|                    for each filter           (kernel_size, features, filters)
    y_t = activation(sum_i x_{t+i-l} w_i + b)                              (batch, time, filters)
    ```

    with l zeros before the first step and r after the last. `"same"`: l = (kernel_size - 1) // 2
    and r = kernel_size // 2, as in Keras and ConvS2S' encoder; `"causal"`: l = kernel_size - 1 and
    r = 0, as in its decoder; `"valid"`: none. At the start g = |v|, and w is v as the initializer
    drew it. Filters with v = 0 give `activation(b)`.

    Weights: `v` (kernel_size, features, filters), `g` (filters) and `bias` (filters).
    `effective_kernel()` is w. Masks are not passed on: set padded steps to zero before.

    Args:
        filters: Positive integer, the size of the output.
        kernel_size: Positive integer, the number of steps that one output sees.
        padding: `"valid"`, `"same"` or `"causal"`.
        activation: Activation function or its name; None is linear.
        use_bias: Whether b is added.
        kernel_initializer: Initializer of `v`. ConvS2S draws from a normal distribution of
            variance 4 (1 - dropout) / (kernel_size features) before gated linear units, which is
            `keras.initializers.VarianceScaling(4 * (1 - dropout), "fan_in", "untruncated_normal")`.
        bias_initializer: Initializer of `bias`.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, time, features)`.
        kernel: None, or `effective_kernel()`, computed before.

    Raises:
        ValueError: for an argument outside of its range.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.WeightNormConv1D(6, 3, padding="causal")
    >>> tuple(layer(np.ones((2, 5, 4), "float32")).shape)
    (2, 5, 6)

    Reference:
        [Salimans and Kingma, 2016](https://arxiv.org/abs/1602.07868), Equation 2;
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), Section 3.5.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        padding: str = "valid",
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(activation, use_bias, kernel_initializer, bias_initializer, **kwargs)
        for name, value in (("filters", filters), ("kernel_size", kernel_size)):
            if value < 1:
                raise ValueError(f"`{name}` must be positive, received {value}.")
        if padding not in ("valid", "same", "causal"):
            raise ValueError(
                f'`padding` must be "valid", "same" or "causal", received {padding!r}.'
            )
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding

    def build(self, input_shape):
        self._add_weights((self.kernel_size, input_shape[-1], self.filters))
        self.built = True

    def call(self, inputs, kernel=None):
        kernel = self.effective_kernel() if kernel is None else kernel
        padding = self.padding
        if padding == "causal":
            inputs = ops.pad(inputs, ((0, 0), (self.kernel_size - 1, 0), (0, 0)))
            padding = "valid"
        outputs = ops.conv(inputs, kernel, padding=padding, data_format="channels_last")
        return self._finish(outputs)

    def compute_output_shape(self, input_shape):
        batch, time, _ = input_shape
        if self.padding == "valid" and time is not None:
            time = time - self.kernel_size + 1
        return (batch, time, self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
        }
