"""The recurrent layers of RUM's Table 3, chosen by flags."""

import keras
from absl import flags

import rum_keras

# Each has fast LSTMs, and this as the slow cell.
FAST_SLOW = ("fs_eurnn", "fs_goru", "fs_lstm", "fs_rum")
STACKS = ("hyper_lstm", "layer_norm_lstm", "lstm", "nas", "rum")


def define_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags that choose the layers. Only the recipe calls it."""
    options = {"flag_values": flag_values}
    flags.DEFINE_enum(
        "model", "fs_rum", sorted(FAST_SLOW + STACKS), "Kind of the recurrent layers.", **options
    )
    flags.DEFINE_integer("layers", 1, "Layers one above the other; not fs_.", 1, **options)
    flags.DEFINE_integer("units", 1000, "Units of each layer; of the slow cell.", 1, **options)
    flags.DEFINE_integer("fast_cells", 2, "fs_: k, the number of fast cells.", 2, **options)
    flags.DEFINE_integer("fast_units", 700, "fs_: units of each fast cell.", 1, **options)
    flags.DEFINE_integer(
        "embedding_units", 128, "Units of the embedding; 0: the input is one-hot.", 0, **options
    )
    for name, meaning in (
        ("dropout", "Fraction of units dropped of the inputs of cells and of the outputs."),
        ("zoneout_h", "Probability of a unit of h (LSTM) or of RUM's state not to be updated."),
        ("zoneout_c", "Probability of a unit of the LSTM's c not to be updated."),
    ):
        flags.DEFINE_float(name, 0.0, meaning, 0.0, 1.0, **options)
    flags.DEFINE_float("eta", None, "RUM: norm of the state, for time normalization.", **options)
    flags.DEFINE_float("lambda_", 0.0, "RUM: 1 for the memory, 0 for none.", **options)
    flags.DEFINE_string("activation", "relu", "RUM: activation of the candidate.", **options)
    flags.DEFINE_bool("update_gate", True, "RUM: whether there is an update gate.", **options)
    flags.DEFINE_bool("rum_layer_norm", True, "RUM: whether to normalize layers.", **options)


def layers_from_flags(flag_values: flags.FlagValues = flags.FLAGS) -> list[keras.layers.RNN]:
    """Returns the layers that the flags of `define_flags` choose, the first first.

    Raises:
        SystemExit: if a cell refuses the value of a flag.
    """
    try:
        if flag_values.model in FAST_SLOW:
            return [_layer(_fast_slow_cell(flag_values))]
        return [_layer(_cell(flag_values.model, flag_values)) for _ in range(flag_values.layers)]
    except ValueError as error:
        raise SystemExit(f"--model={flag_values.model} refuses these flags: {error}") from error


def _layer(cell):
    return keras.layers.RNN(cell, return_sequences=True, return_state=True)


def _fast_slow_cell(values):
    fast = [_zoned_out_lstm(values.fast_units, values) for _ in range(values.fast_cells)]
    kind = {"fs_lstm": "layer_norm_lstm"}.get(values.model, values.model.removeprefix("fs_"))
    return rum_keras.FastSlowCell(fast, _cell(kind, values), dropout=values.dropout)


def _cell(kind, values):
    """Returns a new cell of `--units`."""
    if kind == "layer_norm_lstm":
        return _zoned_out_lstm(values.units, values)
    if kind == "lstm":
        rates = [values.zoneout_h, values.zoneout_c]
        return rum_keras.Zoneout(keras.layers.LSTMCell(values.units), rates)
    if kind == "rum":
        return rum_keras.RUMCell(
            values.units,
            lambda_=values.lambda_,
            eta=values.eta,
            activation=values.activation,
            use_update_gate=values.update_gate,
            layer_norm=values.rum_layer_norm,
            zoneout=values.zoneout_h,
        )
    constructors = {
        "eurnn": rum_keras.EURNNCell,
        "goru": rum_keras.GORUCell,
        "hyper_lstm": rum_keras.HyperLSTMCell,
        "nas": rum_keras.NASCell,
    }
    return constructors[kind](values.units)


def _zoned_out_lstm(units, values):
    cell = rum_keras.LayerNormLSTMCell(units)
    return rum_keras.Zoneout(cell, [values.zoneout_h, values.zoneout_c])
