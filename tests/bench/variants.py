"""What the benchmark times: RUM as cell and layer, Keras' GRU and LSTM, and what bounds them."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

import rum_keras


class Configuration(NamedTuple):
    """The sizes of a measurement."""

    batch: int
    time: int
    features: int
    units: int
    lambda_: int


class MatrixRUMCell(rum_keras.RUMCell):
    """`lambda_=1` in the style of the released code: N x N rotations, built and multiplied."""

    def call(self, inputs, states, training=False):
        h, memory = states
        tau, u, epsilon = self._project(inputs, h, training)
        R = ops.reshape(memory, (-1, self.units, self.units)) + ops.eye(self.units)
        R = ops.matmul(R, rum_keras.rotation_matrix(epsilon, tau))
        rotated = ops.squeeze(ops.matmul(R, h[:, :, None]), -1)
        h = self._mix(h, u, epsilon + rotated, training)
        return h, [h, ops.reshape(R - ops.eye(self.units), (-1, self.units**2))]


def layer_steps(layer: keras.Layer, configuration: Configuration, training: bool = True) -> dict:
    """Returns functions of a layer's passes over random sequences, each an ordinary graph."""
    x = tf.constant(np.random.default_rng(0).normal(size=configuration[:3]), "float32")
    layer.build(x.shape)
    variables = [variable.value for variable in layer.trainable_variables]

    @tf.function
    def forward():
        return layer(x, training=False)

    @tf.function
    def both():
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = layer(x, training=training)
            loss = tf.reduce_sum(outputs**2)
        return tape.gradient(loss, [x, *variables])

    return {"forward": forward, "forward+backward": both}


def floor_steps(configuration: Configuration, jit_compile: bool) -> dict:
    """Returns functions of what no implementation can avoid, an ordinary graph or XLA's.

    For `lambda_=0` the products of matrices; for `lambda_=1` reading and writing R in each step,
    and in the backward pass its adjoint too.
    """
    batch, time, features, units, lambda_ = configuration
    if lambda_:
        arguments = [tf.ones((batch, units, units))]
    else:
        shapes = (time * batch, features), (features, 3 * units), (batch, units)
        shapes += (units, 2 * units), (time * batch, 3 * units)
        arguments = [tf.ones(shape) / units for shape in shapes]  # No constants, to be folded.

    def steps(backward):
        floor = functools.partial(_traffic if lambda_ else _products, time, backward)
        return functools.partial(tf.function(floor, jit_compile=jit_compile), *arguments)

    return {"forward": steps(False), "forward+backward": steps(True)}


def _products(time, backward, x, W, h, U, dx):
    results = [tf.matmul(x, W), _loop(time, h, lambda h: sum(tf.split(h @ U, 2, axis=1)))]
    if backward:
        results.append(_loop(time, h, lambda h: tf.concat([h, h], 1) @ tf.transpose(U)))
        results += [tf.matmul(x, dx, transpose_a=True), tf.matmul(dx, W, transpose_b=True)]
        H, dz = dx[:, : h.shape[1]], dx[:, h.shape[1] :]
        results.append(tf.matmul(H, dz, transpose_a=True))
    return results


def _traffic(time, backward, R):
    results = [_loop(time, R, lambda R: R * 0.999)]
    if backward:
        results += [_loop(time, R, lambda R: R * 0.998), _loop(time, R, lambda R: R * 0.997)]
    return results


def _loop(time, value, step):
    _, value = tf.while_loop(lambda i, _: i < time, lambda i, v: (i + 1, step(v)), (0, value))
    return value


def variants(configuration: Configuration, quick: bool) -> dict[str, Callable[[], dict]]:
    """Returns by name the functions that make a variant's functions to time."""
    units, lambda_ = configuration.units, configuration.lambda_

    def of(layer, **options):
        return lambda: layer_steps(layer(), configuration, **options)

    def rum(cell):
        return keras.layers.RNN(cell(units, lambda_=lambda_), return_sequences=True)

    def layer():
        return rum_keras.RUM(units, lambda_=lambda_, return_sequences=True)

    found = {
        "GRU": of(lambda: keras.layers.GRU(units, return_sequences=True, use_cudnn=False)),
        "RNN(RUMCell)": of(lambda: rum(rum_keras.RUMCell)),
        "RUM": of(layer),
    }
    if quick:
        return found
    found["RUM, plain ops"] = of(layer, training=False)
    found["LSTM"] = of(lambda: keras.layers.LSTM(units, return_sequences=True, use_cudnn=False))
    if lambda_:
        found["N x N matrices"] = of(lambda: rum(MatrixRUMCell))
    found["floor"] = lambda: floor_steps(configuration, False)
    found["floor in XLA"] = lambda: floor_steps(configuration, True)
    return found
