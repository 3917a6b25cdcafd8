"""The copying memory task: say again, much later, what was seen first (RUM, section 4.1).

A sequence of length T + 20 shows ten data symbols (ids 1 to 8), T - 1 blanks (id 0), one
marker (id 9) and ten blanks. The target is blank until the marker has passed, and then the
ten data symbols in order:

    5861444824 00 9 0000000000  ->  0000000000 00 0 5861444824    (T = 3)

Print some of them with `python -m datasets.copying --delay=3 --examples=2`.
"""

import math
from collections.abc import Sequence

import numpy as np
from absl import app, flags

DATA_SYMBOLS = 10
MARKER = 9

# Examples in each split (RUM, section 4.1) and the number that seeds its random stream.
SPLITS = {"train": (50_000, 1), "validation": (500, 2), "test": (500, 3)}


def memoryless_loss(delay: int) -> float:
    """Returns the mean cross-entropy of the best guess that remembers nothing.

    It outputs blanks until the marker and then any of the 8 symbols alike:
    10 ln 8 / (delay + 20) nats a step.
    """
    return DATA_SYMBOLS * math.log(8) / (delay + 2 * DATA_SYMBOLS)


def generate(
    examples: int, delay: int = 500, seed: int | Sequence[int] = 0, legacy: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Draws random sequences to copy.

    Args:
        examples: how many sequences to draw.
        delay: T, the number of steps from the last data symbol to the marker. At least 1.
        seed: seed of `numpy.random.default_rng`.
        legacy: draw from `numpy.random.RandomState(seed)` as the papers' released code does,
            to get its very examples.

    Returns:
        The inputs, int32 (examples, delay + 20) with ids 0 to 9, and the targets, int32 of the
        same shape with ids 0 to 8.

    Raises:
        ValueError: if `delay` or `examples` is below 1.

    Example:

    >>> inputs, targets = generate(2, delay=3)
    >>> inputs.shape, bool((inputs[:, :10] == targets[:, -10:]).all())
    ((2, 23), True)
    """
    if delay < 1:
        raise ValueError(f"delay must be at least 1, got {delay}.")
    if examples < 1:
        raise ValueError(f"examples must be at least 1, got {examples}.")
    integers = (
        np.random.RandomState(seed).randint if legacy else np.random.default_rng(seed).integers
    )
    data = integers(1, MARKER, size=(examples, DATA_SYMBOLS))
    inputs = np.zeros((examples, delay + 2 * DATA_SYMBOLS), np.int32)
    inputs[:, :DATA_SYMBOLS] = data
    inputs[:, delay + DATA_SYMBOLS - 1] = MARKER
    targets = np.zeros_like(inputs)
    targets[:, -DATA_SYMBOLS:] = data
    return inputs, targets


def load(split: str, delay: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns the examples of one split, drawn from a random stream of its own.

    Args:
        split: "train" (50,000 examples), "validation" (500) or "test" (500).
        delay: T, the number of steps from the last data symbol to the marker. At least 1.
        seed: one seed for the three splits.

    Returns:
        The inputs and the targets, both int32 (examples, delay + 20).

    Raises:
        ValueError: if there is no such split, or `delay` is below 1.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}.")
    examples, stream = SPLITS[split]
    return generate(examples, delay, seed=[seed, stream])


def main(argv: Sequence[str]) -> None:
    """Prints examples as digits, one a line."""
    del argv
    FLAGS = flags.FLAGS
    for inputs, targets in zip(*generate(FLAGS.examples, FLAGS.delay, FLAGS.seed), strict=True):
        print("".join(map(str, inputs)), "->", "".join(map(str, targets)))


if __name__ == "__main__":
    flags.DEFINE_integer("delay", 500, "T, steps from the last data symbol to the marker.")
    flags.DEFINE_integer("examples", 5, "How many sequences to print.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Seed of the random draws.")
    app.run(main)
