"""Tests of the baselines without a model."""

import collections
import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from absl.testing import absltest, parameterized

from tests import shared_data
from zoo import summaries
from zoo.xsum import baselines

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENT = ["one two three .", "four five six .", "seven eight nine .", "ten ."]


class BaselinesTest(parameterized.TestCase):
    def test_lead_is_the_first_sentence(self):
        self.assertEqual(baselines.lead(DOCUMENT), "one two three .")

    def test_random_draws_every_sentence_alike(self):
        drawn = [baselines.random_sentence(DOCUMENT, str(name)) for name in range(2000)]
        for count in collections.Counter(drawn).values():
            self.assertBetween(count, 420, 580)  # 500, by four standard deviations.

    def test_random_depends_on_seed_and_id_alone(self):
        def draw(seed):
            return [baselines.random_sentence(DOCUMENT, name, seed) for name in "abcdefghij"]

        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))
        self.assertEqual(draw(1)[3], baselines.random_sentence(DOCUMENT, "d", 1))

    @parameterized.parameters(
        ("seven eight", "seven eight nine ."),
        ("ten", "ten ."),  # Precision counts.
        ("runs", "she was running .", "she was running ."),
        ("nothing of that", "one two three ."),  # Of equal ones the first.
    )
    def test_the_oracle_is_the_sentence_most_like_the_reference(self, reference, expected, *more):
        self.assertEqual(baselines.ext_oracle([*DOCUMENT, *more], reference), expected)

    def test_the_oracle_wants_pairs_of_words_and_their_order(self):
        document = ["a c b d", "a b c x"]  # ROUGE-1 prefers the first, the sum the second.
        self.assertEqual(baselines.ext_oracle(document, "a b c d"), "a b c x")

    @parameterized.parameters(
        (lambda: baselines.lead([]),),
        (lambda: baselines.random_sentence([], "a"),),
        (lambda: baselines.ext_oracle([], "a"),),
    )
    def test_a_document_without_sentences_has_an_empty_summary(self, summary):
        self.assertEqual(summary(), "")

    def test_oracle_and_lead_are_the_authors_own(self):
        path = shared_data.folder("xsum") / "xsum-human-evaluation-data.40.txt"
        for part in re.split(r"^==\d+==\n", path.read_text(), flags=re.MULTILINE)[1:]:
            sections = dict(
                section.split("\n", maxsplit=1) for section in part.strip().split("\n\n")
            )
            document = sections["Document-Full"].lower().split("\n")
            oracle = baselines.ext_oracle(document, sections["Reference"])
            self.assertEqual(oracle, sections["Ext-Oracle"])
            self.assertEqual(baselines.lead(document), sections["LEAD"])


class CommandTest(parameterized.TestCase):
    def run_command(self, *flags):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        command = [sys.executable, "-m", "zoo.xsum.baselines", f"--output={folder}/out.jsonl"]
        subprocess.run([*command, *flags], cwd=ROOT, check=True, capture_output=True)
        return summaries.read([folder / "out.jsonl"])

    def test_a_prepared_corpus_gets_three_summaries_a_document(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "text").mkdir()
        with gzip.open(folder / "text" / "test-00000-of-00001.jsonl.gz", "wt") as file:
            for name in "ab":
                row = {"id": name, "document": DOCUMENT, "summary": ["nine .", "eight ."]}
                file.write(json.dumps(row) + "\n")
        first, second = self.run_command(f"--data={folder}", "--split=test")
        self.assertEqual(second.id, "b")
        self.assertEqual(first.document, DOCUMENT)
        self.assertEqual(first.reference, "nine .\neight .")
        self.assertEqual(first.summaries["lead"], "one two three .")
        self.assertEqual(first.summaries["ext-oracle"], "seven eight nine .")
        self.assertEqual(first.summaries["random"], baselines.random_sentence(DOCUMENT, "a"))

    def test_what_it_cannot_read_or_write_ends_it_with_a_sentence(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        command = [sys.executable, "-m", "zoo.xsum.baselines", f"--data={folder}"]
        for more, message in (
            ("--output=x.jsonl", "zoo.xsum.baselines: "),
            (f"--output={folder}", "is a folder"),
        ):
            done = subprocess.run([*command, more], cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_lines_of_other_systems_will_do_in_lower_case(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        row = {"id": "a", "document": "A b .\nC d .", "reference": "D", "summaries": {"m": "x"}}
        summaries.write(folder / "in.jsonl", [row])
        (example,) = self.run_command(f"--summaries={folder}/in.jsonl")
        self.assertEqual(example.summaries["ext-oracle"], "c d .")


if __name__ == "__main__":
    absltest.main()
