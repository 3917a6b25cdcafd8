"""Beam search over any step function, in the graph: for training scripts and exports alike."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops


class Hypotheses(NamedTuple):
    """Sequences of every row of a batch, with the end token where they have one.

    Attributes:
        tokens: Int32 tensor, shape `(batch, beam, length)`, `pad_id` after the end.
        log_probabilities: Float32 tensor, shape `(batch, beam, length)`, of each token, 0 after
            the end.
        alignments: Int32 tensor, shape `(batch, beam, length)`, the source position that each
            token attended to most, -1 after the end and where the step gives no attention.
        scores: Float32 tensor, shape `(batch, beam)`, descending.
        lengths: Int32 tensor, shape `(batch, beam)`, with the end token.
    """

    tokens: Any
    log_probabilities: Any
    alignments: Any
    scores: Any
    lengths: Any


def beam_search(
    step: Callable,
    state: Any,
    start_tokens: Any,
    *,
    end_id: int,
    beam: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 1.0,
    blocked_ngram: int = 0,
    pad_id: int | None = None,
    stop_early: bool = True,
) -> Hypotheses:
    """Finds probable sequences, by the rules of fairseq's sequence generator.

    Live hypotheses begin with one, empty, with score 0. At each step, of all of their extensions by
    one token the best `2 beam` by summed log-probability are looked at. Those of the first `beam`
    that end are finished with

    ```
    score = (sum of log-probabilities) / (length with the end token) ** length_penalty
    ```

    and the best `beam` that do not end live on. Those of `max_length` tokens all end. A row is
    done with its first `beam` finished hypotheses; without `stop_early` it keeps its `beam` best
    ones, until no live one can become better than the worst of them.

    One thing differs from the released code: without `stop_early`, that drops the first finished
    hypothesis after `beam` ones, good or not.

    Rows do not influence each other. All is in the graph of one loop with constant shapes, so it
    runs in `tf.function`, with XLA or not, in SavedModels and in `jax.jit`.

    Args:
        step: Function of `tokens`, an int32 tensor of shape `(batch * beam,)` with the last token
            of each hypothesis, row by row, and of the state. Returns
            `(log_probabilities, state)` or `(log_probabilities, state, attention)`, of shapes
            `(batch * beam, vocabulary)` and `(batch * beam, source)`. The vocabulary can be larger
            than that of the inputs (pointer networks: the step replaces what it cannot embed), and
            must be at least `2 * beam` where its size is not static.
        state: Nested structure of tensors of shape `(batch, ...)`, what differs between hypotheses.
            The step gets it, and returns it, with `(batch * beam, ...)` and the same other
            dimensions and dtypes. Scalars, such as a counter of steps, are passed as they are.
            What hypotheses of a row share, an encoder's output, is better captured by the function:
            it is not copied then.
        start_tokens: Int tensor, shape `(batch,)`, the first inputs. They are not in the results.
        end_id: Int, the end token.
        beam: Positive integer, the number of live and of finished hypotheses.
        max_length: Positive integer, the largest number of tokens before the end token.
        min_length: Integer from 0 to `max_length`, the smallest.
        length_penalty: Non-negative float: 0 sums log-probabilities, 1 takes their mean.
        blocked_ngram: Integer n: no sequence of n tokens appears twice in a hypothesis. 0: all may.
        pad_id: Int, never chosen, and put after the end token. None: all tokens can be chosen, and
            `end_id` is put there.
        stop_early: Whether the first `beam` finished hypotheses are taken.

    Returns:
        `Hypotheses`, best first, of length `max_length + 1`. Where fewer than `beam` exist, their
        scores are -inf and their lengths 0.

    Raises:
        ValueError: for an argument outside of its range, and for a state that the step changes in
            structure or dtype.

    Example:

    >>> import numpy as np
    >>> table = np.log([[0.01, 0.59, 0.4], [0.4, 0.3, 0.3], [0.9, 0.05, 0.05]])  # row to column
    >>> def step(tokens, state):
    ...     return keras.ops.take(table, tokens, axis=0), state
    >>> result = rum_keras.beam_search(step, (), [0], end_id=0, beam=2, max_length=3)
    >>> np.asarray(result.tokens)[0].tolist()  # The most probable first token is 1.
    [[2, 0, 0, 0], [1, 0, 0, 0]]
    >>> [round(float(score), 3) for score in np.exp(2 * np.asarray(result.scores)[0])]
    [0.36, 0.236]
    """
    _check(beam, max_length, min_length, length_penalty, blocked_ngram)
    start_tokens = ops.cast(start_tokens, "int32")
    batch, length = ops.shape(start_tokens)[0], max_length + 1
    finished = _nothing(batch, beam, length, end_id if pad_id is None else pad_id)
    first = ops.where(ops.arange(beam) == 0, ops.zeros_like(finished.scores), finished.scores)

    def unfinished(position, done, *_):
        return ops.logical_and(position <= max_length, ops.logical_not(ops.all(done)))

    def extend(position, done, tokens, live, finished, state):
        log_probabilities, new_state, alignments = _call(step, tokens, state, beam)
        ids = ops.arange(ops.shape(log_probabilities)[-1])
        allowed = ops.where(ids == end_id, position >= min_length, position < max_length)
        if pad_id not in (None, end_id):
            allowed = ops.logical_and(allowed, ids != pad_id)
        log_probabilities = ops.where(allowed, log_probabilities, -math.inf)
        if 0 < blocked_ngram <= length:
            log_probabilities += _blocked(live.tokens, position, blocked_ngram, ops.shape(ids)[0])
        candidates, parents, tokens = _candidates(live, log_probabilities, alignments, position)
        ends = tokens == end_id
        finished = _finish(finished, candidates, ends, done, length_penalty, stop_early)
        scores, best = ops.top_k(ops.where(ends, -math.inf, candidates.scores), beam)
        live = _take(candidates, best)._replace(scores=scores)
        tokens, parents = (ops.take_along_axis(value, best, axis=1) for value in (tokens, parents))
        done = _done(finished, scores, length**length_penalty, stop_early)
        state = _reorder(new_state, state, parents)
        return position + 1, done, ops.reshape(tokens, (-1,)), live, finished, state

    start = (
        ops.zeros((), "int32"),
        ops.zeros((batch,), "bool"),
        ops.repeat(start_tokens, beam, axis=0),
        finished._replace(scores=first),
        finished,
        keras.tree.map_structure(lambda value: _repeat(value, beam), state),
    )
    finished = ops.while_loop(unfinished, extend, start)[4]
    return _take(finished, ops.top_k(finished.scores, beam)[1])


def _check(beam, max_length, min_length, length_penalty, blocked_ngram):
    for name, value in (("beam", beam), ("max_length", max_length)):
        if value < 1:
            raise ValueError(f"`{name}` must be positive, received {value}.")
    if not 0 <= min_length <= max_length:
        raise ValueError(
            f"`min_length` must be between 0 and `max_length`, {max_length}, received {min_length}."
        )
    for name, value in (("length_penalty", length_penalty), ("blocked_ngram", blocked_ngram)):
        if value < 0:
            raise ValueError(f"`{name}` must not be negative, received {value}.")


def _nothing(batch, beam, length, padding):
    """Returns hypotheses that do not exist."""
    shape = (batch, beam, length)
    return Hypotheses(
        tokens=ops.full(shape, padding, "int32"),
        log_probabilities=ops.zeros(shape, "float32"),
        alignments=ops.full(shape, -1, "int32"),
        scores=ops.full((batch, beam), -math.inf, "float32"),
        lengths=ops.zeros((batch, beam), "int32"),
    )


def _repeat(value, beam):
    value = ops.convert_to_tensor(value)
    return ops.repeat(value, beam, axis=0) if len(value.shape) else value


def _call(step, tokens, state, beam):
    """Returns log-probabilities `(batch, beam, vocabulary)`, the state, alignments or -1."""
    log_probabilities, new_state, *attention = step(tokens, state)
    keras.tree.assert_same_structure(state, new_state)
    for before, after in zip(keras.tree.flatten(state), keras.tree.flatten(new_state), strict=True):
        before, after = (keras.backend.standardize_dtype(value.dtype) for value in (before, after))
        if before != after:
            raise ValueError(
                f"`step` must keep the dtypes of the state, received {before}, returned {after}."
            )
    log_probabilities = ops.cast(log_probabilities, "float32")
    vocabulary = ops.shape(log_probabilities)[-1]
    alignments = ops.full_like(tokens, -1)
    if attention:
        alignments = ops.cast(ops.argmax(attention[0], axis=-1), "int32")
    return (
        ops.reshape(log_probabilities, (-1, beam, vocabulary)),
        new_state,
        ops.reshape(alignments, (-1, beam)),
    )


def _blocked(tokens, position, n, vocabulary):
    """Returns -inf for tokens that would repeat an n-gram, else 0, (batch, beam, vocabulary)."""
    beam, length = tokens.shape[1:]
    grams = length - n + 1
    last = ops.arange(n - 1) + ops.maximum(position - n + 1, 0)
    suffix = ops.take(tokens, last, axis=2)
    # A gram that begins at j < position - n + 1 is followed by a token before `position`.
    same = ops.broadcast_to(ops.arange(grams) < position - n + 1, ops.shape(tokens[..., :grams]))
    for i in range(n - 1):
        same = ops.logical_and(same, tokens[..., i : i + grams] == suffix[..., i : i + 1])
    hypotheses = ops.arange(ops.shape(tokens)[0] * beam)
    following = ops.reshape(tokens[..., n - 1 :], (-1, grams))
    rows = ops.broadcast_to(hypotheses[:, None], ops.shape(following))
    indices = ops.stack([ops.reshape(rows, (-1,)), ops.reshape(following, (-1,))], axis=-1)
    values = ops.where(ops.reshape(same, (-1,)), -math.inf, 0.0)
    blocked = ops.scatter(indices, values, (ops.shape(hypotheses)[0], vocabulary))
    return ops.reshape(blocked, (-1, beam, vocabulary))


def _candidates(live, log_probabilities, alignments, position):
    """Returns the best `2 beam` extensions, best first, their parents and last tokens."""
    beam, vocabulary = live.tokens.shape[1], log_probabilities.shape[-1]
    # Of each hypothesis, no more than 2 beam extensions can be among the best of all.
    each = 2 * beam if vocabulary is None else min(2 * beam, vocabulary)
    values, tokens = ops.top_k(log_probabilities, each)
    scores = ops.reshape(live.scores[..., None] + values, (-1, beam * each))
    scores, picks = ops.top_k(scores, 2 * beam)
    parents = picks // each
    values, tokens = (
        ops.take_along_axis(ops.reshape(value, (-1, beam * each)), picks, axis=1)
        for value in (values, ops.cast(tokens, "int32"))
    )
    parent = _take(live, parents)
    alignments = ops.take_along_axis(alignments, parents, axis=1)
    here = ops.arange(live.tokens.shape[-1]) == position
    candidates = Hypotheses(
        tokens=ops.where(here, tokens[..., None], parent.tokens),
        log_probabilities=ops.where(here, values[..., None], parent.log_probabilities),
        alignments=ops.where(here, alignments[..., None], parent.alignments),
        scores=scores,
        lengths=parent.lengths + 1,
    )
    return candidates, parents, tokens


def _take(hypotheses, indices):
    """Returns the hypotheses at `indices`, shape `(batch, number)`, of each row."""
    return Hypotheses(
        *(
            ops.take_along_axis(
                value, indices if len(value.shape) == 2 else indices[..., None], axis=1
            )
            for value in hypotheses
        )
    )


def _finish(finished, candidates, ends, done, length_penalty, stop_early):
    """Returns the finished hypotheses with the candidates that end."""
    beam = finished.tokens.shape[1]
    first = Hypotheses(*(value[:, :beam] for value in candidates))
    ends = ops.logical_and(ends[:, :beam], ops.logical_not(done)[:, None])
    normalized = first.scores / ops.cast(first.lengths, "float32") ** length_penalty
    first = first._replace(scores=ops.where(ends, normalized, -math.inf))
    both = Hypotheses(
        *(ops.concatenate(pair, axis=1) for pair in zip(finished, first, strict=True))
    )
    ranks = both.scores
    if stop_early:  # Those that finished first; of the same step, the best.
        ranks = ops.where(ranks > -math.inf, -ops.arange(2.0 * beam, dtype="float32"), -math.inf)
    return _take(both, ops.top_k(ranks, beam)[1])


def _done(finished, live_scores, largest_divisor, stop_early):
    """Returns which rows cannot get other finished hypotheses any more, shape `(batch,)`."""
    worst = ops.min(finished.scores, axis=1)
    best = ops.max(live_scores, axis=1)
    dead = ops.logical_not(best > -math.inf)
    if stop_early:
        return ops.logical_or(dead, worst > -math.inf)
    return ops.logical_or(dead, worst >= best / largest_divisor)


def _reorder(new_state, state, parents):
    """Returns the state with each hypothesis' parent in its place, in the shapes of `state`."""
    batch, beam = ops.shape(parents)
    indices = ops.reshape(parents + beam * ops.arange(batch)[:, None], (-1,))

    def reorder(value, before):
        if len(before.shape) == 0:
            return value
        value = ops.take(value, indices, axis=0)
        # Loops need the shapes that they start with, as far as these are known.
        return value if value.shape == before.shape else ops.reshape(value, ops.shape(before))

    return keras.tree.map_structure(reorder, new_state, state)
