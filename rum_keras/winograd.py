"""Convolution over time with a third fewer products, by minimal filtering."""

from collections.abc import Callable
from typing import Any

from keras import ops


def winograd_conv1d(inputs: Any, kernel: Any, activation: Callable | None = None) -> Any:
    """Returns the convolution of three steps with as much time as its input.

    Two neighbouring outputs of a filter of three taps take six products, and four by Winograd's
    minimal filtering F(2, 3): with inputs d_0 to d_3 and taps g_0 to g_2,

    ```
    m_1 = (d_0 - d_2) g_0                     m_2 = (d_1 + d_2) (g_0 + g_1 + g_2) / 2
    m_4 = (d_1 - d_3) g_2                     m_3 = (d_2 - d_1) (g_0 - g_1 + g_2) / 2
    y_0 = m_1 + m_2 + m_3                     y_1 = m_2 - m_3 - m_4
    ```

    with matrix products for products. The same holds for both gradients. Rounding errors are about
    twice those of `keras.ops.conv(padding="same")`, which gives the same. It takes less time where
    products do: on CPUs, with many steps and features. On GPUs it takes more.

    Args:
        inputs: Float tensor, shape `(batch, time, features)`.
        kernel: Float tensor, shape `(3, features, filters)`.
        activation: None, or function of outputs that treats each step alone, bias included. Even
            and odd steps go through it apart, before they are put in order: the less it leaves,
            the less there is to move.

    Returns:
        Tensor of shape `(batch, time, filters)`, or what `activation` makes of the last axis.

    Raises:
        ValueError: if the kernel does not have three taps.

    Example:

    >>> import numpy as np
    >>> inputs, kernel = np.ones((2, 5, 4), "float32"), np.ones((3, 4, 6), "float32")
    >>> np.asarray(rum_keras.winograd_conv1d(inputs, kernel))[0, :, 0].tolist()
    [8.0, 12.0, 12.0, 12.0, 8.0]

    Reference:
        Winograd, 1980, Arithmetic Complexity of Computations;
        [Lavin and Gray, 2016](https://arxiv.org/abs/1509.09308), Section 4.1.
    """
    if kernel.shape[0] != 3:
        raise ValueError(f"`kernel` must have three taps, received {kernel.shape[0]}.")
    inputs, kernel = ops.convert_to_tensor(inputs), ops.convert_to_tensor(kernel)
    halves = [half if activation is None else activation(half) for half in _halves(inputs, kernel)]
    outputs = ops.stack(halves, axis=2)
    count, filters = ops.shape(outputs)[1], outputs.shape[-1]
    return ops.reshape(outputs, (-1, 2 * count, filters))[:, : ops.shape(inputs)[1]]


@ops.custom_gradient
def _halves(inputs, kernel):
    """Returns the outputs of even and of odd steps, each (batch, (time + 1) // 2, filters)."""
    time, features = ops.shape(inputs)[1], inputs.shape[-1]
    filters, odd = kernel.shape[-1], time % 2
    count = (time + odd) // 2
    padded = ops.pad(inputs, ((0, 0), (1, 1 + odd), (0, 0)))
    pairs = ops.reshape(padded, (-1, count + 1, 2, features))
    (d0, d1), (d2, d3) = ((p[:, :, 0], p[:, :, 1]) for p in (pairs[:, :-1], pairs[:, 1:]))
    data = [ops.reshape(d, (-1, features)) for d in (d0 - d2, d1 + d2, d2 - d1, d1 - d3)]
    taps = _taps(kernel)
    m1, m2, m3, m4 = map(ops.matmul, data, taps)
    halves = tuple(ops.reshape(y, (-1, count, filters)) for y in (m1 + m2 + m3, m2 - m3 - m4))

    def gradients(*upstream):
        if len(upstream) == 1:  # JAX gives a tuple.
            (upstream,) = upstream
        y0, y1 = (ops.reshape(y, (-1, filters)) for y in upstream)
        products = (y0, y0 + y1, y0 - y1, -y1)  # The gradients of m.
        return _gradient_of_inputs(products, taps, time), _gradient_of_kernel(products, data)

    return halves, gradients


def _taps(kernel):
    half, middle = (kernel[0] + kernel[2]) * 0.5, kernel[1] * 0.5
    return kernel[0], half + middle, half - middle, kernel[2]


def _gradient_of_kernel(products, data):
    t1, t2, t3, t4 = (ops.matmul(ops.transpose(d), m) for d, m in zip(data, products, strict=True))
    half = (t2 + t3) * 0.5
    return ops.stack([t1 + half, (t2 - t3) * 0.5, half + t4])


def _gradient_of_inputs(products, taps, time):
    features, count = taps[0].shape[0], (time + 1) // 2
    d1, d2, d3, d4 = (
        ops.reshape(ops.matmul(m, ops.transpose(t)), (-1, count, features))
        for m, t in zip(products, taps, strict=True)
    )

    def of_this_pair(gradient):
        return ops.pad(gradient, ((0, 0), (0, 1), (0, 0)))

    def of_the_next(gradient):
        return ops.pad(gradient, ((0, 0), (1, 0), (0, 0)))

    even = of_this_pair(d1) + of_the_next(d2 + d3 - d1)
    odd = of_this_pair(d2 - d3 + d4) - of_the_next(d4)
    padded = ops.reshape(ops.stack([even, odd], axis=2), (-1, 2 * count + 2, features))
    return padded[:, 1 : time + 1]
