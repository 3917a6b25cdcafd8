"""ROUGE-1, 2, 3 and L as papers report them, with 95 % bootstrap intervals.

    python -m zoo.rouge --candidates=system.txt --references=gold.txt --mode=rouge155 \
        --exceptions=/usr/share/wordnet

Both files have a summary a line, or are `.gz` of that. Sentences within a line stand in `<t> </t>`
or `<s> </s>`, or end with `--sentence_end`; a line without either is one sentence.

Published figures come from three stemmers that differ by up to a point of ROUGE-1, so the mode is
always named: `plain`, none; `porter`, the one of the `rouge-score` package, NLTK's variant of
Porter; `rouge155`, the one of ROUGE-1.5.5 with `-m`, as in both papers: WordNet's exception lists
(`apt-get install wordnet-base`), then Porter's algorithm as that program has it.
"""

import concurrent.futures
import functools
import json
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import app, flags
from nltk.stem import porter
from rouge_score import rouge_scorer, tokenizers

from datasets import articles
from zoo.summaries import sentences

FLAGS = flags.FLAGS
MODES = ("plain", "porter", "rouge155")
# L takes a summary for one sequence; Lsum, the L of ROUGE-1.5.5, takes the union over sentences.
MEASURES = ("rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum")
# A form of two files has the lemma of the later: so `better` is `good`, not `well`.
EXCEPTION_FILES = ("noun.exc", "adv.exc", "verb.exc", "adj.exc")
PAIRS_WORTH_A_PROCESS = 1000  # To start one takes as long as to score some hundred pairs.


def read_exceptions(folder: str | os.PathLike) -> dict[str, str]:
    """Reads the first lemma of each irregular form from WordNet's lists.

    Args:
        folder: Holds `noun.exc`, `adv.exc`, `verb.exc` and `adj.exc`, lines of `form lemma ...`.

    Raises:
        FileNotFoundError: If a list is missing: scores without it would be quietly too low.
        ValueError: If a line has no lemma.
    """
    lemmas = {}
    for name in EXCEPTION_FILES:
        path = Path(folder, name)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is missing: mode rouge155 needs WordNet's exception lists "
                f"({', '.join(EXCEPTION_FILES)}). `apt-get install wordnet-base` puts them into "
                "/usr/share/wordnet; give the folder as --exceptions."
            )
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            words = line.split()
            if len(words) < 2:
                raise ValueError(f"{path}:{number}: expected `form lemma`, found {line!r}.")
            lemmas[words[0]] = words[1]
    return lemmas


class _Rouge155Stemmer(porter.PorterStemmer):
    """Porter's algorithm as ROUGE-1.5.5 runs it.

    With its author's later rules (`incredibly` is `incred`), and step 4 twice over: only so does
    `environmental` become `environ`, and are all published scores met, pair by pair.
    """

    def __init__(self):
        super().__init__(mode=self.MARTIN_EXTENSIONS)

    def _step4(self, word):
        return super()._step4(super()._step4(word))


class Rouge155Tokenizer(tokenizers.Tokenizer):
    """Words as ROUGE-1.5.5 with `-m` takes them, for `rouge_score.rouge_scorer.RougeScorer`.

    Lower case; whatever is no letter a-z or digit separates words; a word of more than three
    letters becomes its lemma in the exception lists, or else the stem of Porter's algorithm.

    Args:
        exceptions: The lemma of each irregular form; see `read_exceptions`.
    """

    def __init__(self, exceptions: dict[str, str]):
        self._stemmer = _Rouge155Stemmer()
        # Of each word met so far: a test set has some ten thousand different ones.
        self._stems = dict(exceptions)

    def tokenize(self, text: str) -> list[str]:
        """Returns the stems of `text`."""
        return [self._stem(word) for word in re.findall("[a-z0-9]+", text.lower())]

    def _stem(self, word):
        if len(word) <= 3:
            return word
        if word not in self._stems:
            self._stems[word] = self._stemmer.stem(word)
        return self._stems[word]


class _RememberingTokenizer(tokenizers.Tokenizer):
    """The tokenizer of `rouge-score`, stemming each word once."""

    def __init__(self, use_stemmer):
        self._tokenizer = tokenizers.DefaultTokenizer(use_stemmer)
        self._stems = {}

    def tokenize(self, text):
        words = re.findall("[a-z0-9]+", text.lower())
        for word in words:
            if word not in self._stems:
                self._stems[word] = self._tokenizer.tokenize(word)[0]
        return [self._stems[word] for word in words]


