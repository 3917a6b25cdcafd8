"""ConvS2S and Topic-ConvS2S, which summarize a news article in one sentence."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from rum_keras.beam_search import Hypotheses, beam_search
from rum_keras.conv_s2s_decoder import ConvS2SDecoder
from rum_keras.conv_s2s_encoder import LAYERS, ConvS2SEncoder


@keras.saving.register_keras_serializable(package="zoo")
class TopicConvS2S(keras.Model):
    """Convolutional sequence to sequence model, with or without topics.

    With t'_i the topics of word i and t_D those of the document, the encoder reads

    ```
    e_i = [x_i + p_i; t'_i * t_D]       encoder_topics="word_document"
    e_i = [x_i + p_i; t'_i]             encoder_topics="word"
    g_i = [x'_i + p'_i; t_D]            and so does the decoder, decoder_topics=True
    g_i = [x'_i + p'_i; 1]              decoder_topics=False
    ```

    and with `topics=0` both read ids and positions alone: ConvS2S. See `ConvS2SEncoder` and
    `ConvS2SDecoder` for the rest. Topics are not trained.

    Where paper and released code differ, the default is the code's: no layer normalization;
    attention with its factors (`scaled`); ones where the decoder has no topics (the code's comment;
    `absent_topics`), which biases can take up, so that zeros are as expressive. Padding is masked,
    which the code does not: it trains and decodes on batches without padding.

    Weights: those of `encoder` and `decoder`, and `word_topics` (vocabulary, topics), which
    `set_word_topics` sets.

    Args:
        vocabulary: Number of ids.
        topics: Number of topics; 0 for ConvS2S.
        encoder_topics: `"word_document"` or `"word"`.
        decoder_topics: Whether the decoder reads t_D.
        absent_topics: What the decoder reads in its place: `"ones"` or `"zeros"`.
        normalize_topics: Whether the encoder's topics of each word are divided by their norm, to
            be of the size of embeddings (an alternative that the released code has commented out).
        units: Size of the embeddings.
        encoder_layers: (filters, kernel_size) of each layer.
        decoder_layers: The same of the decoder.
        output_units: Size of what is before the logits.
        dropout: Part dropped in training.
        max_positions: Rows of the tables of positions.
        padding: The id of padding.
        end: The id that ends documents and summaries, and that the decoder reads first.
        mask_padding: Whether padding of documents is masked.
        scaled: See `MultiHopAttention`.
        winograd: Whether the encoder convolves in the way that is fast on CPUs; see `GatedConv1D`.
        **kwargs: `name` and `dtype` of `keras.Model`.

    Call arguments:
        inputs: Dictionary of `"document"`, int tensor of shape `(batch, source)`, `"summary"`, int
            tensor of shape `(batch, target)`, the end symbol and the summary, and with topics
            `"topics"`, float tensor of shape `(batch, topics)`: t_D.
        training: Whether dropout is random.

    Returns:
        Logits of the summary and the end symbol, shape `(batch, target, vocabulary)`.

    Raises:
        ValueError: for an argument that is none of those named here.

    Example:

    >>> import numpy as np
    >>> model = TopicConvS2S(20, units=6, encoder_layers=[(4, 3)], decoder_layers=[(4, 3)])
    >>> inputs = {"document": np.array([[4, 5, 6, 2]]), "summary": np.array([[2, 7, 8]])}
    >>> tuple(model(inputs).shape)
    (1, 3, 20)

    Reference:
        [Narayan et al., 2018](https://arxiv.org/abs/1808.08745), Section 4.
    """

    def __init__(
        self,
        vocabulary: int,
        topics: int = 0,
        encoder_topics: str = "word_document",
        decoder_topics: bool = True,
        absent_topics: str = "ones",
        normalize_topics: bool = False,
        units: int = 512,
        encoder_layers: Sequence[tuple[int, int]] = LAYERS,
        decoder_layers: Sequence[tuple[int, int]] = LAYERS,
        output_units: int = 256,
        dropout: float = 0.2,
        max_positions: int = 1024,
        padding: int = 1,
        end: int = 2,
        mask_padding: bool = True,
        scaled: bool = True,
        winograd: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        _check_one_of("encoder_topics", encoder_topics, ("word_document", "word"))
        _check_one_of("absent_topics", absent_topics, ("ones", "zeros"))
        shared = {
            "vocabulary": vocabulary,
            "units": units,
            "topics": topics,
            "dropout": dropout,
            "max_positions": max_positions,
            "padding": padding,
        }
        self._config = {
            **shared,
            "encoder_topics": encoder_topics,
            "decoder_topics": decoder_topics,
            "absent_topics": absent_topics,
            "normalize_topics": normalize_topics,
            "encoder_layers": [list(layer) for layer in encoder_layers],
            "decoder_layers": [list(layer) for layer in decoder_layers],
            "output_units": output_units,
            "end": end,
            "mask_padding": mask_padding,
            "scaled": scaled,
            "winograd": winograd,
        }
        dtype = self.dtype_policy
        self.encoder = ConvS2SEncoder(
            **shared,
            layers=encoder_layers,
            hops=len(decoder_layers),
            mask_padding=mask_padding,
            winograd=winograd,
            name="encoder",
            dtype=dtype,
        )
        self.decoder = ConvS2SDecoder(
            **shared,
            layers=decoder_layers,
            output_units=output_units,
            scaled=scaled,
            name="decoder",
            dtype=dtype,
        )
        self.token_loss = keras.metrics.Mean(name="token_loss")

    def build(self, input_shape=None):
        self.encoder.build()
        self.decoder.build()
        topics = self._config["topics"]
        if topics:
            self.word_topics = self.add_weight(
                shape=(self._config["vocabulary"], topics),
                name="word_topics",
                initializer="zeros",
                trainable=False,
                autocast=False,
            )
        self.built = True

    def set_word_topics(self, table: Any) -> None:
        """Sets t', the topics of each word, float array `(vocabulary, topics)`."""
        shape = (self._config["vocabulary"], self._config["topics"])
        if tuple(table.shape) != shape:
            raise ValueError(
                f"`table` must have shape {shape} (vocabulary, topics), received {table.shape}: "
                "were topics and vocabulary prepared from the same corpus?"
            )
        if not self.built:
            self.build()
        self.word_topics.assign(table)

    def call(self, inputs, training=False):
        return self._decode(inputs, training)[0]

    def attention(self, inputs: dict[str, Any]) -> Any:
        """Returns where each hop looks, shape `(batch, hops, target, source)`."""
        return self._decode(inputs)[1]

    def _decode(self, inputs, training=False):
        topics = inputs.get("topics")
        encoded = self.encode(inputs["document"], topics, training)
        topics = self._decoder_topics(topics)
        return self.decoder(inputs["summary"], *encoded, topics, training=training)

    def encode(self, document: Any, topics: Any = None, training: bool = False) -> tuple:
        """Returns keys, values and mask of documents: what `ConvS2SEncoder` returns."""
        if not self._config["topics"]:
            return self.encoder(document, training=training)
        if topics is None:
            raise ValueError('The model has topics, so inputs must have "topics", received none.')
        words = ops.take(self.word_topics, document, axis=0)
        if self._config["encoder_topics"] == "word_document":
            words = words * ops.cast(topics, words.dtype)[:, None]
        if self._config["normalize_topics"]:
            words = ops.normalize(words, axis=-1)
        return self.encoder(document, words, training=training)

    def _decoder_topics(self, topics):
        if not self._config["topics"]:
            return None
        if self._config["decoder_topics"]:
            return topics
        absent = {"ones": ops.ones_like, "zeros": ops.zeros_like}
        return absent[self._config["absent_topics"]](topics)

    def start(self, document: Any, topics: Any = None) -> tuple[dict, dict]:
        """Encodes documents; returns memory and state of the decoder's `step`."""
        return self.decoder.start(*self.encode(document, topics), self._decoder_topics(topics))

    def summarize(
        self,
        document: Any,
        topics: Any = None,
        *,
        beam: int = 10,
        max_length: int = 90,
        **options: Any,
    ) -> Hypotheses:
        """Finds the best summaries by beam search.

        Args:
            document: Int tensor, shape `(batch, source)`, with the end symbol.
            topics: With topics, float tensor, shape `(batch, topics)`.
            beam: Number of hypotheses.
            max_length: Most words of a summary (the released code has 200).
            **options: of `rum_keras.beam_search`.

        Returns:
            The hypotheses of each document, best first, with the position in the document of the
            word, not the end, that each token attended to most.
        """
        memory, state = self.start(document, topics)
        end, padding = self._config["end"], self._config["padding"]

        # The end is no word that could stand for an unknown one.
        words = ops.repeat(ops.not_equal(document, end), beam, axis=0)

        def step(tokens, state):
            logits, attention, state = self.decoder.step(tokens, state, memory)
            return ops.log_softmax(logits), state, attention * ops.cast(words, attention.dtype)

        return beam_search(
            step,
            state,
            ops.full_like(document[:, 0], end),
            end_id=end,
            pad_id=padding,
            beam=beam,
            max_length=max_length,
            **{"min_length": 1, **options},
        )

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """Returns the sum of cross-entropies times weights.

        Weights, (batch, target), are 0 at padding, else 1 / (tokens of the batch, over all
        replicas together): gradients of replicas then add up to those of one batch. Without
        weights, the batch is taken as all there is.
        """
        if sample_weight is None:
            real = ops.cast(ops.not_equal(y, self._config["padding"]), "float32")
            sample_weight = real / ops.maximum(ops.sum(real), 1.0)
        losses = ops.sparse_categorical_crossentropy(y, y_pred, from_logits=True)
        sample_weight = ops.cast(sample_weight, losses.dtype)
        # Not a product alone: the loss at padding may be infinite in half precision.
        losses = ops.where(sample_weight > 0, losses, ops.zeros_like(losses))
        real = ops.cast(sample_weight > 0, losses.dtype)
        count = ops.sum(real)
        self.token_loss.update_state(ops.sum(losses) / ops.maximum(count, 1.0), count)
        return ops.sum(losses * sample_weight)

    def get_metrics_result(self):
        """Returns the mean loss of a token, in nats, and its exponential, the perplexity."""
        loss = self.token_loss.result()
        return {"loss": loss, "perplexity": ops.exp(loss)}

    def get_config(self):
        return {**super().get_config(), **self._config}


def _check_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {allowed}, received {value!r}.")
