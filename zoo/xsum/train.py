"""Trains ConvS2S and Topic-ConvS2S on XSum; see zoo/run.py for what it leaves behind.

python -m zoo.xsum.train --flagfile=zoo/xsum/small.flags --data=data/xsum --workdir=runs/xsum
"""

import math
import pathlib
import sys

import keras
import tensorflow as tf
from absl import app, flags

from datasets import records, topics, vocabulary
from zoo import multi_worker, run
from zoo.progress import TokensPerSecond
from zoo.xsum import kept
from zoo.xsum.batches import SummaryBatches
from zoo.xsum.model import TopicConvS2S
from zoo.xsum.nesterov import Nesterov
from zoo.xsum.schedule import DropLearningRate

FLAGS = flags.FLAGS


def make_model(words: int, word_topics) -> keras.Model:
    """Returns the model that the flags describe.

    Args:
        words: number of ids.
        word_topics: topics of each word, float array (vocabulary, topics), or None.
    """
    layer = (FLAGS.filters, FLAGS.kernel_size)
    model = TopicConvS2S(
        words,
        topics=0 if word_topics is None else word_topics.shape[1],
        encoder_topics=FLAGS.encoder_topics if word_topics is not None else "word_document",
        decoder_topics=FLAGS.decoder_topics,
        absent_topics=FLAGS.absent_topics,
        normalize_topics=FLAGS.normalize_topics,
        units=FLAGS.units,
        encoder_layers=[layer] * FLAGS.encoder_layers,
        decoder_layers=[layer] * FLAGS.decoder_layers,
        output_units=FLAGS.output_units,
        dropout=FLAGS.dropout,
        winograd=not tf.config.list_physical_devices("GPU"),
    )
    model.build()
    if word_topics is not None:
        model.set_word_topics(word_topics)
    return model


def make_batches(split: str, replicas: int) -> SummaryBatches:
    """Returns the batches of a split."""
    found = records.load(FLAGS.data, split)
    if FLAGS.encoder_topics == "none":
        found = records.Split(found.document, found.summary, found.ids, None)
    elif found.topics_document is None:
        sys.exit(
            f"{FLAGS.data} has no topics: make them with python -m datasets.topics, or train "
            "without, by --encoder_topics=none."
        )
    return SummaryBatches(
        found,
        FLAGS.batch_size,
        FLAGS.steps,
        FLAGS.steps_per_epoch,
        FLAGS.seed,
        FLAGS.max_tokens,
        replicas,
    )


def test_figures(model: keras.Model, batches: SummaryBatches) -> dict:
    """Returns the loss of a token and its exponential."""
    model.compile(jit_compile=False)  # As in training.
    return model.evaluate(batches.all(), return_dict=True, verbose=0)


def main(_) -> None:
    """Trains, tests, and leaves a working folder."""
    strategy = run.start()
    with_topics = FLAGS.encoder_topics != "none"
    try:  # So that the folder alone is enough to summarize with, and to export.
        if strategy.extended.should_checkpoint:  # The chief, of several workers.
            kept.keep(FLAGS.data, FLAGS.workdir, with_topics)
        words = len(vocabulary.read(pathlib.Path(FLAGS.data, "vocabulary.txt")))
        word_topics = None
        if with_topics:
            word_topics = topics.load_word_topics(FLAGS.data, FLAGS.word_topics)
        train, validation, test = (
            make_batches(split, strategy.num_replicas_in_sync)
            for split in ("train", "validation", "test")
        )
    except (OSError, ValueError) as error:
        sys.exit(f"zoo.xsum.train: {error}")
    with strategy.scope():
        model = make_model(words, word_topics)
        optimizer = Nesterov(FLAGS.learning_rate, FLAGS.momentum, FLAGS.clip_norm)
        # "auto" is no: most batches have a shape of their own, and XLA compiles for each.
        model.compile(optimizer, jit_compile=FLAGS.jit_compile == "true")
    print(f"{model.count_params()} parameters; a pass is {train.steps_of_a_pass} steps", flush=True)
    baseline = ("a word at random", math.log(words))
    schedule = DropLearningRate(FLAGS.min_learning_rate, FLAGS.patience)
    checkpoint, callbacks = run.callbacks(model, train, baseline)
    model.stop_training = schedule.ended(model.optimizer)
    fit, held_out = keras.Model.fit, {"validation_data": validation.all()}
    if FLAGS.strategy == "multi_worker":
        fit = multi_worker.fit
        held_out = {"validation_data": validation.arrays(), "validation_batch_size": 32}
    for epoch, batches in checkpoint.epochs():
        fit(
            model,
            batches,
            initial_epoch=epoch,
            epochs=epoch + 1,
            **held_out,
            callbacks=[schedule, TokensPerSecond(), *callbacks],
            shuffle=False,
            verbose=0,
        )
    run.finish(test_figures, (test,), baseline, checkpoint.seconds)


def define_flags() -> None:
    """Defines the flags of the model and its training."""
    flags.DEFINE_string("data", None, "Folder that datasets.xsum and datasets.topics have filled.")
    flags.DEFINE_enum(
        "encoder_topics",
        "word_document",
        ["none", "word", "word_document"],
        "What the encoder reads with each word: nothing (ConvS2S), t', or t' times t_D.",
    )
    flags.DEFINE_bool("decoder_topics", True, "Whether the decoder reads t_D.")
    flags.DEFINE_enum("absent_topics", "ones", ["ones", "zeros"], "What it reads in place of t_D.")
    flags.DEFINE_enum(
        "word_topics",
        "released",
        ["released", "normalised"],
        "The form of t': as the released code has it, or a distribution over topics.",
    )
    flags.DEFINE_bool("normalize_topics", False, "Divide the encoder's topics by their norm.")
    flags.DEFINE_integer("units", 512, "Size of the embeddings.", lower_bound=1)
    flags.DEFINE_integer("encoder_layers", 20, "Layers of the encoder.", lower_bound=1)
    flags.DEFINE_integer("decoder_layers", 20, "Layers of the decoder.", lower_bound=1)
    flags.DEFINE_integer("filters", 512, "Size of each layer.", lower_bound=1)
    flags.DEFINE_integer("kernel_size", 3, "Words that a layer sees.", lower_bound=1)
    flags.DEFINE_integer("output_units", 256, "Size of what is before the logits.", lower_bound=1)
    flags.DEFINE_float("dropout", 0.2, "Part dropped in training.", 0.0, 0.99)
    flags.DEFINE_integer(
        "max_tokens",
        6000,
        "Most ids of a batch, padding too: its articles times the longest. 0: as many as there "
        "are (the paper's batches of 32; the released code has this limit).",
        lower_bound=0,
    )
    flags.DEFINE_float("learning_rate", 0.1, "The first learning rate.", lower_bound=0.0)
    flags.DEFINE_float(
        "min_learning_rate", 1e-4, "Stop when the learning rate is below.", lower_bound=0.0
    )
    flags.DEFINE_integer(
        "patience", 0, "Epochs without gain before the learning rate drops.", lower_bound=0
    )
    flags.DEFINE_float("momentum", 0.99, "Nesterov's momentum.", 0.0, 1.0)
    FLAGS.set_default("clip_norm", 0.1)
    FLAGS.set_default("batch_size", 32)
    flags.mark_flag_as_required("data")


if __name__ == "__main__":
    define_flags()
    app.run(main)
