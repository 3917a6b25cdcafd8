"""How gradients reach the words that are read and written (Figure 6 of the RUM paper)."""

import json
import os
import pathlib
from collections.abc import Mapping

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from matplotlib.figure import Figure

from rum_keras.pointer import copy_log_probability, coverage_loss
from zoo.pointer_generator.model import PointerGenerator


def measure(model: PointerGenerator, batch: tuple) -> dict:
    """Measures a model on a few articles.

    Args:
        model: The model.
        batch: Inputs, targets and weights as `ArticleBatches.batch` gives them.

    Returns:
        `hidden_norm`, the mean norm of the decoder's state over the words of the summaries;
        `encoder` and `decoder`, lists: the norm of the gradient of the loss with respect to the
        embedded word that is read at each step, mean over the articles that have such a step. The
        gradient of a step goes through all that follows it: states and attention.
    """
    inputs, target, weights = (tf.nest.map_structure(tf.convert_to_tensor, part) for part in batch)
    config = model.get_config()
    read = inputs["document"] != config["padding"]
    written = weights > 0
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        embedded = [model.embed(inputs[name]) for name in ("document", "summary")]
        tape.watch(embedded)
        outputs, states = model.encoder(embedded[0], mask=read)
        memory, state = model.decoder.start(outputs, read, states)
        results = model.decoder(embedded[1], state, memory)
        logits = ops.cast(model.readout(results["output"]), model.decoder.precise_dtype)
        if config["pointer"]:
            losses = -copy_log_probability(
                logits,
                results["pointer_logits"],
                results["attention"],
                inputs["document_extended"],
                target,
            )
        else:
            losses = ops.sparse_categorical_crossentropy(target, logits, from_logits=True)
        if config["coverage"]:
            losses += config["coverage_weight"] * coverage_loss(results["attention"])
        loss = tf.reduce_sum(tf.where(written, losses, 0.0) * weights)
    gradients = tape.gradient(loss, embedded)
    hidden = _norms(results["hidden"])
    return {
        "hidden_norm": float(hidden[written.numpy()].mean()),
        "encoder": _by_step(gradients[0], read.numpy()),
        "decoder": _by_step(gradients[1], written.numpy()),
    }


def _norms(values) -> np.ndarray:
    return np.linalg.norm(ops.convert_to_numpy(ops.cast(values, "float32")), axis=-1)


def _by_step(gradient, real: np.ndarray) -> list[float]:
    """Returns the mean of norms over rows, at each step, of those rows that have it."""
    norms = np.where(real, _norms(gradient), 0).sum(axis=0)
    return [float(f"{value:.6g}") for value in norms / np.maximum(real.sum(axis=0), 1)]


def draw(rows: list[Mapping], path: pathlib.Path) -> None:
    """Draws gradients by step, and the norms of gradient and state, as a picture.

    Args:
        rows: What was measured at each epoch, with its `step` and `gradient_norm`.
        path: The picture.
    """
    axes = Figure(figsize=(10, 7), layout="constrained").subplots(2, 2)
    shown = (
        rows if len(rows) < 5 else [rows[i] for i in np.linspace(0, len(rows) - 1, 5, dtype=int)]
    )
    for axis, side in zip(axes[0], ("encoder", "decoder"), strict=True):
        for row in shown:
            axis.plot(row[side], label=f"step {row['step']}")
        axis.set(xlabel=f"word of the {side}", ylabel="norm of the gradient", yscale="log")
        axis.legend()
    for axis, name in zip(axes[1], ("gradient_norm", "hidden_norm"), strict=True):
        axis.plot([row["step"] for row in rows], [row[name] for row in rows])
        axis.set(xlabel="steps of training", ylabel=name.replace("_", " "))
    path.parent.mkdir(exist_ok=True)
    staged = path.with_name(f".{path.name}")
    axes[0, 0].figure.savefig(staged, dpi=150)
    os.replace(staged, path)


class Diagnostics(keras.callbacks.Callback):
    """Measures the model after each epoch, on the same few articles.

    Adds `hidden_norm` to the log, writes WORKDIR/diagnostics.jsonl, a line an epoch, and draws
    figures/gradients.png. Must come after what adds `gradient_norm`.

    Args:
        workdir: The run's folder.
        batch: As for `measure`.
        checkpoint: Says which step it is, and which epochs are done.
    """

    def __init__(self, workdir: str | os.PathLike, batch: tuple, checkpoint):
        super().__init__()
        self._workdir = pathlib.Path(workdir)
        self._batch = batch
        self._checkpoint = checkpoint
        self._path = self._workdir / "diagnostics.jsonl"
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        # Epochs newer than the checkpoint are done again.
        self._rows = [row for row in map(json.loads, lines) if row["epoch"] < checkpoint.epoch]

    def on_epoch_end(self, epoch, logs=None):
        found = measure(self.model, self._batch)
        logs["hidden_norm"] = found["hidden_norm"]
        head = {"epoch": epoch, "step": self._checkpoint.step}
        self._rows.append({**head, "gradient_norm": logs["gradient_norm"], **found})
        staged = self._path.with_name(f".{self._path.name}")
        staged.write_text("".join(json.dumps(row) + "\n" for row in self._rows))
        os.replace(staged, self._path)
        draw(self._rows, self._workdir / "figures" / "gradients.png")
