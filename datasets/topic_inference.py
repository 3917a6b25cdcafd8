"""p(topic | document) of latent Dirichlet allocation, always the same for the same document.

gensim starts its variational inference from random numbers and stops it by a threshold, so that
a document's topics depend on what was inferred before. Here gamma starts at 1 and takes a fixed
number of steps (Hoffman, Blei and Bach 2010, Algorithm 1, E step), for a document with n_w times
the word w:

    theta_k = exp(digamma(gamma_k) - digamma(sum_j gamma_j))
    gamma_k = alpha_k + theta_k sum_w n_w beta_kw / sum_j theta_j beta_jw

beta_kw = exp(E[log p(w | k)]); the answer is gamma / sum(gamma), that is the prior alpha /
sum(alpha) for a document without a known word. `topics_in_graph` does the same in a graph.
"""

import numpy as np

# For 95 of 100 XSum documents and 64 topics, so many steps end within 0.0003 of where 3,000 lead.
STEPS = 100


def expected_topic_words(topic_words: np.ndarray) -> np.ndarray:
    """Returns exp(E[log p(word | topic)]) of Dirichlet parameters.

    Args:
        topic_words: lambda, float32 (topics, words): pseudo-counts, all above 0.

    Returns:
        float32 (words, topics), the transpose, whose rows are gathered for a document.
    """
    from scipy.special import digamma

    expected = np.empty(topic_words.shape[::-1], np.float32)
    for topic, row in enumerate(topic_words.astype(np.float64, copy=False)):
        expected[:, topic] = np.exp(digamma(row) - digamma(row.sum()))
    return expected


def infer(
    ids: np.ndarray, expected: np.ndarray, alpha: np.ndarray, steps: int = STEPS
) -> np.ndarray:
    """Infers the topics of one document.

    Args:
        ids: ids of its known words, int (words,), in any order.
        expected: the answer of `expected_topic_words`, float32 (words, topics).
        alpha: the Dirichlet prior of topics, (topics,).
        steps: number of steps.

    Returns:
        p(topic | document), float32 (topics,).

    Example:

    >>> beta = expected_topic_words(np.array([[9.0, 1.0], [1.0, 9.0]]))
    >>> print(infer(np.array([0, 0, 1]), beta, np.array([0.5, 0.5])).round(2))
    [0.64 0.36]
    """
    from scipy.special import digamma

    # Sums run over the words by their ids: the order of the document does not matter.
    words, counts = np.unique(ids, return_counts=True)
    beta = expected[words].astype(np.float64)
    gamma = np.ones(expected.shape[1])
    for _ in range(steps):
        theta = np.exp(digamma(gamma) - digamma(gamma.sum()))
        gamma = alpha + theta * ((counts / (beta @ theta + 1e-100)) @ beta)
    return (gamma / gamma.sum()).astype(np.float32)
