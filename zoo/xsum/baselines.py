"""Summaries without a model: a random sentence, the first one, and the best one (Table 4).

    python -m zoo.xsum.baselines --data=data/xsum --split=test --output=runs/baselines.jsonl

reads the whole documents that `python -m datasets.xsum prepare` left, and writes lines as
`zoo/summaries.py` says, for `zoo.xsum.evaluate`. `--summaries=FILE` reads such lines instead.

- random: one sentence, drawn by (seed, id), so that it does not depend on the other documents;
- lead: the first sentence;
- ext-oracle: the one sentence with the largest sum of ROUGE-1, ROUGE-2 and ROUGE-L F1 against the
  reference, stemmed; of equal ones the first. On documents of the paper's human evaluation it is
  the paper's own choice, which sentences beyond the first 400 words belong to.
"""

import sys
import time
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from absl import app, flags

from datasets import parallel, text_shards
from zoo import rouge, summaries

FLAGS = flags.FLAGS
MEASURES = ("rouge1", "rouge2", "rougeL")


def random_sentence(document: Sequence[str], name: str, seed: int = 0) -> str:
    """Draws a sentence.

    Args:
        document: The sentences of a document.
        name: Its id: the same document gets the same sentence, whatever stands around it.
        seed: Of the draw.

    Returns:
        The sentence; "" if there is none.
    """
    if not document:
        return ""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return document[generator.integers(len(document))]


def lead(document: Sequence[str]) -> str:
    """Returns the first sentence; "" if there is none."""
    return document[0] if document else ""


def ext_oracle(
    document: Sequence[str], reference: str, mode: str = "porter", exceptions: str | None = None
) -> str:
    """Chooses the sentence that is most like the reference.

    Args:
        document: The sentences of a document.
        reference: Its summary.
        mode: Of `zoo.rouge`.
        exceptions: Folder of WordNet's lists, for mode "rouge155".

    Returns:
        The sentence with the largest ROUGE-1 + ROUGE-2 + ROUGE-L F1; "" if there is none.
    """
    if not document:
        return ""
    references = [reference] * len(document)
    scored = rouge.scores(references, document, mode, exceptions, MEASURES, processes=1)
    # Sums of one and the same fractions must not differ by the order of their rounding.
    return document[int(np.argmax(np.round(scored[:, :, 2].sum(axis=1), 12)))]


def _row(task) -> dict:
    """Makes the three summaries of a document."""
    example, seed, mode, exceptions = task
    document = example["document"]
    return {
        **example,
        "summaries": {
            "random": random_sentence(document, example["id"], seed),
            "lead": lead(document),
            "ext-oracle": ext_oracle(document, example["reference"], mode, exceptions),
        },
    }


def documents(data: str | None, split: str, files: Sequence[str]) -> Iterable[dict]:
    """Yields `{id, document, reference}` of a prepared corpus or of files of summaries."""
    if files:
        for example in summaries.read(files):
            document = [line.lower() for line in example.document]
            reference = example.reference.lower()
            yield {"id": example.id, "document": document, "reference": reference}
        return
    for row in text_shards.load(data, split):
        reference = "\n".join(row["summary"])
        yield {"id": row["id"], "document": row["document"], "reference": reference}


def main(_) -> None:
    """Writes the summaries."""
    if bool(FLAGS.data) == bool(FLAGS.summaries):
        raise app.UsageError("Give either --data or --summaries.")
    start = time.monotonic()
    try:
        summaries.check_output(FLAGS.output)
        tasks = (
            (example, FLAGS.seed, FLAGS.mode, FLAGS.exceptions)
            for example in documents(FLAGS.data, FLAGS.split, FLAGS.summaries)
        )
        rows = list(parallel.ordered(_row, tasks, FLAGS.processes))
        summaries.write(FLAGS.output, rows)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.xsum.baselines: {error}")
    print(f"{FLAGS.output}: {len(rows)} documents in {time.monotonic() - start:.1f} s")


if __name__ == "__main__":
    flags.DEFINE_string("data", None, "Folder that `python -m datasets.xsum prepare` wrote.")
    flags.DEFINE_enum("split", "test", text_shards.SPLITS, "Which part of it.")
    flags.DEFINE_list("summaries", [], "Files as zoo/summaries.py says, instead of --data.")
    flags.DEFINE_string("output", "runs/baselines.jsonl", "The file to write.")
    flags.DEFINE_integer("seed", 0, "Of the random sentences.")
    flags.DEFINE_enum("mode", "porter", rouge.MODES, "ROUGE by which the oracle chooses.")
    flags.DEFINE_string("exceptions", None, "Folder of WordNet's *.exc lists, for rouge155.")
    flags.DEFINE_integer("processes", 1, "How many to share the work among.", lower_bound=1)
    app.run(main)
