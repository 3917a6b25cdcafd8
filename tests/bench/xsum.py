"""Times Topic-ConvS2S at the paper's size: `python -m tests.bench.xsum [--quick]`.

A training step (batch 8, source 400, target 30) in target tokens a second, and generation with beam
10 of exactly 30 tokens in sentences a second, one document at a time and eight at once. Beside each
the floor: its matrix products and convolutions alone, in the same process, by the same library,
where the encoder's convolutions are those of `keras.ops.conv`, not the third fewer products that
the model makes. Ratios of CPU time suffer least from what else the machine does. Writes
build/bench_xsum.json.

The released code under PyTorch 2.13 does, on 2 cores of an AMD EPYC with AVX-512 that do nothing
else, 37 to 45 target tokens and 0.63 sentences (encoded once) a second; on one core 25.5 and 0.46.
"""

import json
import os
import pathlib
import platform
import time

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from zoo.xsum.model import TopicConvS2S
from zoo.xsum.nesterov import Nesterov

FLAGS = flags.FLAGS
flags.DEFINE_bool("quick", False, "A model of 2 layers, to try the benchmark itself.")
flags.DEFINE_integer("rounds", 3, "Measurements of each.", lower_bound=1)
flags.DEFINE_integer("batch", 8, "Documents of a training step.", lower_bound=1)
flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "Keras dtype policy.")
flags.DEFINE_string("output", "build/bench_xsum.json", "Where results are written.")

SOURCE, TARGET, BEAM, UNITS, TOPICS, KERNEL, OUTPUT = 400, 30, 10, 512, 512, 3, 256
SIZE = UNITS + TOPICS
VOCABULARY = 50_004


def timed(function) -> tuple[float, float]:
    """Returns the seconds of wall time and of CPU time of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    for tensor in tf.nest.flatten(function()):
        np.asarray(tensor)  # Waits.
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(function) -> np.ndarray:
    """Returns the least wall and CPU time of some calls, the first of which compiles."""
    timed(function)
    return np.min([timed(function) for _ in range(FLAGS.rounds)], axis=0)


def peak_memory() -> float:
    """Returns the peak memory of this process so far, in MB (on Linux)."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def make_model(layers: int) -> TopicConvS2S:
    """Returns the paper's T-ConvS2S, enc (t', t_D), dec t_D, with random weights."""
    keras.utils.set_random_seed(0)
    model = TopicConvS2S(
        VOCABULARY,
        TOPICS,
        encoder_layers=[(UNITS, KERNEL)] * layers,
        decoder_layers=[(UNITS, KERNEL)] * layers,
        output_units=OUTPUT,
        winograd=True,
    )
    model.build()
    model.compile(Nesterov(), jit_compile=False)
    return model


def inputs(batch: int) -> dict:
    """Returns random documents, summaries and topics."""
    random = np.random.default_rng(0)

    def ids(length):
        return tf.constant(random.integers(4, VOCABULARY, (batch, length)), tf.int32)

    topics = tf.constant(random.dirichlet(np.ones(TOPICS), batch), tf.float32)
    return {"document": ids(SOURCE), "summary": ids(TARGET), "topics": topics}


def training_step(model: TopicConvS2S, batch: int):
    """Returns a function of no arguments that makes a step of training."""
    model.make_train_function()
    data = (inputs(batch), inputs(batch)["summary"])
    return lambda: model.train_function(iter([data]))["loss"]


def generation(model: TopicConvS2S, batch: int):
    """Returns a function of no arguments that finds summaries of exactly 30 tokens."""
    data = inputs(batch)
    summarize = tf.function(
        lambda document, topics: (
            model.summarize(
                document, topics, beam=BEAM, min_length=TARGET - 1, max_length=TARGET - 1
            ).tokens
        )
    )
    return lambda: summarize(data["document"], data["topics"])


def convolution(rows: int):
    """Returns a function that convolves documents as the encoder does, and its gradients."""
    x = tf.random.normal((rows, SOURCE, UNITS), dtype=_dtype())
    kernel = tf.random.normal((KERNEL, UNITS, 2 * UNITS), dtype=_dtype())

    def forward(x, kernel):
        return tf.nn.conv1d(x, kernel, 1, "SAME")

    return _with_gradients(forward, x, kernel)


