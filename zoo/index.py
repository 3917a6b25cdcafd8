"""Writes the README's index of the papers' tables from the first lines of the flagfiles.

    python -m zoo.index

A flagfile begins with comments such as `# row: GRU; T = 30`: paper, table, row, the paper's number,
ours, hours. Those without a table, such as the demo's, are not in the index.
"""

import itertools
import os
import re
from pathlib import Path

# What a recipe needs beside its flagfile.
NEEDS = {
    "babi": " --data=tasks_1-20_v1-2 --task=all",
    "pointer_generator": " --data=data/cnn_dailymail",
    "ptb": " --data=simple-examples.tgz",
    "xsum": " --data=data/xsum",
}
BEGIN, END = "<!-- Begin of what python -m zoo.index writes. -->\n", "<!-- End. -->\n"


def header(flagfile: Path) -> dict[str, str]:
    """Returns the fields of a flagfile's first lines, from name to text."""
    return dict(re.findall(r"^# ([^:\n]+): (.*)$", flagfile.read_text(), flags=re.MULTILINE))


def tables(root: Path) -> str:
    """Returns the index in Markdown: for each table a command and a line for each flagfile.

    Args:
        root: The folder that holds `zoo`.
    """
    headers = {path: header(path) for path in sorted(root.glob("zoo/*/*.flags"))}
    rows = [path for path in headers if "table" in headers[path]]
    text = ""
    for (task, table), paths in itertools.groupby(
        rows, lambda path: (path.parent.name, headers[path]["table"])
    ):
        title = f"Table {table}" if table[0].isdigit() else table
        text += f"\n### {title}\n\n```sh\npython -m zoo.{task}.train --workdir=runs/NAME"
        text += f" --flagfile=zoo/{task}/NAME.flags{NEEDS.get(task, '')}\n```\n\n"
        text += "| row | flagfile | paper | ours | hours |\n| --- | --- | --- | --- | --- |\n"
        for path in paths:
            link = f"[{path.stem}]({path.relative_to(root).as_posix()})"
            fields = [headers[path][name] for name in ("row", "paper's number", "ours", "hours")]
            text += f"| {' | '.join([fields[0], link, *fields[1:]])} |\n"
    return text + "\n"


def main() -> None:
    """Rewrites the index in the README of the working directory."""
    readme = Path("README.md")
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    staged = readme.with_suffix(".md.tmp")
    staged.write_text(before + BEGIN + tables(Path()) + END + after)
    os.replace(staged, readme)


if __name__ == "__main__":
    main()
