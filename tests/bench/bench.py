"""Times RUM beside Keras' GRU and LSTM and the floor: `python -m tests.bench.bench [--quick]`.

All variants of a configuration run in one process, in random order in each round, and ratios are
taken within a round, so that what else the machine does falls on all of them. Ratios of CPU time
suffer least from it. Peak memory is that of a process of its own, over the same process after a
small GRU. Prints a table for each configuration and writes build/bench.json.
"""

import json
import os
import pathlib
import platform
import random
import subprocess
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from tests.bench.variants import Configuration, layer_steps, variants

FLAGS = flags.FLAGS
flags.DEFINE_bool("quick", False, "Three configurations, only RUM and GRU, few rounds.")
flags.DEFINE_integer("rounds", None, "Measurements of each variant. Default: 9, or 5 if quick.")
flags.DEFINE_multi_string("only", [], "Measure only this: batch,time,features,units,lambda.")
flags.DEFINE_string("output", "build/bench.json", "Where results are written.")
flags.DEFINE_bool("memory", True, "Whether to measure peak memory.")
flags.DEFINE_string("memory_of", None, "Print the peak memory of this variant, of --only.")

# Each with what is asked: of RNN(RUMCell) if --quick, else of RUM, times GRU.
QUICK = {
    Configuration(128, 120, 64, 250, 0): 1.2,
    Configuration(128, 53, 32, 50, 1): 6.0,
    Configuration(64, 120, 32, 100, 1): 9.0,
}
FULL = {
    Configuration(128, 120, 64, 250, 0): 0.60,
    Configuration(64, 60, 256, 512, 0): 0.56,
    Configuration(32, 100, 64, 64, 0): 0.40,
    Configuration(128, 520, 32, 100, 0): 0.60,
    Configuration(32, 2000, 32, 64, 0): 0.32,
    Configuration(64, 120, 32, 100, 1): 1.7,
    Configuration(128, 53, 32, 50, 1): 1.4,
    Configuration(128, 520, 32, 100, 1): 2.4,
    Configuration(32, 2000, 32, 64, 1): 0.8,
}


def timed(function) -> tuple[float, float]:
    """Returns the seconds of wall time and of CPU time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    for tensor in tf.nest.flatten(function()):
        tensor.numpy() if tensor.shape.rank == 0 else tensor[:0].numpy()  # Waits.
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(functions: dict, rounds: int) -> dict[str, np.ndarray]:
    """Returns (rounds, 2) seconds of each function, run in random order in each round."""
    for function in functions.values():
        for _ in range(2):  # The first call traces and compiles.
            timed(function)
    seconds = {name: [] for name in functions}
    for _ in range(rounds):
        for name in random.sample(list(functions), len(functions)):
            seconds[name].append(timed(functions[name]))
    return {name: np.array(values) for name, values in seconds.items()}


def statistics(seconds: np.ndarray, gru: np.ndarray) -> dict[str, float]:
    """Returns what is reported of a variant's (rounds, 2) seconds, beside those of GRU."""
    low, median, high = np.quantile(seconds[:, 0], (0.25, 0.5, 0.75))
    wall, cpu = np.median(seconds / gru, axis=0)
    spread = np.quantile(seconds[:, 0] / gru[:, 0], (0.25, 0.75))
    return {
        "ms": 1e3 * median,
        "ms_quartiles": [1e3 * low, 1e3 * high],
        "times_gru": wall,
        "times_gru_quartiles": list(spread),
        "cpu_times_gru": cpu,
    }


def peak_memory() -> float:
    """Returns the peak memory of this process so far, in MB (on Linux; else, --nomemory)."""
    # Not ru_maxrss, in which a process starts with the peak of its parent.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def memory_of(name: str, configuration: Configuration) -> float:
    """Returns the MB that a variant's forward and backward pass add to a warm process."""
    small = Configuration(2, 3, 4, 6, 0)
    timed(layer_steps(keras.layers.GRU(6, use_cudnn=False), small)["forward+backward"])
    before = peak_memory()
    function = variants(configuration, quick=False)[name]()["forward+backward"]
    for _ in range(3):
        timed(function)
    return peak_memory() - before


def memory_in_new_process(name: str, configuration: Configuration) -> float:
    """Returns `memory_of` in a process of its own."""
    sizes = ",".join(map(str, configuration))
    command = [sys.executable, "-m", "tests.bench.bench", f"--memory_of={name}", f"--only={sizes}"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(result.stdout.splitlines()[-1])


def bench(configuration: Configuration, rounds: int) -> list[dict]:
    """Returns the results of all variants of a configuration."""
    made = {name: make() for name, make in variants(configuration, FLAGS.quick).items()}
    rows = []
    for direction in ("forward+backward",) if FLAGS.quick else ("forward", "forward+backward"):
        functions = {name: steps[direction] for name, steps in made.items()}
        seconds = measure(functions, rounds)
        for name in functions:
            row = configuration._asdict() | {"variant": name, "direction": direction}
            rows.append(row | statistics(seconds[name], seconds["GRU"]))
    for row in rows:
        if FLAGS.memory and row["direction"] != "forward" and "floor" not in row["variant"]:
            row["peak_mb"] = memory_in_new_process(row["variant"], configuration)
    return rows


def print_table(configuration: Configuration, rows: list[dict], target: float) -> None:
    """Prints the results of a configuration."""
    whose = "RNN(RUMCell)" if FLAGS.quick else "RUM"
    print(", ".join(f"{name} {size}" for name, size in configuration._asdict().items()))
    print(f"{'':34}{'ms (quartiles)':>22}{'x GRU (quartiles)':>22}{'CPU x GRU':>11}{'peak MB':>9}")
    for row in rows:
        low, high = row["ms_quartiles"]
        milliseconds = f"{row['ms']:.1f} ({low:.1f}-{high:.1f})"
        low, high = row["times_gru_quartiles"]
        ratio = f"{row['times_gru']:.2f} ({low:.2f}-{high:.2f})"
        memory = f"{row['peak_mb']:.0f}" if "peak_mb" in row else ""
        asked = row["variant"] == whose and row["direction"] != "forward"
        print(
            f"{row['variant']:17}{row['direction']:17}{milliseconds:>22}{ratio:>22}"
            f"{row['cpu_times_gru']:>11.2f}{memory:>9}"
            + (f"  asked: at most {target}" if asked else "")
        )
    print(flush=True)


def write(rows: list[dict], load: tuple) -> None:
    """Writes the results and what they were measured on."""
    path = pathlib.Path(FLAGS.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load_before_and_after": [load[0], os.getloadavg()[0]],
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps({"machine": machine, "results": rows}, indent=1))
    temporary.rename(path)


def main(_) -> None:
    """Measures and reports."""
    chosen = QUICK if FLAGS.quick else FULL
    if FLAGS.only:
        sizes = (Configuration(*map(int, only.split(","))) for only in FLAGS.only)
        chosen = {configuration: chosen.get(configuration, "-") for configuration in sizes}
    if FLAGS.memory_of:
        print(memory_of(FLAGS.memory_of, *chosen))
        return
    load, results = os.getloadavg(), []
    print(f"{os.cpu_count()} cores, load {load[0]:.1f}\n", flush=True)
    for configuration, target in chosen.items():
        rows = bench(configuration, FLAGS.rounds or (5 if FLAGS.quick else 9))
        print_table(configuration, rows, target)
        results += rows
        write(results, load)


if __name__ == "__main__":
    app.run(main)
