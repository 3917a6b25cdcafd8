"""What a run keeps of its corpus: what recipes of summaries share.

WORKDIR/corpus.json       what decides inputs and targets: settings, hashes of vocabulary and others
WORKDIR/vocabulary.txt    the words that ids stand for

The `kept` of each recipe says what else there is.
"""

import os
import pathlib
from collections.abc import Mapping

import keras

from datasets import summarization, text_shards, vocabulary
from datasets.vocabulary import Vocabulary
from zoo import checkpoint


def corpus_vocabulary(data: pathlib.Path, manifest: Mapping) -> Vocabulary:
    """Reads the vocabulary of a corpus.

    Args:
        data: Folder of the corpus.
        manifest: Its manifest.json.

    Raises:
        FileNotFoundError: If it is not there.
        ValueError: If it is not the one that the corpus was prepared with.
    """
    path = data / "vocabulary.txt"
    if not path.is_file():
        raise FileNotFoundError(f"There is no {path}: prepare the corpus again.")
    if summarization.sha256(path) != manifest["vocabulary"]["sha256"]:
        raise ValueError(
            f"{path} is not the vocabulary that {data} was prepared with, whose SHA-256 is in "
            "manifest.json: bring it back, or prepare the corpus in another folder."
        )
    return vocabulary.read(path)


def read(run: str | os.PathLike, recipe: str) -> dict:
    """Reads the corpus.json of a run.

    Args:
        run: A run, or a folder of weights.
        recipe: The module that trained it.

    Raises:
        FileNotFoundError: If it is not there.
    """
    return text_shards.read_json(
        pathlib.Path(run, "corpus.json"), f"python -m {recipe}, which copies it"
    )


def begun(run: str | os.PathLike) -> bool:
    """Whether a run has kept its corpus and made anything of it; if not, it can be begun anew."""
    run = pathlib.Path(run)
    made = any((run / name).exists() for name in ("backup", "log.csv", "best.keras"))
    return made and (run / "corpus.json").exists()


def check(
    run: str | os.PathLike,
    described: Mapping,
    data: str | os.PathLike,
    recipe: str,
    flag: str = "workdir",
) -> None:
    """Compares what a run has kept with what another corpus would have it keep.

    Args:
        run: A run.
        described: Fields of its corpus.json.
        data: The corpus, for the message.
        recipe: The module that trained it.
        flag: The flag that names the run.

    Raises:
        FileNotFoundError: If the run has kept nothing.
        ValueError: If they differ.
    """
    before = read(run, recipe)
    changed = sorted(name for name in described if before.get(name) != described[name])
    if changed:
        raise ValueError(
            f"{run} was begun with another corpus than {data}, or read in another way: "
            f"{', '.join(changed)} differ. Bring that corpus back, or choose another --{flag}."
        )


def check_vocabulary(vocabulary: Vocabulary, model: keras.Model, run: str | os.PathLike) -> None:
    """Compares what a run has kept with its model: half a vocabulary would be served in silence.

    Args:
        vocabulary: The vocabulary of the run.
        model: Its model, whose configuration has the number of words as `vocabulary`.
        run: Its folder, for the message.

    Raises:
        ValueError: If they have not the same number of words.
    """
    words, expected = len(vocabulary), model.get_config()["vocabulary"]
    if words != expected:
        raise ValueError(
            f"{pathlib.Path(run, 'vocabulary.txt')} has {words} words, but the model has "
            f"{expected}: bring the file back that the run was begun with."
        )


def load_model(run: str | os.PathLike, recipe: str) -> keras.Model:
    """Loads the best model of a run, which may still be training, without mixed precision.

    Args:
        run: A run, or a folder of weights.
        recipe: The module that trained it. What its model needs has been imported.

    Raises:
        FileNotFoundError: If there is no best.keras.
        ValueError: If it is damaged, no model of this recipe, or has another vocabulary.
    """
    path = pathlib.Path(run, "best.keras")
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no {path}: a run of python -m {recipe} has it after its first epoch."
        )
    model = checkpoint.load_best(path, recipe)
    check_vocabulary(vocabulary.read(pathlib.Path(run, "vocabulary.txt")), model, run)
    return model
