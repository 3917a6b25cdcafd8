"""RUM over whole sequences at the speed of the hardware, for the TensorFlow backend.

For automatic differentiation the recurrence (`rum_recurrence.py`) is one operation with a gradient
derived by hand (`rum_gradient.py`). The inputs' products of all steps are one product before it,
and the weights' gradients of all steps one product after it.

In training, the two loops are compiled by XLA: islands in the user's ordinary graph, in
MirroredStrategy's too. XLA compiles anew for each (batch, time), which takes seconds: pad to few
lengths. It runs a loop on one core, so the batch is split over the cores. In inference the same
code runs as plain TensorFlow ops, so that no export depends on XLA.
"""

import functools
import os
from collections.abc import Callable

import keras
import tensorflow as tf

from rum_keras import rum_gradient, rum_recurrence
from rum_keras.rum_cell import RUMCell

# Fewer sequences are not worth an island; more islands would wait for memory (an estimate: only
# two cores could be measured).
MIN_SHARD = 8
MAX_SHARDS = 4


def supports(cell: RUMCell) -> bool:
    """Returns whether the kernels compute what the cell computes."""
    return (
        cell.lambda_ in (0, 1)
        and cell.activation in rum_gradient.SLOPES
        and cell.recurrent_activation is keras.activations.sigmoid
        and cell.use_update_gate
        and not (cell.layer_norm or cell.zoneout or cell.recurrent_dropout or cell.return_angle)
    )


