"""Summarizes articles: raw text in, a sentence out.

    python -m zoo.xsum.summarize article.txt --workdir=runs/xsum
    python -m zoo.xsum.summarize - --export_dir=exports/models/xsum < article.txt

Prints a line for each file, `-` being the standard input; with `--nbest` all that the beam search
has found, best first, each with its score, the mean log-probability of its words.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from absl import app, flags

# What both ways of asking share with the server: the names of signatures and tensors.
BEST, ALL = "serving_default", "nbest"


def read(paths: Sequence[str]) -> list[bytes]:
    """Returns the contents of files; `-` is the standard input."""
    return [sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes() for path in paths]


def ask_run(run: str, documents: Sequence[bytes], signature: str = BEST) -> dict[str, np.ndarray]:
    """Asks the best model of a run, by the graph that would be exported of it.

    Args:
        run: A run, or a folder of weights.
        documents: Raw texts.
        signature: "serving_default" or "nbest"; see `exports/xsum.py`.

    Returns:
        The outputs by name.

    Raises:
        FileNotFoundError: If the run has no model or has not kept its vocabulary.
    """
    import tensorflow as tf

    from exports import xsum
    from zoo.xsum import kept

    signatures = xsum.signatures(kept.load_model(run), Path(run))
    outputs = signatures[signature].answer(tf.constant(list(documents), tf.string))
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def ask_export(
    export_dir: str, documents: Sequence[bytes], signature: str = BEST
) -> dict[str, np.ndarray]:
    """Asks the latest SavedModel in a folder of versions, as the server would.

    Args:
        export_dir: The folder.
        documents: Raw texts.
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
        return servable.predict({"document": np.array(documents, object)}, signature)


def lines(outputs: dict[str, np.ndarray]) -> Iterator[str]:
    """Yields what is printed of the outputs of either signature."""
    if "summary" in outputs:
        yield from (summary.decode() for summary in outputs["summary"])
        return
    for summaries, scores in zip(outputs["summaries"], outputs["scores"], strict=True):
        for summary, score in zip(summaries, scores, strict=True):
            yield f"{score:.4f}  {summary.decode()}"


def main(argv: Sequence[str]) -> None:
    """Prints the summaries of the files that the command line names."""
    options = flags.FLAGS
    if len(argv) < 2:
        raise app.UsageError("Name a file to summarize, or - for the standard input.")
    signature = ALL if options.nbest else BEST
    try:
        documents = read(argv[1:])
        if options.export_dir:
            outputs = ask_export(options.export_dir, documents, signature)
        else:
            outputs = ask_run(options.workdir, documents, signature)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.xsum.summarize: {error}")
    print("\n".join(lines(outputs)))


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "The run, or folder of weights, to summarize with.")
    flags.DEFINE_string("export_dir", None, "Folder of versions, of which to take the latest.")
    flags.DEFINE_bool("nbest", False, "Print all that was found, with scores.")
    flags.mark_flags_as_mutual_exclusive(["workdir", "export_dir"], required=True)
    app.run(main)
