"""Tests of bAbI's flagfiles: their comments, and the models that the recipe makes of them."""

import json
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest, parameterized

ROOT = pathlib.Path(__file__).parents[3]
PATHS = {path.stem: path for path in sorted((ROOT / "zoo" / "babi").glob("*.flags"))}

# Those of recurrent models.
ROW = re.compile(r"(table2|small)_(\w+?)_(word|sentence)(_attention)?")

# Run as a program: its arguments are flagfiles. Starts the recipe up to the point where its flags
# are parsed, then makes the model of each for a task of 20 words and 6 answers.
PROBE = """
import json, runpy, sys
from absl import app, flags
from absl.testing import flagsaver

sys.argv, flagfiles = ["recipe"], sys.argv[1:]
app.run = lambda main: None
recipe = runpy.run_module("zoo.babi.train", run_name="__main__")
from datasets import babi

known = babi.Vocabulary(("word",) * 20, ("answer",) * 6, 10, 7, 60, 5)
found = {}
for flagfile in flagfiles:
    with flagsaver.flagsaver():
        rest = flags.FLAGS(["recipe", f"--flagfile={flagfile}", "--data=data"])
        assert rest == ["recipe"], f"{flagfile} has lines that are no flags: {rest}"
        model = recipe["networks"].make_model(20, 6, known)
        found[flagfile] = [model.count_params(), flags.FLAGS.paper]
print(json.dumps(found))
"""

EMBEDDING = 21 * 64
# Weights of the recurrent layer, whose input is 64 wide, and width of its output.
CELLS = {
    "eurnn": (33_791, 512),
    "goru": (181_247, 256),
    "gru": (247_296, 256),
    "lstm": (328_704, 256),
    "rum_lambda0": (180_992, 256),
    "rum_lambda0_tanh": (180_992, 256),
    "rum_lambda1": (180_992, 256),
    "urnn": (35_584, 512),
}
SMALL = {
    "gru": (17_400, 50),
    "lstm": (23_000, 50),
    "rum_lambda0": (14_750, 50),
    "rum_lambda1": (14_750, 50),
}


class FlagfilesTest(parameterized.TestCase):
    def test_each_makes_the_model_of_its_row(self):
        rows = {name: path for name, path in PATHS.items() if ROW.fullmatch(name)}
        command = [sys.executable, "-c", PROBE, *map(str, rows.values())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
        for name, path in rows.items():
            with self.subTest(name):
                size, cell, _, attention = ROW.fullmatch(name).groups()
                layer, width = (CELLS if size == "table2" else SMALL)[cell]
                readout = ((2 if attention else 1) * width + 1) * 6
                self.assertEqual(found[str(path)][0], EMBEDDING + layer + readout)
                number = re.search(r"^# paper's number: ([\d.]+) %", path.read_text(), re.M)
                self.assertEqual(found[str(path)][1], float(number[1]))

    @parameterized.parameters(*PATHS)
    def test_the_first_comments_say_what_it_reproduces(self, name):
        fields = dict(re.findall(r"^# ([^:\n]+): (.+)$", PATHS[name].read_text(), re.M))
        self.assertEqual(list(fields), ["paper", "table", "row", "paper's number", "ours", "hours"])
        self.assertEqual(fields["ours"] == "not run", fields["hours"] == "not run")

    def test_every_row_of_the_paper_that_is_its_own_has_a_flagfile(self):
        rows = {name.removeprefix("table2_") for name in PATHS if name.startswith("table2_")}
        cells = {"word": ["urnn", "eurnn", "lstm", "gru", "goru", "rum_lambda0"]}
        cells["sentence"] = ["eurnn", "lstm", "gru", "goru", "rum_lambda0", "rum_lambda1"]
        cells["sentence"].append("rum_lambda0_tanh")
        cells["sentence_attention"] = cells["sentence"]
        expected = {f"{cell}_{level}" for level, names in cells.items() for cell in names}
        self.assertLessEqual(expected, rows)


if __name__ == "__main__":
    absltest.main()
