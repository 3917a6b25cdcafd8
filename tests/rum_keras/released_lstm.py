"""The released Fast-Slow code's layer-norm LSTM: its weights in the layout of ours."""

import numpy as np

# Each but those of the state is split in the gates i, c (there called j), f, o.
NAMES = {
    "kernel": "W_xh",
    "recurrent_kernel": "W_hh",
    "bias": "bias",
    "gain": "ln.layer_norm_alpha",
    "offset": "ln.layer_norm_bias",
    "state_gain": "ln_c.alpha",
    "state_offset": "ln_c.bias",
}


def assign(cell, arrays, prefix):
    """Gives a built joint LayerNormLSTMCell the weights of a golden file."""
    for name, value in _renamed(arrays, f"w_{prefix}").items():
        if name == "offset":  # The released code adds the forget gate's 1 in the step.
            value = value + np.repeat([0, 1, 0, 0], cell.units)
        getattr(cell, name).assign(value)


def gradients(arrays, prefix):
    """Returns a golden file's gradients by the names of our weights."""
    return _renamed(arrays, f"g_{prefix}")


def _renamed(arrays, prefix):
    return {
        name: _in_keras_order(arrays[f"{prefix}.ln_lstm_cell.LN_LSTMCell.{released_name}"], name)
        for name, released_name in NAMES.items()
    }


def _in_keras_order(values, name):
    if name.startswith("state_"):
        return values
    i, c, f, o = np.split(values, 4, axis=-1)
    return np.concatenate([i, f, c, o], axis=-1)
