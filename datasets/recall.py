"""Associative recall: key-value pairs, then a key; the answer is its value (RUM, section 4.2).

A sequence of length T + 3 shows T/2 pairs of a letter and a digit, two question marks and one
letter. Every letter of the alphabet of T/2 letters occurs once among the pairs, in random
order; digits may repeat. The target is the digit that followed the queried letter:

    a1b2c3d4e5??c -> 3

Print some of them with `python -m datasets.recall --length=10 --examples=3`.
"""

import string
from collections.abc import Sequence

import numpy as np
from absl import app, flags

# Examples in each split (RUM, section 4.2) and the number that seeds its random stream.
SPLITS = {"train": (100_000, 1), "validation": (10_000, 2), "test": (20_000, 3)}


def vocabulary_size(length: int) -> int:
    """Returns the number of ids at a `length`: "?" (id 0), length/2 letters, then 10 digits."""
    return length // 2 + 11


def generate(
    examples: int, length: int = 30, seed: int | Sequence[int] = 0, legacy: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Draws random sequences of pairs, each with a query and its answer.

    Ids are 0 for "?", 1 to length/2 for letters, and length/2 + 1 to length/2 + 10 for the
    digits 0 to 9.

    Args:
        examples: how many sequences to draw.
        length: T, twice the number of pairs. Even, at least 2.
        seed: seed of `numpy.random.default_rng`.
        legacy: draw from `numpy.random.RandomState(seed)` in the order of the papers' released
            code, to get its very examples; slower.

    Returns:
        The sequences, int32 (examples, length + 3), and the digits asked for, int32
        (examples,) from 0 to 9.

    Raises:
        ValueError: if `length` is odd or below 2, or `examples` below 1.

    Example:

    >>> sequences, digits = generate(2, length=10)
    >>> sequences.shape, digits.shape
    ((2, 13), (2,))
    """
    if length < 2 or length % 2:
        raise ValueError(f"length must be an even number of at least 2, got {length}.")
    if examples < 1:
        raise ValueError(f"examples must be at least 1, got {examples}.")
    pairs = length // 2
    ordered = np.tile(np.arange(1, pairs + 1, dtype=np.int32), (examples, 1))
    if legacy:
        random = np.random.RandomState(seed)
        letters = ordered
        for row in letters:
            random.shuffle(row)
        integers = random.randint
    else:
        random = np.random.default_rng(seed)
        letters = random.permuted(ordered, axis=1)
        integers = random.integers
    digits = integers(0, 10, size=(examples, pairs)).astype(np.int32)
    asked = integers(0, pairs, size=examples)

    row = np.arange(examples)
    sequences = np.zeros((examples, length + 3), np.int32)
    sequences[:, 0:length:2] = letters
    sequences[:, 1:length:2] = digits + pairs + 1
    sequences[:, -1] = letters[row, asked]
    return sequences, digits[row, asked]


def load(split: str, length: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns the examples of one split, drawn from a random stream of its own.

    Args:
        split: "train" (100,000 examples), "validation" (10,000) or "test" (20,000).
        length: T, twice the number of pairs. Even, at least 2.
        seed: one seed for the three splits.

    Returns:
        The sequences, int32 (examples, length + 3), and the digits, int32 (examples,).

    Raises:
        ValueError: if there is no such split, or `length` is odd or below 2.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    examples, stream = SPLITS[split]
    return generate(examples, length, seed=[seed, stream])


def to_text(sequence: np.ndarray) -> str:
    """Writes one sequence of ids (length + 3,) as letters, digits and question marks.

    Example:

    >>> to_text(np.array([2, 4, 1, 12, 0, 0, 1]))
    'b1a9??a'
    """
    pairs = (len(sequence) - 3) // 2
    if pairs > len(string.ascii_letters):
        raise ValueError(
            f"sequence has {pairs} different letters, but the text form has only the "
            f"{len(string.ascii_letters)} letters a-z and A-Z: use a length of at most 104."
        )
    symbols = "?" + string.ascii_letters[:pairs] + string.digits
    return "".join(symbols[i] for i in sequence)


def main(argv: Sequence[str]) -> None:
    """Prints examples as text, one a line."""
    del argv
    FLAGS = flags.FLAGS
    for sequence, digit in zip(*generate(FLAGS.examples, FLAGS.length, FLAGS.seed), strict=True):
        print(to_text(sequence), "->", digit)


if __name__ == "__main__":
    flags.DEFINE_integer("length", 30, "T, twice the number of pairs.", lower_bound=2)
    flags.DEFINE_integer("examples", 5, "How many sequences to print.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Seed of the random draws.")
    app.run(main)
