"""The recurrence of RUM over a whole sequence, forward and backward by hand, in TensorFlow.

The letters are those of `RUMCell`. With the directions

    a = epsilon / |epsilon|,  t = tau / |tau|,  s = a + t,  m = s / |s|

the step's rotation is two reflections, and updates the memory by a matrix of rank two:

    R_t = R_{t-1} (I - 2 m m') (I - 2 a a')
        = R_{t-1} + left_a a' + left_m m',
    left_a = -2 R_{t-1} (a - 2 (m.a) m),  left_m = -2 R_{t-1} m

Backward, `delta_t` is the gradient at `epsilon_t + r_t`, `r_t = R_t h_{t-1}`. A small change of
the rotation `R_t` turns `r_t` a little: the loss changes by the torque on it. Torques of different
steps add up, and nothing multiplies them:

    M_t = sum over i >= t of (delta_i r_i' - r_i delta_i') / 2       (lambda = 0: of i = t alone)
    p = R_{t-1}' M_t R_{t-1} a,  q = R_{t-1}' M_t R_{t-1} m          (lambda = 0: R_{t-1} = I)
    d tau     = 4 / (|s| |tau|) (q + (a.q) t)
    d epsilon = delta + 4 / |epsilon| (p + ((a.q) (2 t + a) - (|s|^2 - 1) q) / |s|)
    d h_{t-1} = (I - 2 a a') (I - 2 m m') R_{t-1}' delta + (gate, product with U)

and `R_{t-1}` is `R_t` less its update: no step's R is kept.

All tensors are time-major, float32 or float64. A direction that does not exist is 0, and so is
the inverse of its norm; `twice` is then 0 in place of the 2 of the reflections.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rum_keras.rotation import BISECTOR_FLOOR, DIRECTION_FLOOR

# f'(z) as a function of f(z), for the activations f whose value determines their slope.
SLOPES = {
    keras.activations.relu: lambda c: tf.cast(c > 0, c.dtype),
    keras.activations.tanh: lambda c: 1 - c * c,
    keras.activations.sigmoid: lambda c: c * (1 - c),
    keras.activations.softsign: lambda c: (1 - tf.abs(c)) ** 2,
    keras.activations.linear: tf.ones_like,
}


class Options(NamedTuple):
    """What the recurrence takes of a RUMCell. `product_dtype` is that of `h_{t-1} U`."""

    units: int
    lambda_: int
    eta: float | None
    activation: Callable
    product_dtype: str


class Saved(NamedTuple):
    """What the backward pass takes of each step: (time, batch, units), norms (time, batch, 1)."""

    t: tf.Tensor
    u: tf.Tensor
    r: tf.Tensor
    inverse_tau: tf.Tensor  # 1 / |tau|
    inverse_h: tf.Tensor | None  # 1 / |h'|, with eta only.
    Ra: tf.Tensor | None  # R_{t-1} a and R_{t-1} m, for lambda = 1 only.
    Rm: tf.Tensor | None


def forward(
    options: Options,
    save: bool,
    x: tf.Tensor,
    epsilon: tf.Tensor,
    mask: tf.Tensor | None,
    U: tf.Tensor,
    h: tf.Tensor,
    D: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor | None, Saved | None]:
    """Returns the states of all steps, the last `R - I`, and what `backward` takes.

    Args:
        options: of the cell.
        save: whether `backward` follows.
        x: the inputs' part of target and gate, `x_t W + b`, shape (time, batch, 2 units).
        epsilon: embedded inputs, shape (time, batch, units); zero in masked steps.
        mask: boolean, shape (time, batch, 1); `None` if no step is masked.
        U: recurrent kernel, shape (units, 2 units).
        h: initial state, shape (batch, units).
        D: initial `R - I`, shape (batch, units, units); `None` for lambda = 0.
    """
    U = tf.cast(U, options.product_dtype)
    inverse_epsilon = _inverse_norm(epsilon, DIRECTION_FLOOR)

    def step(carry, inputs):
        h, R_transposed = carry
        x, epsilon, a, inverse_epsilon, mask = inputs
        tau, u = tf.split(x + _product(h, U), 2, axis=-1)
        u = tf.sigmoid(u) if mask is None else tf.where(mask, tf.sigmoid(u), 1)  # 1 keeps h.
        inverse_tau = _inverse_norm(tau, DIRECTION_FLOOR)
        t = tau * inverse_tau
        _, m = _bisector(a, t)
        r, R_transposed, images = _rotate(
            h, R_transposed, a, m, _twice(inverse_epsilon, inverse_tau)
        )
        h = u * h + (1 - u) * options.activation(epsilon + r)
        h, inverse_h = _normalize(h, mask, options.eta)
        saved = Saved(t, u, r, inverse_tau, inverse_h, *images) if save else None
        return (h, R_transposed), (h, saved)

    R_transposed = None if D is None else _plus_identity(tf.transpose(D, (0, 2, 1)))
    inputs = (x, epsilon, epsilon * inverse_epsilon, inverse_epsilon, mask)
    (_, R_transposed), (H, saved) = _scan(step, (h, R_transposed), inputs)
    if D is not None:
        D = _plus_identity(tf.transpose(R_transposed, (0, 2, 1)), -1)
    return H, D, saved


def backward(
    options: Options,
    epsilon: tf.Tensor,
    U: tf.Tensor,
    h: tf.Tensor,
    H: tf.Tensor,
    D: tf.Tensor | None,
    saved: Saved,
    dH: tf.Tensor,
    dD: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the gradients of x, epsilon, U and the initial h, and delta.

    Args:
        options: of the cell.
        epsilon: argument of `forward`, as are U and h.
        U: see there.
        h: see there.
        H: result of `forward`, as are D and saved.
        D: see there.
        saved: see there.
        dH: gradient of H, shape (time, batch, units).
        dD: gradient of D, shape (batch, units, units); `None` for lambda = 0.
    """
    inverse_epsilon = _inverse_norm(epsilon, DIRECTION_FLOOR)
    products_U = tf.cast(U, options.product_dtype)

    def step(carry, inputs):
        dh, R, M = carry
        dH, H, h, epsilon, a, inverse_epsilon, saved = inputs
        t, u, r, inverse_tau, inverse_h, Ra, Rm = saved
        dh = _normalize_gradient(dh + dH, H, inverse_h, options.eta)
        c = options.activation(epsilon + r)
        delta = (1 - u) * dh * SLOPES[options.activation](c)
        dgate = u * (1 - u) * dh * (h - c)
        inverse_s, m = _bisector(a, t)
        twice = _twice(inverse_epsilon, inverse_tau)
        if options.lambda_:
            M = M + _outer(delta / 2, r) - _outer(r / 2, delta)
            left_a, left_m = _left(Ra, Rm, a, m, twice)
            R = R - _outer(left_a, a) - _outer(left_m, m)
            p, q, delta_h = _turn_back(R, M, Ra, Rm, delta)
        else:
            p, q, delta_h = _torque(delta, r, a), _torque(delta, r, m), delta
        aq = _dot(a, q)
        dtau = 2 * twice * inverse_s * inverse_tau * (q + aq * t)
        turned = p + inverse_s * (aq * (2 * t + a) - (_dot(a + t, a + t) - 1) * q)
        depsilon = delta + 2 * twice * inverse_epsilon * turned
        dz = tf.concat([dtau, dgate], axis=-1)
        dh = u * dh + _reflect(_reflect(delta_h, m, twice), a, twice)
        dh = dh + _product(dz, products_U, transpose=True)
        return (dh, R, M), (dz, depsilon, delta)

    previous_H = tf.concat([h[None], H[:-1]], axis=0)
    inputs = (dH, H, previous_H, epsilon, epsilon * inverse_epsilon, inverse_epsilon, saved)
    carry = (tf.zeros_like(h), *_last_memory(D, dD))
    (dh, *_), (dz, depsilon, delta) = _scan(step, carry, inputs, reverse=True)
    rounded_H = tf.cast(tf.cast(previous_H, options.product_dtype), h.dtype)
    dU = tf.matmul(_flat(rounded_H), _flat(dz), transpose_a=True)
    return dz, depsilon, dU, dh, delta


