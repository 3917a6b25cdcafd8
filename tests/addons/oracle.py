"""Computes values of tensorflow-addons, in its own environment: `make addons` runs it.

tensorflow-addons cannot be imported beside Keras 3, so this file imports nothing of rum_keras.
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
START = tf.keras.initializers.GlorotUniform(seed=0)
LAYERS = {
    "weight_norm_dense": tf.keras.layers.Dense(UNITS, kernel_initializer=START),
    "weight_norm_conv1d": tf.keras.layers.Conv1D(
        UNITS, 3, padding="causal", kernel_initializer=START
    ),
}
VOCABULARY, CODES, LONGEST = 4, 17, 3  # Of the beam search; token 0 ends.
SEQUENCES = sum((VOCABULARY - 1) ** length for length in range(LONGEST + 1))


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


def weight_norm_values(layer, seed):
    """Returns inputs, weights, outputs and all gradients of a layer with weight normalization.

    The keys are those of `values`, and `initial_` with the name of a weight for its first value.
    The weights are `g`, `kernel`, which is v, and `bias`.
    """
    rng = np.random.default_rng(seed)
    x = tf.constant(rng.normal(size=(BATCH, TIME, FEATURES)).astype("float32"))
    wrapper = tfa.layers.WeightNormalization(layer, data_init=False)
    start = wrapper(x)
    initial = {f"initial_{weight_name(w.name)}": tf.identity(w) for w in wrapper.trainable_weights}
    cotangent = rng.normal(size=start.shape).astype("float32")
    weights = {f"weight_{weight_name(w.name)}": w for w in wrapper.trainable_weights}
    for weight in weights.values():
        weight.assign(rng.normal(size=weight.shape))
    sources = {"x": x, **weights}
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrapper(x)
        loss = tf.reduce_sum(y * cotangent)
    gradients = tape.gradient(loss, sources)
    return {
        **initial,
        **sources,
        "y": y,
        "cotangent": cotangent,
        **{f"gradient_{name}": gradient for name, gradient in gradients.items()},
    }


class TableCell(tf.keras.layers.Layer):
    """A cell whose outputs are rows of a table: of the step, and of a code of all tokens so far."""

    output_size = VOCABULARY
    state_size = [1, 1]
    get_initial_state = None  # tensorflow-addons wants it, and does not use it.

    def __init__(self, table):
        super().__init__()
        self.table = table

    def call(self, tokens, states):
        step, code = states
        code = (5 * code + 3 * tf.cast(tokens, "float32") + 1) % CODES
        rows = tf.cast(tf.concat([step, code], axis=-1), "int32")
        return tf.gather_nd(self.table, rows), [step + 1, code]


def beam_search_values(seed):
    """Returns log-probabilities of tokens, (step, code, token), and the sequences found with them.

    Keys: `table`; for beam widths of 40, which holds all sequences, and 1, `tokens40`
    (batch, beam, time) and `scores40` (batch, beam), sums of log-probabilities. The rows of the
    batch begin with the codes 0, 1 and 2.
    """
    logits = 2 * np.random.default_rng(seed).normal(size=(LONGEST + 1, CODES, VOCABULARY))
    logits[LONGEST, :, 1:] = -1e9
    table = tf.nn.log_softmax(logits.astype("float32")).numpy()
    arrays = {"table": table}
    for beam in (SEQUENCES, 1):
        decoder = tfa.seq2seq.BeamSearchDecoder(
            TableCell(table),
            beam,
            embedding_fn=lambda tokens: tokens[..., None],
            maximum_iterations=LONGEST + 1,
        )
        codes = tf.range(3.0)[:, None]
        state = tfa.seq2seq.tile_batch([0 * codes, codes], beam)
        outputs, _, _ = decoder(None, start_tokens=[0] * 3, end_token=0, initial_state=state)
        arrays[f"tokens{beam}"] = np.transpose(outputs.predicted_ids, (0, 2, 1))
        arrays[f"scores{beam}"] = outputs.beam_search_decoder_output.scores[:, -1]
    return arrays


def main(folder):
    """Writes `addons_<name>.npz` into `folder` for every cell, layer and the beam search."""
    os.makedirs(folder, exist_ok=True)
    everything = {}
    for seed, (name, cell) in enumerate(CELLS.items()):
        everything[name] = values(cell, seed)
    for seed, (name, layer) in enumerate(LAYERS.items()):
        everything[name] = weight_norm_values(layer, seed)
    everything["beam_search"] = beam_search_values(0)
    for name, arrays in everything.items():
        # npz takes "/" in names for folders.
        arrays = {key.replace("/", "_"): np.asarray(value) for key, value in arrays.items()}
        np.savez(os.path.join(folder, f"addons_{name}.npz"), **arrays)
    print(f"tensorflow-addons {tfa.__version__}: {', '.join(everything)} in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
