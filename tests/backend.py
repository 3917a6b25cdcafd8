"""What tests need of the two backends: values and gradients as NumPy arrays."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

if keras.backend.backend() == "jax":
    import jax

# Keras computes in float64 on TensorFlow only: on JAX its type promotion ends at float32.
FLOAT = "float64" if keras.backend.backend() == "tensorflow" else "float32"


def tolerance(float64: float, float32: float = 1e-5) -> float:
    """The tolerance of a test that runs in the backend's best precision, `FLOAT`."""
    return float64 if FLOAT == "float64" else float32


def to_numpy(values: Any) -> Any:
    """Converts every tensor of a nested structure."""
    return keras.tree.map_structure(keras.ops.convert_to_numpy, values)


def value_and_gradients(function: Callable, *arrays: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the scalar `function(*arrays)` and its gradients with respect to each array."""
    if keras.backend.backend() == "jax":
        arguments = [jax.numpy.asarray(array) for array in arrays]
        value, gradients = jax.value_and_grad(function, tuple(range(len(arrays))))(*arguments)
        return np.asarray(value), [np.asarray(gradient) for gradient in gradients]
    import tensorflow as tf

    arguments = [tf.convert_to_tensor(array) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = function(*arguments)
    gradients = tape.gradient(value, arguments, unconnected_gradients="zero")
    return value.numpy(), [gradient.numpy() for gradient in gradients]


def weight_gradients(layer: keras.Layer, function: Callable) -> tuple[np.ndarray, dict]:
    """Returns the scalar `function()` of the built `layer` and its gradients by weight name.

    The gradients are in the order of `layer.trainable_variables`. Where cells inside of cells have
    weights of the same name, all are by path.
    """
    variables = layer.trainable_variables
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names):
        names = [variable.path for variable in variables]

    if keras.backend.backend() == "jax":

        def stateless(values):
            mapping = zip(variables, values, strict=True)
            with keras.StatelessScope(state_mapping=list(mapping)):
                return function()

        value, gradients = jax.value_and_grad(stateless)([v.value for v in variables])
    else:
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = function()
        gradients = tape.gradient(value, [v.value for v in variables], unconnected_gradients="zero")
    return to_numpy(value), {
        name: np.asarray(gradient) for name, gradient in zip(names, gradients, strict=True)
    }
