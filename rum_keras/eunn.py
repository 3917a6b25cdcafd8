"""The unitary matrix of the EUNN: layers of rotations of pairs of units, as one matrix."""

from typing import Any

from keras import ops

from rum_keras.unitary import real_form, turn

# The units p and the units q that one layer rotates with each other.
Pairs = tuple[tuple[int, ...], tuple[int, ...]]


def eunn_pairs(units: int, capacity: int, fft: bool) -> tuple[Pairs, ...]:
    """Returns the pairs (p, q) of units that each layer rotates, in the order of their angles.

    Tunable layers rotate, in turn, the pairs (0, 1), (2, 3), ... and (1, 2), (3, 4), ...; those in
    FFT style the pairs at a distance of units / 2, units / 4, ..., 1.

    Raises:
        ValueError: if `units` or `capacity` do not allow it.
    """
    if fft:
        if units < 2 or units & (units - 1):
            raise ValueError(
                f"`units` must be a power of two, at least 2, with fft=True, received "
                f"units={units}: choose one or fft=False."
            )
        pairs, distance = [], units // 2
        while distance:
            first = [p for start in range(distance) for p in range(start, units, 2 * distance)]
            pairs.append((tuple(first), tuple(p + distance for p in first)))
            distance //= 2
        return tuple(pairs)
    if units < 2:
        raise ValueError(f"`units` must be at least 2, to rotate pairs, received units={units}.")
    if isinstance(capacity, bool) or capacity != int(capacity) or not 1 <= capacity <= units:
        raise ValueError(
            f"`capacity`, the number of layers, must be an integer from 1 to `units` ({units}), "
            f"received capacity={capacity!r}."
        )
    layers = [range(layer % 2, units - 1, 2) for layer in range(int(capacity))]
    return tuple((tuple(first), tuple(p + 1 for p in first)) for first in layers)


def eunn_matrix(
    units: int, pairs: tuple[Pairs, ...], theta: Any, phi: Any = None, omega: Any = None
) -> Any:
    """Returns the matrix W of `h W` of the EUNN: its real form where it is complex.

    Args:
        units: Integer n.
        pairs: The pairs of each layer, from `eunn_pairs`.
        theta: Float tensor, shape `(angles,)`, the angles of all pairs.
        phi: Float tensor, shape `(angles,)`, phases of all pairs, or `None` for a real matrix.
        omega: Float tensor, shape `(n,)`, final phases, with `phi`.

    Returns:
        Float tensor, shape `(n, n)`, or `(2 n, 2 n)` with `phi`.
    """
    # Column i of re + i im becomes the image of e_i; a layer works on rows, whose images it mixes.
    re = ops.eye(units, dtype=theta.dtype)
    im = None if phi is None else ops.zeros_like(re)
    start = 0
    for first, second in pairs:
        end = start + len(first)
        phase = None if phi is None else phi[start:end, None]
        re, im = _rotate(re, im, first, second, theta[start:end, None], phase)
        start = end
    if phi is None:
        return ops.transpose(re)
    re, im = turn(re, im, omega[:, None])
    return real_form(ops.transpose(re), ops.transpose(im))


def _rotate(re, im, first, second, theta, phi):
    """Turns the pairs of rows (p, q) by theta, after the phase phi of q."""
    size, paired = len(first), {*first, *second}
    order = [*first, *second, *(row for row in range(re.shape[0]) if row not in paired)]
    back = sorted(range(len(order)), key=order.__getitem__)
    cosine, sine = ops.cos(theta), ops.sin(theta)

    def split(rows):
        rows = ops.take(rows, order, axis=0)
        return rows[:size], rows[size : 2 * size], rows[2 * size :]

    def join(p, q, rest):
        rows = ops.concatenate([cosine * p - sine * q, sine * p + cosine * q, rest], axis=0)
        return ops.take(rows, back, axis=0)

    p_re, q_re, rest_re = split(re)
    if phi is None:
        return join(p_re, q_re, rest_re), None
    p_im, q_im, rest_im = split(im)
    q_re, q_im = turn(q_re, q_im, phi)
    return join(p_re, q_re, rest_re), join(p_im, q_im, rest_im)
