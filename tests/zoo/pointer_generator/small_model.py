"""A pointer-generator of random weights, two articles, and what it writes of them."""

import numpy as np

from tests.backend import to_numpy
from zoo.pointer_generator.model import PointerGenerator

VOCABULARY, EMBEDDING, UNITS = 11, 5, 6
# The second document has padding, a word twice, and two words without ids, one of them twice.
DOCUMENT = np.array([[4, 5, 6, 7, 8, 9, 10], [0, 5, 0, 5, 0, 1, 1]])
EXTENDED = np.array([[4, 5, 6, 7, 8, 9, 10], [11, 5, 12, 5, 11, 1, 1]])
SUMMARY = np.array([[2, 4, 5, 6], [2, 0, 7, 1]])
TARGET = np.array([[4, 5, 6, 3], [11, 7, 3, 1]])
INPUTS = {"document": DOCUMENT, "document_extended": EXTENDED, "summary": SUMMARY}
REAL = TARGET != 1


def model(encoder="lstm", decoder="lstm", scale=0.5, vocabulary=VOCABULARY, **options):
    """Makes a small model whose weights, biases too, are large enough to matter."""
    built = PointerGenerator(
        vocabulary, embedding=EMBEDDING, units=UNITS, encoder=encoder, decoder=decoder, **options
    )
    built.build()
    generator = np.random.default_rng(7)
    for weight in built.weights:
        weight.assign(generator.normal(0, scale, weight.shape))
    return built


def set_gate(built, bias):
    """Makes p_gen the sigmoid of `bias` everywhere."""
    gate = built.decoder.pointer_gate
    gate.kernel.assign(np.zeros(gate.kernel.shape))
    gate.bias.assign([bias])


def distributions(built, inputs=INPUTS, extra=2):
    """Returns P over vocabulary and copied words of each step, (batch, target, words)."""
    memory, state = built.start(inputs["document"])
    found = []
    for tokens in inputs["summary"].T:
        result, state = built.decoder.step(built.embed(tokens), state, memory)
        found.append(built.log_probabilities(result, inputs["document_extended"], extra))
    return np.exp(np.stack(to_numpy(found), axis=1).astype(np.float64))


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def softmax(values):
    values = np.exp(values - values.max(axis=-1, keepdims=True))
    return values / values.sum(axis=-1, keepdims=True)
