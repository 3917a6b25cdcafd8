"""Trains pointer-generators with LSTMs or RUM; see zoo/run.py for what it leaves behind.

    python -m zoo.pointer_generator.train --flagfile=zoo/pointer_generator/small_decrum.flags \
        --data=data/xsum --workdir=runs/decrum

and then, for some steps more, with coverage, which is the same model and one weight vector:

    python -m zoo.pointer_generator.train --flagfile=zoo/pointer_generator/small_decrum.flags \
        --data=data/xsum --workdir=runs/decrum_coverage --coverage --from=runs/decrum --steps=300
"""

import json
import math
import pathlib
import sys

import keras
from absl import app, flags

from zoo import multi_worker, run
from zoo.pointer_generator import batches, kept
from zoo.pointer_generator.adagrad import ClippedAdagrad
from zoo.pointer_generator.batches import ArticleBatches
from zoo.pointer_generator.diagnostics import Diagnostics
from zoo.pointer_generator.model import PointerGenerator
from zoo.pointer_generator.schedule import EarlyStopping
from zoo.progress import TokensPerSecond

FLAGS = flags.FLAGS

# Articles that the diagnostics look at.
PROBED = 4


def rum_options() -> dict:
    """Returns the arguments of RUMs that the flags give."""
    options = {
        "lambda_": FLAGS.lambda_,
        "eta": FLAGS.eta,
        "activation": FLAGS.activation,
        "use_update_gate": FLAGS.update_gate,
    }
    return {name: value for name, value in options.items() if value is not None}


def make_model(words: int) -> PointerGenerator:
    """Returns the model that the flags describe, of so many ids.

    Raises:
        ValueError: If options of RUMs are given, but there is none.
    """
    rums = "rum" in (FLAGS.encoder, FLAGS.decoder)
    if rum_options() and not rums:
        names = ", --".join(rum_options())
        raise ValueError(f"--{names}: for RUMs, but encoder and decoder are LSTMs: leave it out.")
    model = PointerGenerator(
        words,
        embedding=FLAGS.embedding,
        units=FLAGS.units,
        encoder=FLAGS.encoder,
        decoder=FLAGS.decoder,
        pointer=FLAGS.pointer,
        coverage=FLAGS.coverage,
        coverage_weight=FLAGS.coverage_weight,
        rum_options=rum_options() if rums else None,
    )
    model.build()
    return model


def take_weights(model: PointerGenerator, source: str) -> None:
    """Gives a model the weights of a finished run, which may have no coverage yet.

    Args:
        model: The model; it keeps those weights alone that the run has not.
        source: Folder of the run.

    Raises:
        FileNotFoundError: If it has no best.keras or has kept no vocabulary.
        ValueError: If its model or its vocabulary is another one.
    """
    described = json.loads(pathlib.Path(FLAGS.workdir, "corpus.json").read_text())
    ids = {"vocabulary_sha256": described["vocabulary_sha256"]}
    kept.check(source, ids, FLAGS.data, "from")
    found = kept.load_model(source)
    ours, theirs = model.get_config(), found.get_config()
    free = {"name", "dtype", "trainable", "coverage", "coverage_weight"}
    if found.decoder.coverage and not model.decoder.coverage:
        free.remove("coverage")
    different = sorted(n for n in ours if n not in free and ours[n] != theirs[n])
    if different:
        raise ValueError(
            f"--from={source} is another model: "
            + ", ".join(f"{n} is {theirs[n]!r}, not {ours[n]!r}" for n in different)
            + ". Give the flags that it was trained with."
        )
    if model.decoder.coverage and not found.decoder.coverage:
        found = found.with_coverage()
    model.set_weights(found.get_weights())


def make_batches(split: str, replicas: int) -> ArticleBatches:
    """Returns the batches of a split."""
    if FLAGS.overfit:
        split = "train"
    return ArticleBatches(
        batches.load(FLAGS.data, split, FLAGS.overfit),
        FLAGS.batch_size,
        FLAGS.steps,
        FLAGS.steps_per_epoch,
        FLAGS.seed,
        batches.parse_lengths(FLAGS.lengths),
        replicas,
        copy=FLAGS.pointer,
    )


def test_figures(model: keras.Model, test: ArticleBatches) -> dict:
    """Returns the loss of a word, its exponential, and with coverage its loss."""
    model.compile(jit_compile=False)  # As in training.
    return model.evaluate(test.all(), return_dict=True, verbose=0)


def train(model, checkpoint, callbacks, validation: ArticleBatches) -> None:
    """Makes the steps that are left."""
    fit, held_out = keras.Model.fit, {"validation_data": validation.all()}
    if FLAGS.strategy == "multi_worker":
        fit = multi_worker.fit
        held_out = {"validation_data": validation.arrays(), "validation_batch_size": 16}
    for epoch, data in checkpoint.epochs():
        fit(
            model,
            data,
            initial_epoch=epoch,
            epochs=epoch + 1,
            **held_out,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )


