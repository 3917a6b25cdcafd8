"""The recurrent layers that the recipes train, by name."""

from typing import Any

import keras
from absl import flags

import rum_keras

# A recurrent layer, or a cell that `keras.layers.RNN` wraps.
CELLS = {
    "eurnn": rum_keras.EURNNCell,
    "fast_weights": rum_keras.FastWeightsCell,
    "goru": rum_keras.GORUCell,
    "gru": keras.layers.GRU,
    "learned_associative_memory": rum_keras.LearnedAssociativeMemoryCell,
    "lstm": keras.layers.LSTM,
    "rum": rum_keras.RUM,
    "urnn": rum_keras.URNNCell,
    "urnn_full": rum_keras.FullCapacityURNNCell,
}


def recurrent_layer(
    cell: str, units: int, return_sequences: bool = False, **options: Any
) -> keras.layers.RNN:
    """Returns a new recurrent layer.

    Args:
        cell: its name, a key of `CELLS`.
        units: N_h, the width of its state.
        return_sequences: whether it returns the outputs of all steps or of the last.
        **options: further arguments of the layer or cell, such as `lambda_=1` of "rum".

    Raises:
        ValueError: if there is no such cell, or Keras finds that it has no such option.

    Example:

    >>> layer = recurrent_layer("rum", 50, lambda_=1)
    """
    if cell not in CELLS:
        raise ValueError(f"cell must be one of {', '.join(CELLS)}, got {cell!r}.")
    constructor = CELLS[cell]
    if issubclass(constructor, keras.layers.RNN):
        return constructor(units, return_sequences=return_sequences, **options)
    return keras.layers.RNN(constructor(units, **options), return_sequences=return_sequences)


def define_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags that choose a recurrent layer. Only recipes call it."""
    options = {"flag_values": flag_values}
    flags.DEFINE_enum("cell", "rum", sorted(CELLS), "The recurrent cell.", **options)
    flags.DEFINE_integer("units", 50, "N_h, the width of the state.", lower_bound=1, **options)
    # Where these have no value, the default of the cell holds.
    for define, name, meaning in (
        (flags.DEFINE_float, "lambda_", "RUM: 1 for the memory, 0 for none; between: it fades."),
        (flags.DEFINE_float, "eta", "RUM: norm of the state, for time normalization."),
        (flags.DEFINE_string, "activation", "Activation of the candidate, by its Keras name."),
        (flags.DEFINE_bool, "update_gate", "RUM: whether there is an update gate."),
        (flags.DEFINE_bool, "trainable_rotation", "RUM: whether rotations are learned."),
        (flags.DEFINE_integer, "capacity", "EURNN and GORU: L, layers of rotations."),
        (flags.DEFINE_bool, "complex_", "EURNN: whether the matrix is unitary, not orthogonal."),
        (flags.DEFINE_bool, "layer_norm", "RUM: whether to use layer normalization."),
        (flags.DEFINE_float, "zoneout", "RUM: probability of a unit to keep its old state."),
    ):
        define(name, None, meaning, **options)


def layer_from_flags(
    return_sequences: bool = False, flag_values: flags.FlagValues = flags.FLAGS
) -> keras.layers.RNN:
    """Returns the recurrent layer that the flags of `define_flags` choose.

    Raises:
        SystemExit: if the cell has no such option, or refuses its value.
    """
    options = {
        "lambda_": flag_values.lambda_,
        "eta": flag_values.eta,
        "activation": flag_values.activation,
        "use_update_gate": flag_values.update_gate,
        "trainable_rotation": flag_values.trainable_rotation,
        "capacity": flag_values.capacity,
        "complex_": flag_values.complex_,
        "layer_norm": flag_values.layer_norm,
        "zoneout": flag_values.zoneout,
    }
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return recurrent_layer(flag_values.cell, flag_values.units, return_sequences, **given)
    except (TypeError, ValueError) as error:
        raise SystemExit(f"--cell={flag_values.cell} refuses these flags: {error}") from error
