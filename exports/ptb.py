"""Character language models in the graph: prompts in, continuations out; or texts, and their bits.

Three signatures. `serving_default` continues each `prompt` by `length` characters: the likeliest
ones where `temperature` is 0, else characters drawn from the model's distribution, its logits
divided by the temperature. `sample` is the same with a `seed` a row: what is drawn follows from
the seed alone, so that a request is answered alike whenever, and with whatever, it is asked;
`serving_default` has seed 0. `score` gives the mean bits a character of each `text`, 0 for none.

A model of the Penn Treebank knows some 50 characters, no capitals but the N of numbers. A capital
it does not know is read as its small letter, and whatever else it does not know, byte by byte, as a
space. Text is taken to follow the end of a line. Of a prompt the last 1,000 bytes are read, of a
text to score the first 4,000, and at most 1,000 characters are written.
"""

from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from exports.signature import Signature
from zoo.ptb.model import CharacterModel

MOST_OF_PROMPT, MOST_OF_TEXT, LONGEST = 1000, 4000, 1000

# Below this, dividing logits by the temperature gains nothing over taking the largest.
COLDEST = 1e-3

Answer = Callable[..., dict[str, tf.Tensor]]


def signatures(model: CharacterModel, run: Path | None = None) -> dict[str, Signature]:
    """Returns what is exported of `model`; nothing of the folder `run` is needed.

    Raises:
        ValueError: If the model has no symbol for the end of a line.
    """
    if "\n" not in model.symbols:
        raise ValueError(
            f"The model has no symbol for the end of a line, only {model.symbols!r}: train it on "
            "texts of lines."
        )
    prompts = ["the company said ", "", "THE\tbank & trust\n", "x" * 50]
    asked = {"prompt": prompts, "length": [8, 5, 0, 3], "temperature": [0.0, 0.0, 0.0, 0.5]}
    one = {name: values[:1] for name, values in asked.items()}
    sample = _sample(model)

    def continue_prompt(prompt, length, temperature):
        return sample(prompt, length, temperature, tf.zeros_like(length))

    return {
        "serving_default": Signature(continue_prompt, [one, asked]),
        "sample": Signature(sample, [{**one, "seed": [0]}, {**asked, "seed": [0, 1, 2, 3]}]),
        "score": Signature(_score(model), [{"text": prompts[:1]}, {"text": prompts}]),
    }


def _sample(model: CharacterModel) -> Answer:
    """Makes the function that continues prompts.

    Args:
        model: The trained model.

    Returns:
        A function of `prompt`, strings, `length`, int32, `temperature`, float32, and `seed`,
        int32, (batch,) each, to `continuation`, strings (batch,).
    """
    symbols = tf.constant(list(model.symbols))

    def sample(prompt, length, temperature, seed):
        left_out = tf.maximum(tf.strings.length(prompt) - MOST_OF_PROMPT, 0)
        most = tf.fill(tf.shape(prompt), MOST_OF_PROMPT)
        ids, sizes = _read(model, tf.strings.substr(prompt, left_out, most))
        length = tf.clip_by_value(length, 0, LONGEST)
        written = _write(model, ids, sizes, length, temperature, seed)
        step = tf.range(tf.shape(written)[1])
        kept = (step >= sizes[:, None]) & (step < (sizes + length)[:, None])
        return {"continuation": _join(tf.where(kept, tf.gather(symbols, written), ""))}

    return sample


def _score(model: CharacterModel) -> Answer:
    """Makes the function from `text`, strings (batch,), to `bits_per_character`, float32."""

    def score(text):
        ids, sizes = _read(model, tf.strings.substr(text, 0, MOST_OF_TEXT))
        before = tf.concat([_line_end(model, ids), ids[:, :-1]], axis=1)
        logits, _ = model.advance(before, model.initial_states(tf.shape(ids)[0]))
        nats = -tf.gather(tf.nn.log_softmax(tf.cast(logits, tf.float32)), ids, batch_dims=2)
        counts = tf.range(tf.shape(ids)[1]) < sizes[:, None]
        nats = tf.reduce_sum(tf.where(counts, nats, 0.0), axis=1)
        sizes = tf.cast(tf.maximum(sizes, 1), tf.float32)
        return {"bits_per_character": nats / sizes / tf.math.log(2.0)}

    return score


