"""The recurrent layers that the recipes train, by name."""

import inspect

import keras
from absl import flags

import rum_keras

# A recurrent layer, or a cell that `keras.layers.RNN` wraps.
CELLS = {
    "gru": keras.layers.GRU,
    "lstm": keras.layers.LSTM,
    "rum": rum_keras.RUM,
}


def recurrent_layer(
    cell: str, units: int, return_sequences: bool = False, **options
) -> keras.layers.RNN:
    """Returns a new recurrent layer.

    Args:
        cell: its name, a key of `CELLS`.
        units: N_h, the width of its state.
        return_sequences: whether it returns the outputs of all steps or of the last.
        **options: further arguments of the layer or cell, such as `lambda_=1` of "rum".

    Raises:
        ValueError: if there is no such cell, or it has no such option.

    Example:
    >>> layer = recurrent_layer("rum", 50, lambda_=1)
    """
    if cell not in CELLS:
        raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}.")
    constructor = CELLS[cell]
    unknown = options.keys() - inspect.signature(constructor).parameters.keys()
    if unknown:
        raise ValueError(f"cell {cell!r} has no option {', '.join(sorted(unknown))}: leave it out.")
    if issubclass(constructor, keras.layers.RNN):
        return constructor(units, return_sequences=return_sequences, **options)
    return keras.layers.RNN(constructor(units, **options), return_sequences=return_sequences)


def define_flags() -> None:
    """Defines the flags that choose a recurrent layer. Only recipes call it."""
    flags.DEFINE_enum("cell", "rum", sorted(CELLS), "The recurrent cell.")
    flags.DEFINE_integer("units", 50, "N_h, the width of the state.", lower_bound=1)
    # Without a value, the cell's own default holds.
    flags.DEFINE_integer("lambda_", None, "Power of the associative memory of RUM: 0 or 1.")
    flags.DEFINE_float("eta", None, "Norm that RUM's state is brought to; none by default.")
    flags.DEFINE_string("activation", None, "Activation, a name that Keras knows.")
    flags.DEFINE_bool("update_gate", None, "Whether RUM has its update gate.")
    flags.DEFINE_bool("trainable_rotation", None, "Whether RUM learns its rotations.")
    flags.DEFINE_bool("layer_norm", None, "Whether RUM normalizes target, gate and candidate.")
    flags.DEFINE_float("zoneout", None, "Rate at which RUM's units keep their last value.")


def layer_from_flags(return_sequences: bool = False) -> keras.layers.RNN:
    """Returns the recurrent layer that the flags of `define_flags` choose."""
    values = flags.FLAGS
    options = {
        "lambda_": values.lambda_,
        "eta": values.eta,
        "activation": values.activation,
        "use_update_gate": values.update_gate,
        "trainable_rotation": values.trainable_rotation,
        "layer_norm": values.layer_norm,
        "zoneout": values.zoneout,
    }
    given = {name: value for name, value in options.items() if value is not None}
    return recurrent_layer(values.cell, values.units, return_sequences, **given)