def main(_) -> None:
    """Trains, tests, and leaves a working folder."""
    strategy = run.start()
    try:
        if FLAGS.diagnostics and FLAGS.strategy == "multi_worker":
            raise ValueError("--diagnostics is for one machine: train with --nodiagnostics.")
        if FLAGS.jit_compile == "true":
            raise ValueError(
                "--jit_compile=true: XLA has no gradient of the decoder's loop, keras.ops.scan, "
                "which gives it no greatest number of steps (Keras 3.15). Leave the flag out."
            )
        lengths = batches.parse_lengths(FLAGS.lengths)[-1]
        kept.keep(FLAGS.data, FLAGS.workdir, lengths.source, FLAGS.min_length, FLAGS.max_length)
        words = len(kept.read(FLAGS.workdir).vocabulary)
        splits = {
            split: make_batches(split, strategy.num_replicas_in_sync)
            for split in ("train", "validation", "test")
        }
        with strategy.scope():
            model = make_model(words)
            saved = pathlib.Path(FLAGS.workdir, "backup", "checkpoint").exists()
            if FLAGS["from"].value and not saved:  # Else the checkpoint has all weights.
                take_weights(model, FLAGS["from"].value)
            optimizer = ClippedAdagrad(
                FLAGS.learning_rate, FLAGS.initial_accumulator_value, FLAGS.clip_norm
            )
            model.compile(optimizer, jit_compile=False)  # Keras would choose XLA on a GPU.
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.pointer_generator.train: {error}")
    passes = splits["train"].steps_of_a_pass
    print(f"{model.count_params()} parameters; a pass is {passes} steps", flush=True)
    baseline = ("a word at random", math.log(words))
    checkpoint, callbacks = run.callbacks(model, splits["train"], baseline)
    stopping = EarlyStopping(FLAGS.patience)
    model.stop_training = stopping.ended(model.optimizer)
    measuring = [stopping, TokensPerSecond()]
    if FLAGS.diagnostics:
        few = range(min(PROBED, len(splits["validation"].articles)))
        batch = splits["validation"].batch(few)
        measuring.append(Diagnostics(FLAGS.workdir, batch, checkpoint))
    train(model, checkpoint, [*measuring, *callbacks], splits["validation"])
    test, seconds = (splits["test"],), checkpoint.seconds
    run.finish(test_figures, test, baseline, seconds, steps_taken=checkpoint.step)


def define_model_flags() -> None:
    """Defines the flags of the model."""
    flags.DEFINE_integer("units", 256, "Size of the states.", lower_bound=1)
    flags.DEFINE_integer("embedding", 128, "Size of the embeddings.", lower_bound=1)
    flags.DEFINE_enum("encoder", "lstm", ["lstm", "rum"], "Cell of the encoder.")
    flags.DEFINE_enum("decoder", "lstm", ["lstm", "rum"], "Cell of the decoder.")
    flags.DEFINE_bool("pointer", True, "Whether words can be copied; without, it is Seq2Seq.")
    flags.DEFINE_bool("coverage", False, "Whether attention knows where it looked before.")
    flags.DEFINE_float("coverage_weight", 1.0, "Weight of the coverage loss.", lower_bound=0.0)
    # Where these have no value, the default of `rum_keras.RUMCell` holds.
    flags.DEFINE_integer("lambda_", None, "RUM: 1 for the memory, 0 for none.", 0, 1)
    flags.DEFINE_float("eta", None, "RUM: norm of the state, for time normalization.")
    flags.DEFINE_string("activation", None, "RUM: activation of the candidate.")
    flags.DEFINE_bool("update_gate", None, "RUM: whether there is an update gate.")


def define_flags() -> None:
    """Defines the flags of the model and its training."""
    define_model_flags()
    flags.DEFINE_string("data", None, "Folder that a corpus of articles was prepared in.")
    flags.DEFINE_string("from", None, "Run whose weights to begin with, perhaps without coverage.")
    flags.DEFINE_list(
        "lengths",
        ["0:400:100"],
        "How many words of documents and summaries are read, as step:source:target from step 0; "
        "several stages let them grow.",
    )
    flags.DEFINE_integer("min_length", 35, "Fewest words of summaries to be written.", 0)
    flags.DEFINE_integer("max_length", 120, "Most words of summaries to be written.", 1)
    flags.DEFINE_float("learning_rate", 0.15, "Of Adagrad.", lower_bound=0.0)
    flags.DEFINE_float("initial_accumulator_value", 0.1, "Of Adagrad.", lower_bound=0.0)
    flags.DEFINE_integer("patience", 0, "Epochs without gain that end training; 0: none do.", 0)
    flags.DEFINE_bool(
        "diagnostics", False, "Write norms of states, and of gradients by step, after each epoch."
    )
    flags.DEFINE_integer(
        "overfit", 0, "Learn the first so many articles by heart: train and validate on them.", 0
    )
    FLAGS.set_default("clip_norm", 2.0)
    FLAGS.set_default("batch_size", 16)
    flags.mark_flag_as_required("data")


if __name__ == "__main__":
    define_flags()
    app.run(main)
