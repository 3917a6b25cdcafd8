"""A prepared corpus and a run of an untrained model, small enough for any test."""

import json
import pathlib

import keras

from tests.zoo import articles
from zoo.pointer_generator import kept
from zoo.pointer_generator.model import PointerGenerator

ARTICLES = articles.ARTICLES
DOCUMENT_LENGTH, MIN_LENGTH, MAX_LENGTH = 12, 2, 7
SEED = 360  # One with which the model copies, and does not always write the same.


def prepare(folder: pathlib.Path, specials: str = "see") -> pathlib.Path:
    """Prepares the corpus and returns its folder."""
    settings = {"vocabulary_size": 16, "document_length": 20, "specials": specials}
    return articles.prepare(folder, **settings)


def write(folder: pathlib.Path, **options) -> tuple[pathlib.Path, pathlib.Path]:
    """Prepares the corpus and writes a run.

    Args:
        folder: Where to make both.
        **options: Of the model.

    Returns:
        The folders of the corpus and of the run.
    """
    data, run = prepare(folder), folder / "run"
    run.mkdir()
    kept.keep(data, run, DOCUMENT_LENGTH, MIN_LENGTH, MAX_LENGTH)
    make_model(len(kept.read(run).vocabulary), **options).save(run / "best.keras")
    (run / "metrics.json").write_text(json.dumps({"recipe": "zoo.pointer_generator.train"}))
    return data, run


def make_model(size: int, **options) -> PointerGenerator:
    """Makes a model whose summaries depend on what it reads."""
    keras.utils.set_random_seed(5)
    model = PointerGenerator(size, embedding=4, units=3, **options)
    model.build()
    for number, weight in enumerate(model.trainable_variables):
        weight.assign(keras.random.normal(weight.shape, stddev=0.8, seed=SEED + number))
    return model
