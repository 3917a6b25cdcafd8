"""One hop of ConvS2S' attention."""

import math
from typing import Any

import keras
from keras import ops

from rum_keras.weight_norm import WeightNormDense


def normal(scale: float) -> keras.initializers.Initializer:
    """Returns the initializer of ConvS2S' projections: of variance scale / features."""
    return keras.initializers.VarianceScaling(scale, "fan_in", "untruncated_normal")


@keras.saving.register_keras_serializable(package="rum_keras")
class MultiHopAttention(keras.Layer):
    """One hop of the attention that each layer of ConvS2S' decoder has of its own.

    ```
    d_i  = (W h_i + b + g_i) s                                              (batch, target, size)
    a_ij = softmax_j(d_i . z_j)                                           (batch, target, source)
    c_i  = sum_j a_ij v_j sqrt(m)                                           (batch, target, size)
    y_i  = (W' c_i + b' + h_i) s                                        (batch, target, features)
    ```

    with s = sqrt(0.5), h what the layer's convolution gives, g the embedded target, z and v the
    keys and values of the encoder, m the length of the source, and W, W' weight-normalized.
    `scaled=False` leaves out s in d, and sqrt(m), as the Topic-ConvS2S paper writes them (s in
    y is kept); the released code has them.

    Weights: `query` (features, size) and `output` (size, features), each `v`, `g` and `bias`.

    Args:
        size: Size of the keys, the values and the embedded target.
        scaled: Whether d has the factor s and c the factor sqrt(m).
        **kwargs: `name`, `dtype` and `trainable` of `keras.Layer`.

    Call arguments:
        hidden: h. Float tensor, shape `(batch, target, features)`.
        target: g. Float tensor, shape `(batch, target, size)`.
        keys: z. Float tensor, shape `(batch, size, source)`: transposed, once for all hops.
        values: v. Float tensor, shape `(batch, source, size)`.
        mask: Bool tensor, shape `(batch, source)`, of what is source; the rest has no weight.
        kernels: None, or `effective_kernels()`, computed before.

    Returns:
        y, shape `(batch, target, features)`, and a, shape `(batch, target, source)`.

    Example:

    >>> import numpy as np
    >>> random = np.random.default_rng(0).normal
    >>> hidden, target = random(size=(2, 3, 4)), random(size=(2, 3, 6))
    >>> keys, values = random(size=(2, 6, 5)), random(size=(2, 5, 6))
    >>> layer = rum_keras.MultiHopAttention(6)
    >>> output, attention = layer(hidden, target, keys, values, np.ones((2, 5), bool))
    >>> tuple(output.shape), tuple(attention.shape)
    ((2, 3, 4), (2, 3, 5))

    Reference:
        [Gehring et al., 2017](https://arxiv.org/abs/1705.03122), Section 3.3, Equations 1 and 2;
        [Narayan et al., 2018](https://arxiv.org/abs/1808.08745), Section 4.2.
    """

    def __init__(self, size: int, scaled: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.size = size
        self.scaled = scaled
        self.query = WeightNormDense(
            size, kernel_initializer=normal(1), name="query", dtype=self.dtype_policy
        )

    def build(self, hidden_shape):
        self.query.build(hidden_shape)
        self.output_projection = WeightNormDense(
            hidden_shape[-1], kernel_initializer=normal(1), name="output", dtype=self.dtype_policy
        )
        self.output_projection.build((*hidden_shape[:-1], self.size))
        self.built = True

    def effective_kernels(self) -> tuple[Any, Any]:
        """Returns W and W', in the layer's compute dtype."""
        return self.query.effective_kernel(), self.output_projection.effective_kernel()

    def call(self, hidden, target, keys, values, mask, kernels=None):
        query_kernel, output_kernel = kernels or self.effective_kernels()
        query = self.query(hidden, kernel=query_kernel) + target
        if self.scaled:
            query = query * math.sqrt(0.5)
        # Never in half precision: scores of 1024 features differ by more than its steps.
        scores = ops.cast(ops.matmul(query, keys), "float32" if self.half else self.compute_dtype)
        scores = scores + ops.where(mask, 0.0, -1e9)[:, None, :]
        attention = ops.cast(ops.softmax(scores), self.compute_dtype)
        context = ops.matmul(attention, values)
        if self.scaled:
            length = ops.sum(ops.cast(mask, self.compute_dtype), axis=1)
            context = context * ops.sqrt(length)[:, None, None]
        output = self.output_projection(context, kernel=output_kernel)
        return (output + hidden) * math.sqrt(0.5), attention

    @property
    def half(self) -> bool:
        """Whether the compute dtype has 16 bits."""
        return self.compute_dtype in ("float16", "bfloat16")

    def get_config(self):
        return {**super().get_config(), "size": self.size, "scaled": self.scaled}
