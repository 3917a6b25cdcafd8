"""Adagrad as TensorFlow 1 has it, whose gradient is clipped as a whole."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="zoo.pointer_generator")
class ClippedAdagrad(keras.optimizers.Adagrad):
    """Clips the gradient of all replicas together, then takes a step of Adagrad.

    ```
    g = g min(1, clip_norm / |g|)
    a = a + g^2
    p = p - learning_rate g / sqrt(a)
    ```

    `keras.optimizers.Adagrad` differs in two points: it adds an epsilon to a, and its
    `global_clipnorm` clips the gradient of each replica before they are added; here replicas take
    the step of one device. An update is one kernel.

    `gradient_norm` is a variable, |g| of the latest step before it was clipped. `lowest_loss` and
    `epochs_without_gain` are for `zoo.pointer_generator.schedule`; they are here because a
    checkpoint saves the variables of the optimizer.

    Args:
        learning_rate: Float.
        initial_accumulator_value: a before the first step, positive.
        clip_norm: Largest norm of the gradient; None: any.
        **kwargs: `name`.

    Raises:
        ValueError: if `initial_accumulator_value` or `clip_norm` is not positive.

    Reference:
        Duchi et al., 2011, Adaptive Subgradient Methods for Online Learning.
    """

    def __init__(
        self,
        learning_rate: Any = 0.15,
        initial_accumulator_value: float = 0.1,
        clip_norm: float | None = 2.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, initial_accumulator_value, **kwargs)
        for name, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("clip_norm", 1 if clip_norm is None else clip_norm),
        ):
            if not value > 0:
                raise ValueError(f"`{name}` must be positive, received {value}.")
        self.clip_norm = clip_norm

    def build(self, var_list):
        if not self.built:
            self.gradient_norm = self._own("gradient_norm", 0.0)
            self.lowest_loss = self._own("lowest_loss", float("inf"))
            self.epochs_without_gain = self._own("epochs_without_gain", 0.0)
        super().build(var_list)

    def _own(self, name, value):
        return self.add_variable(
            shape=(),
            dtype="float32",
            initializer=lambda shape, dtype=None: tf.fill(shape, tf.constant(value, dtype)),
            aggregation="only_first_replica",
            name=name,
        )

    def apply(self, grads, trainable_variables=None):
        """See `keras.optimizers.Optimizer.apply`."""
        # An embedding's gradient names some rows more than once: only added up it has a norm.
        grads = [None if g is None else tf.convert_to_tensor(g) for g in grads]
        present = [g for g in grads if g is not None]
        replicas = 1
        if not tf.distribute.in_cross_replica_context():
            context = tf.distribute.get_replica_context()
            replicas = context.num_replicas_in_sync
            if replicas > 1:
                present = context.all_reduce(tf.distribute.ReduceOp.SUM, present)
        norm = tf.linalg.global_norm([tf.cast(g, "float32") for g in present])
        if not self.built:
            self.build(trainable_variables)
        self.gradient_norm.assign(norm)
        scale = tf.ones_like(norm)
        if self.clip_norm is not None:
            scale = self.clip_norm / tf.maximum(norm, self.clip_norm)
        # Divided by replicas, whose sum Keras takes once more.
        scaled = iter([g * tf.cast(scale / replicas, g.dtype) for g in present])
        grads = [None if g is None else next(scaled) for g in grads]
        super().apply(grads, trainable_variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable."""
        accumulator = self._accumulators[self._get_variable_index(variable)]
        tf.raw_ops.ResourceApplyAdagrad(
            var=variable.handle,
            accum=accumulator.value.handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=tf.cast(gradient, variable.dtype),
        )

    def get_config(self):
        config = super().get_config()
        for name in ("epsilon", "clipnorm", "clipvalue", "global_clipnorm"):
            config.pop(name, None)
        return {**config, "clip_norm": self.clip_norm}
