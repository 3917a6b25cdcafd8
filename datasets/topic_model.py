"""Trained topics as plain arrays: p(topic | word), p(topic | document), top words.

The folder `topics` of a prepared corpus holds

    topics.npz     topic_words, alpha: see `Topics`; prior, and for the corpus's vocabulary
                   word_topics and word_topics_released
    words.json     the lemmas, and the lemma of every word of the training documents
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import zipfile
import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from datasets import topic_inference
from datasets.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Topics:
    """Trained topics.

    Args:
        lemmas: what the topics are distributions over.
        word_ids: place in `lemmas` of the lemma of each word known in training.
        topic_words: lambda, float32 (topics, lemmas): expected counts plus the prior eta.
        alpha: Dirichlet prior of topics, float64 (topics,).
        expected: exp(E[log p(lemma | topic)]), float32 (lemmas, topics), made of `topic_words`.

    Example:

    >>> topics = Topics.of(["rain", "vote"], {"rains": 0}, np.eye(2) + 0.1, np.full(2, 0.5))
    >>> print(topics.infer(["it", "rains"]).round(2), topics.infer(["it"]))
    [0.75 0.25] [0.5 0.5]
    """

    lemmas: list[str]
    word_ids: dict[str, int]
    topic_words: np.ndarray
    alpha: np.ndarray
    expected: np.ndarray

    @classmethod
    def of(cls, lemmas, word_ids, topic_words, alpha) -> "Topics":
        """Makes topics of all but `expected`."""
        topic_words = np.asarray(topic_words, np.float32)
        expected = topic_inference.expected_topic_words(topic_words)
        return cls(lemmas, word_ids, topic_words, np.asarray(alpha, np.float64), expected)

    @property
    def prior(self) -> np.ndarray:
        """p(topic), float32 (topics,): the topics of a document without a known word."""
        return (self.alpha / self.alpha.sum()).astype(np.float32)

    def infer(self, words: Iterable[str]) -> np.ndarray:
        """Returns p(topic | document), float32 (topics,), of the words of a whole document."""
        ids = [self.word_ids[word] for word in words if word in self.word_ids]
        return topic_inference.infer(np.array(ids, np.int64), self.expected, self.alpha)

    def word_topics(self, vocabulary: Vocabulary, form: str = "released") -> np.ndarray:
        """Returns a row t' of topics for each word of a model's vocabulary.

        Args:
            vocabulary: the vocabulary of the model.
            form: "normalised" is the paper's p(topic | word), by which a row sums to 1; a word
                without topics, a stop word say, has the prior. "released" is what the released
                code computes in its place: exp(E[log p(word | topic)]), where values below 1e-8
                are the smallest of the others; a word without topics has that value throughout.

        Returns:
            float32 (words, topics). The row of the padding is 0.

        Raises:
            ValueError: if there is no such form.
        """
        if form == "normalised":
            # p(word | topic) p(topic), where p(topic) is a topic's share of the training words.
            known = self.topic_words.T / self.topic_words.sum(axis=0)[:, None]
            unknown = self.prior
        elif form == "released":
            kept = self.expected >= 1e-8
            floor = self.expected[kept].min()
            known = np.where(kept, self.expected, floor)
            unknown = np.full(len(self.alpha), floor, np.float32)
        else:
            raise ValueError(f"form must be normalised or released, got {form!r}.")
        rows = np.empty((len(vocabulary), len(self.alpha)), np.float32)
        for i, word in enumerate(vocabulary.words):
            rows[i] = known[self.word_ids[word]] if word in self.word_ids else unknown
        rows[: len(vocabulary.specials.symbols)] = unknown
        rows[vocabulary.pad] = 0
        return rows

    def top_words(self, count: int = 10) -> list[list[str]]:
        """The likeliest lemmas of each topic, the likeliest first."""
        order = np.argsort(-self.topic_words, axis=1, kind="stable")[:, :count]
        return [[self.lemmas[i] for i in row] for row in order]

    def save(self, directory: str | os.PathLike, vocabulary: Vocabulary) -> None:
        """Writes `topics.npz` and `words.json`.

        The arrays are `topic_words`, `alpha`, `prior`, and for the `vocabulary` of a model
        `word_topics` and `word_topics_released`.
        """
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        words = {"lemmas": self.lemmas, "word_ids": self.word_ids}
        temporary = directory / ".words.json"
        temporary.write_text(json.dumps(words, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, directory / "words.json")
        temporary = directory / ".topics.npz"
        np.savez(
            temporary,
            topic_words=self.topic_words,
            alpha=self.alpha,
            prior=self.prior,
            word_topics=self.word_topics(vocabulary, "normalised"),
            word_topics_released=self.word_topics(vocabulary, "released"),
        )
        os.replace(temporary, directory / "topics.npz")


def load(data: str | os.PathLike) -> Topics:
    """Reads the topics of a prepared corpus.

    Args:
        data: the folder of the corpus, which holds `topics`.

    Raises:
        FileNotFoundError: if there are none.
    """
    directory = pathlib.Path(data, "topics")
    if not (directory / "topics.npz").exists():
        raise FileNotFoundError(
            f"{directory} has no topics.npz: run python -m datasets.topics train --data={data}"
        )
    with _whole(directory):
        words = json.loads((directory / "words.json").read_text(encoding="utf-8"))
        lemmas, word_ids = words["lemmas"], words["word_ids"]
        with np.load(directory / "topics.npz", allow_pickle=False) as arrays:
            topic_words, alpha = arrays["topic_words"], arrays["alpha"]
    return Topics.of(lemmas, word_ids, topic_words, alpha)


@contextlib.contextmanager
def _whole(directory: pathlib.Path) -> Iterator[None]:
    """Makes a `ValueError` that names the folder of what half a file is read as."""
    try:
        yield
    except (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{directory} is damaged: {error}. Bring it back whole, or make it again with "
            "python -m datasets.topics train --overwrite."
        ) from error


def load_word_topics(data: str | os.PathLike, form: str = "released") -> np.ndarray:
    """Reads t' of a prepared corpus's vocabulary, float32 (words, topics).

    Args:
        data: the folder of the corpus, which holds `topics`.
        form: "normalised" or "released", as for `Topics.word_topics`.

    Raises:
        FileNotFoundError: if there are no topics.
    """
    path = pathlib.Path(data, "topics", "topics.npz")
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is not there: run python -m datasets.topics train --data={data}"
        )
    name = {"normalised": "word_topics", "released": "word_topics_released"}[form]
    with _whole(path.parent), np.load(path, allow_pickle=False) as arrays:
        return arrays[name]
