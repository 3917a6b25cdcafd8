"""Tests trained weights of bAbI anew, and compares with the figures that were kept beside them.

    python -m zoo.babi.evaluate --data=tasks_1-20_v1-2
    python -m zoo.babi.evaluate --data=tasks_1-20_v1-2 --row=runs/babi

Without --row it takes every row in zoo/babi/weights. A row holds qa01 to qa20, each with
best.keras, vocabulary.json and metrics.json. Prints the table of each, and ends with exit status 1
if an accuracy is not the one in metrics.json.
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np
from absl import app, flags

import rum_keras  # noqa: F401  (registers the layers that load_model needs)
from datasets import babi
from zoo.babi import dmn_plus, dnc, entnet, gmemn2n, memn2n, qrn, table  # noqa: F401  (likewise)

WEIGHTS = Path(__file__).parent / "weights"
BATCH = 250


def read_vocabulary(directory: str | Path) -> tuple[babi.Vocabulary, str]:
    """Reads vocabulary.json of a run.

    Returns:
        The vocabulary, and the level: "sentence" or "word".

    Raises:
        FileNotFoundError: if there is none.
    """
    fields = json.loads((Path(directory) / "vocabulary.json").read_text())
    level = fields.pop("level")
    fields |= {name: tuple(fields[name]) for name in ("words", "answers")}
    return babi.Vocabulary(**fields), level


def predict(model: keras.Model, story: np.ndarray, question: np.ndarray) -> np.ndarray:
    """Returns the logits of `model` without compiling it, as `keras.Model.predict` would."""
    parts = []
    for first in range(0, len(story), BATCH):
        rows = slice(first, first + BATCH)
        parts.append(keras.ops.convert_to_numpy(model([story[rows], question[rows]])))
    return np.concatenate(parts)


def accuracy(directory: str | Path, questions: list[babi.Question]) -> float:
    """Returns the part of `questions` that the model in a task's folder answers rightly."""
    known, level = read_vocabulary(directory)
    story, question, answer = babi.arrays(questions, known, level)
    model = keras.saving.load_model(Path(directory) / "best.keras", compile=False)
    return float(np.mean(predict(model, story, question).argmax(-1) == answer))


def evaluate(row: str | Path, data: str | Path) -> tuple[str, list[str]]:
    """Tests all tasks of a row.

    Args:
        row: the folder that holds qa01 to qa20.
        data: the bAbI folder or archive.

    Returns:
        The table in Markdown, of the figures found; and a line for each that was another when the
        model was trained.

    Raises:
        FileNotFoundError: if there is no task in `row`, or no test file in `data`.
    """
    kept = table.read(row)
    if not kept:
        raise FileNotFoundError(f"There is no qa01 to qa20 with metrics.json in {row}.")
    different = []
    for task, metrics in kept.items():
        language = metrics["language"].split("+")[0]
        questions = babi.find(data, task, language, "test")
        if questions is None:
            raise FileNotFoundError(f"There is no {language}/qa{task}_*_test.txt in {data}.")
        found = accuracy(table.folder(row, task), questions)
        expected = metrics["test"]["accuracy"]
        if abs(found - expected) > 1e-9:
            different.append(f"{row}, task {task}: {found:.4f}, but metrics.json has {expected}.")
        metrics["test"]["accuracy"] = found
    summary = Path(row) / "table.json"
    paper = json.loads(summary.read_text())["paper"] if summary.exists() else None
    return table.markdown(kept, paper), different


def main(argv: list[str]) -> None:
    """Tests the rows that the flags name."""
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}.")
    rows = flags.FLAGS.row or sorted(path for path in WEIGHTS.glob("*") if table.read(path))
    if not rows:
        sys.exit(f"zoo.babi.evaluate: there is no row in {WEIGHTS}: name one with --row.")
    failed = []
    for row in rows:
        try:
            text, different = evaluate(row, flags.FLAGS.data)
        except (FileNotFoundError, ValueError) as error:
            sys.exit(f"zoo.babi.evaluate: {error}")
        print(f"{row}\n\n{text}", flush=True)
        failed += different
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    flags.DEFINE_string("data", None, "The folder tasks_1-20_v1-2, or its archive.")
    flags.DEFINE_multi_string("row", None, "Folder of a row; may be given several times.")
    flags.mark_flag_as_required("data")
    app.run(main)
