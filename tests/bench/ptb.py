"""Characters a second that FS-RUM-2 and FS-LSTM-2 train on: `python -m tests.bench.ptb`.

Training steps at the sizes of RUM's Table 3, with all noise, clipping and carried states, in one
process and in turn, so that what else the machine does falls on both. Prints a line for each and
the ratio within rounds, and writes build/bench_ptb.json.
"""

import json
import os
import pathlib
import time

import keras
import numpy as np
from absl import app, flags

import rum_keras
from zoo.ptb.clipped_adam import ClippedAdam
from zoo.ptb.model import CharacterModel, SummedCrossentropy
from zoo.ptb.windows import Windows

FLAGS = flags.FLAGS
flags.DEFINE_integer("batch_size", 128, "Rows.", lower_bound=1)
flags.DEFINE_integer("window", 150, "Characters of each row a step; less takes less time.", 1)
flags.DEFINE_integer("rounds", 5, "Steps of each model, after one that compiles.", lower_bound=1)
flags.DEFINE_integer("fast_units", 700, "Units of each fast cell.", lower_bound=1)
flags.DEFINE_list("slow_units", ["1000", "400"], "Units of the slow RUM and of the slow LSTM.")
flags.DEFINE_bool("jit_compile", False, "Compile with XLA.")
flags.DEFINE_string("output", "build/bench_ptb.json", "Where results are written.")


def make(slow: str, units: int) -> CharacterModel:
    """Returns the compiled model, with the slow cell "RUM" or "LSTM"."""

    def lstm(units):
        return rum_keras.Zoneout(rum_keras.LayerNormLSTMCell(units), [0.1, 0.5])

    slow_cell = lstm(units)
    if slow == "RUM":
        slow_cell = rum_keras.RUMCell(units, eta=1.0, layer_norm=True, zoneout=0.1)
    fast_cells = [lstm(FLAGS.fast_units) for _ in range(2)]
    cell = rum_keras.FastSlowCell(fast_cells, slow_cell, dropout=0.35)
    layer = keras.layers.RNN(cell, return_sequences=True, return_state=True)
    symbols = "".join(map(chr, range(50)))
    model = CharacterModel(symbols, [layer], dropout=[0, 0.35], training_rows=FLAGS.batch_size)
    model.compile(ClippedAdam(2e-3, 1.0), SummedCrossentropy(), jit_compile=FLAGS.jit_compile)
    return model


def seconds(model: CharacterModel, batch: tuple) -> tuple[float, float]:
    """Returns the seconds of wall and of CPU time of a training step."""
    wall, cpu = time.perf_counter(), time.process_time()
    model.train_on_batch(*batch)  # Returns the loss, so it waits.
    return time.perf_counter() - wall, time.process_time() - cpu


def main(_) -> None:
    """Measures and reports."""
    characters = FLAGS.batch_size * FLAGS.window
    ids = np.random.default_rng(0).integers(50, size=2 * characters + 2 * FLAGS.batch_size)
    windows = Windows(ids.astype("int32"), FLAGS.batch_size, FLAGS.window, steps=1)
    batch = next(iter(windows.epoch(0)))
    rum, lstm = map(int, FLAGS.slow_units)
    models = {"FS-RUM-2": make("RUM", rum), "FS-LSTM-2": make("LSTM", lstm)}
    for model in models.values():
        seconds(model, batch)
    measured = np.array(
        [[seconds(model, batch) for model in models.values()] for _ in range(FLAGS.rounds)]
    )
    results = {"characters a step": characters, "cores": os.cpu_count()}
    for name, (wall, cpu) in zip(models, np.median(measured, axis=0), strict=True):
        results[name] = {
            "weights": sum(int(np.prod(w.shape)) for w in models[name].trainable_variables),
            "characters a second": round(characters / float(wall), 1),
            "characters a CPU second": round(characters / float(cpu), 1),
        }
        print(name, results[name], flush=True)
    wall, cpu = np.median(measured[:, 0] / measured[:, 1], axis=0)
    results["time of FS-RUM-2 over FS-LSTM-2"] = {"wall": float(wall), "CPU": float(cpu)}
    print(f"time of FS-RUM-2 over FS-LSTM-2: {wall:.2f}, of CPU {cpu:.2f}")
    path = pathlib.Path(FLAGS.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(results, indent=1))
    temporary.rename(path)


if __name__ == "__main__":
    app.run(main)
