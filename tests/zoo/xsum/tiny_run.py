"""A prepared corpus and a run of an untrained model, small enough for any test."""

import json
import pathlib

import keras
import numpy as np

from datasets import summarization, topic_model, topics, vocabulary, xsum
from zoo.xsum import kept
from zoo.xsum.model import TopicConvS2S

TOPICS = 3
DOCUMENT_LENGTH = 12

# Raw, as articles are: quotes, pounds, brackets, clitics, several lines, and names that few have.
ARTICLES = (
    (
        "The bridge won't open until March, the council said.\nRepairs cost £1,200 (or more).\n"
        '"It\'s a risk," said Ann Reid.',
        "A bridge stays closed until March.",
    ),
    ("Rain fell on the town. The river rose.", "Heavy rain fell on the town."),
    ("The council met on Monday. It voted 7-3 for the bridge.", "The council wants the bridge."),
    ("Tom Hale scored twice as the town's side won 3-1 on Monday.", "Hale scored twice on Monday."),
    ("The side lost in March. Hale didn't play.", "The town's side lost in March."),
    ("The river fell on Monday, after rain in March.", "The river fell on Monday."),
)


def write(folder: pathlib.Path, with_topics: bool = True) -> tuple[pathlib.Path, pathlib.Path]:
    """Prepares the corpus and writes a run.

    Args:
        folder: Where to make both.
        with_topics: Whether the model has topics.

    Returns:
        The folders of the corpus and of the run.
    """
    source, data, run = folder / "articles.jsonl", folder / "data", folder / "run"
    rows = [
        {"id": f"bbc{i}", "document": document, "summary": summary}
        for i, (document, summary) in enumerate(ARTICLES)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = summarization.Settings(vocabulary_size=24, document_length=DOCUMENT_LENGTH)
    xsum.prepare([str(source)], str(data), settings, held_out=2, processes=1)
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
