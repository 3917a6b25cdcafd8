"""The pointer-generator, with LSTMs or RUMs: it writes summaries, or copies from articles."""

import math
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from rum_keras.beam_search import Hypotheses, beam_search
from rum_keras.pointer import SMALLEST, copy_distribution, copy_log_probability
from zoo.pointer_generator.decoder import AttentionDecoder
from zoo.pointer_generator.encoder import BidirectionalEncoder


@keras.saving.register_keras_serializable(package="zoo")
class PointerGenerator(keras.Model):
    """Sequence to sequence model with attention, that can copy words it has no id for.

    ```
    P_vocabulary = softmax(o_t V + b)                                       (batch, vocabulary)
    P(w)         = p_gen P_vocabulary(w) + (1 - p_gen) sum_{i: w_i = w} a_i
    ```

    over the vocabulary and the document's own words outside of it, whose ids are `vocabulary` and
    up. See `BidirectionalEncoder` for what begins a summary, and `AttentionDecoder` for o, a and
    p_gen. `encoder` and `decoder` name the pairs of the RUM paper: lstm, lstm its baseline (See et
    al.'s model), lstm, rum decRUM, rum, lstm encRUM, rum, rum allRUM.

    Weights: `embedding` (vocabulary, embedding), of documents and summaries, those of encoder and
    decoder, and `vocabulary` (units, vocabulary) with its bias.

    Args:
        vocabulary: Number of ids.
        embedding: Size of a word's embedding.
        units: Size of the states.
        encoder: `"lstm"` or `"rum"`.
        decoder: The same.
        pointer: Whether words can be copied; without, this is Seq2Seq.
        coverage: Whether attention knows where it looked before, and is trained not to look there
            again.
        coverage_weight: The weight of that second loss.
        rum_options: Further arguments of RUMs, such as `{"eta": 1.0}`.
        padding: The id of padding.
        unknown: The id of words without one.
        first: The id that the decoder reads first.
        end: The id that ends summaries.
        **kwargs: `name` and `dtype` of `keras.Model`.

    Call arguments:
        inputs: Dictionary of int tensors: `"document"`, (batch, source), and `"summary"`, (batch,
            target), `first` and the summary, both without copied ids; with pointer
            `"document_extended"`, (batch, source), with copied ids, for `compute_loss`.
        training: Whether a RUM's dropout and zoneout are random.

    Returns:
        What `AttentionDecoder` returns, with `"logits"`, (batch, target, vocabulary), for o.

    Raises:
        ValueError: for a document of no words.

    Example:

    >>> import numpy as np
    >>> model = PointerGenerator(20, embedding=5, units=6, decoder="rum")
    >>> document = np.array([[4, 0, 5]])
    >>> inputs = {"document": document, "summary": np.array([[2, 7]])}
    >>> tuple(model(inputs)["logits"].shape)
    (1, 2, 20)
    >>> extended = np.array([[4, 20, 5]])
    >>> tuple(model.summarize(document, extended, beam=2, max_length=3, min_length=0).tokens.shape)
    (1, 2, 4)

    Reference:
        [See et al., 2017](https://arxiv.org/abs/1704.04368), and
        [Dangovski et al., 2019](https://aclanthology.org/Q19-1008/), Section 4.5.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int = 128,
        units: int = 256,
        encoder: str = "lstm",
        decoder: str = "lstm",
        pointer: bool = True,
        coverage: bool = False,
        coverage_weight: float = 1.0,
        rum_options: Mapping[str, Any] | None = None,
        padding: int = 1,
        unknown: int = 0,
        first: int = 2,
        end: int = 3,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._config = {
            "vocabulary": vocabulary,
            "embedding": embedding,
            "units": units,
            "encoder": encoder,
            "decoder": decoder,
            "pointer": pointer,
            "coverage": coverage,
            "coverage_weight": coverage_weight,
            "rum_options": dict(rum_options or {}),
            "padding": padding,
            "unknown": unknown,
            "first": first,
            "end": end,
        }
        # As in the released code, all but LSTMs and attention start close to zero.
        small = keras.initializers.TruncatedNormal(stddev=1e-4)
        shared = {"rum_options": rum_options, "dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary, embedding, small, name="embedding", dtype=self.dtype_policy
        )
        self.encoder = BidirectionalEncoder(units, encoder, decoder, name="encoder", **shared)
        self.decoder = AttentionDecoder(units, decoder, pointer, coverage, name="decoder", **shared)
        self.readout = keras.layers.Dense(
            vocabulary,
            kernel_initializer=small.clone(),
            bias_initializer=small.clone(),
            name="vocabulary",
            dtype=self.dtype_policy,
        )
        self.token_loss = keras.metrics.Mean(name="token_loss")
        self.coverage_loss = keras.metrics.Mean(name="coverage_loss")

    def build(self, input_shape=None):
        features = self._config["embedding"]
        self.embedding.build((None, None))
        self.encoder.build((None, None, features))
        self.decoder.build((None, None, features))
        self.readout.build((None, self._config["units"]))
        self.built = True

    def call(self, inputs, training=False):
        memory, state = self.start(inputs["document"], training=training)
        embedded = self.embed(inputs["summary"])
        results = self.decoder(embedded, state, memory, training=training)
        results["logits"] = self.readout(results.pop("output"))
        return results

    def embed(self, ids: Any) -> Any:
        """Returns the embeddings of ids, whatever their shape; copied words are unknown."""
        unknown = ops.full_like(ids, self._config["unknown"])
        return self.embedding(ops.where(ids < self._config["vocabulary"], ids, unknown))

    def start(
        self, document: Any, initial_attention: bool = False, training: bool = False
    ) -> tuple[dict, dict]:
        """Encodes documents; returns memory and state of the decoder's `step`."""
        if document.shape[1] == 0:
            raise ValueError(f"`document` must have words, received shape {tuple(document.shape)}.")
        mask = ops.not_equal(document, self._config["padding"])
        outputs, states = self.encoder(self.embed(document), mask=mask, training=training)
        return self.decoder.start(outputs, mask, states, initial_attention)

    def log_probabilities(self, result: Mapping[str, Any], extended: Any, extra: int) -> Any:
        """Returns log P of every word, -inf of ids that the document has no word for.

        Args:
            result: One step's results of the decoder, (rows, ...).
            extended: Int tensor, shape `(rows, source)`: the documents with copied ids.
            extra: The largest number of ids that are copied, beyond the vocabulary.

        Returns:
            Float32 tensor, shape `(rows, vocabulary + extra)`, without pointer without `extra`.
        """
        logits = ops.cast(self.readout(result["output"]), self.decoder.precise_dtype)
        if not self._config["pointer"]:
            return ops.log_softmax(logits)
        P = copy_distribution(
            logits, result["pointer_logits"], result["attention"], extended, extra
        )
        # A pointer that only copies could never end: words of the vocabulary stay possible.
        absent = ops.logical_and(ops.arange(P.shape[-1]) >= self._config["vocabulary"], P <= 0)
        return ops.where(absent, -math.inf, ops.log(ops.maximum(P, SMALLEST)))

    def summarize(
        self,
        document: Any,
        document_extended: Any = None,
        *,
        beam: int = 4,
        max_length: int = 120,
        min_length: int = 35,
        extra: int | None = None,
        initial_attention: bool = False,
        **options: Any,
    ) -> Hypotheses:
        """Finds the best summaries by beam search.

        Args:
            document: Int tensor, shape `(batch, source)`, without copied ids.
            document_extended: The same with copied ids, for a model with pointer.
            beam: Number of hypotheses.
            max_length: Most words of a summary.
            min_length: Fewest words of a summary.
            extra: The largest number of copied ids; that of the document's words if None.
            initial_attention: As the released code decodes; see `AttentionDecoder.start`.
            **options: of `rum_keras.beam_search`.

        Returns:
            The hypotheses of each document, best first. Ids from `vocabulary` on are copied words.

        Raises:
            ValueError: if a model with pointer gets no copied ids.
        """
        if document_extended is None:
            if self._config["pointer"]:
                raise ValueError("A model with pointer needs `document_extended`, received none.")
            document_extended = document
        memory, state = self.start(document, initial_attention)
        extra = document.shape[1] if extra is None else extra
        # Hypotheses of a document never leave its rows, so these are copied once.
        memory, extended = keras.tree.map_structure(
            lambda value: ops.repeat(value, beam, axis=0), (memory, document_extended)
        )

        def step(tokens, state):
            result, state = self.decoder.step(self.embed(tokens), state, memory)
            found = self.log_probabilities(result, extended, extra)
            ids = ops.arange(ops.shape(found)[-1])
            found = ops.where(ids == self._config["first"], -math.inf, found)
            return found, state, result["attention"]

        return beam_search(
            step,
            state,
            ops.full_like(document[:, 0], self._config["first"]),
            end_id=self._config["end"],
            pad_id=self._config["padding"],
            beam=beam,
            max_length=max_length,
            min_length=min_length,
            **options,
        )

    def with_coverage(self) -> "PointerGenerator":
        """Returns a model with coverage and the weights of this one, beside which it has `w_c`."""
        model = PointerGenerator.from_config({**self.get_config(), "coverage": True})
        model.build()
        old = {_name(weight): weight for weight in self.weights}
        for weight in model.weights:
            weight.assign(old.get(_name(weight), weight))
        return model

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the sum over words of (-log P(y) + coverage_weight coverage loss) times weights.

        Weights, (batch, target), are 0 at padding, else 1 / (words of the summary * summaries of
        the batch, over all replicas), as See et al. average; by default those of one replica.
        """
        if sample_weight is None:
            real = ops.cast(ops.not_equal(y, self._config["padding"]), "float32")
            words = ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
            sample_weight = real / words / ops.cast(ops.shape(real)[0], "float32")
        if self._config["pointer"]:
            losses = -copy_log_probability(
                y_pred["logits"],
                y_pred["pointer_logits"],
                y_pred["attention"],
                x["document_extended"],
                y,
            )
        else:
            logits = ops.cast(y_pred["logits"], self.decoder.precise_dtype)
            losses = ops.sparse_categorical_crossentropy(y, logits, from_logits=True)
        count = ops.sum(ops.cast(sample_weight > 0, losses.dtype))
        total = self._weighted(losses, sample_weight, count, self.token_loss)
        if self._config["coverage"]:
            repeated = y_pred["coverage_loss"]
            repeated = self._weighted(repeated, sample_weight, count, self.coverage_loss)
            total = total + self._config["coverage_weight"] * repeated
        return total

    def _weighted(self, losses, weights, count, metric):
        """Returns the weighted sum, and tells the metric the mean of a word."""
        real = ops.where(weights > 0, losses, ops.zeros_like(losses))
        metric.update_state(ops.sum(real) / ops.maximum(count, 1.0), count)
        return ops.sum(real * ops.cast(weights, losses.dtype))

    def get_metrics_result(self):
        """Returns means of a word: the loss in nats, the perplexity, the coverage loss."""
        loss = self.token_loss.result()
        result = {"loss": loss, "perplexity": ops.exp(loss)}
        if self._config["coverage"]:
            repeated = self.coverage_loss.result()
            result["coverage_loss"] = repeated
            result["loss"] = loss + self._config["coverage_weight"] * repeated
        return result

    def get_config(self):
        return {**super().get_config(), **self._config}


def _name(weight):
    """Returns a weight's path without the name of its model."""
    return weight.path.split("/", 1)[1]
