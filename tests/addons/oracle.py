"""Computes values of tensorflow-addons, in its own environment: `make addons` runs it.

tensorflow-addons cannot be imported beside Keras 3, so this file imports nothing of rum_keras. Its
WeightNormalization and BeamSearchDecoder have no counterparts in rum_keras yet.
"""

import os
import sys

import numpy as np
import tensorflow as tf
import tensorflow_addons as tfa

BATCH, TIME, FEATURES, UNITS = 2, 5, 4, 6
CELLS = {
    "layer_norm_lstm": tfa.rnn.LayerNormLSTMCell(UNITS),
    "nas": tfa.rnn.NASCell(UNITS, use_bias=True),
    "nas_projection": tfa.rnn.NASCell(UNITS, projection=3),
}


def weight_name(path):
    """Returns `kernel_norm/gamma` of `rnn/layer_norm_lstm_cell/kernel_norm/gamma:0`."""
    parts = path.partition(":")[0].split("/")
    return "/".join(parts[-2:] if parts[-1] in ("gamma", "beta") else parts[-1:])


def values(cell, seed):
    """Returns inputs, weights, outputs, last states and all gradients of a cell in a layer.

    Keys: `x`; `state0`, `state1` and `last0`, `last1` in the cell's own order; `y`; `cotangent`,
    the weight of each output in the sum whose gradients are the keys with `gradient_`; `weight_`
    and the weight's name.
    """
    rng = np.random.default_rng(seed)

    def normal(*shape):
        return rng.normal(size=shape).astype("float32")

    layer = tf.keras.layers.RNN(cell, return_sequences=True, return_state=True)
    x = tf.constant(normal(BATCH, TIME, FEATURES))
    states = [tf.constant(normal(BATCH, size)) for size in cell.state_size]
    cotangent = normal(BATCH, TIME, cell.output_size)
    layer.build(x.shape)
    for weight in layer.weights:
        weight.assign(0.7 * normal(*weight.shape))
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        y, *last = layer(x, initial_state=states)
        loss = tf.reduce_sum(y * cotangent)
    names = [weight_name(weight.name) for weight in layer.weights]
    inputs = {"x": x, **{f"state{i}": state for i, state in enumerate(states)}}
    weights = {f"weight_{n}": w for n, w in zip(names, layer.weights, strict=True)}
    assert len(weights) == len(layer.weights), names
    sources = {**inputs, **weights}
    gradients = tape.gradient(loss, sources)
    return {
        **sources,
        "y": y,
        "cotangent": cotangent,
        **{f"last{i}": state for i, state in enumerate(last)},
        **{f"gradient_{name}": gradient for name, gradient in gradients.items()},
    }


def main(folder):
    """Writes `addons_<cell>.npz` into `folder` for every cell."""
    os.makedirs(folder, exist_ok=True)
    for seed, (name, cell) in enumerate(CELLS.items()):
        arrays = {key: np.asarray(value) for key, value in values(cell, seed).items()}
        # npz takes "/" in names for folders.
        arrays = {key.replace("/", "_"): value for key, value in arrays.items()}
        np.savez(os.path.join(folder, f"addons_{name}.npz"), **arrays)
    print(f"tensorflow-addons {tfa.__version__}: {', '.join(CELLS)} in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
