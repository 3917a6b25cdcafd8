"""The gradient of RUM's recurrence, derived by hand. The letters are those of `rum_recurrence.py`.

`delta_t` is the gradient at `epsilon_t + r_t`, the argument of the activation. A small change of
the rotation `R_t` turns `r_t` a little: the loss changes by the torque on it. Torques of different
steps add up, and nothing multiplies them:

    M_t = sum over i >= t of (delta_i r_i' - r_i delta_i') / 2       (lambda = 0: of i = t alone)
    p = R_{t-1}' M_t R_{t-1} a,  q = R_{t-1}' M_t R_{t-1} m          (lambda = 0: R_{t-1} = I)
    d tau     = 4 / (|s| |tau|) (q + (a.q) t)
    d epsilon = delta + 4 / |epsilon| (p + ((a.q) (2 t + a) - (|s|^2 - 1) q) / |s|)
    d h_{t-1} = (I - 2 a a') (I - 2 m m') R_{t-1}' delta + the parts of gate, target and u h

A rotation can be undone: `R_{t-1} = R_t - left_a a' - left_m m'`, so no step's R is kept.
"""

import functools

import keras
import tensorflow as tf

from rum_keras.rotation import DIRECTION_FLOOR
from rum_keras.rum_recurrence import (
    Arguments,
    Options,
    Saved,
    bisector,
    direction,
    dot,
    inverse_norm,
    left,
    outer_products,
    plus_identity,
    product,
    reflect,
    scan,
    twice,
)

# f'(z) as a function of f(z), for the activations f whose value determines their slope.
SLOPES = {
    keras.activations.relu: lambda c: tf.cast(c > 0, c.dtype),
    keras.activations.tanh: lambda c: 1 - c * c,
    keras.activations.sigmoid: lambda c: c * (1 - c),
    keras.activations.softsign: lambda c: (1 - tf.abs(c)) ** 2,
    keras.activations.linear: tf.ones_like,
}


def backward(
    options: Options,
    arguments: Arguments,
    H: tf.Tensor,
    D: tf.Tensor | None,
    saved: Saved,
    dH: tf.Tensor,
    dD: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor | None]:
    """Returns the gradients of x, epsilon, U and the initial h, and `delta`.

    Args:
        options: of the cell.
        arguments: of `forward`; x and mask may be `None`.
        H: result of `forward`, as are D and saved.
        D: result of `forward`.
        saved: result of `forward`.
        dH: gradient of H, shape (time, batch, units).
        dD: gradient of D, shape (batch, units, units); `None` for lambda = 0.
    """
    _, epsilon, _, U, h, _ = arguments
    inverse_epsilon = inverse_norm(epsilon, DIRECTION_FLOOR)
    previous_H = tf.concat([h[None], H[:-1]], axis=0)
    step = functools.partial(_step_back, options, tf.cast(U, options.product_dtype))
    H = None if options.eta is None else H
    inputs = (dH, H, previous_H, epsilon, inverse_epsilon, saved)
    carry = (tf.zeros_like(h), *_last_memory(D, dD))
    (dh, *_), (dz, depsilon, delta) = scan(step, carry, inputs, reverse=True)
    factor = tf.cast(tf.cast(previous_H, options.product_dtype), h.dtype)
    dU = tf.matmul(_rows(factor), _rows(dz), transpose_a=True)
    return dz, depsilon, dU, dh, delta


def memory_gradient(
    D0: tf.Tensor, D: tf.Tensor, dD: tf.Tensor, delta: tf.Tensor, r: tf.Tensor
) -> tf.Tensor:
    """Returns the gradient of the initial R, `(dR_T R_T' + sum over t of delta_t r_t') R_0`."""
    moment = tf.matmul(dD, plus_identity(D), transpose_b=True)
    moment += tf.einsum("tbi,tbj->bij", delta, r)
    return tf.matmul(moment, plus_identity(D0))


def _step_back(options, U, carry, inputs):
    """Returns the gradients of `h_{t-1}` and of the step's products, from that of `h_t`."""
    dh, R, M = carry
    dH, H, h, epsilon, inverse_epsilon, (t, u, r, inverse_tau, inverse_h, Ra, Rm) = inputs
    dh = _normalize_gradient(dH + dh, H, inverse_h, options.eta)
    c = options.activation(epsilon + r)  # The forward pass's to the last bit, and so its slope.
    delta = (1 - u) * dh * SLOPES[options.activation](c)
    dgate = u * (1 - u) * dh * (h - c)
    a = direction(epsilon, inverse_epsilon)
    inverse_s, m = bisector(a, t)
    two = twice(inverse_epsilon, inverse_tau)
    if options.lambda_:
        left_a, left_m = left(Ra, Rm, a, m, two)
        add = functools.partial(outer_products, compiled=options.compiled)
        R = R - add((left_a, a), (left_m, m))
        M = M + add((delta / 2, r), (r / -2, delta))
        p, q, delta_h = _turn_back(R, M, Ra, Rm, delta)
    else:
        p, q, delta_h = _torque(delta, r, a), _torque(delta, r, m), delta
    aq = dot(a, q)
    dtau = 2 * two * inverse_s * inverse_tau * (q + aq * t)
    turned = p + inverse_s * (aq * (2 * t + a) - (dot(a + t, a + t) - 1) * q)
    depsilon = delta + 2 * two * inverse_epsilon * turned
    dz = tf.concat([dtau, dgate], axis=-1)
    dh = u * dh + reflect(reflect(delta_h, m, two), a, two) + product(dz, U, transpose=True)
    return (dh, R, M), (dz, depsilon, delta if options.lambda_ else None)


def _turn_back(R, M, Ra, Rm, delta):
    """Returns `R' M R a`, `R' M R m` and `R' delta` for `R = R_{t-1}`."""
    MRa, MRm = tf.unstack(-tf.matmul(tf.stack([Ra, Rm], axis=1), M), axis=1)  # M' = -M
    return tf.unstack(tf.matmul(tf.stack([MRa, MRm, delta], axis=1), R), axis=1)


def _torque(delta, r, v):
    """Returns `(delta r' - r delta') v / 2`."""
    return (delta * dot(r, v) - r * dot(delta, v)) / 2


def _last_memory(D, dD):
    """Returns `R_T`, and the antisymmetric part of `dR_T R_T'`, with which M starts."""
    if D is None:
        return None, None
    R = plus_identity(D)
    moment = tf.matmul(dD, R, transpose_b=True)
    return R, (moment - tf.transpose(moment, (0, 2, 1))) / 2


def _normalize_gradient(dh, h, inverse_h, eta):
    """Returns the gradient of h' from that of `h = eta h' / |h'|`."""
    if eta is None:
        return dh
    along = h * dot(h, dh) / eta**2
    return tf.where(inverse_h > 0, eta * inverse_h * (dh - along), dh)


def _rows(v):
    return tf.reshape(v, (-1, v.shape[-1]))
