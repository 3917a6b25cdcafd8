"""Summarizes raw texts: what the `summarize` commands of recipes share.

They print a line for each file, `-` being the standard input; with `--nbest` all that the beam
search has found, best first, each with its score.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from absl import app, flags

flags.disclaim_key_flags()  # Those of `define_flags` are the command's own.

# What both ways of asking share with the server: the names of signatures.
BEST, ALL = "serving_default", "nbest"


def read(paths: Sequence[str]) -> list[bytes]:
    """Returns the contents of files; `-` is the standard input.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If one holds nothing.
    """
    texts = [sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes() for path in paths]
    for path, text in zip(paths, texts, strict=True):
        if not text.strip():
            name = "The standard input" if path == "-" else path
            raise ValueError(f"{name} is empty: there is nothing to summarize.")
    return texts


def ask_graph(answer: Callable, texts: Sequence[bytes]) -> dict[str, np.ndarray]:
    """Asks the graph that would be exported of a run.

    Args:
        answer: That of an `exports.signature.Signature`.
        texts: Raw texts.

    Returns:
        The outputs by name.
    """
    import tensorflow as tf

    outputs = answer(tf.constant(list(texts), tf.string))
    return {name: tensor.numpy() for name, tensor in outputs.items()}


def ask_export(
    export_dir: str, tensor: str, texts: Sequence[bytes], signature: str = BEST
) -> dict[str, np.ndarray]:
    """Asks the latest SavedModel in a folder of versions, as the server would.

    Args:
        export_dir: The folder.
        tensor: The name of the signature's input.
        texts: Raw texts.
        signature: "serving_default" or "nbest".

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
        return servable.predict({tensor: np.array(texts, object)}, signature)


def lines(outputs: dict[str, np.ndarray]) -> Iterator[str]:
    """Yields what is printed of the outputs of either signature."""
    if "summary" in outputs:
        yield from (summary.decode() for summary in outputs["summary"])
        return
    for summaries, scores in zip(outputs["summaries"], outputs["scores"], strict=True):
        for summary, score in zip(summaries, scores, strict=True):
            yield f"{score:.4f}  {summary.decode()}"


def run(argv: Sequence[str], ask_run: Callable, tensor: str, command: str) -> None:
    """Prints the summaries of the files that a command line names.

    Args:
        argv: The command line without its flags.
        ask_run: Function of a run, raw texts and a signature that returns the outputs by name.
        tensor: The name of the input of an export's signatures.
        command: The module, for messages.

    Raises:
        SystemExit: With a sentence, if a file, the run or the export lack something.
    """
    options = flags.FLAGS
    if len(argv) < 2:
        raise app.UsageError("Name a file to summarize, or - for the standard input.")
    signature = ALL if options.nbest else BEST
    try:
        texts = read(argv[1:])
        if options.export_dir:
            outputs = ask_export(options.export_dir, tensor, texts, signature)
        else:
            outputs = ask_run(options.workdir, texts, signature)
    except (OSError, ValueError) as error:
        sys.exit(f"{command}: {error}")
    print("\n".join(lines(outputs)))


def define_flags() -> None:
    """Defines the flags of a command."""
    flags.DEFINE_string("workdir", None, "The run, or folder of weights, to summarize with.")
    flags.DEFINE_string("export_dir", None, "Folder of versions, of which to take the latest.")
    flags.DEFINE_bool("nbest", False, "Print all that was found, with scores.")
    flags.mark_flags_as_mutual_exclusive(["workdir", "export_dir"], required=True)
