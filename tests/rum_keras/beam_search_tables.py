"""Steps for beam search by hand-made tables: what comes next depends on the whole history."""

import numpy as np
from keras import ops

from rum_keras.beam_search import beam_search
from tests import backend

CODES = 17
FIRST = 12  # After it, greedy search takes five steps.


def table(vocabulary, seed=0):
    """Returns log-probabilities of the next token after each of `CODES` histories."""
    logits = 2 * np.random.default_rng(seed).normal(size=(CODES, vocabulary))
    return (logits - np.log(np.exp(logits).sum(-1, keepdims=True))).astype("float32")


def next_code(code, token):
    return (5 * code + 3 * token + 1) % CODES


def step_of(log_probabilities, attend=False):
    """Returns a step function whose state is the code of the history before `tokens`."""

    def step(tokens, code):
        code = next_code(code, tokens)
        if attend:  # To the source position of the token's number.
            return ops.take(log_probabilities, code, axis=0), code, ops.one_hot(tokens, 9)
        return ops.take(log_probabilities, code, axis=0), code

    return step


def search(log_probabilities, codes=(FIRST,), attend=False, **options):
    """Returns NumPy hypotheses of a row for each of `codes`, the state before the start token 0."""
    codes = np.asarray(codes, "int32")
    options = {"end_id": 0, "beam": 2, "max_length": 4, **options}
    step = step_of(log_probabilities, attend)
    return backend.to_numpy(beam_search(step, codes, 0 * codes, **options))
