"""The flagfiles: their comments, and the sizes of the models that they make."""

import json
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest, parameterized

FOLDER = pathlib.Path(__file__).parents[3] / "zoo" / "pointer_generator"

# Run as a program on flagfiles: the recipe up to where its flags are parsed, then each model, of
# which nothing is drawn at random.
PROBE = """
import json, runpy, sys
import keras
from absl import app, flags
from absl.testing import flagsaver

flagfiles, sys.argv = sys.argv[1:], ["recipe"]
app.run = lambda main: None
recipe = runpy.run_module("zoo.pointer_generator.train", run_name="__main__")
for name in ("Orthogonal", "RandomUniform", "TruncatedNormal", "VarianceScaling"):
    getattr(keras.initializers, name).__call__ = lambda _, shape, dtype=None: keras.ops.zeros(shape)
made, found = {}, {}
for flagfile in flagfiles:
    with flagsaver.flagsaver():
        rest = flags.FLAGS(["recipe", f"--flagfile={flagfile}", "--data=data"])
        assert rest == ["recipe"], f"{flagfile} has lines that are no flags: {rest}"
        recipe["batches"].parse_lengths(flags.FLAGS.lengths)
        key = tuple(flags.FLAGS[name].value for name in
                    ("units", "embedding", "encoder", "decoder", "pointer", "coverage"))
        if key not in made:
            made[key] = recipe["make_model"](50_000).count_params()
        found[flagfile] = made[key]
print(json.dumps(found))
"""

LEAD, COVERAGE = 21_500_753, 512
PARAMETERS = {
    "table4_lead": LEAD,
    "table4_lead_coverage": LEAD + COVERAGE,
    "table4_lead_s2s": LEAD,
    "xsum_table4_seq2seq": LEAD - 1_153,
    "xsum_table4_ptgen": LEAD,
    "xsum_table4_ptgen_covg": LEAD + COVERAGE,
}
FLAGFILES = {path.stem: path for path in sorted(FOLDER.glob("*.flags"))}


class FlagfilesTest(parameterized.TestCase):
    def test_each_makes_the_model_of_its_row(self):
        command = [sys.executable, "-c", PROBE, *map(str, FLAGFILES.values())]
        done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
        found = {pathlib.Path(path).stem: count for path, count in found.items()}
        self.assertEqual({name: found[name] for name in PARAMETERS}, PARAMETERS)
        for name in found:
            if name.startswith("table4") and name.endswith("_coverage"):
                # w_c of the attention, which is twice as wide as a state.
                units = 360 if "360" in name else 256
                self.assertEqual(found[name] - found[name.removesuffix("_coverage")], 2 * units)

    @parameterized.parameters(*FLAGFILES)
    def test_the_first_comments_say_what_it_reproduces(self, name):
        fields = dict(re.findall(r"^# ([^:\n]+): (.+)$", FLAGFILES[name].read_text(), re.MULTILINE))
        expected = ["paper", "table", "row", "paper's number", "ours", "hours"]
        if "table" not in name:
            expected.remove("table")
        self.assertEqual(list(fields), expected)
        self.assertEqual(fields["ours"] == "not run", fields["hours"] == "not run")


if __name__ == "__main__":
    absltest.main()