def memory_gradient(
    D0: tf.Tensor, D: tf.Tensor, dD: tf.Tensor, delta: tf.Tensor, r: tf.Tensor
) -> tf.Tensor:
    """Returns the gradient of the initial R, `(dR_T R_T' + sum of delta_t r_t') R_0`."""
    torques = tf.einsum("tbi,tbj->bij", delta, r)
    moment = tf.matmul(dD, _plus_identity(D), transpose_b=True) + torques
    return tf.matmul(moment, _plus_identity(D0))


def _rotate(h, R_transposed, a, m, twice):
    """Returns `r = R_t h`, `R_t` transposed, and `R_{t-1} a` and `R_{t-1} m` if there is an R.

    Rows times the transposed R is the product that needs no transposition of it.
    """
    if R_transposed is None:
        left_a, left_m = _left(a, m, a, m, twice)
        return h + (left_a * _dot(a, h) + left_m * _dot(m, h)), None, (None, None)
    vectors = tf.matmul(tf.stack([a, m, h], axis=1), R_transposed)
    Ra, Rm, Rh = tf.unstack(vectors, axis=1)
    left_a, left_m = _left(Ra, Rm, a, m, twice)
    r = Rh + (left_a * _dot(a, h) + left_m * _dot(m, h))
    return r, R_transposed + _outer(a, left_a) + _outer(m, left_m), (Ra, Rm)


