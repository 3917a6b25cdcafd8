"""The recipe of bAbI as users run it: all tasks on small files, again, tested anew, exported."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from absl.testing import absltest, parameterized

from exports import babi, export
from zoo.babi import evaluate, table, train

ROOT = pathlib.Path(__file__).parents[3]
FLAGS = ("--units=3", "--embedding=2", "--batch_size=4", "--steps=1", "--steps_per_epoch=1")


def write_data(folder):
    """Writes a small file a task, but none to train task 3, which has one in another language."""
    for task in range(1, 21):
        for split in ("train", "test"):
            language = "other" if (task, split) == (3, "train") else "en-10k"
            path = folder / language / f"qa{task}_name_{split}.txt"
            path.parent.mkdir(exist_ok=True)
            text = "".join(
                f"1 {name} went to the hall.\n2 Bo is in the shed.\n3 Where is {name}?\thall\t1\n"
                f"4 Is {name} in?\t{answer}\t1\n"
                for name, answer in [("Ann", "yes"), ("Bo", "no"), ("Cy", f"{task},yes")] * 4
            )
            path.write_text(text)
    (folder / "other" / "qa3_name_test.txt").write_text(text)
    return folder


def command(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "zoo.babi.train", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    return done


class TrainTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (cls.folder / "data").mkdir()
        cls.data = write_data(cls.folder / "data")
        cls.row = cls.folder / "row"
        # As if a first start had been killed: all tasks but two are finished.
        for task in set(range(1, 21)) - {3, 7}:
            table.folder(cls.row, task).mkdir(parents=True)
            metrics = {"test": {"accuracy": 0.5}, "steps": 1, "steps_taken": 1, "language": "en"}
            (table.folder(cls.row, task) / "metrics.json").write_text(json.dumps(metrics))
        arguments = [
            *FLAGS, "--cell=lstm", "--attention", "--round_up", "--task=all", "--paper=80.1",
            f"--data={cls.data}", f"--workdir={cls.row}",
        ]  # fmt: skip
        cls.refused = command(*arguments)
        cls.done = command(*arguments, "--stand_in=3:other")

    def test_missing_files_end_it_before_anything_is_trained(self):
        self.assertRegex(self.refused.stderr, "zoo.babi.train: There is no en-10k/qa3_.*_train.txt")
        self.assertEqual(self.refused.returncode, 1)

    def test_all_tasks_with_several_workers_are_refused(self):
        done = command("--task=all", "--strategy=multi_worker", "--data=nowhere", "--workdir=none")
        self.assertRegex(done.stderr, r"--task=all is for one machine.*--task=1 to --task=20\.\n\Z")
        self.assertEqual(done.returncode, 1)

    def test_a_flag_that_would_be_ignored_is_refused(self):
        done = command("--model=memn2n", "--units=9", "--data=nowhere", "--workdir=none")
        self.assertIn("--model=memn2n takes no --units. A memory network takes", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_tasks_that_are_finished_are_skipped_and_all_are_in_the_table(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr[-2000:])
        self.assertIn("Task 3 takes other instead", self.done.stdout)
        trained = re.findall(r"^Task \d+: .*", self.done.stdout, re.MULTILINE)
        self.assertEqual(trained, ["Task 3: three supporting facts", "Task 7: counting"])
        metrics = table.read(self.row)
        self.assertEqual(list(metrics), list(range(1, 21)))
        self.assertEqual(metrics[3]["language"], "other")
        summary = json.loads((self.row / "table.json").read_text())
        mean = 5 * sum(found["test"]["accuracy"] for found in metrics.values())
        self.assertAlmostEqual(summary["mean"], mean)
        text = (self.row / "table.md").read_text()
        self.assertIn(f"| | **mean** | **{mean:.1f}** |", text)
        self.assertIn("| | mean in the paper | 80.1 |", text)
        self.assertIn(text, self.done.stdout)

    def test_the_weights_give_the_table_anew_and_a_wrong_figure_is_found(self):
        row = self.folder / "two"
        for task in (3, 7):
            shutil.copytree(table.folder(self.row, task), table.folder(row, task))
        text, different = evaluate.evaluate(row, self.data)
        self.assertEqual(text, table.write(row, None))
        self.assertEqual(different, [])
        path = row / "qa07" / "metrics.json"
        metrics = json.loads(path.read_text())
        metrics["test"]["accuracy"] = 0.0625
        path.write_text(json.dumps(metrics))
        _, different = evaluate.evaluate(row, self.data)
        self.assertEqual(len(different), 1)
        self.assertRegex(different[0], "task 7: .*, but metrics.json has 0.0625")

    def test_a_task_can_be_exported(self):
        run = self.row / "qa07"
        model, task = export.load_run(run)
        self.assertIs(task, babi)
        self.assertEqual(model.output_shape, (None, 16))
        (signature,) = task.signatures(model, run).values()
        found = signature.answer(["Ann went to the hall."] * 2, ["Where is Ann?", "Is Ann a bird?"])
        self.assertIn(found["answer"][0].numpy().decode(), ("7,yes", "hall", "yes", "no"))
        self.assertEqual(found["answer"][1], b"")
        self.assertEqual(found["sentence"][0], b"Ann went to the hall.")


class EarlyStopTest(parameterized.TestCase):
    @parameterized.parameters(
        ([], 1, False),
        ([3.0, 2.0, 2.5], 2, False),
        ([3.0, 2.0, 2.5, 2.1], 2, True),
        ([3.0, 2.0, 2.5, 1.9], 2, False),
    )
    def test_a_run_ends_when_validation_has_not_improved_for_long(self, losses, patience, over):
        self.assertEqual(train.is_over(self.log(losses), patience, 1.0), over)

    def test_a_run_ends_when_validation_is_good_enough(self):
        self.assertTrue(train.is_over(self.log([3.0, 1.0], accuracy=0.99), 5, 0.99))
        self.assertFalse(train.is_over(self.log([3.0, 1.0], accuracy=0.98), 5, 0.99))

    def log(self, losses, accuracy=0.5):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        rows = [f"{i},{i},{loss},{accuracy}\n" for i, loss in enumerate(losses)]
        (folder / "log.csv").write_text("".join(["epoch,step,val_loss,val_accuracy\n", *rows]))
        return folder


class TableTest(absltest.TestCase):
    def test_a_task_that_did_not_run_leaves_the_mean_open(self):
        found = {"test": {"accuracy": 0.5}, "steps_taken": 7, "language": "en"}
        text = table.markdown({2: found}, None)
        self.assertIn("| 1 | single supporting fact | not run |  |  |", text)
        self.assertIn("| 2 | two supporting facts | 50.0 | 7 | en |", text)
        self.assertIn("| | **mean** | - |", text)
        self.assertIn("| | mean in the paper | - |", text)


if __name__ == "__main__":
    absltest.main()
