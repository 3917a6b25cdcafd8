"""Tests of sheets for annotators and of what is made of their judgements."""

import collections
import csv
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from absl.testing import absltest, parameterized
from scipy import stats

from zoo import human_evaluation, summaries

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = [
    summaries.Example(
        str(number),
        [f"sentence {number} .", "end ."],
        f"reference {number}",
        {system: f"{system} {number}" for system in ("lead", "convs2s", "ptgen")},
    )
    for number in range(12)
]
PAIRS = 6  # Of three systems and the reference.


class HumanEvaluationTestCase(parameterized.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def rows(self, path):
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


class SheetsTest(HumanEvaluationTestCase):
    def make(self, **arguments):
        arguments = {"documents": 5, "annotators": 2, "seed": 3, **arguments}
        return human_evaluation.make_sheets(EXAMPLES, self.folder, **arguments)

    def test_every_pair_of_systems_is_compared_once_on_each_document(self):
        key, sheet, _ = self.make()
        found = collections.defaultdict(list)
        for row in self.rows(key):
            found[row["document"]].append(frozenset((row["system_1"], row["system_2"])))
        self.assertLen(found, 5)
        for pairs in found.values():
            self.assertLen(set(pairs), PAIRS)
            self.assertLen(pairs, PAIRS)
        self.assertLen(self.rows(sheet), 5 * PAIRS)

    def test_a_sheet_shows_what_the_key_says_and_names_no_system(self):
        key, sheet, _ = self.make()
        systems = {row["task"]: row for row in self.rows(key)}
        for row in self.rows(sheet):
            task = systems[row["task"]]
            for place in ("1", "2"):
                expected = f"{task[f'system_{place}']} {task['document']}"
                self.assertEqual(row[f"summary_{place}"], expected)
            self.assertEqual(row["document"], f"sentence {task['document']} .\nend .")
            self.assertEqual(row["best"], "")
            self.assertNoCommonElements(row, ("system_1", "system_2"))

    def test_which_system_comes_first_is_drawn(self):
        key = self.make(documents=12)[0]
        first = [row["system_1"] < row["system_2"] for row in self.rows(key)]
        self.assertBetween(sum(first), 0.3 * len(first), 0.7 * len(first))

    def test_each_annotator_has_another_order_of_the_same_tasks(self):
        _, one, other = self.make()
        orders = [[row["task"] for row in self.rows(path)] for path in (one, other)]
        self.assertNotEqual(*orders)
        self.assertCountEqual(*orders)
        self.assertNotEqual(orders[0], sorted(orders[0], key=int))

    def test_a_seed_gives_the_same_sheets(self):
        texts = []
        for seed in (1, 1, 2):
            texts.append([path.read_text() for path in self.make(seed=seed)])
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_the_reference_may_stay_out(self):
        key = self.make(reference=False)[0]
        self.assertLen(self.rows(key), 5 * 3)
        self.assertNotIn("reference", key.read_text())

    def test_more_documents_than_there_are_cannot_be_drawn(self):
        with self.assertRaisesRegex(ValueError, "documents must be 1 to 12, but is 13"):
            self.make(documents=13)


class BestWorstTest(HumanEvaluationTestCase):
    KEY = "task,document,system_1,system_2\n1,d,a,b\n2,d,b,c\n3,e,c,a\n"

    def test_a_score_is_how_often_best_less_how_often_worst(self):
        key = self.write("key.csv", self.KEY)
        sheets = [
            self.write("one.csv", "task,best\n1,1\n2,1\n3,2\n"),
            self.write("two.csv", "task,best\n3, 2 \n1,2\n2,1\n"),
        ]
        found = human_evaluation.system_scores(human_evaluation.best_worst(key, sheets))
        # a: best, worst on d and best twice on e; b: worst, best and twice best of c; c: never.
        self.assertEqual(found, {"a": 0.5, "b": 0.5, "c": -1.0})

    @parameterized.parameters(
        ("task,best\n1,\n", r"one\.csv:2: `best` must be 1 or 2, but is ''"),
        ("task,best\n1,1\n9,1\n", r"one\.csv:3: the task '9' is not in .*key\.csv"),
        ("task\n1\n", r"one\.csv:1: expected columns .* lacks \['best'\]"),
        ("task,best\n1\n", r"one\.csv:2: the row has too few columns"),
    )
    def test_a_bad_row_is_named(self, text, message):
        key = self.write("key.csv", self.KEY)
        with self.assertRaisesRegex(ValueError, message):
            human_evaluation.best_worst(key, [self.write("one.csv", text)])


class AnswersTest(HumanEvaluationTestCase):
    HEAD = "document,system,question,annotator,score\n"

    def test_a_score_is_the_mean_over_questions_and_annotators(self):
        text = self.HEAD + "d,a,1,x,1\nd,a,1,y,0.5\nd,a,2,x,0\ne,a,1,x,1\nd,b,1,x,.5\n"
        found = human_evaluation.answers(self.write("answers.csv", text))
        self.assertEqual(human_evaluation.system_scores(found), {"a": 0.625, "b": 0.5})

    @parameterized.parameters("2", "yes", "")
    def test_other_scores_are_refused(self, score):
        path = self.write("answers.csv", f"{self.HEAD}d,a,1,x,{score}\n")
        with self.assertRaisesRegex(ValueError, r"answers\.csv:2: `score` must be 1, 0\.5 or 0"):
            human_evaluation.answers(path)


class SignificanceTest(parameterized.TestCase):
    def test_anova_is_the_ratio_of_variances_between_and_within_systems(self):
        groups = {"a": [0.0, 1.0, 2.0], "b": [2.0, 3.0, 4.0], "c": [5.0, 6.0, 7.0]}
        scores = {
            system: {str(place): [score] for place, score in enumerate(group)}
            for system, group in groups.items()
        }
        # Between: 3 ((1 - 10/3)^2 + (3 - 10/3)^2 + (6 - 10/3)^2) / 2 = 19; within: 6 / 6 = 1.
        anova, pairs = human_evaluation.significance(scores)
        self.assertAlmostEqual(anova, stats.f.sf(19, 2, 6))
        # Tukey: q = |difference| / sqrt(1 / 3).
        for pair, difference in ((("a", "b"), 2), (("a", "c"), 5), (("b", "c"), 3)):
            q = difference * np.sqrt(3)
            self.assertAlmostEqual(pairs[pair], stats.studentized_range.sf(q, 3, 6), places=6)

    def test_judgements_of_one_document_are_one_observation(self):
        once = {"a": {"d": [1.0], "e": [0.0]}, "b": {"d": [0.0], "e": [0.5]}}
        often = {"a": {"d": [1.0] * 9, "e": [0.0] * 4}, "b": {"d": [0.0] * 5, "e": [0.5]}}
        self.assertEqual(*map(human_evaluation.significance, (once, often)))

    def test_scores_that_never_vary_have_no_probability(self):
        same = {"a": {"d": [1.0], "e": [1.0]}, "b": {"d": [1.0], "e": [1.0]}}
        anova, pairs = human_evaluation.significance(same)
        self.assertTrue(np.isnan(anova))
        self.assertTrue(np.isnan(pairs["a", "b"]))

    def test_a_system_with_one_document_cannot_be_compared(self):
        with self.assertRaisesRegex(ValueError, r"of which \['b'\] have fewer"):
            human_evaluation.significance({"a": {"d": [1.0], "e": [1.0]}, "b": {"d": [1.0]}})


class CommandTest(HumanEvaluationTestCase):
    def start(self, *arguments):
        command = [sys.executable, "-m", "zoo.human_evaluation", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    def run_command(self, *arguments):
        done = self.start(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_is_missing_is_one_sentence(self):
        done = self.start("best_worst", "--sheets=nowhere.csv")
        self.assertIn("best_worst needs --key=FILE.", done.stderr)
        done = self.start("answers", "--answers=nowhere.csv")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr, "zoo.human_evaluation: nowhere.csv: No such file or directory\n"
        )

    def test_sheets_that_are_filled_in_give_scores(self):
        rows = [
            {
                "id": example.id,
                "document": example.document,
                "reference": example.reference,
                "summaries": example.summaries,
            }
            for example in EXAMPLES
        ]
        summaries.write(self.folder / "summaries.jsonl", rows)
        out = self.run_command(
            "sheets",
            f"--summaries={self.folder}/summaries.jsonl",
            f"--output={self.folder}",
            "--documents=4",
            "--annotators=1",
        )
        self.assertIn("sheet_1.csv", out)
        sheet = self.folder / "sheet_1.csv"
        filled = [
            {**row, "best": "1" if row["summary_1"] > row["summary_2"] else "2"}
            for row in self.rows(sheet)
        ]
        with sheet.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(filled[0]))
            writer.writeheader()
            writer.writerows(filled)
        out = self.run_command("best_worst", f"--key={self.folder}/key.csv", f"--sheets={sheet}")
        self.assertRegex(out, r"reference +1\.000 +12 judgements\nptgen +0\.333")
        self.assertIn("one-way ANOVA", out)


if __name__ == "__main__":
    absltest.main()
