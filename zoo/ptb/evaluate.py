"""Evaluates trained language models on the test split, beside the figures that were kept.

    python -m zoo.ptb.evaluate --data=FOLDER
    python -m zoo.ptb.evaluate --data=FOLDER --row=runs/ptb --rows=1

Without --row it takes every row in zoo/ptb/weights. Ends with exit status 1 if a figure is not the
one in metrics.json.
"""

import json
import os
import sys
from pathlib import Path

import keras
import numpy as np
from absl import app, flags

import rum_keras  # noqa: F401  (registers the layers that load_model needs)
from datasets import ptb
from zoo.ptb.model import BitsPerCharacter, CharacterModel, SummedCrossentropy
from zoo.ptb.windows import evaluation_windows

WEIGHTS = Path(__file__).parent / "weights"
TOLERANCE = 1e-3  # Bits; how the text is cut into rows and windows changes a tenth of that.


def bits_per_character(model: CharacterModel, ids: np.ndarray, rows: int, window: int) -> float:
    """Returns the bits per character of a text, every character counted.

    Args:
        model: the trained model.
        ids: int32 (characters,), the text.
        rows: how many parts of the text to read at once; 1: all in one, as the papers, but slowly.
        window: characters of each row to read at once.
    """
    model = model.continuing(evaluation_rows=rows)
    model.compile(loss=SummedCrossentropy(), metrics=[BitsPerCharacter()])
    windows = evaluation_windows(ids, rows, window, model.symbols.index("\n"))
    return model.evaluate(windows, verbose=0, return_dict=True)["bits_per_character"]


def main(_) -> None:
    """Prints the bits per character of each row."""
    options, agree = flags.FLAGS, True
    found = [Path(options.row)] if options.row else sorted(WEIGHTS.glob("*"))
    for row in found:
        try:
            kept = json.loads((row / "metrics.json").read_text())["test"]["bits_per_character"]
            model = keras.saving.load_model(row / "best.keras", compile=False)
            ids, _ = ptb.load(options.data, "test", model.symbols, options.form)
        except (OSError, ValueError) as error:
            sys.exit(f"zoo.ptb.evaluate: {error}")
        bits = bits_per_character(model, ids, options.rows, options.window)
        agree &= abs(bits - kept) < TOLERANCE
        print(f"{row.name}  {bits:.4f} bits per character of {len(ids):,}; kept: {kept:.4f}")
    sys.exit(not agree)


if __name__ == "__main__":
    folder = os.path.join(os.environ.get("RUM_KERAS_DATA", "data"), "ptb")
    flags.DEFINE_string("data", folder, "Folder or archive of the text; see datasets/ptb.py.")
    flags.DEFINE_enum("form", "bytes", list(ptb.SIZES), "Reading of the data; see datasets/ptb.py.")
    flags.DEFINE_string("row", None, "A run, or a folder of weights; default: all weights.")
    flags.DEFINE_integer("rows", 20, "Parts of the text that are read at once.", lower_bound=1)
    flags.DEFINE_integer("window", 150, "Characters of each part a step.", lower_bound=1)
    app.run(main)
