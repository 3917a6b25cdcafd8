"""Trains on bAbI, one model a task; see zoo/run.py for what a task leaves behind.

    python -m zoo.babi.train --flagfile=zoo/babi/table2_rum_lambda1_sentence.flags \
        --data=tasks_1-20_v1-2 --task=all --workdir=runs/babi

With --task=all, the tasks are trained one after another, each in a folder of its own,
WORKDIR/qa01 to WORKDIR/qa20, and WORKDIR/table.md and table.json hold their accuracies and the
mean. Started again, finished tasks are skipped, and the one that was stopped goes on. (Not with
--strategy=multi_worker: there, each task is a command of its own.)
"""

import functools
import json
import math
import os
import sys
from collections import Counter
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from absl import app, flags

from datasets import babi
from zoo import multi_worker, progress, run
from zoo.babi import networks, table
from zoo.babi.evaluate import BATCH, predict
from zoo.batches import Batches

FLAGS = flags.FLAGS
# What sizes are multiples of with --round_up.
MULTIPLES = {
    "words": 48,
    "answers": 16,
    "sentences": 10,
    "sentence_words": 12,
    "story_words": 40,
    "question_words": 12,
}
OPTIMIZERS = {
    "adagrad": keras.optimizers.Adagrad,
    "adam": keras.optimizers.Adam,
    "rmsprop": functools.partial(keras.optimizers.RMSprop, momentum=0.9),  # As DNC has it.
    "sgd": keras.optimizers.SGD,
}


class Stories(Batches):
    """Batches of ((story, question), answer)."""

    def epoch(self, epoch: int, first: int = 0) -> tf.data.Dataset:
        """The batches of one epoch, as in `Batches`."""
        batches = super().epoch(epoch, first)
        return batches.map(lambda story, question, answer: ((story, question), answer))


def load(task: int) -> tuple[babi.Task, str]:
    """Loads a task as the flags say, and returns also the language that it came from."""
    stand_in = dict(pair.split(":", 1) for pair in FLAGS.stand_in).get(str(task))
    try:
        try:
            return babi.load(FLAGS.data, task, FLAGS.language), FLAGS.language
        except FileNotFoundError as missing:
            if stand_in is None:
                raise
            loaded = babi.load(FLAGS.data, task, stand_in)
            print(f"{missing} Task {task} takes {stand_in} instead: {len(loaded.train)} questions.")
            return loaded, stand_in
    except (FileNotFoundError, ValueError) as error:
        sys.exit(f"zoo.babi.train: {error}")


def vocabulary(questions: babi.Task) -> babi.Vocabulary:
    """Returns the vocabulary of a task, with the sizes of stories that the flags ask for."""
    known = babi.vocabulary(questions.train + questions.validation, FLAGS.sentences)
    sizes = {name: rounded(name, getattr(known, name)) for name in known._fields[2:]}
    return known._replace(**sizes)


