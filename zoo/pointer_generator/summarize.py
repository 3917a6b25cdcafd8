"""Summarizes articles: raw text in, a summary out.

    python -m zoo.pointer_generator.summarize article.txt --workdir=runs/decrum
    python -m zoo.pointer_generator.summarize - --export_dir=exports/models/decrum < article.txt

Prints a line for each file, `-` being the standard input; with `--nbest` all that the beam search
has found, best first, each with its score, the mean log-probability of its words.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import app

from zoo import summarize


def ask_run(
    run: str, articles: Sequence[bytes], signature: str = summarize.BEST
) -> dict[str, np.ndarray]:
    """Asks the best model of a run, by the graph that would be exported of it.

    Args:
        run: A run, or a folder of weights.
        articles: Raw texts.
        signature: "serving_default" or "nbest"; see `exports/pointer_generator.py`.

    Returns:
        The outputs by name.

    Raises:
        FileNotFoundError: If the run has no model or has not kept its vocabulary.
    """
    from exports import pointer_generator
    from zoo.pointer_generator import kept

    signatures = pointer_generator.signatures(kept.load_model(run), Path(run))
    return summarize.ask_graph(signatures[signature].answer, articles)


def main(argv: Sequence[str]) -> None:
    """Prints the summaries of the files that the command line names."""
    summarize.run(argv, ask_run, "article", "zoo.pointer_generator.summarize")


if __name__ == "__main__":
    summarize.define_flags()
    app.run(main)
