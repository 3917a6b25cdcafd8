"""Evaluation of shipped weights: however the text is cut, and beside the figure that was kept."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np
from absl.testing import absltest, parameterized

from tests.zoo.ptb.small_model import RNN
from zoo.ptb.evaluate import bits_per_character
from zoo.ptb.model import CharacterModel

ROOT = pathlib.Path(__file__).parents[3]


def make_model() -> CharacterModel:
    keras.utils.set_random_seed(4)
    return CharacterModel("ab\n ", [keras.layers.SimpleRNN(6, **RNN)], 3)


def expected_bits(model: CharacterModel, ids: np.ndarray) -> float:
    """Of the text read at once."""
    before = np.concatenate([[2], ids[:-1]])
    logits = keras.ops.convert_to_numpy(model(before[None]))[0].astype("float64")
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    return -logits[np.arange(len(ids)), ids].mean() / np.log(2)


class EvaluateTest(parameterized.TestCase):
    @parameterized.parameters((1, 4), (1, 30), (1, 7))
    def test_windows_of_any_length_give_the_bits_of_the_whole_text(self, rows, window):
        model, ids = make_model(), np.random.default_rng(1).integers(4, size=23)
        bits = bits_per_character(model, ids.astype("int32"), rows, window)
        self.assertAlmostEqual(bits, expected_bits(model, ids), delta=1e-5)

    def test_rows_with_a_window_of_context_give_nearly_the_same(self):
        model, ids = make_model(), np.random.default_rng(1).integers(4, size=200)
        bits = bits_per_character(model, ids.astype("int32"), 5, 30)
        self.assertAlmostEqual(bits, expected_bits(model, ids), delta=1e-3)

    def test_the_command_compares_with_the_figure_that_was_kept(self):
        folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        (folder / "ptb.test.txt").write_text("ab ba\n" * 5)
        model = make_model()
        ids = np.array([model.symbols.index(c) for c in "ab ba\n" * 5])
        for kept, status in ((expected_bits(model, ids), 0), (9.0, 1)):
            row = folder / f"row{status}"
            row.mkdir()
            model.save(row / "best.keras")
            metrics = {"test": {"bits_per_character": kept}}
            (row / "metrics.json").write_text(json.dumps(metrics))
            command = [sys.executable, "-m", "zoo.ptb.evaluate", f"--data={folder}", "--rows=1"]
            done = subprocess.run(
                [*command, f"--row={row}"],
                cwd=ROOT,
                env={**os.environ, "KERAS_BACKEND": "tensorflow"},
                capture_output=True,
                text=True,
            )
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("bits per character of 30; kept:", done.stdout)


if __name__ == "__main__":
    absltest.main()