def _left(Ra, Rm, a, m, twice):
    """Returns `left_a`, `left_m` of `R_t = R_{t-1} + left_a a' + left_m m'`."""
    return -twice * (Ra - 2 * _dot(m, a) * Rm), -twice * Rm


def _turn_back(R, M, Ra, Rm, delta):
    """Returns `R' M R a`, `R' M R m` and `R' delta` for `R = R_{t-1}`."""
    MRa, MRm = tf.unstack(-tf.matmul(tf.stack([Ra, Rm], axis=1), M), axis=1)  # M' = -M
    return tf.unstack(tf.matmul(tf.stack([MRa, MRm, delta], axis=1), R), axis=1)


def _torque(delta, r, v):
    """Returns `(delta r' - r delta') v / 2`."""
    return (delta * _dot(r, v) - r * _dot(delta, v)) / 2


def _last_memory(D, dD):
    """Returns `R_T`, and the antisymmetric part of `dR_T R_T'`, with which M starts."""
    if D is None:
        return None, None
    R = _plus_identity(D)
    moment = tf.matmul(dD, R, transpose_b=True)
    return R, (moment - tf.transpose(moment, (0, 2, 1))) / 2


def _bisector(a, t):
    """Returns `1 / |s|` and `m = s / |s|` of `s = a + t`."""
    inverse_s = _inverse_norm(a + t, BISECTOR_FLOOR)
    return inverse_s, (a + t) * inverse_s


def _twice(inverse_epsilon, inverse_tau):
    return 2 * tf.cast((inverse_epsilon > 0) & (inverse_tau > 0), inverse_tau.dtype)


def _reflect(v, m, twice):
    return v - twice * _dot(m, v) * m


def _normalize(h, mask, eta):
    """Returns `eta h / |h|` and `1 / |h|`; h is left alone where masked or without direction."""
    if eta is None:
        return h, None
    inverse_h = _inverse_norm(h, DIRECTION_FLOOR)
    if mask is not None:
        inverse_h = tf.where(mask, inverse_h, 0)
    return h * tf.where(inverse_h > 0, eta * inverse_h, 1), inverse_h


def _normalize_gradient(dh, h, inverse_h, eta):
    """Returns the gradient of h' from that of `h = eta h' / |h'|`."""
    if eta is None:
        return dh
    along = h * _dot(h, dh) / eta**2
    return tf.where(inverse_h > 0, eta * inverse_h * (dh - along), dh)


def _inverse_norm(v, floor):
    """Returns `1 / |v|`, 0 where `|v|^2 <= floor`."""
    square = _dot(v, v)
    exists = square > floor
    return tf.where(exists, tf.math.rsqrt(tf.where(exists, square, 1)), 0)


def _product(h, U, transpose=False):
    """Returns `h U` or `h U'`, computed in the dtype of U."""
    return tf.cast(tf.matmul(tf.cast(h, U.dtype), U, transpose_b=transpose), h.dtype)


def _dot(v, w):
    return tf.reduce_sum(v * w, axis=-1, keepdims=True)


def _outer(v, w):
    return v[:, :, None] * w[:, None, :]


def _plus_identity(D, times=1):
    return D + times * tf.eye(D.shape[-1], dtype=D.dtype)


def _flat(v):
    return tf.reshape(v, (-1, v.shape[-1]))


def _scan(step, carry, inputs, reverse=False):
    """Runs `carry, outputs = step(carry, inputs of a time)`; returns carry and stacked outputs.

    Structures may hold `None`. (`tf.scan` wants outputs like the carry, and stacks all of it.)
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
    structure = carry, outputs
    outputs = _map(lambda v: tf.TensorArray(v.dtype, time, element_shape=v.shape), outputs)

    def body(i, *variables):
        carry, outputs = _pack(structure, variables)
        index = time - 1 - i if reverse else i
        carry, values = step(carry, _map(lambda array: array.read(index), inputs))
        outputs = _map(lambda array, value: array.write(index, value), outputs, values)
        return i + 1, *_flatten((carry, outputs))

    variables = (0, *_flatten((carry, outputs)))
    _, *variables = tf.while_loop(lambda i, *_: i < time, body, variables)
    carry, outputs = _pack(structure, variables)
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
