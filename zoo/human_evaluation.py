"""Judgements of people: sheets to fill in, best-worst scaling, question answering, significance.

    python -m zoo.human_evaluation sheets --summaries=summaries.jsonl --output=runs/judging
    python -m zoo.human_evaluation best_worst --key=runs/judging/key.csv --sheets=filled/*.csv
    python -m zoo.human_evaluation answers --answers=answers.csv

As in Section 5 of Narayan et al. (2018): annotators read a document and the summaries of two
systems, and say which is best; a system's score is how often it was best less how often it was
worst. Or they answer questions from a summary alone, worth 1 if right, 0.5 if partly, or else 0.
Significance: one-way ANOVA, then Tukey's HSD, over the systems' scores on each document.

A sheet has `task, document, summary_1, summary_2, best`, best being empty for the annotator to
write 1 or 2; it does not name systems, `key.csv` does: `task, document, system_1, system_2`.
`answers.csv` has `document, system, question, annotator, score`.
"""

import collections
import csv
import glob
import itertools
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from absl import app, flags
from scipy import stats

from datasets import articles
from zoo import summaries

FLAGS = flags.FLAGS
REFERENCE = "reference"
# Scores of each system, document by document.
Scores = dict[str, dict[str, list[float]]]


def make_sheets(
    examples: Sequence[summaries.Example],
    output: str | os.PathLike,
    documents: int = 50,
    annotators: int = 3,
    seed: int = 0,
    reference: bool = True,
) -> list[Path]:
    """Writes a sheet for each annotator, and the key.

    Each pair of systems is compared on each document. Which comes first is drawn for each task,
    the order of the tasks for each annotator.

    Args:
        examples: Documents with summaries; see `zoo/summaries.py`.
        output: A folder for `key.csv` and `sheet_1.csv`, `sheet_2.csv`, ...
        documents: How many to draw.
        annotators: How many sheets to write.
        seed: Of everything that is drawn.
        reference: Whether references take part, as one more system.

    Returns:
        The files.

    Raises:
        ValueError: If there are too few documents or systems.
    """
    if not 1 <= documents <= len(examples):
        raise ValueError(f"documents must be 1 to {len(examples)}, but is {documents}.")
    systems = sorted(examples[0].summaries) + [REFERENCE] * reference
    if len(systems) < 2:
        raise ValueError(f"Two systems or more can be compared, but there are only {systems}.")
    generator = np.random.default_rng(seed)
    drawn = sorted(generator.choice(len(examples), documents, replace=False))
    key, tasks = [], []
    for example in (examples[place] for place in drawn):
        texts = {**example.summaries, REFERENCE: example.reference}
        for pair in itertools.combinations(systems, 2):
            first, second = generator.permutation(pair)
            task = str(len(key) + 1)
            key.append((task, example.id, first, second))
            tasks.append((task, "\n".join(example.document), texts[first], texts[second], ""))
    output = Path(output)
    paths = [output / "key.csv"]
    _write(paths[0], ("task", "document", "system_1", "system_2"), key)
    for annotator in range(1, annotators + 1):
        shuffled = [tasks[place] for place in generator.permutation(len(tasks))]
        paths.append(output / f"sheet_{annotator}.csv")
        _write(paths[-1], ("task", "document", "summary_1", "summary_2", "best"), shuffled)
    return paths


def best_worst(key: str | os.PathLike, sheets: Sequence[str | os.PathLike]) -> Scores:
    """Reads filled sheets: 1 for a system that was best in a task, -1 for the other.

    Raises:
        ValueError: Naming file:line, if a task is not in the key or `best` is not 1 or 2.
    """
    systems = {
        row["task"]: row for _, row in _read(key, ("task", "document", "system_1", "system_2"))
    }
    scores = _no_scores()
    for sheet in sheets:
        for where, row in _read(sheet, ("task", "best")):
            if row["task"] not in systems:
                raise ValueError(f"{where}: the task {row['task']!r} is not in {key}.")
            if row["best"].strip() not in ("1", "2"):
                raise ValueError(f"{where}: `best` must be 1 or 2, but is {row['best']!r}.")
            task = systems[row["task"]]
            for place in ("1", "2"):
                won = 1.0 if row["best"].strip() == place else -1.0
                scores[task[f"system_{place}"]][task["document"]].append(won)
    return scores


def answers(path: str | os.PathLike) -> Scores:
    """Reads the scores of answered questions.

    Raises:
        ValueError: Naming file:line, if a score is not 1, 0.5 or 0.
    """
    scores = _no_scores()
    for where, row in _read(path, ("document", "system", "question", "annotator", "score")):
        try:
            score = float(row["score"])
        except ValueError:
            score = None
        if score not in (1.0, 0.5, 0.0):
            raise ValueError(f"{where}: `score` must be 1, 0.5 or 0, but is {row['score']!r}.")
        scores[row["system"]][row["document"]].append(score)
    return scores


