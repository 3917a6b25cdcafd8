"""Gradient descent with Nesterov momentum as fairseq has it, which trained the released models."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="zoo")
class Nesterov(keras.optimizers.SGD):
    """Clips the gradient of all replicas together, then steps with Nesterov momentum.

    ```
    g = g min(1, clip_norm / (|g| + 1e-6))
    v = momentum v + g
    p = p - learning_rate (g + momentum v)
    ```

    With a constant learning rate this is `keras.optimizers.SGD(nesterov=True)`. It differs in two
    points. v has no learning rate in it, so that one that drops acts on what has been gathered
    before, too, as fairseq's momentum correction has it. And Keras's `global_clipnorm` clips the
    gradient of each replica before they are added; here replicas take the step of one device.

    It also takes less time: an update is one kernel, which reads each array once.

    Args:
        learning_rate: Float.
        momentum: Float above 0, at most 1.
        clip_norm: Largest norm of the gradient.
        **kwargs: `name`.

    Raises:
        ValueError: if `momentum` or `clip_norm` is not positive.

    Reference:
        Sutskever et al., 2013, On the importance of initialization and momentum in deep learning.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        momentum: float = 0.99,
        clip_norm: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, momentum=momentum, nesterov=True, **kwargs)
        if not (momentum > 0 and clip_norm > 0):
            raise ValueError(
                f"`momentum` and `clip_norm` must be positive, received {momentum}, {clip_norm}."
            )
        self.clip_norm = clip_norm

    def build(self, variables):
        if not self.built:
            # Of the schedule: here because a checkpoint saves the variables of the optimizer.
            self.lowest_loss = self.add_variable(
                shape=(), dtype="float32", initializer=_infinity, name="lowest_loss"
            )
            self.epochs_without_gain = self.add_variable(
                shape=(), dtype="float32", initializer="zeros", name="epochs_without_gain"
            )
        super().build(variables)

    def apply(self, grads, trainable_variables=None):
        """See `keras.optimizers.Optimizer.apply`."""
        # An embedding's gradient names some rows more than once: only added up it has a norm.
        grads = [tf.convert_to_tensor(gradient) for gradient in grads]
        replicas = 1
        if not tf.distribute.in_cross_replica_context():
            context = tf.distribute.get_replica_context()
            replicas = context.num_replicas_in_sync
            if replicas > 1:
                grads = context.all_reduce(tf.distribute.ReduceOp.SUM, grads)
        norm = tf.linalg.global_norm(grads)
        scale = tf.minimum(1.0, self.clip_norm / (norm + 1e-6)) / replicas
        # Divided by replicas, whose sum Keras takes once more.
        super().apply([g * tf.cast(scale, g.dtype) for g in grads], trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable."""
        momentum = self.momentums[self._get_variable_index(variable)]
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=momentum.value.handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=tf.cast(gradient, variable.dtype),
            momentum=tf.cast(self.momentum, variable.dtype),
            use_nesterov=True,
        )

    def get_config(self):
        config = super().get_config()
        del config["nesterov"]
        return {**config, "clip_norm": self.clip_norm}


def _infinity(shape, dtype=None):
    return tf.fill(shape, tf.constant(float("inf"), dtype))
