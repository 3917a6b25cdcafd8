"""One report of what systems wrote: metrics.json, a table, a page with examples side by side.

The page is one file that needs no network. It shows each document with its reference, the systems'
summaries, its topics, and where a system looked for each word, hop by hop.
"""

import base64
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from zoo import novelty, rouge, summaries

TEMPLATE = Path(__file__).with_name("report.html")
# R1, R2 and RL, for which the sentences of a summary stand apart.
PRINTED = {"R1": "rouge1", "R2": "rouge2", "RL": "rougeLsum"}


def measure(
    examples: Sequence[summaries.Example],
    mode: str = "rouge155",
    exceptions: str | os.PathLike | None = None,
    seed: int = 0,
    processes: int | None = None,
) -> dict:
    """Computes everything about each system.

    Args:
        examples: Documents with summaries; see `zoo/summaries.py`.
        mode: Of `zoo.rouge`.
        exceptions: Folder of WordNet's lists, for mode "rouge155".
        seed: Of the bootstrap.
        processes: How many share the work; as many as there are cores if None.

    Returns:
        `documents`, `rouge_mode`, `seed`, and `systems`: for `reference` and each system what
        `zoo.novelty.figures` counts, and `rouge` as `zoo.rouge.means` gives it.

    Raises:
        ValueError: If there are no examples.
    """
    if not examples:
        raise ValueError("There are no examples to measure.")
    systems = novelty.by_system(examples)
    references = [_lines(example.reference) for example in examples]
    for system in examples[0].summaries:
        candidates = [_lines(example.summaries[system]) for example in examples]
        scored = rouge.scores(references, candidates, mode, exceptions, processes=processes)
        systems[system]["rouge"] = rouge.means(scored, seed=seed)
    return {"documents": len(examples), "rouge_mode": mode, "seed": seed, "systems": systems}


def check_folder(output: str | os.PathLike) -> None:
    """Says before the work, not after, that a report cannot be written.

    Raises:
        NotADirectoryError: If `output` is a file, or in one.
    """
    path = Path(output)
    found = next(parent for parent in (path, *path.parents, Path("/")) if parent.exists())
    if not found.is_dir():
        raise NotADirectoryError(f"--output={output}: expected a folder, but {found} is a file.")


def warnings(metrics: Mapping) -> list[str]:
    """Says what a reader of the scores should know: summaries that repeat, unknown words."""
    found = []
    for system, figures in metrics["systems"].items():
        if figures["distinct"] < 90:
            found.append(
                f"{system}: only {figures['distinct']:.1f} % of the summaries are distinct: it "
                "writes the same for different documents."
            )
        if figures["unknown"] > 1:
            found.append(f"{system}: {figures['unknown']:.1f} % of the words are unknown words.")
        if figures["repeated"][2] > 10:
            found.append(
                f"{system}: {figures['repeated'][2]:.1f} % of the bigrams are repetitions."
            )
    return found


