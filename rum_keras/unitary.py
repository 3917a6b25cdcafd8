"""Complex matrices as real ones, and unitary matrices by the Cayley transform.

A row vector h of n complex numbers is [Re h, Im h], shape (2 n). Its product with a complex matrix
W is the real product with the real form of W,

    [[ Re W, Im W],
     [-Im W, Re W]],     shape (2 n, 2 n),

which turns products into products, conjugate transposes into transposes, and so unitary matrices
into orthogonal ones.
"""

from typing import Any

import keras
from keras import ops


def real_form(re: Any, im: Any) -> Any:
    """Returns the real form (2 n, 2 n) of the complex matrix `re + i im`, each (n, n)."""
    return ops.concatenate(
        [ops.concatenate([re, im], axis=1), ops.concatenate([-im, re], axis=1)], axis=0
    )


def turn(re: Any, im: Any, angle: Any) -> tuple[Any, Any]:
    """Returns `exp(i angle) (re + i im)` as a pair."""
    cosine, sine = ops.cos(angle), ops.sin(angle)
    return cosine * re - sine * im, sine * re + cosine * im


def cayley(A: Any) -> Any:
    """Returns `(I + A)^-1 (I - A)`, which is orthogonal for a skew-symmetric `A`."""
    identity = ops.eye(A.shape[-1], dtype=A.dtype)
    return ops.solve(identity + A, identity - A)


def orthogonalized(W: Any) -> Any:
    """Returns an almost orthogonal `W` after a Newton step to the nearest orthogonal matrix.

    It squares the error. In float32 a solved system of equations is off by some 1e-6, enough for
    the norm of a state to drift by 1e-3 in 1,000 steps.
    """
    identity = ops.eye(W.shape[-1], dtype=W.dtype)
    return W + ops.matmul(W, identity - ops.matmul(ops.transpose(W), W)) / 2


def cayley_step(W: Any, gradient: Any, learning_rate: Any) -> Any:
    """Returns the unitary matrix one multiplicative step of descent away from `W`.

    ```
    A  = G W^H - W G^H                              skew-Hermitian
    W' = (I + l/2 A)^-1 (I - l/2 A) W
    ```

    To first order the loss changes by `-l |A|^2 / 2`. Rounding errors do not add up over steps.

    Args:
        W: Float tensor [Re W, Im W], shape `(n, 2 * n)`, unitary.
        gradient: Float tensor [Re G, Im G], shape `(n, 2 * n)`, the derivatives of the loss.
        learning_rate: Float l.

    Returns:
        Float tensor [Re W', Im W'], shape `(n, 2 * n)`.

    Reference:
        [Wisdom et al., 2016](https://arxiv.org/abs/1611.00035), Section 4.
    """
    n = W.shape[0]
    W, G = (real_form(*ops.split(tensor, 2, axis=1)) for tensor in (W, gradient))
    product = ops.matmul(G, ops.transpose(W))
    A = product - ops.transpose(product)
    return orthogonalized(ops.matmul(cayley(learning_rate / 2 * A), W))[:n]


def random_unitary(shape: tuple[int, int], dtype: Any = None) -> Any:
    """Initializer of [Re W, Im W], shape `(n, 2 * n)`: a uniformly distributed unitary W.

    It is the unitary factor of a matrix of complex Gaussians, from its singular value
    decomposition, as in the code of Wisdom et al.
    """
    gaussian = keras.initializers.RandomNormal(stddev=1.0)(shape, dtype)
    left, _, right = ops.svd(real_form(*ops.split(gaussian, 2, axis=1)))
    return orthogonalized(ops.matmul(left, right))[: shape[0]]


def unitarity_error(W: Any) -> Any:
    """Returns how far a matrix is from being orthogonal, or a complex one from being unitary.

    Args:
        W: Float tensor, shape `(n, n)`; of a complex matrix its real form, such as
            `recurrent_matrix()` of a cell.

    Returns:
        Float scalar, the greatest absolute value of an element of `W' W - I`.

    Example:

    >>> cell = rum_keras.FullCapacityURNNCell(6)
    >>> cell.build((2, 4))
    >>> bool(rum_keras.unitarity_error(cell.recurrent_matrix()) < 1e-5)
    True
    """
    W = ops.convert_to_tensor(W)
    identity = ops.eye(W.shape[-1], dtype=W.dtype)
    return ops.max(ops.abs(ops.matmul(ops.transpose(W), W) - identity))
