"""Rotation in the plane of two vectors, without a matrix, an arccos or a square root of 1 - cos^2.

Equation 1 of the RUM paper builds R(a, b) from an orthonormal basis of the plane of `a` and `b` and
the angle between them. Its gradient is wrong or NaN near parallel vectors, where trained models
live. The product of two reflections used here is the same rotation,

    u = a / |a|,  w = b / |b|,  m = (u + w) / |u + w|,  R(a, b) = (I - 2 m m') (I - 2 u u'),

is rational in dot products, and orthogonal to rounding everywhere.
"""

from typing import Any

import keras
from keras import ops

# A squared norm below this has no direction: R(a, b) is then the identity (in float32, a norm of
# 1e-6 is the floor that the released code uses too).
DIRECTION_FLOOR = 1e-12
# The same for u + w. Below it the vectors are antiparallel, no limit exists, and R(a, b) is the
# reflection I - 2 u u', as in the released code.
BISECTOR_FLOOR = 1e-20


def rotate(a: Any, b: Any, v: Any) -> Any:
    """Applies to `v` the rotation that takes the direction of `a` to the direction of `b`.

    `R(a, b) v` costs O(N). It is the identity where `a` or `b` vanishes, and leaves everything
    orthogonal to both unchanged.

    Args:
        a: Float tensor, shape `(..., N)`.
        b: Float tensor, shape `(..., N)`.
        v: Float tensor, shape `(..., N)`.

    Returns:
        Float tensor with the broadcast shape `(..., N)` and the widest dtype of the arguments.
        Half precision is computed in float32.

    Raises:
        ValueError: if the last dimensions differ or a tensor is a scalar.

    Example:

    >>> import numpy as np
    >>> turned = rum_keras.rotate([3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 1.0, 5.0])
    >>> np.round(np.asarray(turned), 6).tolist()
    [-1.0, 1.0, 5.0]

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Equation 1.
    """
    a, b, v = _vectors(a=a, b=b, v=v)
    dtype = v.dtype
    a, b, v = (ops.cast(tensor, _precise(dtype)) for tensor in (a, b, v))
    u, m, _, twice = reflections(a, b)
    v = v - twice * dot(u, v) * u
    return ops.cast(v - twice * dot(m, v) * m, dtype)


def rotation_matrix(a: Any, b: Any) -> Any:
    """Returns the matrix R(a, b) that takes the direction of `a` to the direction of `b`.

    Args:
        a: Float tensor, shape `(..., N)`.
        b: Float tensor, shape `(..., N)`.

    Returns:
        Orthogonal float tensor, shape `(..., N, N)`: `R(a, b) v = matmul(R, v)`.

    Raises:
        ValueError: if the last dimensions differ or a tensor is a scalar.

    Example:

    >>> import numpy as np
    >>> R = rum_keras.rotation_matrix([1.0, 0.0], [0.0, 1.0])
    >>> np.round(np.asarray(R)).astype(int).tolist()
    [[0, -1], [1, 0]]

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Equation 1.
    """
    a, b = _vectors(a=a, b=b)
    dtype = a.dtype
    a, b = (ops.cast(tensor, _precise(dtype)) for tensor in (a, b))
    u, m, _, twice = reflections(a, b)
    u = u + 0 * m  # Broadcasts.
    left = ops.stack([-twice * (u - 2 * dot(m, u) * m), -twice * m], axis=-1)
    right = ops.stack([u, m], axis=-2)
    identity = ops.eye(a.shape[-1], dtype=a.dtype)
    return ops.cast(identity + ops.matmul(left, right), dtype)


def rotation_angle(a: Any, b: Any) -> Any:
    """Returns the angle between `a` and `b`, accurate near 0 and near pi too.

    Args:
        a: Float tensor, shape `(..., N)`.
        b: Float tensor, shape `(..., N)`.

    Returns:
        Float tensor, shape `(...)`, in radians, in [0, pi]; 0 where `a` or `b` vanishes, since
        R(a, b) is then the identity. Its gradient is 0 where the vectors are exactly parallel.

    Raises:
        ValueError: if the last dimensions differ or a tensor is a scalar.

    Example:

    >>> import math
    >>> math.isclose(rum_keras.rotation_angle([1.0, 0.0], [0.0, 7.0]), math.pi / 2, rel_tol=1e-6)
    True

    Reference:
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), theta of Equation 1.
    """
    a, b = _vectors(a=a, b=b)
    dtype = a.dtype
    a, b = (ops.cast(tensor, _precise(dtype)) for tensor in (a, b))
    u, _, w, twice = reflections(a, b)
    angle = 2 * ops.arctan2(_norm(u - w), _norm(u + w))
    return ops.cast(ops.squeeze(twice / 2 * angle, axis=-1), dtype)


def reflections(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """Returns `(u, m, w, twice)`, all that `R(a, b) = (I - twice m m') (I - twice u u')` needs.

    `u` and `w` are the directions of `a` and `b`, `m` that of `u + w`, each zero where it does not
    exist; `twice`, shape `(..., 1)`, is 2, or 0 where R(a, b) is the identity.
    """
    u, a_exists = direction(a, DIRECTION_FLOOR)
    w, b_exists = direction(b, DIRECTION_FLOOR)
    m, _ = direction(u + w, BISECTOR_FLOOR)
    return u, m, w, 2 * ops.cast(ops.logical_and(a_exists, b_exists), u.dtype)


def direction(v: Any, floor: float) -> tuple[Any, Any]:
    """Returns `v / |v|` and whether `|v|^2 > floor`; where not, zero, with zero gradient."""
    square = dot(v, v)
    exists = square > floor
    # The inner `where` keeps the gradient of the branch not taken finite.
    inverse = ops.rsqrt(ops.where(exists, square, ops.ones_like(square)))
    unit = v * ops.where(exists, inverse, ops.zeros_like(square))
    # Changes nothing but the rounding of sums of directions under XLA, which otherwise computes
    # u + w anew wherever it is used, here with a fused multiply-add and there without: m = (u + w)
    # / |u + w| would not be a unit vector where u + w is small, nor the rotation orthogonal.
    return ops.clip(unit, -2.0, 2.0), exists


def dot(v: Any, w: Any) -> Any:
    """Returns the dot products over the last axis, which is kept with size 1."""
    return ops.sum(v * w, axis=-1, keepdims=True)


def _norm(v: Any) -> Any:
    square = dot(v, v)
    positive = square > 0
    return ops.where(
        positive, ops.sqrt(ops.where(positive, square, ops.ones_like(square))), 0 * square
    )


def _precise(dtype: Any) -> str:
    return "float64" if keras.backend.standardize_dtype(dtype) == "float64" else "float32"


def _vectors(**tensors: Any) -> list[Any]:
    """Converts to tensors of the widest float dtype and checks that they can be combined."""
    converted = [ops.convert_to_tensor(tensor) for tensor in tensors.values()]
    shapes = {name: tuple(tensor.shape) for name, tensor in zip(tensors, converted, strict=True)}
    if any(not shape for shape in shapes.values()):
        raise ValueError(f"Arguments need a last dimension of size N, received shapes {shapes}.")
    if len({shape[-1] for shape in shapes.values()}) > 1:
        raise ValueError(f"Arguments must have equal last dimensions, received shapes {shapes}.")
    dtype = keras.backend.result_type(*(tensor.dtype for tensor in converted), float)
    return [ops.cast(tensor, dtype) for tensor in converted]