def product(rows: int, inner: int, columns: int, batch: int = 0):
    """Returns a function that multiplies two matrices, `batch` times, and its gradients."""
    prefix = (batch,) if batch else ()
    x = tf.random.normal((*prefix, rows, inner), dtype=_dtype())
    y = tf.random.normal((*prefix, inner, columns), dtype=_dtype())
    return _with_gradients(tf.matmul, x, y)


def _dtype():
    return tf.bfloat16 if FLAGS.dtype == "mixed_bfloat16" else tf.float32


def _with_gradients(operation, x, y):
    forward = tf.function(lambda: operation(x, y))
    upstream = tf.ones_like(forward())

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            tape.watch((x, y))
            result = operation(x, y)
        return (result, *tape.gradient(result, (x, y), output_gradients=upstream))

    return forward, both


def floor(parts: list[tuple[int, tuple]], gradients: bool) -> np.ndarray:
    """Returns the seconds of parts, each (how often, what `convolution` or `product` returns)."""
    return sum(count * measure(functions[gradients]) for count, functions in parts)


def encoder_parts(batch: int, layers: int) -> list[tuple[int, tuple]]:
    """Returns the products of the encoder."""
    rows = batch * SOURCE
    return [
        (layers, convolution(batch)),
        (1, product(rows, SIZE, UNITS)),
        (1, product(rows, UNITS, SIZE)),
    ]


def decoder_parts(batch: int, rows: int, layers: int) -> list[tuple[int, tuple]]:
    """Returns the products of the decoder for `rows` steps or beams of each document."""
    total = batch * rows
    return [
        (1, product(total, SIZE, UNITS)),
        (layers, product(total, KERNEL * UNITS, 2 * UNITS)),
        (layers, product(total, UNITS, SIZE)),
        (layers, product(total, SIZE, UNITS)),
        (layers, product(rows, SIZE, SOURCE, batch)),
        (layers, product(rows, SOURCE, SIZE, batch)),
        (1, product(total, UNITS, OUTPUT)),
        (1, product(total, OUTPUT, VOCABULARY)),
    ]


def report(name: str, seconds: np.ndarray, least: np.ndarray, per: int, unit: str) -> dict:
    """Prints and returns what was measured."""
    row = {
        "name": name,
        f"{unit}_a_second": per / seconds[0],
        f"{unit}_a_second_of_cpu": per / seconds[1],
        "seconds": seconds[0],
        "cpu_seconds": seconds[1],
        "times_its_products": seconds[0] / least[0],
        "cpu_times_its_products": seconds[1] / least[1],
    }
    print(*(f"{k} {v:.3g}" if k != "name" else v for k, v in row.items()), sep="  ", flush=True)
    return row


def main(_) -> None:
    """Measures and writes."""
    tf.get_logger().setLevel("ERROR")  # One function a shape is meant.
    keras.config.set_dtype_policy(FLAGS.dtype)
    layers = 2 if FLAGS.quick else 20
    model = make_model(layers)
    batch = FLAGS.batch
    step = measure(training_step(model, batch))
    parts = encoder_parts(batch, layers) + decoder_parts(batch, TARGET, layers)
    rows = [report("training", step, floor(parts, True), batch * TARGET, "tokens")]
    for count in (1, 8):
        found = measure(generation(model, count))
        least = floor(encoder_parts(count, layers), False)
        least = least + TARGET * floor(decoder_parts(count, BEAM, layers), False)
        rows.append(report(f"generation of {count}", found, least, count, "sentences"))
    print(f"peak memory {peak_memory():.0f} MB; load {os.getloadavg()[0]:.1f}")
    output = pathlib.Path(FLAGS.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "rows": rows,
        "layers": layers,
        "dtype": FLAGS.dtype,
        "peak_memory_mb": peak_memory(),
        "load": os.getloadavg(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "tensorflow": tf.__version__,
    }
    temporary = output.with_name(f".{output.name}")
    temporary.write_text(json.dumps(result, indent=2) + "\n")
    os.replace(temporary, output)


if __name__ == "__main__":
    app.run(main)
