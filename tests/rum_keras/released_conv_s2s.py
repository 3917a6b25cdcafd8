"""Encoders and decoders with the weights of the released code's golden files."""

import json
import pathlib

import numpy as np

from rum_keras.conv_s2s_decoder import ConvS2SDecoder
from rum_keras.conv_s2s_encoder import ConvS2SEncoder

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
END, PADDING = 2, 1


def load(name, **more):
    """Returns a golden file's arrays and options, and a model with its weights."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        arrays = dict(file)
    options = json.loads(str(arrays["options_json"]))
    return arrays, options, *make(options, arrays, **more)


def make(options, arrays, **more):
    shared = {
        "vocabulary": options["vocab"],
        "units": options["embed"],
        "topics": options["n_topics"],
        "max_positions": options["maxpos"],
        "dropout": 0.0,
    }
    attention = options.get("attention", True)
    hops = sum(attention) if isinstance(attention, list) else len(options["dec"])
    encoder = ConvS2SEncoder(layers=options["enc"], hops=hops, **shared, **more)
    decoder = ConvS2SDecoder(
        layers=options["dec"],
        attention=attention,
        output_units=options["out_embed"],
        share_embedding=options.get("share", False),
        **shared,
    )
    encoder.build()
    decoder.build()
    assign(encoder, decoder, arrays)
    return encoder, decoder


def assign(encoder, decoder, arrays):
    """Gives both the initial weights of a golden file."""
    for layer, side in ((encoder, "encoder"), (decoder, "decoder")):
        for weight, name in zip(layer.weights, released_names(layer, side), strict=True):
            weight.assign(ours(name, arrays[f"param/{name}"]))


def released_names(layer, side):
    """The released code's name of each weight of a layer, in order."""
    names = {
        "embedding/tokens/embeddings": "embed_tokens.weight",
        "embedding/positions/embeddings": "embed_positions.weight",
        "logits_bias": "fc3.bias",
    }
    places = {
        "input": "fc1",
        ("encoder", "output"): "fc2",
        ("decoder", "hidden"): "fc2",
        "logits": "fc3",
    }
    parts = {"v": "weight_v", "g": "weight_g", "bias": "bias"}
    for weight in layer.weights:
        *path, part = weight.path.partition(f"{layer.name}/")[2].split("/")
        short = "/".join([*path, part])
        if short in names:
            yield f"{side}.{names[short]}"
            continue
        place = places.get(path[0]) or places.get((side, path[0]))
        if place is None:
            kind, index = path[0].split("_")
            place = {
                "block": f"convolutions.{index}",
                "shortcut": f"projections.{index}",
                "attention": f"attention.{index}",
            }[kind]
        if path[0].startswith("attention"):
            place += {"query": ".in_projection", "output": ".out_projection"}[path[1]]
        yield f"{side}.{place}.{parts[part]}"


def ours(name, array):
    """A released weight in our layout: output units last."""
    if name.endswith("weight_g"):
        return array.reshape(-1)
    if name.endswith("weight_v") and array.ndim == 2:
        return array.T
    return array


def topics_of(arrays, options, case):
    """What encoder and decoder are given as topics; None where the model has none."""
    if not options["n_topics"]:
        return None, None
    words, document = (arrays[f"{case}/{name}_topics"] for name in ("word", "doc"))
    if "enc_td" in options["variant"]:
        words = words * document[:, None]
    return words, document if "dec_td" in options["variant"] else np.ones_like(document)
