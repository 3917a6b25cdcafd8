"""The models of bAbI by the names of --model, and the flags that each of them takes."""

import ast
import sys

import keras
from absl import flags

from datasets import babi
from zoo import cells
from zoo.babi.dmn_plus import dmn_plus
from zoo.babi.dnc import dnc
from zoo.babi.entnet import entnet
from zoo.babi.gmemn2n import gmemn2n
from zoo.babi.memn2n import memn2n
from zoo.babi.model import babi_model
from zoo.babi.qrn import qrn

# Memory networks: functions of (vocabulary, answers, sentences, words, **--network_options).
NETWORKS = {
    "dmn_plus": dmn_plus,
    "dnc": dnc,
    "entnet": entnet,
    "gmemn2n": gmemn2n,
    "memn2n": memn2n,
    "qrn": qrn,
}
MODELS = ("sentence", "word", *NETWORKS)


def define_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags that choose the model. Only the recipe calls it."""
    cells.define_flags(flag_values)
    for define, *arguments in (
        (
            flags.DEFINE_enum,
            "model",
            "sentence",
            MODELS,
            "A recurrent model's level, or a network.",
        ),
        (flags.DEFINE_multi_string, "network_options", [], "Of a network: hops=3, units=20, ..."),
        (flags.DEFINE_bool, "attention", False, "Whether a recurrent model attends to the story."),
        (flags.DEFINE_enum, "pooling", "mean", ["mean", "sum"], "Makes a sentence of its words."),
        (flags.DEFINE_integer, "embedding", 64, "Width of a word's embedding.", 1),
    ):
        define(*arguments, flag_values=flag_values)


def check_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Refuses flags that --model does not take, where they are not as by default.

    Raises:
        SystemExit: if there are any, with their names and what to give instead.
    """
    model, of_cells = flag_values.model, flags.FlagValues()
    cells.define_flags(of_cells)
    ignored, instead = ["network_options"], "A recurrent model has flags such as --units=50"
    if model in NETWORKS:
        ignored = [*of_cells, "attention", "pooling", "embedding"]
        instead = "A memory network takes its sizes by --network_options=units=20"
    elif model == "word":
        ignored.append("pooling")
        instead += "; only --model=sentence makes sentences of words"
    given = [n for n in ignored if flag_values[n].value != flag_values[n].default]
    if given:
        sys.exit(f"--model={model} takes no --{', no --'.join(given)}. {instead}.")


def make_model(
    words: int, answers: int, known: babi.Vocabulary, flag_values: flags.FlagValues = flags.FLAGS
) -> keras.Model:
    """Returns the model that the flags choose.

    Args:
        words: number of words, without padding.
        answers: number of classes.
        known: the sizes of the stories.
        flag_values: of `define_flags`.

    Raises:
        SystemExit: if the model refuses the value of a flag.
    """
    model = flag_values.model
    if model in NETWORKS:
        width = max(known.sentence_words, known.question_words)
        try:
            pairs = (pair.split("=", 1) for pair in flag_values.network_options)
            options = {name: ast.literal_eval(value) for name, value in pairs}
            return NETWORKS[model](words, answers, known.sentences, width, **options)
        except (SyntaxError, TypeError, ValueError) as error:
            sys.exit(
                f"--model={model} refuses these --network_options: {error}. Give each option a "
                "flag of its own: --network_options=hops=2 --network_options=units=20."
            )
    attention = flag_values.attention
    layer = cells.layer_from_flags(attention, flag_values)
    sizes = words, answers, model, attention, flag_values.embedding
    return babi_model(layer, *sizes, pooling=flag_values.pooling)
