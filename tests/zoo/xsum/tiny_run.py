"""A prepared corpus and a run of an untrained model, small enough for any test."""

import json
import pathlib

import keras
import numpy as np

from datasets import topic_model, topics, vocabulary
from tests.zoo import articles
from zoo.xsum import kept
from zoo.xsum.model import TopicConvS2S

ARTICLES = articles.ARTICLES
TOPICS = 3
DOCUMENT_LENGTH = 12


def write(folder: pathlib.Path, with_topics: bool = True) -> tuple[pathlib.Path, pathlib.Path]:
    """Prepares the corpus and writes a run.

    Args:
        folder: Where to make both.
        with_topics: Whether the model has topics.

    Returns:
        The folders of the corpus and of the run.
    """
    run = folder / "run"
    data = articles.prepare(folder, vocabulary_size=24, document_length=DOCUMENT_LENGTH)
    words = vocabulary.read(data / "vocabulary.txt")
    found = _topics(words)
    topics.save(found, data, {})
    model = make_model(len(words), found.word_topics(words) if with_topics else None)
    run.mkdir()
    kept.keep(data, run, with_topics)
    model.save(run / "best.keras")
    (run / "metrics.json").write_text(json.dumps({"recipe": "zoo.xsum.train"}))
    return data, run


def _topics(words: vocabulary.Vocabulary) -> topic_model.Topics:
    lemmas = [word for word in words.words[4:] if word.isalpha()]
    weights = np.random.default_rng(3).gamma(0.3, 20, (TOPICS, len(lemmas))) + 0.1
    ids = {lemma: i for i, lemma in enumerate(lemmas)}
    return topic_model.Topics.of(lemmas, ids, weights, np.full(TOPICS, 1 / TOPICS))


def make_model(size: int, word_topics: np.ndarray | None) -> TopicConvS2S:
    """Makes a model whose summaries depend on what it reads."""
    keras.utils.set_random_seed(5)
    model = TopicConvS2S(
        size,
        topics=0 if word_topics is None else TOPICS,
        units=6,
        encoder_layers=[(5, 3)],
        decoder_layers=[(5, 3), (5, 2)],
        output_units=4,
    )
    model.build()
    if word_topics is not None:
        model.set_word_topics(word_topics)
    for weight in model.trainable_variables:
        weight.assign(2 * weight)
    return model
