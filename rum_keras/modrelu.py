"""The modReLU activation: a ReLU of the norm that keeps the direction."""

from typing import Any

from keras import ops


def modrelu(z: Any, bias: Any, epsilon: float = 1e-5, complex_: bool = False) -> Any:
    """Shrinks or grows the norm of every number by a bias, and keeps its sign or phase.

    ```
    r = |z| + epsilon
    modReLU(z) = sign(z) ReLU(r + b)      real z; sign(0) = 0
    modReLU(z) = z / r   ReLU(r + b)      complex z
    ```

    The released codes add an `epsilon` of 1e-5 (RUM), 1e-3 (GORU) or 1e-2 (EUNN) to the norm as
    above. That of Arjovsky et al. divides by r alone, `ReLU(|z| + b) z / r`: pass `bias - epsilon`.

    Args:
        z: Float tensor, shape `(..., units)`; with `complex_`, `[Re z, Im z]`,
            shape `(..., 2 * units)`.
        bias: Float tensor b, shape `(units,)`.
        epsilon: Non-negative float, added to the norm.
        complex_: Whether `z` holds complex numbers.

    Returns:
        Float tensor with the shape of `z`. It is 0, with a finite gradient, where `z` is.

    Example:

    >>> import numpy as np
    >>> np.asarray(rum_keras.modrelu([-3.0, 1.0, 0.5], [1.0, 1.0, -1.0], epsilon=0.0)).tolist()
    [-4.0, 2.0, 0.0]
    >>> z = [3.0, 4.0]  # 3 + 4i
    >>> np.asarray(rum_keras.modrelu(z, [5.0], epsilon=0.0, complex_=True)).tolist()
    [6.0, 8.0]

    Reference:
        [Arjovsky et al., 2016](https://arxiv.org/abs/1511.06464), Section 4.
    """
    z = ops.convert_to_tensor(z)
    bias = ops.convert_to_tensor(bias, dtype=z.dtype)
    if not complex_:
        return ops.sign(z) * ops.relu(ops.abs(z) + epsilon + bias)
    re, im = ops.split(z, 2, axis=-1)
    square = re * re + im * im
    exists = square > 0
    # The inner `where` keeps the gradient of the square root finite at 0.
    norm = ops.sqrt(ops.where(exists, square, ops.ones_like(square)))
    norm = ops.where(exists, norm, ops.zeros_like(norm)) + epsilon
    positive = norm > 0  # Everywhere, unless epsilon is 0.
    scale = ops.relu(norm + bias) / ops.where(positive, norm, ops.ones_like(norm))
    return z * ops.concatenate([scale, scale], axis=-1)
