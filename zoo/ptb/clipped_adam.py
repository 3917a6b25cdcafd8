"""Adam whose gradient is clipped as a whole, however many replicas it comes from."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="zoo.ptb")
class ClippedAdam(keras.optimizers.Adam):
    """Adam with clipping by global norm that is the same on one device and on several.

    Under a `tf.distribute` strategy Keras 3.15 clips the gradient of each replica and adds up what
    is left; the papers, and a single device, clip the sum. Here each replica first takes the mean
    of all gradients, which Keras then clips, and adds up to their sum, so it is the norm of the
    mean that must not exceed `clip_norm` / replicas.

    Args:
        learning_rate: A float or a schedule.
        clip_norm: Largest global norm of the gradient; None: any.
        **kwargs: All other arguments of `keras.optimizers.Adam`, but other ways to clip.
    """

    def __init__(self, learning_rate: Any = 1e-3, clip_norm: float | None = None, **kwargs: Any):
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        super().__init__(
            learning_rate, global_clipnorm=clip_norm and clip_norm / replicas, **kwargs
        )
        self.clip_norm = clip_norm

    def apply(self, grads, trainable_variables=None):
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            present = [gradient for gradient in grads if gradient is not None]
            means = iter(context.all_reduce(tf.distribute.ReduceOp.MEAN, present))
            grads = [gradient if gradient is None else next(means) for gradient in grads]
        super().apply(grads, trainable_variables)

    def get_config(self):
        config = super().get_config()
        for name in ("clipnorm", "clipvalue", "global_clipnorm"):
            config.pop(name, None)
        return {**config, "clip_norm": self.clip_norm}
