"""Trains topics with gensim's `LdaMulticore` on the training documents of a prepared corpus.

With the settings of the released code it makes a step of learning every chunk * processes
documents, and goes through the documents once: a small corpus needs more passes and smaller
chunks. Worker processes race, so two trainings differ a little; with one process the seed decides.
"""

import logging
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from datasets import lemmas, parallel, text_shards, topic_model


class _Bags:
    """Documents as gensim reads them, run through once a pass."""

    def __init__(self, parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], passes: int):
        self._parts = parts
        self._size = sum(len(lengths) for _, _, lengths in parts)
        self.progress = parallel.Progress("topics", passes * self._size, "documents")

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        for ids, counts, lengths in self._parts:
            end = np.cumsum(lengths)
            for start, stop in zip(end - lengths, end, strict=True):
                yield list(zip(ids[start:stop].tolist(), counts[start:stop].tolist(), strict=True))
                self.progress.add(1)


def count_words(data: pathlib.Path, processes: int) -> Counter:
    """Counts the words of whole training documents.

    Raises:
        FileNotFoundError: if the folder holds no prepared training documents.
    """
    files = text_shards.files(data, "train")
    if not files:
        raise FileNotFoundError(
            f"{data} has no training documents: prepare a corpus there first, for example with "
            "python -m datasets.xsum prepare."
        )
    total: Counter = Counter()
    for counts in parallel.ordered(_count, files, processes):
        total.update(counts)
    return total


def _count(path: pathlib.Path) -> Counter:
    counts: Counter = Counter()
    for row in text_shards.read(path):
        counts.update(text_shards.words(row["document"]))
    return counts


def _bags(task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    path, word_ids = task
    ids, counts, lengths = [], [], []
    for row in text_shards.read(path):
        words = text_shards.words(row["document"])
        known = [word_ids[word] for word in words if word in word_ids]
        found, times = np.unique(np.array(known, np.int32), return_counts=True)
        ids.append(found)
        counts.append(times.astype(np.int32))
        lengths.append(len(found))
    empty = [np.zeros(0, np.int32)]
    return np.concatenate(ids or empty), np.concatenate(counts or empty), np.array(lengths, int)


def _lemmas(
    data: pathlib.Path, stop_words: Sequence[str], exceptions: str | None, processes: int
) -> tuple[list[str], dict[str, int]]:
    """The lemmas of the training documents, and the place of the lemma of every word."""
    counts = count_words(data, processes)
    stop = lemmas.stop_words() | frozenset(stop_words)
    of_words = lemmas.lemma_of_words(counts, lemmas.Lemmatizer(counts, exceptions), stop)
    if not of_words:
        raise ValueError(f"The training documents of {data} have no word but stop words.")
    names = list(dict.fromkeys(of_words.values()))
    place = {name: i for i, name in enumerate(names)}
    return names, {word: place[lemma] for word, lemma in of_words.items()}


def train(
    data: pathlib.Path,
    topics: int = 512,
    passes: int = 1,
    chunk: int = 2000,
    iterations: int = 1000,
    stop_words: Sequence[str] = (),
    exceptions: str | None = None,
    seed: int = 0,
    processes: int = 2,
) -> tuple[topic_model.Topics, dict]:
    """Trains topics on the training documents of a prepared corpus.

    Args:
        data: folder of the corpus.
        topics: number of topics.
        passes: how often to go through the documents.
        chunk: documents that a process works on between two exchanges.
        iterations: largest number of steps of the inference of a document.
        stop_words: words to leave out beside `lemmas.stop_words`.
        exceptions: folder of WordNet's exception lists, for `lemmas.Lemmatizer`.
        seed: seed of the first topics.
        processes: worker processes of gensim.

    Returns:
        The topics, and what they were made with: settings, sizes, documents a second.

    Raises:
        FileNotFoundError: if `data` holds no training documents.
        ValueError: if they have no word but stop words.
    """
    from gensim.models import LdaModel, LdaMulticore

    names, word_ids = _lemmas(data, stop_words, exceptions, processes)
    tasks = [(path, word_ids) for path in text_shards.files(data, "train")]
    bags = _Bags(list(parallel.ordered(_bags, tasks, processes)), passes)
    settings = {
        "corpus": bags,
        "num_topics": topics,
        "id2word": dict(enumerate(names)),
        "passes": passes,
        "chunksize": chunk,
        "iterations": iterations,
        "random_state": seed,
        "eval_every": None,
        "dtype": np.float64,
    }
    # gensim warns of few passes, which are the paper's setting.
    logging.getLogger("gensim").setLevel(logging.ERROR)
    # LdaModel is LdaMulticore in one process; its learning is the seed's alone.
    one = processes == 1
    lda = LdaModel(**settings) if one else LdaMulticore(**settings, workers=processes)
    trained = topic_model.Topics.of(names, word_ids, lda.state.get_lambda(), lda.alpha)
    rate = bags.progress.close()
    described = {"topics": topics, "passes": passes, "chunk": chunk, "iterations": iterations}
    described |= {"seed": seed, "processes": processes, "lemmas": len(names)}
    described |= {"documents": len(bags), "documents_a_second": round(rate, 1)}
    return trained, described
