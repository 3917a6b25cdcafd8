"""MemN2N by the paper's equations, and what it is asked."""

import numpy as np

from tests.zoo.babi.position_encoding import formula

STORY = np.array([[3, 1, 4], [1, 5, 0], [2, 6, 5]], "int32")
QUESTION = np.array([7, 8, 0], "int32")


def softmax(values):
    exponentials = np.exp(values - values.max())
    return exponentials / exponentials.sum()


def sentence(embedding, ids):
    return formula(embedding[ids[ids > 0]])


def expected_logits(weights, update, hops=3, tying="adjacent"):
    """The logits of STORY and QUESTION, from the paper's equations."""
    age = np.arange(len(STORY))[::-1]
    adjacent = tying == "adjacent"

    def memory(k):
        rows = [sentence(weights[f"embedding_{k}"], ids) for ids in STORY]
        return np.stack(rows) + weights[f"temporal_{k}"][age]

    u = sentence(weights["embedding_0" if adjacent else "question_embedding"], QUESTION)
    for hop in range(hops):
        k = hop if adjacent else 0
        p = softmax(memory(k) @ u)
        u = update(u, p @ memory(k + 1), hop)
    return u @ weights["readout_kernel"]
