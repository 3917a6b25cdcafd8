"""What a run keeps of its corpus, so that it can summarize and be served without the corpus.

WORKDIR/corpus.json       what is read of a document, how long summaries are, the vocabulary's hash
WORKDIR/vocabulary.txt    the corpus's words after See et al.'s special symbols, whichever it has

A word has the same id after either convention's four special symbols; unknown words of XSum's get
another one (`batches.load`). So a model has one form, whatever it was trained on.
"""

import os
import pathlib
from typing import NamedTuple

from datasets import summarization, text_shards, vocabulary
from datasets.vocabulary import SEE, Vocabulary
from zoo import kept
from zoo.pointer_generator.model import PointerGenerator

RECIPE = "zoo.pointer_generator.train"


class Kept(NamedTuple):
    """What turns text into inputs of a model, and ids into words.

    Args:
        vocabulary: The vocabulary of documents and summaries.
        document_length: Words that are read of a document.
        min_length: Fewest words of a summary.
        max_length: Most words of a summary.
    """

    vocabulary: Vocabulary
    document_length: int
    min_length: int
    max_length: int


def keep(
    data: str | os.PathLike,
    workdir: str | os.PathLike,
    document_length: int,
    min_length: int,
    max_length: int,
) -> None:
    """Copies into a run what it needs of its corpus; does nothing where this has been done.

    Args:
        data: Folder of the corpus.
        workdir: Folder of the run.
        document_length: Words that the model reads of a document; of those that the corpus kept.
        min_length: Fewest words of its summaries.
        max_length: Most words of its summaries.

    Raises:
        FileNotFoundError: If the corpus has no manifest or vocabulary.
        ValueError: If the lengths contradict each other, or the run was begun with another corpus.
    """
    data, workdir = pathlib.Path(data), pathlib.Path(workdir)
    if not 0 <= min_length <= max_length:
        raise ValueError(
            f"min_length must be from 0 to max_length, {max_length}, but is {min_length}."
        )
    manifest = text_shards.read_json(
        data / "manifest.json", f"python -m datasets.cnn_dailymail prepare --output={data}"
    )
    limit = manifest["settings"]["document_length"]
    described = {
        "document_length": min(document_length, limit or document_length),
        "min_length": min_length,
        "max_length": max_length,
        "vocabulary_sha256": manifest["vocabulary"]["sha256"],
    }
    if kept.begun(workdir):
        check(workdir, described, data)
        return
    words = kept.corpus_vocabulary(data, manifest)
    Vocabulary(words.words[len(words.specials.symbols) :], SEE).write(workdir / "vocabulary.txt")
    # Last: with it, the other is there.
    summarization.write_json(workdir / "corpus.json", described)


def check(
    run: str | os.PathLike, described: dict, data: str | os.PathLike, flag: str = "workdir"
) -> None:
    """Compares what a run has kept with what another corpus would; see `zoo.kept.check`."""
    kept.check(run, described, data, RECIPE, flag)


def read(run: str | os.PathLike) -> Kept:
    """Reads what `keep` wrote.

    Args:
        run: A run, or a folder of weights.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If another recipe wrote it.
    """
    run = pathlib.Path(run)
    described = kept.read(run, RECIPE)
    lacking = [name for name in Kept._fields[1:] if name not in described]
    if lacking:
        raise ValueError(
            f"{run} is no run of {RECIPE}: its corpus.json has no {', '.join(lacking)}."
        )
    return Kept(
        vocabulary.read(run / "vocabulary.txt"),
        *(described[name] for name in Kept._fields[1:]),
    )


def load_model(run: str | os.PathLike) -> PointerGenerator:
    """Loads the best model of a run; see `zoo.kept.load_model`."""
    return kept.load_model(run, RECIPE)
