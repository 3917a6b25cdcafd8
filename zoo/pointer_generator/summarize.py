"""Summarizes articles: raw text in, a summary out.

    python -m zoo.pointer_generator.summarize article.txt --workdir=runs/decrum
    python -m zoo.pointer_generator.summarize - --export_dir=exports/models/decrum < article.txt

Prints a line for each file, `-` being the standard input; with `--nbest` all that the beam search
has found, best first, each with its score, the mean log-probability of its words.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import app, flags

from zoo.xsum.summarize import ALL, BEST, lines, read


def ask_run(run: str, articles: Sequence[bytes], signature: str = BEST) -> dict[str, np.ndarray]:
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
    import tensorflow as tf

    from exports import pointer_generator
    from zoo.pointer_generator import kept

    signatures = pointer_generator.signatures(kept.load_model(run), Path(run))
    outputs = signatures[signature].answer(tf.constant(list(articles), tf.string))
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def ask_export(
    export_dir: str, articles: Sequence[bytes], signature: str = BEST
) -> dict[str, np.ndarray]:
    """Asks the latest SavedModel in a folder of versions, as the server would.

    Args:
        export_dir: The folder.
        articles: Raw texts.
        signature: As for `ask_run`.

    Returns:
        The outputs by name.

    Raises:
        FileNotFoundError: If there is no version.
    """
    from exports import check

    versions = check.versions(export_dir)
    if not versions:
        raise FileNotFoundError(
            f"There is no version in {export_dir}: write one with "
            f"python -m exports.export --workdir=RUN --export_dir={export_dir}."
        )
    check.quiet()
    with check.Servable(Path(export_dir, str(versions[-1]))) as servable:
        return servable.predict({"article": np.array(articles, object)}, signature)


def main(argv: Sequence[str]) -> None:
    """Prints the summaries of the files that the command line names."""
    options = flags.FLAGS
    if len(argv) < 2:
        raise app.UsageError("Name a file to summarize, or - for the standard input.")
    signature = ALL if options.nbest else BEST
    try:
        articles = read(argv[1:])
        if options.export_dir:
            outputs = ask_export(options.export_dir, articles, signature)
        else:
            outputs = ask_run(options.workdir, articles, signature)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.pointer_generator.summarize: {error}")
    print("\n".join(lines(outputs)))


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "The run, or folder of weights, to summarize with.")
    flags.DEFINE_string("export_dir", None, "Folder of versions, of which to take the latest.")
    flags.DEFINE_bool("nbest", False, "Print all that was found, with scores.")
    flags.mark_flags_as_mutual_exclusive(["workdir", "export_dir"], required=True)
    app.run(main)