def rounded(name: str, size: int) -> int:
    """Returns `size`, rounded up if the flags ask for it."""
    return -(-size // MULTIPLES[name]) * MULTIPLES[name] if FLAGS.round_up else size


class Models:
    """The compiled models of this process: tasks of the same sizes share one, made anew for each.

    Tracing and compiling a model takes longer than some tasks take to train.
    """

    def __init__(self):
        self._models = {}

    def get(self, strategy: tf.distribute.Strategy, known: babi.Vocabulary) -> keras.Model:
        """Returns the compiled model for a task, with the weights that the seed gives."""
        words = rounded("words", len(known.words))
        answers = rounded("answers", len(known.answers))
        key = (words, answers, *known[2:])
        if key not in self._models:
            with strategy.scope():
                model = networks.make_model(words, answers, known)
                model.compile(
                    optimizer(),
                    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                    metrics=["accuracy"],
                    jit_compile=run.jit_compile(),
                    steps_per_execution=FLAGS.steps_per_execution,
                )
                model.optimizer.build(model.trainable_variables)
            variables = model.variables + model.optimizer.variables
            self._models[key] = model, variables, [variable.numpy() for variable in variables]
        model, variables, values = self._models[key]
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        return model


def test_figures(
    model: keras.Model, story: np.ndarray, question: np.ndarray, answer: np.ndarray
) -> dict[str, float]:
    """Returns the part of questions answered rightly, and the mean cross-entropy."""
    logits = predict(model, story, question)
    known = answer >= 0  # An answer that training did not have cannot be given.
    loss = keras.losses.sparse_categorical_crossentropy(
        answer[known], logits[known], from_logits=True
    )
    return {"accuracy": np.mean(logits.argmax(-1) == answer), "loss": np.mean(loss)}


def baseline(answers: np.ndarray) -> tuple[str, float]:
    """Returns the loss of a model that knows no more than how frequent each answer is."""
    parts = [count / len(answers) for count in Counter(answers.tolist()).values()]
    return "answers by frequency", -sum(part * math.log(part) for part in parts)


def is_over(workdir: Path, patience: int, enough: float) -> bool:
    """Whether a run can end: no improvement for `patience` epochs, or an accuracy of `enough`."""
    rows = progress.read_log(workdir / "log.csv")
    losses = [row["val_loss"] for row in rows]
    if not rows:
        return False
    since = len(losses) - 1 - losses.index(min(losses))
    return since >= patience or rows[-1]["val_accuracy"] >= enough


def write_vocabulary(workdir: Path, known: babi.Vocabulary) -> None:
    """Writes what an export and `zoo.babi.evaluate` need beside best.keras."""
    level = "word" if FLAGS.model == "word" else "sentence"
    text = json.dumps({"level": level, **known._asdict()}, indent=1) + "\n"
    (workdir / ".vocabulary.json").write_text(text)
    os.replace(workdir / ".vocabulary.json", workdir / "vocabulary.json")


def optimizer() -> keras.optimizers.Optimizer:
    """Returns the optimizer that the flags choose."""
    rate = FLAGS.learning_rate
    if FLAGS.halve_every:
        rate = keras.optimizers.schedules.ExponentialDecay(
            rate, FLAGS.halve_every, 0.5, staircase=True
        )
    return OPTIMIZERS[FLAGS.optimizer](rate, global_clipnorm=FLAGS.clip_norm)


def train(task: int, models: Models) -> None:
    """Trains and tests one task in the working folder of the flags."""
    strategy = run.start()
    workdir = Path(FLAGS.workdir)
    questions, language = load(task)
    known = vocabulary(questions)
    level = "word" if FLAGS.model == "word" else "sentence"
    training, validation, test = (babi.arrays(split, known, level) for split in questions)
    write_vocabulary(workdir, known)
    model = models.get(strategy, known)
    batches = Stories(training, FLAGS.batch_size, FLAGS.steps, FLAGS.steps_per_epoch, FLAGS.seed)
    expected = baseline(training[2])
    checkpoint, callbacks = run.callbacks(model, batches, expected)
    fit = multi_worker.fit if FLAGS.strategy == "multi_worker" else keras.Model.fit
    for epoch, dataset in checkpoint.epochs():
        if is_over(workdir, FLAGS.patience, FLAGS.enough):
            break
        fit(
            model,
            dataset,
            initial_epoch=epoch,
            epochs=epoch + 1,
            validation_data=(validation[:2], validation[2]),
            validation_batch_size=BATCH,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
    facts = {"task": task, "language": language, "steps_taken": checkpoint.step}
    run.finish(test_figures, test, expected, checkpoint.seconds, **facts)


def main(_) -> None:
    """Trains the tasks that the flags name."""
    networks.check_flags()
    if FLAGS.steps_per_epoch % FLAGS.steps_per_execution or FLAGS.steps % FLAGS.steps_per_execution:
        sys.exit("--steps and --steps_per_epoch must be multiples of --steps_per_execution.")
    if FLAGS.task != "all":
        return train(int(FLAGS.task), Models())
    if FLAGS.strategy == "multi_worker":
        sys.exit(
            "--task=all is for one machine, as TensorFlow joins workers once a process: give each "
            "task a command and a --workdir of its own, --task=1 to --task=20."
        )
    if not FLAGS.workdir:
        sys.exit("Say where the runs are to live: --workdir=FOLDER.")
    row, models = FLAGS.workdir, Models()
    for task in babi.TASKS:
        load(task)  # Better now than after hours: are all the files there, and well-formed?
    for task in babi.TASKS:
        FLAGS.task, FLAGS.workdir = str(task), str(table.folder(row, task))
        if run.finished():
            continue
        print(f"Task {task}: {table.NAMES[task - 1]}", flush=True)
        train(task, models)
        table.write(row, FLAGS.paper)
    print(table.write(row, FLAGS.paper), f"Left in {row}: table.md, table.json, qa01 to qa20")


def define_flags() -> None:
    """Defines the flags of the recipe."""
    networks.define_flags()
    tasks = [str(task) for task in babi.TASKS]
    flags.DEFINE_enum("task", "1", [*tasks, "all"], "The task, or all of them.")
    flags.DEFINE_string("data", None, "The folder tasks_1-20_v1-2, or its archive.", required=True)
    flags.DEFINE_string("language", "en-10k", "The folder in it: en, en-10k, hn-10k, ...")
    flags.DEFINE_multi_string(
        "stand_in", [], "TASK:LANGUAGE to take for a task whose files are missing in --language."
    )
    flags.register_validator(
        "stand_in", lambda pairs: all(":" in pair for pair in pairs), "must be TASK:LANGUAGE"
    )
    flags.DEFINE_integer("sentences", None, "Sentences to keep of a story, the newest.", 1)
    flags.DEFINE_bool("round_up", False, "Round sizes up, so that tasks share compiled models.")
    flags.DEFINE_enum("optimizer", "adam", sorted(OPTIMIZERS), "The optimizer.")
    flags.DEFINE_float("learning_rate", 1e-3, "Of the optimizer.", lower_bound=0.0)
    flags.DEFINE_integer("halve_every", None, "Steps until that is halved, again and again.", 1)
    flags.DEFINE_integer("steps_per_execution", 1, "Steps between two looks of Python.", 1)
    flags.DEFINE_integer("patience", 10, "Epochs without improvement that end a task.", 1)
    flags.DEFINE_float("enough", 1.0, "Validation accuracy that ends a task.")
    flags.DEFINE_float("paper", None, "The paper's mean accuracy, for the table.")


if __name__ == "__main__":
    define_flags()
    app.run(main)
