"""`fit` for several machines.

`keras.Model.fit` fails under `MultiWorkerMirroredStrategy` in Keras 3.15 (keras#20585): it reduces
values that live on several workers as if they lived on one. This loop does the same with the same
`train_step`, metrics and callbacks.

Every worker runs the same recipe, and is told of the others by the environment:

    TF_CONFIG='{"cluster": {"worker": ["host0:2222", "host1:2222"]},
                "task": {"type": "worker", "index": 0}}'

The working folder must be one that all workers see; worker 0, the chief, writes it.
"""

import sys
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf


def fit(
    model: keras.Model,
    x: tf.data.Dataset,
    *,
    epochs: int = 1,
    initial_epoch: int = 0,
    validation_data: tuple,
    validation_batch_size: int,
    callbacks: list[keras.callbacks.Callback],
    shuffle: bool = False,
    verbose: int = 0,
) -> None:
    """Trains a model that was made under a `MultiWorkerMirroredStrategy`; see `keras.Model.fit`.

    Args:
        model: compiled model.
        x: batches of all workers together; each worker trains on its share of each.
        epochs: number of the epoch to stop before.
        initial_epoch: number of the first epoch.
        validation_data: inputs and targets; each worker evaluates all of them.
        validation_batch_size: examples an evaluation step of one replica.
        callbacks: as for `keras.Model.fit`; every worker has the same ones.
        shuffle: only False: `x` has its order.
        verbose: only 0: the progress bar of Keras is for one process.

    Raises:
        SystemExit: if another worker is lost.
    """
    if shuffle or verbose:
        raise ValueError(f"shuffle and verbose must be False and 0, got {shuffle} and {verbose}.")
    strategy = model.distribute_strategy
    if model.train_function is None:
        model.train_function = _train_function(model)
        model.test_function = _test_function(model)
    callbacks = keras.callbacks.CallbackList(callbacks, model=model, epochs=epochs)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    batches = strategy.experimental_distribute_dataset(x.with_options(options))
    validation = tf.data.Dataset.from_tensor_slices(validation_data).batch(validation_batch_size)
    validation = strategy.distribute_datasets_from_function(lambda context: validation)
    model.stop_training = False
    try:
        callbacks.on_train_begin()
        for epoch in range(initial_epoch, epochs):
            model.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            logs = _train_epoch(model, batches, callbacks)
            logs |= _evaluate(model, validation, callbacks)
            callbacks.on_epoch_end(epoch, logs)
            if model.stop_training:
                break
        callbacks.on_train_end(logs)
    except (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.InternalError,
        tf.errors.CancelledError,
        tf.errors.DeadlineExceededError,
    ) as error:
        reason = str(error.message).rpartition("}} ")[2].strip().splitlines()[0]
        sys.exit(
            f"Lost another worker, or the way to it ({reason}). Start all workers again with the "
            "same commands: they go on from the newest checkpoint in the working folder."
        )


def any_worker(strategy: tf.distribute.Strategy) -> Callable[[bool], bool]:
    """Returns a function of one answer a worker: whether any is yes. All have to ask together."""

    @tf.function
    def count(answer):
        return strategy.reduce("SUM", strategy.run(tf.identity, args=(answer,)), axis=None)

    return lambda answer: bool(count(tf.constant(float(answer))) > 0)


def _train_epoch(model, batches, callbacks) -> dict[str, float]:
    for step, batch in enumerate(batches):
        callbacks.on_train_batch_begin(step)
        logs = model.train_function(batch)
        callbacks.on_train_batch_end(step, logs)
    return {name: float(value) for name, value in logs.items()}


def _evaluate(model, batches, callbacks) -> dict[str, float]:
    callbacks.on_test_begin()
    model.reset_metrics()
    for batch in batches:
        logs = model.test_function(batch)
    callbacks.on_test_end()
    local = model.distribute_strategy.experimental_local_results
    return {f"val_{name}": float(np.mean(local(value))) for name, value in logs.items()}


def _train_function(model: keras.Model) -> Callable:
    """Makes a step on all workers, each on its share of a batch."""
    strategy = model.distribute_strategy

    @tf.function(reduce_retracing=True)
    def train(batch):
        # Shares are of equal size, so the mean of their means is the mean.
        logs = strategy.run(model.train_step, args=(batch,))
        return {name: strategy.reduce("MEAN", value, axis=None) for name, value in logs.items()}

    return train


def _test_function(model: keras.Model) -> Callable:
    """Evaluates a batch on this worker; no word from the others is needed."""
    strategy = model.distribute_strategy

    @tf.function(reduce_retracing=True)
    def test(batch):
        return strategy.run(model.test_step, args=(batch,))

    return test