@functools.cache
def tokenizer(mode: str, exceptions: str | os.PathLike | None = None) -> tokenizers.Tokenizer:
    """Returns the tokenizer of a mode, one for all calls: it remembers stems.

    Args:
        mode: "plain", "porter" or "rouge155".
        exceptions: Folder of WordNet's lists; "rouge155" needs it, the others ignore it.

    Raises:
        ValueError: If the mode is unknown, or needs a folder and has none.
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, but is {mode!r}.")
    if mode != "rouge155":
        return _RememberingTokenizer(use_stemmer=mode == "porter")
    if not exceptions:
        raise ValueError("mode rouge155 needs exceptions, the folder of WordNet's *.exc lists.")
    return Rouge155Tokenizer(read_exceptions(exceptions))


def _score_part(pairs, mode, exceptions, measures):
    """Scores some pairs: (pairs, measures, 3)."""
    scorer = rouge_scorer.RougeScorer(measures, tokenizer=tokenizer(mode, exceptions))
    results = [scorer.score(reference, candidate) for reference, candidate in pairs]
    table = [[result[measure] for measure in measures] for result in results]
    return np.array(table, np.float64).reshape(len(pairs), len(measures), 3)


def scores(
    references: Sequence[str],
    candidates: Sequence[str],
    mode: str = "rouge155",
    exceptions: str | os.PathLike | None = None,
    measures: Sequence[str] = MEASURES,
    processes: int | None = None,
) -> np.ndarray:
    """Scores each candidate against its reference.

    Args:
        references: One text for each pair; sentences on lines (see `zoo.summaries.sentences`).
        candidates: The same of the system.
        mode: "plain", "porter" or "rouge155"; see `tokenizer`.
        exceptions: Folder of WordNet's lists, for "rouge155".
        measures: Names of `rouge-score`.
        processes: How many to share the work among; as many as there are cores if None. The
            result does not depend on it. More than one need a main guard in the calling program.

    Returns:
        Precision, recall and F1 between 0 and 1: float64 (pairs, measures, 3).

    Raises:
        ValueError: If the numbers of texts differ, or the mode is unknown.
    """
    if len(references) != len(candidates):
        raise ValueError(
            f"Each candidate needs its reference, but there are {len(candidates)} candidates "
            f"and {len(references)} references."
        )
    pairs = list(zip(references, candidates, strict=True))
    processes = max(1, min(processes or os.cpu_count() or 1, len(pairs) // PAIRS_WORTH_A_PROCESS))
    if processes == 1:
        return _score_part(pairs, mode, exceptions, measures)
    tokenizer(mode, exceptions)  # Its errors are plainer here than out of another process.
    # Forked processes may hang where TensorFlow has threads.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(processes, context) as pool:
        parts = [
            pool.submit(_score_part, pairs[i::processes], mode, exceptions, measures)
            for i in range(processes)
        ]
        result = np.empty((len(pairs), len(measures), 3))
        for i, part in enumerate(parts):
            result[i::processes] = part.result()
    return result


def means(
    scored: np.ndarray,
    measures: Sequence[str] = MEASURES,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """Averages scores in per cent, with bootstrap intervals as `ROUGE-1.5.5.pl -c 95 -r 1000`.

    The mean is that of the pairs, not, as that program prints it, of the random samples.

    Args:
        scored: What `scores` returns, (pairs, measures, 3).
        measures: Their names.
        samples: How many times to draw as many pairs as there are, with replacement.
        confidence: The part of the samples that the interval holds.
        seed: Of the draws.

    Returns:
        For each measure `precision`, `recall`, `f`, and `low` and `high` of `f`.

    Raises:
        ValueError: If there are no pairs.
    """
    if not (pairs := len(scored)):
        raise ValueError("There are no pairs to average: scored has shape (0, measures, 3).")
    mean = 100 * scored.mean(axis=0)
    generator = np.random.default_rng(seed)
    drawn = np.empty((samples, len(measures)))
    for sample in drawn:
        counts = np.bincount(generator.integers(pairs, size=pairs), minlength=pairs)
        sample[:] = counts @ scored[:, :, 2] * (100 / pairs)
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    fields = ("precision", "recall", "f", "low", "high")
    table = np.concatenate([mean, low[:, None], high[:, None]], axis=1).tolist()
    rows = [dict(zip(fields, row, strict=True)) for row in table]
    return dict(zip(measures, rows, strict=True))


def _read(path: str, end: str) -> list[str]:
    """Reads the summaries of a file, sentences on lines of their own."""
    with articles.reading(Path(path)), articles.open_text(Path(path)) as lines:
        return ["\n".join(sentences(line, end)) for line in lines]


def main(_) -> None:
    """Prints a table, or JSON."""
    start = time.monotonic()
    paths, end = (FLAGS.references, FLAGS.candidates), FLAGS.sentence_end
    try:
        references, candidates = (_read(path, end) for path in paths)
        options = FLAGS.mode, FLAGS.exceptions, MEASURES, FLAGS.processes
        scored = scores(references, candidates, *options)
        table = means(scored, MEASURES, FLAGS.samples, seed=FLAGS.seed)
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.rouge: {error}")
    if FLAGS.json:
        print(json.dumps(table, indent=1))
        return
    print(f"{'':10}{'P':>8}{'R':>8}{'F':>8}   95 % of F")
    for measure, row in table.items():
        columns = "".join(f"{row[name]:8.3f}" for name in ("precision", "recall", "f"))
        print(f"{measure:10}{columns}   {row['low']:.3f} to {row['high']:.3f}")
    print(f"{len(scored)} pairs, mode {FLAGS.mode}, in {time.monotonic() - start:.1f} s")
    # Scripts other than the Latin one have no words for ROUGE: a score of 0 would mislead.
    wordless = sum(not re.search("[A-Za-z0-9]", text) for text in references + candidates)
    if wordless:
        print(f"{wordless} of the {2 * len(scored)} texts have no letter a-z and no digit: F is 0")


if __name__ == "__main__":
    flags.DEFINE_string("candidates", None, "File of the system's summaries, one a line.")
    flags.DEFINE_string("references", None, "File of the references, one a line.")
    flags.DEFINE_enum("mode", "rouge155", MODES, "Which stemmer.")
    flags.DEFINE_string("exceptions", "/usr/share/wordnet", "Folder of WordNet's *.exc lists.")
    flags.DEFINE_string("sentence_end", "", "A word that ends a sentence, such as `.`; or none.")
    flags.DEFINE_integer("samples", 1000, "Of the bootstrap.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Of the bootstrap.")
    flags.DEFINE_integer("processes", None, "As many as there are cores if not given.")
    flags.DEFINE_boolean("json", False, "Print all figures as JSON.")
    flags.mark_flags_as_required(["candidates", "references"])
    app.run(main)
