"""Times pointer-generators with an LSTM and a RUM: `python -m tests.bench.pointer_generator`.

A step of training at the paper's size (a vocabulary of 50,000, 256 units, embeddings of 128, 16
articles of 400 and 100 words) of LEAD, both cells LSTMs, and decRUM, in one process, in random
order in each round; the ratio is taken within a round, so that what else the machine does falls on
both. Then articles per second of beam search, beam 4 and 100 words, of which no summary may end
earlier. Prints a table and writes build/bench_pointer_generator.json. `--quick` is a small size.
"""

import os

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from tests.bench import bench
from zoo.pointer_generator.adagrad import ClippedAdagrad
from zoo.pointer_generator.model import PointerGenerator

FLAGS = flags.FLAGS
SYSTEMS = {"LEAD": ("lstm", "lstm"), "decRUM": ("lstm", "rum")}
# What is asked: at most so many times the time of LEAD.
ASKED = 1.1


def sizes() -> dict[str, int]:
    """Returns vocabulary, embedding, units, articles of a batch, source and target words."""
    paper = {"vocabulary": 50_000, "embedding": 128, "units": 256}
    paper |= {"articles": 16, "source": 400, "target": 100}
    if not FLAGS.quick:
        return paper
    return paper | {"vocabulary": 2_000, "units": 64, "articles": 4, "source": 60, "target": 20}


def make_batch(size: dict[str, int]) -> tuple:
    """Returns inputs, targets and weights of random words, of which a tenth has no id."""
    generator = np.random.default_rng(0)
    words = size["vocabulary"]

    def draw(length):
        shape = (size["articles"], length)
        ids = generator.integers(4, words, shape)
        copied = words + generator.integers(0, length, shape)
        return np.where(generator.random(shape) < 0.1, copied, ids).astype(np.int32)

    extended, target = draw(size["source"]), draw(size["target"])
    summary = np.roll(np.where(target < words, target, 0), 1, axis=1)
    inputs = {
        "document": np.where(extended < words, extended, 0).astype(np.int32),
        "document_extended": extended,
        "summary": summary.astype(np.int32),
    }
    weights = np.full(target.shape, 1 / target.size, np.float32)
    return tf.nest.map_structure(tf.constant, (inputs, target, weights))


def steps(encoder: str, decoder: str, size: dict[str, int]) -> dict:
    """Returns functions that train a step and that summarize a batch."""
    model = PointerGenerator(
        size["vocabulary"], size["embedding"], size["units"], encoder=encoder, decoder=decoder
    )
    model.build()
    model.compile(ClippedAdagrad())
    batch = make_batch(size)
    train = tf.function(lambda: model.train_step(batch))
    ids = batch[0]["document"], batch[0]["document_extended"]
    lengths = {"min_length": size["target"], "max_length": size["target"]}
    search = tf.function(lambda: model.summarize(*ids, beam=4, extra=size["source"], **lengths))
    return {"train": train, "search": search}


def report(size: dict[str, int], rounds: int) -> list[dict]:
    """Measures both systems, prints a line for each, and returns what is written."""
    made = {name: steps(*cells, size) for name, cells in SYSTEMS.items()}
    rows = []
    for task, count in (("train", size["articles"] * size["target"]), ("search", size["articles"])):
        seconds = bench.measure({name: made[name][task] for name in made}, rounds)
        for name, measured in seconds.items():
            median = np.median(measured[:, 0])
            ratio, cpu = np.median(measured / seconds["LEAD"], axis=0)
            rows.append(
                {"system": name, "task": task, "seconds": median, "rate": count / median}
                | {"times_lead": ratio, "cpu_times_lead": cpu, **size}
            )
            unit = "summary tokens/s" if task == "train" else "articles/s"
            asked = f"  asked: at most {ASKED}" if (name, task) == ("decRUM", "train") else ""
            print(
                f"{name:8}{task:8}{median:9.3f} s {count / median:9.1f} {unit:18}"
                f"{ratio:6.2f} x LEAD, CPU {cpu:5.2f} x{asked}",
                flush=True,
            )
    return rows


def memory() -> str:
    """Returns the peak memory, of the GPU where there is one."""
    if tf.config.list_physical_devices("GPU"):
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
        return f"{peak / 2**30:.2f} GiB of the GPU's memory"
    return f"{bench.peak_memory() / 1024:.2f} GB of memory, both systems and Python together"


def main(_) -> None:
    """Measures and reports."""
    keras.utils.set_random_seed(0)
    size, load = sizes(), os.getloadavg()
    print(f"{os.cpu_count()} cores, load {load[0]:.1f}", *size.items(), flush=True)
    rows = report(size, FLAGS.rounds or (3 if FLAGS.quick else 5))
    print(f"Peak: {memory()}.")
    bench.write(rows, load)


if __name__ == "__main__":
    FLAGS.set_default("output", "build/bench_pointer_generator.json")
    app.run(main)
