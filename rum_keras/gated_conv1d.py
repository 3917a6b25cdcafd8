"""Convolution with gated linear units."""

from typing import Any

import keras
from keras import ops

from rum_keras.weight_norm import WeightNormConv1D
from rum_keras.winograd import winograd_conv1d


@keras.saving.register_keras_serializable(package="rum_keras")
class GatedConv1D(keras.Layer):
    """Convolution over time whose second half gates the first: a gated linear unit.

    ```
    [a_t; b_t] = sum_i D(x)_{t+i-l} w_i + b                                (batch, time, 2 filters)
    y_t        = a_t * sigmoid(b_t)                                          (batch, time, filters)
    ```

    with D dropout, w weight-normalized (`WeightNormConv1D`, where l depends on the padding) and w
    at first of variance 4 (1 - dropout) / (kernel_size features), which keeps the variance of y
    that of x.

    Weights: `convolution/v` (kernel_size, features, 2 filters), `convolution/g` and
    `convolution/bias` (2 filters).

    Args:
        filters: Positive integer, the size of the output.
        kernel_size: Positive integer, the number of steps that one output sees.
        padding: `"same"` or `"causal"`.
        dropout: Part of the input that is dropped in training.
        winograd: Whether `"same"` convolutions of three steps are computed by
            `rum_keras.winograd_conv1d`, which takes less time on CPUs, to the same result; in half
            precision they never are.
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        inputs: Float tensor, shape `(batch, time, features)`.
        mask: None, or bool tensor, shape `(batch, time)`: steps where it is False are read as
            zeros.
        kernel: None, or `convolution.effective_kernel()`, computed before.
        training: Whether dropout is random.

    Returns:
        Float tensor, shape `(batch, time, filters)`.

    Example:

    >>> import numpy as np
    >>> layer = rum_keras.GatedConv1D(6, 3)
    >>> tuple(layer(np.ones((2, 5, 4), "float32")).shape)
    (2, 5, 6)

    Reference:
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), Sections 3.2 and 3.5;
        [Dauphin et al., 2017](https://arxiv.org/abs/1612.08083).
    """

    def __init__(
        self,
        filters: int,
        kernel_size: int,
        padding: str = "same",
        dropout: float = 0.0,
        winograd: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.supports_masking = True
        self.padding = padding
        self.dropout = dropout
        self.winograd = winograd
        self.convolution = WeightNormConv1D(
            2 * filters,
            kernel_size,
            padding=padding,
            kernel_initializer=keras.initializers.VarianceScaling(
                4 * (1 - dropout), "fan_in", "untruncated_normal"
            ),
            name="convolution",
            dtype=self.dtype_policy,
        )
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape):
        self.convolution.build(input_shape)
        self.built = True

    def call(self, inputs, mask=None, kernel=None, training=False):
        hidden = inputs
        if training and self.dropout:
            hidden = inputs * self._noise(inputs, mask)
        elif mask is not None:
            hidden = inputs * ops.cast(mask, inputs.dtype)[:, :, None]
        if self.winograd and self.kernel_size == 3 and self.padding == "same" and not self.half:
            kernel = self.convolution.effective_kernel() if kernel is None else kernel
            bias = self.convolution.bias
            return winograd_conv1d(hidden, kernel, lambda outputs: ops.glu(outputs + bias))
        return ops.glu(self.convolution(hidden, kernel=kernel))

    def _noise(self, inputs, mask):
        """Returns the factors of dropout and mask in one: one product for both."""
        drawn = keras.random.uniform(ops.shape(inputs), seed=self.seed_generator)
        kept = drawn >= self.dropout
        if mask is not None:
            kept = ops.logical_and(kept, mask[:, :, None])
        scale = ops.cast(1 / (1 - self.dropout), inputs.dtype)
        return ops.where(kept, scale, ops.zeros_like(scale))

    @property
    def half(self) -> bool:
        """Whether the compute dtype has 16 bits."""
        return self.compute_dtype in ("float16", "bfloat16")

    def step(self, inputs: Any, past: Any, kernel: Any) -> tuple[Any, Any]:
        """Computes the newest step of a causal convolution from those that it sees.

        Args:
            inputs: Float tensor, shape `(batch, features)`: the newest step.
            past: Float tensor, shape `(batch, kernel_size - 1, features)`: the steps before, at
                the start zeros.
            kernel: `convolution.effective_kernel()`.

        Returns:
            The output, shape `(batch, filters)`, and the past of the next step.
        """
        seen = ops.concatenate([past, inputs[:, None]], axis=1)
        size = self.kernel_size * inputs.shape[-1]
        hidden = ops.matmul(ops.reshape(seen, (-1, size)), ops.reshape(kernel, (size, -1)))
        return ops.glu(hidden + self.convolution.bias), seen[:, 1:]

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "padding": self.padding,
            "dropout": self.dropout,
            "winograd": self.winograd,
        }
