"""What a run keeps of its corpus: what recipes of summaries share.

WORKDIR/corpus.json       what decides inputs and targets: settings, hashes of vocabulary and others
WORKDIR/vocabulary.txt    the words that ids stand for

The `kept` of each recipe says what else there is.
"""

import json
import os
import pathlib
from collections.abc import Mapping

import keras


def read_json(path: pathlib.Path, source: str) -> dict:
    """Reads a file of JSON.

    Args:
        path: The file.
        source: The command that makes it.

    Raises:
        FileNotFoundError: Naming the command, if it is not there.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no {path}: it comes from {source}.")
    return json.loads(path.read_text())


def read(run: str | os.PathLike, recipe: str) -> dict:
    """Reads the corpus.json of a run.

    Args:
        run: A run, or a folder of weights.
        recipe: The module that trained it.

    Raises:
        FileNotFoundError: If it is not there.
    """
    return read_json(pathlib.Path(run, "corpus.json"), f"python -m {recipe}, which copies it")


def check(run: str | os.PathLike, described: Mapping, data: str | os.PathLike, recipe: str) -> None:
    """Compares what a run has kept with what another corpus would have it keep.

    Args:
        run: A run.
        described: Fields of its corpus.json.
        data: The corpus, for the message.
        recipe: The module that trained it.

    Raises:
        FileNotFoundError: If the run has kept nothing.
        ValueError: If they differ.
    """
    before = read(run, recipe)
    changed = sorted(name for name in described if before.get(name) != described[name])
    if changed:
        raise ValueError(
            f"{run} was begun with another corpus than {data}, or read in another way: "
            f"{', '.join(changed)} differ. Bring that corpus back, or choose another --workdir."
        )


def load_model(run: str | os.PathLike, recipe: str) -> keras.Model:
    """Loads the best model of a run, which may still be training, without mixed precision.

    Args:
        run: A run, or a folder of weights.
        recipe: The module that trained it. What its model needs has been imported.

    Raises:
        FileNotFoundError: If there is no best.keras.
    """
    path = pathlib.Path(run, "best.keras")
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no {path}: a run of python -m {recipe} has it after its first epoch."
        )
    model = keras.saving.load_model(path, compile=False)
    for layer in model._flatten_layers():
        layer.dtype_policy = layer.variable_dtype
    return model
