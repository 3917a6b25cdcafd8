"""Tests of the flagfiles: their comments, and the models that the recipes make of them."""

import json
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest, parameterized

ROOT = pathlib.Path(__file__).parents[2]

# Run as a program: argument 1 is a task, the others its flagfiles. Starts the recipe up to the
# point where its flags are parsed, then builds the model of each flagfile and counts its weights.
PROBE = """
import json, runpy, sys
from absl import app, flags
from absl.testing import flagsaver

task, *flagfiles = sys.argv[1:]
sys.argv = ["recipe"]
app.run = lambda main: None
runpy.run_module(f"zoo.{task}.train", run_name="__main__")

from zoo import cells
from zoo.copying.model import copying_model
from zoo.recall.model import recall_model

found = {}
for flagfile in flagfiles:
    with flagsaver.flagsaver():
        rest = flags.FLAGS(["recipe", f"--flagfile={flagfile}"])
        assert rest == ["recipe"], f"{flagfile} has lines that are no flags: {rest}"
        if task == "recall":
            model = recall_model(cells.layer_from_flags(), flags.FLAGS.length)
        else:
            model = copying_model(cells.layer_from_flags(True), flags.FLAGS.delay)
    found[flagfile] = {"parameters": model.count_params(), "steps": model.input_shape[1]}
print(json.dumps(found))
"""

# Weights with the readout. At T = 30 the input is 26 wide, at T = 50 36; the copying task's is 10.
PARAMETERS = {
    "recall": {
        "demo": 8_060,
        "table1_eurnn_t30": 3_808,
        "table1_eurnn_t50": 4_808,
        "table1_fast_weights_t30": 4_460,
        "table1_fast_weights_t50": 4_960,
        "table1_goru_t30": 9_609,
        "table1_goru_t50": 11_109,
        "table1_gru_t30": 12_210,
        "table1_gru_t50": 13_710,
        "table1_learned_associative_memory_t30": 19_860,
        "table1_learned_associative_memory_t50": 22_360,
        "table1_lstm_t30": 15_910,
        "table1_lstm_t50": 17_910,
        "table1_rum_lambda0_t30": 9_560,
        "table1_rum_lambda0_t50": 11_060,
        "table1_rum_lambda1_eta1_t30": 9_560,
        "table1_rum_lambda1_eta1_t50": 11_060,
        "table1_rum_lambda1_t100": 14_810,
        "table1_rum_lambda1_t30": 9_560,
        "table1_rum_lambda1_t50": 11_060,
    },
    "copying": {
        "figure4_eurnn": 4_207,
        "figure4_goru": 24_308,
        "figure4_gru": 34_509,
        "figure4_lstm": 45_309,
        "figure4_rum_fixed_rotation": 24_209,
        "figure4_rum_lambda0": 24_209,
        "figure4_rum_lambda0_eta1": 24_209,
        "figure4_rum_lambda1": 24_209,
        "figure4_rum_lambda1_eta1": 24_209,
        "figure4_rum_lambda1_t200": 24_209,
        "figure4_rum_no_update_gate": 13_109,
        "figure4_rum_softsign": 24_209,
        "figure4_rum_tanh": 24_209,
        "figure4_urnn": 4_909,
        "figure4_urnn_full": 34_109,
    },
}


def flagfiles(task):
    """Returns the flagfiles of a task, by name."""
    return {path.stem: path for path in sorted((ROOT / "zoo" / task).glob("*.flags"))}


class FlagfilesTest(parameterized.TestCase):
    @parameterized.parameters(sorted(PARAMETERS))
    def test_each_makes_the_model_of_its_row(self, task):
        paths = flagfiles(task)
        self.assertEqual(paths.keys(), PARAMETERS[task].keys())
        command = [sys.executable, "-c", PROBE, task, *map(str, paths.values())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
        for name, path in paths.items():
            with self.subTest(name):
                row = found[str(path)]
                self.assertEqual(row["parameters"], PARAMETERS[task][name])
                said = re.search(r"^# row: .* T = (\d+)$", path.read_text(), re.MULTILINE)
                extra = {"recall": 3, "copying": 20}[task]
                self.assertEqual(row["steps"], int(said[1]) + extra)

    @parameterized.parameters(*[p for task in sorted(PARAMETERS) for p in flagfiles(task).values()])
    def test_the_first_comments_say_what_it_reproduces(self, path):
        fields = dict(re.findall(r"^# ([^:\n]+): (.+)$", path.read_text(), re.MULTILINE))
        expected = ["paper", "table", "row", "paper's number", "ours", "hours"]
        if path.stem == "demo":
            expected.remove("table")
        self.assertEqual(list(fields), expected)

    def test_rows_that_ran_say_where_and_rows_that_did_not_say_so(self):
        for task in PARAMETERS:
            for name, path in flagfiles(task).items():
                fields = dict(re.findall(r"^# ([^:\n]+): (.+)$", path.read_text(), re.MULTILINE))
                with self.subTest(name):
                    self.assertEqual(fields["ours"] == "not run", fields["hours"] == "not run")


if __name__ == "__main__":
    absltest.main()
