"""The table of a row: what it reaches on each of the 20 tasks, and the mean beside the paper's."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

NAMES = (
    "single supporting fact", "two supporting facts", "three supporting facts",
    "two-argument relations", "three-argument relations", "yes/no questions", "counting",
    "lists/sets", "simple negation", "indefinite knowledge", "basic coreference", "conjunction",
    "compound coreference", "time reasoning", "basic deduction", "basic induction",
    "positional reasoning", "size reasoning", "path finding", "agent's motivations",
)  # fmt: skip


def folder(row: str | Path, task: int) -> Path:
    """Returns the folder of a task in that of its row: its working folder, or its weights."""
    return Path(row) / f"qa{task:02}"


def read(row: str | Path) -> dict[int, dict]:
    """Returns metrics.json of every task of `row` that is finished, by task."""
    paths = {task: folder(row, task) / "metrics.json" for task in range(1, len(NAMES) + 1)}
    return {task: json.loads(path.read_text()) for task, path in paths.items() if path.exists()}


def mean(accuracies: Mapping[int, float]) -> float | None:
    """Returns the mean accuracy in per cent; None if not all 20 tasks are there."""
    if len(accuracies) < len(NAMES):
        return None
    return 100 * sum(accuracies.values()) / len(accuracies)


def markdown(metrics: Mapping[int, dict], paper: float | None) -> str:
    """Returns the table of `read` in Markdown; `paper` is the mean that the paper gives."""
    lines = ["| task | | accuracy, % | steps | questions from |", "| --- | --- | --- | --- | --- |"]
    for task, name in enumerate(NAMES, 1):
        found = metrics.get(task)
        cells = ["not run", "", ""]
        if found:
            accuracy = f"{100 * found['test']['accuracy']:.1f}"
            cells = [accuracy, str(found["steps_taken"]), found["language"]]
        lines.append(f"| {task} | {name} | {' | '.join(cells)} |")
    ours = mean({task: found["test"]["accuracy"] for task, found in metrics.items()})
    lines.append(f"| | **mean** | {'-' if ours is None else f'**{ours:.1f}**'} | | |")
    lines.append(f"| | mean in the paper | {'-' if paper is None else paper} | | |")
    return "\n".join(lines) + "\n"


def write(row: str | Path, paper: float | None) -> str:
    """Writes table.md and table.json of what is finished of `row`; returns the former."""
    metrics = read(row)
    text = markdown(metrics, paper)
    accuracies = {task: found["test"]["accuracy"] for task, found in metrics.items()}
    table = {
        "accuracy": {str(task): 100 * accuracy for task, accuracy in accuracies.items()},
        "mean": mean(accuracies),
        "paper": paper,
    }
    for name, content in (("table.md", text), ("table.json", json.dumps(table, indent=2) + "\n")):
        temporary = Path(row) / f".{name}"
        temporary.write_text(content)
        os.replace(temporary, Path(row) / name)
    return text
