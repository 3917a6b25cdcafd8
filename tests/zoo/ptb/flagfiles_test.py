"""The flagfiles of Table 3: their comments, and the sizes of the models that they make."""

import json
import pathlib
import re
import subprocess
import sys

from absl.testing import absltest, parameterized

FOLDER = pathlib.Path(__file__).parents[3] / "zoo" / "ptb"

# Run as a program on flagfiles: the recipe up to where its flags are parsed, then each model, with
# zeros for orthogonal matrices, which take their time.
PROBE = """
import json, runpy, sys
import keras
from absl import app, flags
from absl.testing import flagsaver

flagfiles, sys.argv = sys.argv[1:], ["recipe"]
app.run = lambda main: None
recipe = runpy.run_module("zoo.ptb.train", run_name="__main__")
for initializer in (keras.initializers.Orthogonal, keras.initializers.VarianceScaling):
    initializer.__call__ = lambda self, shape, dtype=None: keras.ops.zeros(shape)
found = {}
for flagfile in flagfiles:
    with flagsaver.flagsaver():
        rest = flags.FLAGS(["recipe", f"--flagfile={flagfile}"])
        assert rest == ["recipe"], f"{flagfile} has lines that are no flags: {rest}"
        model = recipe["compiled_model"]("".join(map(chr, range(50))), 265)
        found[flagfile] = sum(weight.value.numpy().size for weight in model.trainable_variables)
print(json.dumps(found))
"""

# Trainable weights, with embedding and readout. RUM's are as many more than those of the released
# code as its units: the bias of the embedded input, which the paper's equations have.
PARAMETERS = {
    "small_fs_lstm_2": 1_048_138,
    "small_fs_rum_2": 1_047_150,
    "table3_fs_eurnn_2": 11_343_449,
    "table3_fs_goru_2": 9_542_649,
    "table3_fs_lstm_2": 7_225_050,
    "table3_fs_lstm_4": 6_565_050,
    "table3_fs_rum_2": 11_247_450 + 1_000,
    "table3_hyper_lstm": 14_406_690,
    "table3_lstm": 4_582_450,
    "table3_nas": 16_225_650,
    "table3_qrnn_6_layers": 13_825_650,
    "table3_rum_1000": 2_448_450 + 1_000,
    "table3_rum_1000_tanh": 2_448_450 + 1_000,
    "table3_rum_1500": 5_169_450 + 1_500,
    "table3_rum_2_layers": 16_434_450,
    "table3_rum_no_update_gate": 2_401_850 + 1_400,
    "table3_weight_dropped_lstm_3_layers": 13_778_850,
    "table3_zoneout_lstm": 4 * 1_000 * 1_051 + 50_050,
}
FLAGFILES = {path.stem: path for path in sorted(FOLDER.glob("*.flags"))}


class FlagfilesTest(parameterized.TestCase):
    def test_each_makes_the_model_of_its_row(self):
        self.assertEqual(FLAGFILES.keys(), PARAMETERS.keys())
        command = [sys.executable, "-c", PROBE, *map(str, FLAGFILES.values())]
        done = subprocess.run(command, cwd=FOLDER.parents[1], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
        found = {pathlib.Path(path).stem: count for path, count in found.items()}
        self.assertEqual(found, PARAMETERS)

    @parameterized.parameters(*FLAGFILES)
    def test_the_first_comments_say_what_it_reproduces(self, name):
        fields = dict(re.findall(r"^# ([^:\n]+): (.+)$", FLAGFILES[name].read_text(), re.MULTILINE))
        expected = ["paper", "table", "row", "paper's number", "ours", "hours"]
        if name.startswith("small"):
            expected.remove("table")
        self.assertEqual(list(fields), expected)
        self.assertEqual(fields["ours"] == "not run", fields["hours"] == "not run")


if __name__ == "__main__":
    absltest.main()