def _read(model: CharacterModel, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the ids of texts, (batch, time), of at least one step, and their sizes, (batch,)."""
    sizes = tf.strings.length(text)
    width = tf.reduce_max(tf.concat([sizes, [1]], axis=0))
    # decode_raw wants strings of one size.
    filler = tf.strings.reduce_join(tf.fill([width], " "))
    filled = tf.strings.substr(tf.strings.join([text, filler]), 0, width)
    # The reshape is for a batch of 0, of which decode_raw makes shape (0, 0).
    symbols = tf.reshape(tf.io.decode_raw(filled, tf.uint8), [-1, width])
    return tf.gather(_ids_of_bytes(model.symbols), tf.cast(symbols, tf.int32)), sizes


def _ids_of_bytes(symbols: str) -> list[int]:
    """Returns the id that each byte is read as."""
    unknown = symbols.index(" ") if " " in symbols else symbols.index("\n")
    known = {symbol: number for number, symbol in enumerate(symbols)}
    return [known.get(c, known.get(c.lower(), unknown)) for c in map(chr, range(256))]


def _line_end(model: CharacterModel, ids: tf.Tensor) -> tf.Tensor:
    return tf.fill([tf.shape(ids)[0], 1], model.symbols.index("\n"))


def _write(model, ids, sizes, length, temperature, seed):
    """Reads prompts and writes on; returns what was chosen after each character, (batch, time).

    All rows are read in one loop. A row whose prompt has ended reads what it wrote.
    """
    # At least one, for a batch of 0 or of lengths 0.
    steps = tf.reduce_max(tf.concat([tf.where(length > 0, sizes + length, 1), [1]], axis=0))
    width = tf.shape(ids)[1]

    def advance(step, character, states, written):
        logits, states = model.advance(character[:, None], states)
        chosen = _choose(tf.cast(logits[:, 0], tf.float32), temperature, seed, step - sizes)
        read = ids[:, tf.minimum(step, width - 1)]
        character = tf.where(step < sizes, read, chosen)
        return step + 1, character, states, written.write(step, chosen)

    written = tf.TensorArray(tf.int32, steps, element_shape=[None])
    states = model.initial_states(tf.shape(ids)[0])
    *_, written = tf.while_loop(
        lambda step, *_: step < steps,
        advance,
        (0, _line_end(model, ids)[:, 0], states, written),
        shape_invariants=(
            tf.TensorShape([]),
            tf.TensorShape([None]),
            [tf.TensorShape([None, state.shape[1]]) for state in states],
            tf.TensorShape(None),
        ),
    )
    return tf.transpose(tf.reshape(written.stack(), [steps, -1]))


def _choose(logits, temperature, seed, number):
    """Returns the id of each row's next character, the `number`-th that it writes.

    What is drawn is a function of the seed and that number: a random generator would draw for the
    batch as a whole, and the answer to a row would depend on the others.
    """
    warm = temperature >= COLDEST  # False for NaN.
    scale = tf.where(warm, temperature, 1.0)[:, None]
    probabilities = tf.nn.softmax((logits - tf.reduce_max(logits, -1, keepdims=True)) / scale)
    name = tf.strings.join([tf.strings.as_string(seed), tf.strings.as_string(number)], " ")
    hashed = tf.strings.to_hash_bucket_fast(name, 1 << 24)
    uniform = (tf.cast(hashed, tf.float32) + 0.5) / (1 << 24)
    below = tf.cumsum(probabilities, axis=-1) < uniform[:, None]
    # Rounding may leave the sum of all below the number drawn.
    drawn = tf.minimum(tf.reduce_sum(tf.cast(below, tf.int32), -1), logits.shape[-1] - 1)
    return tf.where(warm, drawn, tf.argmax(logits, -1, output_type=tf.int32))


def _join(characters: tf.Tensor) -> tf.Tensor:
    return tf.strings.reduce_join(characters, axis=-1)
