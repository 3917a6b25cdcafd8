"""What a run keeps of its corpus, so that it can summarize and be served without the corpus.

WORKDIR/corpus.json       length that documents are cut to, hashes of vocabulary and topics
WORKDIR/vocabulary.txt    as in the corpus
WORKDIR/topics/           topics.npz, words.json, without the topics of the vocabulary's words,
                          which are weights of the model; absent for a model without topics
"""

import os
import pathlib
from typing import NamedTuple

import numpy as np

from datasets import summarization, text_shards, topic_model, vocabulary
from datasets.topic_model import Topics
from datasets.vocabulary import Vocabulary
from zoo import kept
from zoo.xsum.model import TopicConvS2S

RECIPE = "zoo.xsum.train"


class Kept(NamedTuple):
    """What turns text into inputs of a model, and ids into words.

    Args:
        vocabulary: The vocabulary of documents and summaries.
        topics: The topics of documents; None for a model without topics.
        document_length: Words that are read of a document; 0 for all.
    """

    vocabulary: Vocabulary
    topics: Topics | None
    document_length: int


def keep(data: str | os.PathLike, workdir: str | os.PathLike, with_topics: bool) -> None:
    """Copies into a run what it needs of its corpus; does nothing where this has been done.

    Args:
        data: Folder of the corpus.
        workdir: Folder of the run.
        with_topics: Whether the model has topics.

    Raises:
        FileNotFoundError: If the corpus has no manifest, vocabulary or topics.
        ValueError: If the run was begun with another corpus, or the vocabulary was changed.
    """
    data, workdir = pathlib.Path(data), pathlib.Path(workdir)
    manifest = text_shards.read_json(
        data / "manifest.json", f"python -m datasets.xsum prepare --output={data}"
    )
    described = _described(data, manifest, with_topics)
    if kept.begun(workdir):
        kept.check(workdir, described, data, RECIPE)
        return
    kept.corpus_vocabulary(data, manifest).write(workdir / "vocabulary.txt")
    if with_topics:
        _keep_topics(data / "topics", workdir / "topics")
    # Last: with it, the others are there.
    summarization.write_json(workdir / "corpus.json", described)


def _described(data: pathlib.Path, manifest: dict, with_topics: bool) -> dict:
    described = {
        "document_length": manifest["settings"]["document_length"],
        "vocabulary_sha256": manifest["vocabulary"]["sha256"],
        "topics_sha256": None,
    }
    if with_topics:
        topics = text_shards.read_json(
            data / "topics" / "topics.json", f"python -m datasets.topics train --data={data}"
        )
        described["topics_sha256"] = topics["files"]["topics.npz"]
    return described


def _keep_topics(source: pathlib.Path, target: pathlib.Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with np.load(source / "topics.npz", allow_pickle=False) as arrays:
        needed = {name: arrays[name] for name in ("topic_words", "alpha")}
    # Compressed: most of topic_words is the prior, for words that a topic has not.
    np.savez_compressed(target / ".topics.npz", **needed)
    os.replace(target / ".topics.npz", target / "topics.npz")
    temporary = target / ".words.json"
    temporary.write_bytes((source / "words.json").read_bytes())
    os.replace(temporary, target / "words.json")


def read(run: str | os.PathLike) -> Kept:
    """Reads what `keep` wrote.

    Args:
        run: A run, or a folder of weights.

    Raises:
        FileNotFoundError: If it is not there.
    """
    run = pathlib.Path(run)
    described = kept.read(run, RECIPE)
    return Kept(
        vocabulary.read(run / "vocabulary.txt"),
        topic_model.load(run) if described["topics_sha256"] else None,
        described["document_length"],
    )


def load_model(run: str | os.PathLike) -> TopicConvS2S:
    """Loads the best model of a run; see `zoo.kept.load_model`."""
    return kept.load_model(run, RECIPE)
