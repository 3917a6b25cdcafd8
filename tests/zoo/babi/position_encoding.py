"""Position encoding of sentences, by the paper's formula."""

import numpy as np


def formula(vectors):
    """The sum of one sentence without padding, by the paper's formula."""
    places, size = vectors.shape
    total = np.zeros(size)
    for j in range(1, places + 1):
        for k in range(1, size + 1):
            middle = (k - (size + 1) / 2) * (j - (places + 1) / 2)
            total[k - 1] += (1 + 4 * middle / (size * places)) * vectors[j - 1, k - 1]
    return total
