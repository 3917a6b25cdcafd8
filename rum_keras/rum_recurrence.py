"""The recurrence of RUM over a whole sequence, in TensorFlow. Its gradient: `rum_gradient.py`.

The letters are those of `RUMCell`. With the directions

    a = epsilon / |epsilon|,  t = tau / |tau|,  s = a + t,  m = s / |s|

a step's rotation is two reflections, and updates the memory by a matrix of rank two:

    R_t = R_{t-1} (I - 2 m m') (I - 2 a a') = R_{t-1} + left_a a' + left_m m',
    left_a = -2 R_{t-1} (a - 2 (m.a) m),  left_m = -2 R_{t-1} m
    r_t = R_t h_{t-1}

(`R_{t-1} = I` for lambda = 0). A direction that does not exist is 0, and so is the inverse of its
norm; `twice` is then 0 in place of the 2 of the reflections. All tensors are time-major, float32
or float64.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from rum_keras.rotation import BISECTOR_FLOOR, DIRECTION_FLOOR


class Options(NamedTuple):
    """What the recurrence takes of a RUMCell, and whether XLA compiles it."""

    units: int
    lambda_: int
    eta: float | None
    activation: Callable
    product_dtype: str  # Of h_{t-1} U.
    compiled: bool


class Arguments(NamedTuple):
    """Of the recurrence: the products of the inputs, the recurrent kernel, the initial states."""

    x: tf.Tensor  # x_t W + b of target and gate, (time, batch, 2 units).
    epsilon: tf.Tensor  # (time, batch, units), 0 in masked steps.
    mask: tf.Tensor | None  # Boolean, (time, batch, 1); None if no step is masked.
    U: tf.Tensor  # (units, 2 units)
    h: tf.Tensor  # (batch, units)
    D: tf.Tensor | None  # R - I, (batch, units, units); None for lambda = 0.


class Saved(NamedTuple):
    """Of each step, for the gradient: (time, batch, units); norms (time, batch, 1)."""

    t: tf.Tensor
    u: tf.Tensor
    r: tf.Tensor
    inverse_tau: tf.Tensor  # 1 / |tau|
    inverse_h: tf.Tensor | None  # 1 / |h'|, with eta only.
    Ra: tf.Tensor | None  # R_{t-1} a and R_{t-1} m, for lambda = 1 only.
    Rm: tf.Tensor | None


def forward(
    options: Options, save: bool, arguments: Arguments
) -> tuple[tf.Tensor, tf.Tensor | None, Saved | None]:
    """Returns `h_t` of all steps, the last `R - I`, and with `save` what the gradient takes."""
    x, epsilon, mask, U, h, D = arguments
    U = tf.cast(U, options.product_dtype)
    inverse_epsilon = inverse_norm(epsilon, DIRECTION_FLOOR)
    R_transposed = None if D is None else plus_identity(tf.transpose(D, (0, 2, 1)))

    def step(carry, inputs):
        h, R_transposed = carry
        x, epsilon, inverse_epsilon, mask = inputs
        tau, u = tf.split(x + product(h, U), 2, axis=-1)
        u = tf.sigmoid(u) if mask is None else tf.where(mask, tf.sigmoid(u), 1)  # 1 keeps h.
        inverse_tau = inverse_norm(tau, DIRECTION_FLOOR)
        a, t = direction(epsilon, inverse_epsilon), direction(tau, inverse_tau)
        _, m = bisector(a, t)
        r, R_transposed, images = _rotate(
            h, R_transposed, a, m, twice(inverse_epsilon, inverse_tau), options.compiled
        )
        h = u * h + (1 - u) * options.activation(epsilon + r)
        h, inverse_h = _normalize(h, mask, options.eta)
        saved = Saved(t, u, r, inverse_tau, inverse_h, *images) if save else None
        return (h, R_transposed), (h, saved)

    inputs = (x, epsilon, inverse_epsilon, mask)
    (_, R_transposed), (H, saved) = scan(step, (h, R_transposed), inputs)
    if D is not None:
        D = plus_identity(tf.transpose(R_transposed, (0, 2, 1)), -1)
    return H, D, saved


def _rotate(h, R_transposed, a, m, twice, compiled):
    """Returns `r_t`, `R_t` transposed, and `R_{t-1} a` and `R_{t-1} m` if there is an R.

    Rows times the transposed R is the product that needs no transposition of it.
    """
    if R_transposed is None:
        return reflect(reflect(h, a, twice), m, twice), None, (None, None)
    vectors = tf.matmul(tf.stack([a, m, h], axis=1), R_transposed)
    Ra, Rm, Rh = tf.unstack(vectors, axis=1)
    left_a, left_m = left(Ra, Rm, a, m, twice)
    r = Rh + (left_a * dot(a, h) + left_m * dot(m, h))
    update = outer_products((a, left_a), (m, left_m), compiled=compiled)
    return r, R_transposed + update, (Ra, Rm)


def _normalize(h, mask, eta):
    """Returns `eta h / |h|` and `1 / |h|`; h is left alone where masked or without direction."""
    if eta is None:
        return h, None
    inverse_h = inverse_norm(h, DIRECTION_FLOOR)
    if mask is not None:
        inverse_h = tf.where(mask, inverse_h, 0)
    return h * tf.where(inverse_h > 0, eta * inverse_h, 1), inverse_h


def left(Ra: tf.Tensor, Rm: tf.Tensor, a: tf.Tensor, m: tf.Tensor, twice: tf.Tensor) -> tuple:
    """Returns `left_a` and `left_m`."""
    return -twice * (Ra - 2 * dot(m, a) * Rm), -twice * Rm


def bisector(a: tf.Tensor, t: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `1 / |s|` and `m`."""
    s = a + t
    inverse_s = inverse_norm(s, BISECTOR_FLOOR)
    return inverse_s, s * inverse_s