def rows(metrics: Mapping, published: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Makes the table, its head first.

    Args:
        metrics: What `measure` returns.
        published: R1, R2 and RL in the paper, by system.
    """
    head = ["system", *PRINTED, "95 % of R1", "published", "words"]
    head += [f"new {n}" for n in novelty.ORDERS] + ["repeated 2", "unknown"]
    table = [head]
    for system, figures in metrics["systems"].items():
        row = [system]
        if scores := figures.get("rouge"):
            row += [f"{scores[measure]['f']:.2f}" for measure in PRINTED.values()]
            row.append(f"{scores['rouge1']['low']:.2f} to {scores['rouge1']['high']:.2f}")
        else:
            row += [""] * (len(PRINTED) + 1)
        row.append("/".join(f"{number:.2f}" for number in published.get(system, ())))
        numbers = [figures["words"], *figures["novel"].values()]
        numbers += [figures["repeated"][2], figures["unknown"]]
        table.append(row + [f"{number:.2f}" for number in numbers])
    return table


def markdown(table: Sequence[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [table[0], ["---"] * len(table[0]), *table[1:]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(
    examples: Sequence[summaries.Example],
    metrics: Mapping,
    title: str,
    published: Mapping[str, Sequence[float]],
) -> str:
    """Returns the HTML page.

    Args:
        examples: Those to show.
        metrics: What `measure` returns.
        title: Of the page.
        published: R1, R2 and RL in the paper, by system.
    """
    note = (
        f"ROUGE F1 ({metrics['rouge_mode']}) and novelty in per cent, over "
        f"{metrics['documents']} documents, of which {len(examples)} are shown. Published: "
        "R1/R2/RL in the paper, on all of its test documents."
    )
    blobs = [
        {"example": number, "system": system, **_packed(attention)}
        for number, example in enumerate(examples, start=1)
        for system, attention in example.attention.items()
    ]
    parts = {
        "title": _escape(title),
        "note": _escape(note),
        "warnings": "".join(f'<p class="warning">{_escape(w)}</p>\n' for w in warnings(metrics)),
        "table": _html_table(rows(metrics, published)),
        "examples": "".join(map(_article, range(1, len(examples) + 1), examples)),
        # No text of a document may end the script element.
        "attention": json.dumps(blobs).replace("<", "\\u003c"),
    }
    # In one pass, so that no document's text is taken for a placeholder.
    template = TEMPLATE.read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda name: parts[name[1]], template)


def write(
    output: str | os.PathLike,
    examples: Sequence[summaries.Example],
    metrics: Mapping,
    title: str,
    published: Mapping[str, Sequence[float]],
    shown: int = 20,
) -> list[Path]:
    """Writes metrics.json, table.md and report.html into a folder, and returns their paths."""
    check_folder(output)
    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    files = {
        "metrics.json": json.dumps(metrics, indent=1) + "\n",
        "table.md": markdown(rows(metrics, published)),
        "report.html": page(examples[:shown], metrics, title, published),
    }
    for name, content in files.items():
        staged = output / f".tmp-{name}"
        staged.write_text(content, encoding="utf-8")
        os.replace(staged, output / name)
    return [output / name for name in files]


def _lines(text) -> str:
    return "\n".join(summaries.sentences(text))


def _escape(text) -> str:
    return html.escape(str(text))


def _html_table(table) -> str:
    def line(cells, tag):
        return f"<tr>{''.join(f'<{tag}>{_escape(cell)}</{tag}>' for cell in cells)}</tr>\n"

    return f"<table>\n{line(table[0], 'th')}{''.join(line(r, 'td') for r in table[1:])}</table>\n"


def _packed(attention) -> dict:
    """Packs weights into bytes, each row by its largest: 20 hops as numbers would be megabytes."""
    weights = np.asarray(attention.weights, np.float32)
    largest = np.maximum(weights.max(axis=-1), 1e-9)
    levels = np.rint(255 * np.clip(weights / largest[..., None], 0, 1)).astype(np.uint8)
    return {
        "shape": weights.shape,
        "largest": [float(f"{value:.4g}") for value in largest.ravel()],
        "bytes": base64.b64encode(levels.tobytes()).decode(),
        "source": attention.source,
        "target": attention.target,
        "p_gen": attention.p_gen,
    }


def _article(number, example) -> str:
    """Returns the part of the page about one example."""
    document = "".join(f"<p>{_escape(line)}</p>\n" for line in example.document)
    texts = {"reference": example.reference, **example.summaries}
    written = "".join(
        f'<h3>{_escape(system)}</h3>\n<p class="summary">{_escape(_lines(text)) or "(empty)"}</p>\n'
        for system, text in texts.items()
    )
    topics = "".join(
        f'<p class="topic"><meter value="{weight:.4f}"></meter> {weight:.3f} '
        f"{_escape(' '.join(words))}</p>\n"
        for weight, words in example.topics
    )
    topics = f"<h3>topics of the document</h3>\n{topics}" if topics else ""
    attention = '<div class="attention"></div>\n' * bool(example.attention)
    return (
        f'<article id="example-{number}">\n<h2>{number}. {_escape(example.id)}</h2>\n'
        f'<div class="columns">\n<div class="document">\n{document}</div>\n'
        f"<div>\n{written}{topics}</div>\n</div>\n{attention}</article>\n"
    )