def run(
    cell: RUMCell,
    sequences: tf.Tensor,
    states: list[tf.Tensor],
    mask: tf.Tensor | None,
    training: bool,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Returns the states of all steps and the last states, as stepping through the cell does.

    Args:
        cell: a built cell that `supports` accepts.
        sequences: shape (batch, time, features).
        states: initial h, shape (batch, units), and for lambda = 1 memory (batch, units^2).
        mask: boolean, shape (batch, time), or `None`.
        training: whether a gradient is expected.

    Returns:
        `h_t`, shape (batch, time, units), and the last states.
    """
    compiled = bool(training) and tf.test.is_built_with_xla()
    if training and cell.dropout:
        sequences = sequences * cell.get_dropout_mask(sequences[:, 0])[:, None]
    batch = [sequences, *states] if mask is None else [sequences, *states, mask]
    shards = _split(batch, _shard_count(sequences.shape[0]) if compiled else 1)
    results = []
    for sequences, h, *rest in shards:
        mask = None if mask is None else rest.pop()
        results.append(_run_shard(cell, sequences, h, rest, mask, bool(training), compiled))
    H, *last_states = (tf.concat(parts, axis=0) for parts in zip(*results, strict=True))
    H.set_shape((*batch[0].shape[:2], cell.units))  # What the loops could not tell.
    for state, last_state in zip(states, last_states, strict=True):
        last_state.set_shape(state.shape)
    return H, last_states


def _run_shard(cell, sequences, h, memory, mask, training, compiled):
    x, epsilon = _project(cell, tf.transpose(sequences, (1, 0, 2)))
    if mask is not None:
        mask = tf.transpose(tf.cast(mask, bool))[:, :, None]
        x, epsilon = tf.where(mask, x, 0), tf.where(mask, epsilon, 0)
    U = tf.cast(cell.recurrent_kernel, h.dtype)
    U = U if cell.trainable_rotation else cell._fix_rotation(U)
    D = [tf.reshape(memory[0], (-1, cell.units, cell.units))] if memory else []
    options = rum_recurrence.Options(
        cell.units,
        cell.lambda_,
        cell.eta,
        cell.activation,
        cell.dtype_policy.compute_dtype,
        compiled,
    )
    H, *D = _recurrence(options, training, compiled, mask)(x, epsilon, U, h, *D)
    memory = [tf.reshape(D[0], (-1, cell.units**2))] if memory else []
    return tf.transpose(H, (1, 0, 2)), H[-1], *memory


def _project(cell, sequences):
    """Returns `x_t W + b` of target and gate, and of the embedded input, for all steps."""
    dtype = cell.dtype_policy.compute_dtype
    weights = [cell.kernel] if cell.bias is None else [cell.kernel, cell.bias]
    weights = [tf.cast(weight, dtype) for weight in weights]
    if not cell.trainable_rotation:
        weights = [cell._fix_rotation(weight) for weight in weights]
    rows = tf.reshape(tf.cast(sequences, dtype), (-1, sequences.shape[-1]))
    time, batch = _sizes(sequences)
    projections = []
    for block in (slice(None, 2 * cell.units), slice(2 * cell.units, None)):
        kernel, *bias = (weight[..., block] for weight in weights)
        x = tf.matmul(rows, kernel)
        x = tf.cast(x + bias[0] if bias else x, cell.compute_dtype)
        projections.append(tf.reshape(x, (time, batch, x.shape[-1])))
    return projections


def _recurrence(options, training, compiled, mask):
    """Returns the function `(x, epsilon, U, h, *D) -> (H, *D)` with its gradient."""
    forward, backward = (
        _island(function, options) if compiled else functools.partial(function, options)
        for function in (rum_recurrence.forward, rum_gradient.backward)
    )

    @tf.custom_gradient
    def recurrence(*inputs):
        # Without stop_gradient, the tape would look into the islands too.
        x, epsilon, U, h, *D0 = map(tf.stop_gradient, inputs)
        arguments = rum_recurrence.Arguments(x, epsilon, mask, U, h, D0[0] if D0 else None)
        H, D, saved = forward(training, arguments)

        @tf.custom_gradient
        def gradient(*upstream):
            dH, *dD = map(tf.stop_gradient, upstream[: 1 + len(D0)])
            # Without training no gradient is expected, and nothing was saved.
            kept = saved or forward(True, arguments)[2]
            needed = arguments._replace(x=None, mask=None)  # The rest need not stay in memory.
            *gradients, delta = backward(needed, H, D, kept, dH, dD[0] if dD else None)
            if D0:
                gradients.append(rum_gradient.memory_gradient(*D0, D, *dD, delta, kept.r))
            return gradients, _no_second_derivative

        return (H,) if D is None else (H, D), lambda *upstream: gradient(*upstream, *inputs)

    return recurrence


def _no_second_derivative(*_):
    raise NotImplementedError(
        "The kernels of rum_keras.RUM have no second derivative: use "
        "keras.layers.RNN(rum_keras.RUMCell(...)), which has the same weights."
    )


@functools.cache
def _island(function: Callable, options: rum_recurrence.Options) -> Callable:
    """Returns the function compiled by XLA, traced once for all shapes of the same rank."""
    return tf.function(
        functools.partial(function, options),
        jit_compile=True,
        autograph=False,
        reduce_retracing=True,
    )


def _shard_count(batch: int | None) -> int:
    """Returns how many islands work side by side on a batch, of unknown size if `None`."""
    if tf.config.list_logical_devices("GPU"):
        return 1
    cores = (os.cpu_count() or 1) // tf.distribute.get_strategy().num_replicas_in_sync
    count = min(max(1, cores), MAX_SHARDS)
    return count if batch is None else max(1, min(count, batch // MIN_SHARD))


def _split(tensors: list[tf.Tensor], count: int) -> list[list[tf.Tensor]]:
    """Splits tensors along the batch, into parts of equal size but for the last."""
    if count == 1:
        return [tensors]
    batch = tensors[0].shape[0]
    if batch is None:
        batch = tf.shape(tensors[0])[0]
        size = (batch + count - 1) // count
        sizes = [tf.clip_by_value(batch - i * size, 0, size) for i in range(count)]
    else:
        size = -(-batch // count)
        sizes = [max(0, min(size, batch - i * size)) for i in range(count)]
    return list(zip(*(tf.split(tensor, sizes, num=count) for tensor in tensors), strict=True))


def _sizes(sequences: tf.Tensor) -> list:
    """Returns time and batch, as integers where they are known."""
    dynamic = tf.shape(sequences)
    return [size or dynamic[i] for i, size in enumerate(sequences.shape[:2])]