def direction(v: tf.Tensor, inverse: tf.Tensor) -> tf.Tensor:
    """Returns `v / |v|`. The clipping is for XLA: see `rum_keras.rotation.direction`."""
    return tf.clip_by_value(v * inverse, -2.0, 2.0)


def reflect(v: tf.Tensor, unit: tf.Tensor, twice: tf.Tensor) -> tf.Tensor:
    """Returns `(I - twice unit unit') v`."""
    return v - twice * dot(unit, v) * unit


def twice(inverse_epsilon: tf.Tensor, inverse_tau: tf.Tensor) -> tf.Tensor:
    """Returns 2, or 0 where epsilon or tau has no direction."""
    return 2 * tf.cast(tf.minimum(inverse_epsilon, inverse_tau) > 0, inverse_tau.dtype)


def inverse_norm(v: tf.Tensor, floor: float) -> tf.Tensor:
    """Returns `1 / |v|`, 0 where `|v|^2 <= floor`."""
    square = dot(v, v)
    return tf.where(square > floor, tf.math.rsqrt(square), 0)


def product(h: tf.Tensor, U: tf.Tensor, transpose: bool = False) -> tf.Tensor:
    """Returns `h U` or `h U'`, computed in the dtype of U, in that of h."""
    return tf.cast(tf.matmul(tf.cast(h, U.dtype), U, transpose_b=transpose), h.dtype)


def dot(v: tf.Tensor, w: tf.Tensor) -> tf.Tensor:
    """Returns the dot products over the last axis, which is kept with size 1."""
    return tf.reduce_sum(v * w, axis=-1, keepdims=True)


def outer_products(*pairs: tuple[tf.Tensor, tf.Tensor], compiled: bool) -> tf.Tensor:
    """Returns the sum of `v w'` over the pairs."""
    if compiled:  # XLA fuses them with what they are added to: no matrix is written.
        return sum(v[:, :, None] * w[:, None, :] for v, w in pairs)
    left, right = (tf.stack(vectors, axis=1) for vectors in zip(*pairs, strict=True))
    return tf.matmul(left, right, transpose_a=True)


def plus_identity(D: tf.Tensor, times: int = 1) -> tf.Tensor:
    """Returns `D + times I`."""
    return D + times * tf.eye(D.shape[-1], dtype=D.dtype)


def scan(step: Callable, carry: Any, inputs: Any, reverse: bool = False) -> tuple[Any, Any]:
    """Runs `carry, outputs = step(carry, inputs of a time)` over all times, forward or in reverse.

    Structures may hold `None`. (`tf.scan` wants outputs like the carry, and stacks all of it.)

    Returns:
        The last carry, and the outputs stacked over time.
    """
    time = tf.shape(inputs[0])[0]
    inputs = _map(
        lambda v: tf.TensorArray(
            v.dtype, time, element_shape=v.shape[1:], clear_after_read=False
        ).unstack(v),
        inputs,
    )
    # A step for the shapes of its outputs alone, which nothing computes.
    _, outputs = step(carry, _map(lambda array: array.read(0), inputs))
    pack = functools.partial(_pack, (carry, outputs))
    outputs = _map(lambda v: tf.TensorArray(v.dtype, time, element_shape=v.shape), outputs)

    def body(i, *variables):
        carry, outputs = pack(variables)
        index = time - 1 - i if reverse else i
        carry, values = step(carry, _map(lambda array: array.read(index), inputs))
        outputs = _map(lambda array, value: array.write(index, value), outputs, values)
        return i + 1, *_flatten((carry, outputs))

    variables = (0, *_flatten((carry, outputs)))
    _, *variables = tf.while_loop(lambda i, *_: i < time, body, variables)
    carry, outputs = pack(variables)
    return carry, _map(lambda array: array.stack(), outputs)


def _flatten(structure: Any) -> list:
    return [value for value in tf.nest.flatten(structure) if value is not None]


def _pack(structure: Any, values: Iterable) -> Any:
    """Returns the values in the places of what is not `None` in the structure."""
    values = iter(values)
    return _map(lambda _: next(values), structure)


def _map(function: Callable, *structures: Any) -> Any:
    """`tf.nest.map_structure` that leaves `None` alone."""
    return tf.nest.map_structure(lambda *v: None if v[0] is None else function(*v), *structures)
