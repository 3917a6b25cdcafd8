"""The recurrent layers of RUM's Table 3, chosen by flags."""

import keras
from absl import flags

import rum_keras
from rum_keras.qrnn import QRNN
from rum_keras.weight_dropped_lstm import WeightDroppedLSTM

RETURN = {"return_sequences": True, "return_state": True}

# Fast LSTMs, and this as the slow cell.
FAST_SLOW = ("fs_eurnn", "fs_goru", "fs_lstm", "fs_rum")
STACKS = ("hyper_lstm", "layer_norm_lstm", "lstm", "nas", "qrnn", "rum", "weight_dropped_lstm")
OF_RUM = ("eta", "lambda_", "activation", "update_gate", "rum_layer_norm")
# The models that take a flag which not all of them do.
TAKEN_BY = {
    "layers": STACKS,
    "last_units": STACKS,
    "fast_cells": FAST_SLOW,
    "fast_units": FAST_SLOW,
    "zoneout_h": (*FAST_SLOW, "layer_norm_lstm", "lstm", "rum"),
    "zoneout_c": (*FAST_SLOW, "layer_norm_lstm", "lstm", "qrnn"),
    "first_window": ("qrnn",),
    "weight_dropout": ("qrnn", "weight_dropped_lstm"),
    **dict.fromkeys(OF_RUM, ("fs_rum", "rum")),
}


def define_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags that choose the layers. Only the recipe calls it."""
    options = {"flag_values": flag_values}
    flags.DEFINE_enum(
        "model", "fs_rum", sorted(FAST_SLOW + STACKS), "Kind of the recurrent layers.", **options
    )
    flags.DEFINE_integer("layers", 1, "Layers one above the other; not fs_.", 1, **options)
    flags.DEFINE_integer("units", 1000, "Units of each layer; of the slow cell.", 1, **options)
    flags.DEFINE_integer("last_units", None, "Units of the last layer, if others.", 1, **options)
    flags.DEFINE_integer("fast_cells", 2, "fs_: k, the number of fast cells.", 2, **options)
    flags.DEFINE_integer("fast_units", 700, "fs_: units of each fast cell.", 1, **options)
    flags.DEFINE_integer(
        "embedding_units", 128, "Units of the embedding; 0: the input is one-hot.", 0, **options
    )
    flags.DEFINE_list(
        "dropout",
        ["0"],
        "Fraction dropped of the inputs of layers (fs_: of cells) and of the readout. Or one for "
        "each layer (fs_: one for all cells), then one for the readout.",
        **options,
    )
    flags.register_validator("dropout", _fractions, "must be fractions from 0 to 1", flag_values)
    flags.DEFINE_bool(
        "variational_dropout", False, "Whether the same units are dropped in all steps.", **options
    )
    flags.DEFINE_bool("tie_embedding", False, "Whether the readout is the embedding.", **options)
    for name, meaning in (
        ("zoneout_h", "Probability of a unit of h (LSTM) or of RUM's state not to be updated."),
        ("zoneout_c", "Probability of a unit of the LSTM's or QRNN's c not to be updated."),
    ):
        flags.DEFINE_float(name, 0.0, meaning, 0.0, 1.0, **options)
    flags.DEFINE_float("eta", None, "RUM: norm of the state, for time normalization.", **options)
    flags.DEFINE_float("lambda_", 0.0, "RUM: 1 for the memory, 0 for none.", **options)
    flags.DEFINE_string("activation", "relu", "RUM: activation of the candidate.", **options)
    flags.DEFINE_bool("update_gate", True, "RUM: whether there is an update gate.", **options)
    flags.DEFINE_bool("rum_layer_norm", True, "RUM: whether to normalize layers.", **options)
    flags.DEFINE_integer("first_window", 2, "qrnn: steps that the first layer sees.", 1, **options)
    flags.DEFINE_float(
        "weight_dropout",
        0.0,
        "qrnn, weight_dropped_lstm: fraction of the (recurrent) weights dropped.",
        0.0,
        1.0,
        **options,
    )


def _fractions(texts):
    try:
        return bool(texts) and all(0 <= float(text) <= 1 for text in texts)
    except ValueError:
        return False


def check_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Refuses flags that --model does not take, where they are not as by default.

    Raises:
        SystemExit: if there are any, with their names and the models that take them.
    """
    model = flag_values.model
    refused = [
        f"no --{name} (it is for {', '.join(models)})"
        for name, models in TAKEN_BY.items()
        if model not in models and flag_values[name].value != flag_values[name].default
    ]
    if model in FAST_SLOW and len(flag_values.dropout) > 2:
        refused.append("more than two of --dropout, one for its cells and one for the readout")
    if refused:
        raise SystemExit(f"--model={model} does not take these flags: {'; '.join(refused)}.")


def layers_from_flags(flag_values: flags.FlagValues = flags.FLAGS) -> list[keras.layers.RNN]:
    """Returns the layers that the flags of `define_flags` choose, the first first.

    Raises:
        SystemExit: if the model does not take a flag, or refuses its value.
    """
    values = flag_values
    check_flags(values)
    try:
        if values.model in FAST_SLOW:
            return [_layer(_fast_slow_cell(values))]
        units = [values.units] * values.layers
        units[-1] = values.last_units or units[-1]
        if values.model == "qrnn":
            return [_qrnn(n, layer == 0, values) for layer, n in enumerate(units)]
        if values.model == "weight_dropped_lstm":
            rate = values.weight_dropout
            return [WeightDroppedLSTM(n, weight_dropout=rate, **RETURN) for n in units]
        return [_layer(_cell(values.model, n, values)) for n in units]
    except ValueError as error:
        raise SystemExit(f"--model={values.model} refuses these flags: {error}") from error


def dropout_from_flags(flag_values: flags.FlagValues = flags.FLAGS) -> float | list[float]:
    """Returns the argument `dropout` of `zoo.ptb.model.CharacterModel`."""
    rates = [float(rate) for rate in flag_values.dropout]
    if flag_values.model in FAST_SLOW:
        return [0.0, rates[-1]]  # What cells read is dropped by FastSlowCell.
    return rates[0] if len(rates) == 1 else rates


def _layer(cell):
    return keras.layers.RNN(cell, **RETURN)


def _qrnn(units, first, values):
    return QRNN(
        units,
        window=values.first_window if first else 1,
        zoneout=values.zoneout_c,
        weight_dropout=values.weight_dropout,
        **RETURN,
    )


def _fast_slow_cell(values):
    fast = [_zoned_out_lstm(values.fast_units, values) for _ in range(values.fast_cells)]
    kind = {"fs_lstm": "layer_norm_lstm"}.get(values.model, values.model.removeprefix("fs_"))
    slow = _cell(kind, values.units, values)
    return rum_keras.FastSlowCell(fast, slow, dropout=float(values.dropout[0]))


def _cell(kind, units, values):
    if kind == "layer_norm_lstm":
        return _zoned_out_lstm(units, values)
    if kind == "lstm":
        rates = [values.zoneout_h, values.zoneout_c]
        return rum_keras.Zoneout(keras.layers.LSTMCell(units), rates)
    if kind == "rum":
        return rum_keras.RUMCell(
            units,
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
    return constructors[kind](units)


def _zoned_out_lstm(units, values):
    cell = rum_keras.LayerNormLSTMCell(units)
    return rum_keras.Zoneout(cell, [values.zoneout_h, values.zoneout_c])