def system_scores(scores: Mapping) -> dict[str, float]:
    """Returns the mean of all judgements of each system: Table 7's columns."""
    return {
        system: float(np.mean([score for document in found.values() for score in document]))
        for system, found in scores.items()
    }


def significance(scores: Mapping) -> tuple[float, dict[tuple[str, str], float]]:
    """Tests whether systems differ.

    Args:
        scores: What `best_worst` or `answers` returns. A system's mean on a document is one
            observation: several judgements of it are not independent.

    Returns:
        The probability of one-way ANOVA that all systems are alike, and, by Tukey's HSD, that each
        pair is. NaN where nothing varies.

    Raises:
        ValueError: If there are fewer than two systems, or one has fewer than two documents.
    """
    groups = {
        system: [np.mean(document) for document in found.values()]
        for system, found in scores.items()
    }
    small = [system for system, group in groups.items() if len(group) < 2]
    if len(groups) < 2 or small:
        raise ValueError(
            "Significance needs two systems or more with two documents or more each, but there "
            f"are {sorted(groups)}, of which {small} have fewer documents."
        )
    with warnings.catch_warnings():
        # Where no group varies both tests divide by zero: their NaN is the answer.
        warnings.simplefilter("ignore", RuntimeWarning)
        anova = stats.f_oneway(*groups.values())
        tukey = stats.tukey_hsd(*groups.values())
    names = enumerate(groups)
    pairs = {
        (first, second): float(tukey.pvalue[i, j])
        for (i, first), (j, second) in itertools.combinations(names, 2)
    }
    return float(anova.pvalue), pairs


def _no_scores() -> Scores:
    return collections.defaultdict(lambda: collections.defaultdict(list))


def _read(path, columns) -> Iterator[tuple[str, dict]]:
    """Yields file:line and row of a CSV file that must have `columns`."""
    with articles.reading(Path(path)), open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        missing = sorted(set(columns) - set(reader.fieldnames or ()))
        if missing:
            raise ValueError(f"{path}:1: expected columns {list(columns)}, but lacks {missing}.")
        for row in reader:
            if any(row[column] is None for column in columns):
                raise ValueError(f"{path}:{reader.line_num}: the row has too few columns.")
            yield f"{path}:{reader.line_num}", row


def _write(path, columns, rows) -> None:
    """Writes a CSV file, under a temporary name first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".tmp-{path.name}")
    with staged.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    os.replace(staged, path)


def _report(scores) -> None:
    """Prints scores, best first, and what is significant."""
    for system, score in sorted(system_scores(scores).items(), key=lambda item: -item[1]):
        judgements = sum(map(len, scores[system].values()))
        print(f"{system:24}{score:8.3f}   {judgements} judgements")
    anova, pairs = significance(scores)
    print(f"one-way ANOVA: p = {anova:.4g}")
    for (first, second), probability in pairs.items():
        print(f"Tukey's HSD: {first} and {second}: p = {probability:.4g}")


def main(argv: Sequence[str]) -> None:
    """Does what `argv` says: sheets, best_worst or answers."""
    commands = ("sheets", "best_worst", "answers")
    if len(argv) < 2 or argv[1] not in commands:
        raise app.UsageError(f"Say what to do: one of {', '.join(commands)}.")
    needed = {"sheets": "summaries", "best_worst": "key", "answers": "answers"}[argv[1]]
    if not FLAGS[needed].value:
        raise app.UsageError(f"{argv[1]} needs --{needed}=FILE.")
    try:
        _run(argv)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.human_evaluation: {error}")


def _run(argv) -> None:
    if argv[1] == "sheets":
        examples = summaries.read(FLAGS.summaries)
        for path in make_sheets(
            examples, FLAGS.output, FLAGS.documents, FLAGS.annotators, FLAGS.seed, FLAGS.reference
        ):
            print(path)
    elif argv[1] == "best_worst":
        # The rest of the line is sheets too, since a shell spreads `--sheets=filled/*.csv`.
        found = [path for name in FLAGS.sheets for path in sorted(glob.glob(name))] + argv[2:]
        if not found:
            raise app.UsageError(f"There is no sheet {FLAGS.sheets}.")
        _report(best_worst(FLAGS.key, found))
    else:
        _report(answers(FLAGS.answers))


if __name__ == "__main__":
    flags.DEFINE_list("summaries", [], "Files as zoo/summaries.py says.")
    flags.DEFINE_string("output", "runs/judging", "Folder for sheets and key.")
    flags.DEFINE_integer("documents", 50, "How many to draw for the sheets.")
    flags.DEFINE_integer("annotators", 3, "How many sheets to write.")
    flags.DEFINE_integer("seed", 0, "Of what is drawn.")
    flags.DEFINE_boolean("reference", True, "Whether the reference is one of the systems.")
    flags.DEFINE_string("key", None, "The key that was written with the sheets.")
    flags.DEFINE_list("sheets", [], "Filled sheets.")
    flags.DEFINE_string("answers", None, "File of scored answers.")
    app.run(main)
