"""Powers of rotations between 0 and 1: an associative memory that fades.

The principal power exp(lambda log R) multiplies the angle theta of every plane in which R rotates
by lambda. It cannot be trained through: it jumps where theta is pi, does not exist for reflections,
has unbounded derivatives near R with two such planes, and its eigenvectors have no derivative where
angles coincide, as all do in the memory's first value, I. No other construction is free of jumps:
a power exact at lambda = 0 and 1, and continuous in both R and lambda, would contract the rotations
to a point, which their topology forbids.

So the jump is put where it is harmless, at lambda = 0. Multiplying not theta but tan(theta / 2),

    tan(theta' / 2) = lambda tan(theta / 2),
    R^lambda = ((1 + lambda) R + (1 - lambda) I) ((1 - lambda) R + (1 + lambda) I)^{-1},

is the Cayley transform's power, and the [1/1] Padé approximant of the principal power at I. For
lambda > 0 it is smooth on all orthogonal matrices, reflections and half turns included.
"""

import numbers
from typing import Any

import keras
from keras import ops

# Below it, float32 cannot tell a power that leaves half turns alone from lambda = 0.
SMALLEST = 1e-3


def fractional_rotation(R: Any, lambda_: float) -> Any:
    """Returns `R^lambda` for an orthogonal matrix `R`: a part of its rotation.

    In each plane in which R rotates by an angle theta, the result rotates by
    `theta' = 2 arctan(lambda tan(theta / 2))`:

    - exactly I for lambda = 0 and R for lambda = 1, and orthogonal to rounding in between;
    - `lambda theta` for small angles, up to `lambda (1 - lambda^2) theta^3 / 12`. For larger angles
      it is more; theta = pi stays pi. So it is not the principal power (for which no such
      continuous function exists), and `R^(1/2) R^(1/2)` is not R, but
      `(R^kappa)^lambda = R^(kappa lambda)`;
    - differentiable for lambda > 0, with derivatives along the orthogonal matrices of norm at most
      `1 / lambda` (near half turns; for small angles, about `lambda`).

    A deviation of R from orthogonality by delta becomes at most about `(delta / lambda)^2`, so
    powers can be repeated without drift.

    Costs one linear solve and two products, O(N^3): a step of `RUMCell` and its gradient, measured
    on a CPU, take 4, 7 and 12 times as long as with `lambda_=1` for 50, 100 and 200 units.

    Args:
        R: Orthogonal float tensor, shape `(..., N, N)`.
        lambda_: Float, 0 or in [1e-3, 1].

    Returns:
        Orthogonal float tensor of the shape and dtype of `R`. Half precision is computed in
        float32.

    Raises:
        ValueError: if `R` is not square or `lambda_` outside of its range.

    Example:

    >>> import math
    >>> R = rum_keras.rotation_matrix([1.0, 0.0], [math.cos(0.2), math.sin(0.2)])
    >>> part = rum_keras.fractional_rotation(R, 0.5)
    >>> round(math.degrees(math.atan2(part[1, 0], part[0, 0])), 1), round(math.degrees(0.1), 1)
    (5.7, 5.7)

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Section 3, where lambda is 0
        or 1; other values are left to future work.
    """
    check_lambda(lambda_)
    R = ops.convert_to_tensor(R)
    if len(R.shape) < 2 or R.shape[-1] != R.shape[-2]:
        raise ValueError(f"`R` must be of shape (..., N, N), received shape {tuple(R.shape)}.")
    dtype = keras.backend.result_type(R.dtype, float)
    if lambda_ == 1:
        return ops.cast(R, dtype)
    precise = "float64" if dtype == "float64" else "float32"
    identity = ops.eye(R.shape[-1], dtype=precise)
    return ops.cast(identity + fade(ops.cast(R, precise) - identity, lambda_), dtype)


def fade(D: Any, lambda_: float) -> Any:
    """Returns `R^lambda - I`, shape `(..., N, N)`, of `D = R - I`: exact near the identity, too."""
    if lambda_ == 1:
        return D
    if lambda_ == 0:
        return ops.zeros_like(D)
    identity = ops.eye(D.shape[-1], dtype=D.dtype)
    D = ops.solve(identity + (1 - lambda_) / 2 * D, lambda_ * D)
    # Near half turns this magnifies deviations from orthogonality by up to 1 / lambda: a step of
    # Newton's iteration to the nearest orthogonal matrix, R (3I - R'R) / 2, squares them.
    transposed = ops.swapaxes(D, -1, -2)
    deviation = D + transposed + ops.matmul(transposed, D)  # R'R - I
    return D - (deviation + ops.matmul(D, deviation)) / 2


def check_lambda(lambda_: float) -> None:
    """Raises ValueError if `lambda_` is not 0 or in [1e-3, 1]."""
    real = isinstance(lambda_, numbers.Real) and not isinstance(lambda_, bool)
    if not real or not (lambda_ == 0 or SMALLEST <= lambda_ <= 1):
        raise ValueError(
            f"`lambda_` must be 0 (no memory) or 1 (associative memory), or in between, but not "
            f"below {SMALLEST} (a memory that fades); received {lambda_!r}."
        )
