"""A corpus of six articles, small enough for any test."""

import json
import pathlib
from typing import Any

from datasets import summarization, xsum

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


def prepare(folder: pathlib.Path, **settings: Any) -> pathlib.Path:
    """Prepares the corpus.

    Args:
        folder: Where to make it.
        **settings: Of `datasets.summarization.Settings`.

    Returns:
        Its folder.
    """
    source, data = folder / "articles.jsonl", folder / "data"
    rows = [
        {"id": f"bbc{i}", "document": document, "summary": summary}
        for i, (document, summary) in enumerate(ARTICLES)
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = summarization.Settings(**settings)
    xsum.prepare([str(source)], str(data), settings, held_out=2, processes=1)
    return data
