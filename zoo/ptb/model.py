"""The character-level language model: embedding, recurrent layers, readout; its loss and metric."""

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="zoo.ptb")
class CharacterModel(keras.Model):
    """Predicts each character of a text from those before it.

    The ids are embedded, or one-hot; recurrent layers read them one above the other; a readout of
    the last one gives the logits of the character that follows:

    ```
    x_t = E[id_t]                                             (batch, embedding_units)
    y_t = layer_n(drop(... layer_1(drop(x_t)) ...))           (batch, units of the last layer)
    logits_t = drop(y_t) W + b                                (batch, symbols)
    ```

    In training, and in evaluation, a text is read in windows, and the states at the end of one are
    where the next begins. They are variables of the model, two sets of them, so that evaluation
    amid training leaves those of training alone; a window says which rows of theirs it continues.
    Under a `tf.distribute` strategy a row is read by one replica, and all replicas hold all rows.

    Weights: `embedding` (symbols, embedding_units), those of the layers, and `readout`, or
    `readout_bias` where the kernel is tied. Rows and their states are of a run, not of the model:
    a model that was saved and loaded has none, and `continuing` gives it new ones.

    Args:
        symbols: The characters that ids stand for.
        layers: Recurrent layers (`keras.layers.RNN` or what is called alike) that return sequences
            and states.
        embedding_units: Size of the embedding; None: the input is one-hot.
        dropout: Fraction dropped of the inputs of each layer and of the readout, or a list of these
            fractions.
        variational_dropout: Whether the same units are dropped in all steps of a window; else they
            are drawn anew in each step.
        tie_embedding: Whether the readout's kernel is the transposed embedding.
        training_rows: How many rows of a text are trained on at once; None: none can be continued.
        evaluation_rows: The same for evaluation.
        **kwargs: `name`, `dtype`, `trainable` of `keras.Model`.

    Call arguments:
        inputs: int32 (batch, time), ids of texts that start here. Or windows, a dictionary of
            `ids`, int32 (batch, time); `row`, int32 (batch,): which row of the states each window
            continues, each row being in one window; and `fresh`, int32 (batch,): 1 where it starts
            from zero instead, else 0. (Keras adds inputs up over replicas; it could not add bool.)
        training: Whether dropout and zoneout are random, and which states windows continue.

    Returns:
        Logits, (batch, time, symbols).

    Raises:
        ValueError: if a layer returns no sequences or states, or cannot have a tied readout.

    Example:

    >>> layer = keras.layers.LSTM(6, return_sequences=True, return_state=True)
    >>> model = CharacterModel("abc", [layer], embedding_units=4)
    >>> tuple(model(np.zeros((2, 5), "int32")).shape)
    (2, 5, 3)
    """

    def __init__(
        self,
        symbols: str,
        layers: Sequence[keras.layers.Layer],
        embedding_units: int | None = 128,
        dropout: float | Sequence[float] = 0.0,
        variational_dropout: bool = False,
        tie_embedding: bool = False,
        training_rows: int | None = None,
        evaluation_rows: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for layer in layers:
            if not (layer.return_sequences and layer.return_state):
                raise ValueError(
                    f"`layers` must return sequences and states, but {layer.name} does not: give "
                    "it return_sequences=True and return_state=True."
                )
        self.symbols = symbols
        self.recurrent_layers = list(layers)
        self.embedding_units = embedding_units
        self.variational_dropout = variational_dropout
        self.tie_embedding = tie_embedding
        self.training_rows = training_rows
        self.evaluation_rows = evaluation_rows
        self.dropouts = self._dropouts(dropout)
        self.embedding = None
        if embedding_units:
            self.embedding = keras.layers.Embedding(
                len(symbols),
                embedding_units,
                embeddings_initializer="orthogonal",
                dtype=self.dtype_policy,
            )
        self.readout = keras.layers.Dense(
            len(symbols),
            kernel_initializer="orthogonal",
            bias_initializer=keras.initializers.RandomUniform(-0.01, 0.01),
            dtype=self.dtype_policy,
            name="readout",
        )
        self.build()

    def build(self, input_shape=None):
        features = self.embedding_units or len(self.symbols)
        if self.embedding:
            self.embedding.build((None, None))
        for layer in self.recurrent_layers:
            layer.build((None, None, features))
            features = layer.compute_output_shape((None, None, features))[0][-1]
        if self.tie_embedding:
            self._check_tied(features)
            self.readout_bias = self.add_weight(shape=(len(self.symbols),), name="readout_bias")
        else:
            self.readout.build((None, None, features))
        self.carried = {
            True: self._carry(self.training_rows, "training"),
            False: self._carry(self.evaluation_rows, "evaluation"),
        }
        self.built = True

    def _dropouts(self, rates):
        places = len(self.recurrent_layers) + 1
        rates = [rates] * places if isinstance(rates, (int, float)) else list(rates)
        if len(rates) != places:
            raise ValueError(
                f"`dropout` must be a fraction, or {places}, one for each layer and one for the "
                f"readout; received {rates}."
            )
        shape = (None, 1, None) if self.variational_dropout else None
        return [keras.layers.Dropout(rate, shape, dtype=self.dtype_policy) for rate in rates]

    def _check_tied(self, features):
        if features != self.embedding_units:
            raise ValueError(
                f"`tie_embedding` asks for a last layer of `embedding_units`, "
                f"{self.embedding_units}, but it returns {features}."
            )

    def _carry(self, rows, name):
        """Makes the variables of the states of some rows."""
        if rows is None:
            return None
        return [
            self.add_weight(
                shape=(rows, size),
                initializer="zeros",
                trainable=False,
                autocast=False,
                # A replica adds its rows, zeros for the others: the sum has all of them.
                aggregation="sum",
                name=f"{name}_state_{number}",
            )
            for number, size in enumerate(self.state_sizes())
        ]

    def state_sizes(self) -> list[int]:
        """Returns the sizes of the states of all layers, one after the other."""
        return [size for layer in self.recurrent_layers for size in _state_sizes(layer)]

    def initial_states(self, batch_size: Any) -> list[Any]:
        """Returns states of texts that start, zeros (batch_size, size) each."""
        return [ops.zeros((batch_size, size), self.variable_dtype) for size in self.state_sizes()]

    def continuing(
        self, training_rows: int | None = None, evaluation_rows: int | None = None
    ) -> "CharacterModel":
        """Returns a copy with the same weights that continues windows of so many rows."""
        rows = {"training_rows": training_rows, "evaluation_rows": evaluation_rows}
        copy = self.from_config({**self.get_config(), **rows})
        parts = zip(copy._parts(), self._parts(), strict=True)
        for ours, theirs in ((o, t) for part in parts for o, t in zip(*part, strict=True)):
            ours.assign(theirs)
        return copy

    def _parts(self):
        """Returns the weights but those of states, in lists."""
        layers = [self.embedding, *self.recurrent_layers, self.readout]
        own = [self.readout_bias] if self.tie_embedding else []
        return [own, *(layer.weights for layer in layers if layer)]

    def call(self, inputs, training=False):
        training = bool(training)
        if not isinstance(inputs, dict):
            return self.advance(inputs, self.initial_states(ops.shape(inputs)[0]), training)[0]
        carried, row = self.carried[training], inputs["row"]
        if carried is None:
            name = "training_rows" if training else "evaluation_rows"
            raise ValueError(f"To continue windows, make the model with {name}, or .continuing().")
        fresh = inputs["fresh"][:, None] > 0
        states = [ops.take(variable, row, axis=0) for variable in carried]
        states = [ops.where(fresh, ops.zeros_like(state), state) for state in states]
        logits, states = self.advance(inputs["ids"], states, training)
        for variable, state in zip(carried, states, strict=True):
            empty = ops.zeros(variable.shape, variable.dtype)
            state = ops.stop_gradient(ops.cast(state, variable.dtype))
            variable.assign(ops.scatter_update(empty, row[:, None], state))
        return logits

    def advance(
        self, ids: Any, states: Sequence[Any], training: bool = False
    ) -> tuple[Any, list[Any]]:
        """Reads on from given states.

        Args:
            ids: int32 (batch, time).
            states: The states before, as of `initial_states` or of the call before.
            training: Whether dropout and zoneout are random.

        Returns:
            The logits, (batch, time, symbols), and the states after.
        """
        outputs = ops.one_hot(ids, len(self.symbols), dtype=self.compute_dtype)
        if self.embedding:
            # A product, for a dense gradient: of a sparse one Keras 3.15's Adam squares the part of
            # each character of the text, not their sum, and clips as if they were of other rows.
            embeddings = ops.cast(self.embedding.embeddings, outputs.dtype)
            outputs = ops.matmul(outputs, embeddings)
        states, new_states = list(states), []
        for layer, dropout in zip(self.recurrent_layers, self.dropouts[:-1], strict=True):
            outputs = dropout(outputs, training=training)
            count = len(_state_sizes(layer))
            outputs, *layer_states = layer(outputs, initial_state=states[:count], training=training)
            states = states[count:]
            new_states += layer_states
        outputs = self.dropouts[-1](outputs, training=training)
        if self.tie_embedding:
            kernel = ops.cast(ops.transpose(self.embedding.embeddings), outputs.dtype)
            bias = ops.cast(self.readout_bias, outputs.dtype)
            return ops.matmul(outputs, kernel) + bias, new_states
        return self.readout(outputs), new_states

    # The states of a run are no part of the model, and no other weights are the model's own.

    def save_own_variables(self, store):
        if self.tie_embedding:
            store["readout_bias"] = ops.convert_to_numpy(self.readout_bias)

    def load_own_variables(self, store):
        if self.tie_embedding:
            self.readout_bias.assign(store["readout_bias"])

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "symbols": self.symbols,
            "layers": [serialize(layer) for layer in self.recurrent_layers],
            "embedding_units": self.embedding_units,
            "dropout": [dropout.rate for dropout in self.dropouts],
            "variational_dropout": self.variational_dropout,
            "tie_embedding": self.tie_embedding,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        layers = [keras.saving.deserialize_keras_object(layer) for layer in config["layers"]]
        return cls(**{**config, "layers": layers})


def _state_sizes(layer):
    return keras.tree.flatten(getattr(layer, "cell", layer).state_size)


@keras.saving.register_keras_serializable(package="zoo.ptb")
class SummedCrossentropy(keras.losses.Loss):
    """The cross-entropy of a window in nats, summed over time; its mean over rows.

    The papers clip the norm of the gradient of this sum, not of the mean over time. Targets below
    zero do not count.

    Example:

    >>> loss = SummedCrossentropy()
    >>> round(float(loss(np.array([[1, 0, -1]]), np.zeros((1, 3, 2)))), 4)  # 2 log 2
    1.3863
    """

    def __init__(self, name: str = "summed_crossentropy", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        return ops.sum(_nats(y_true, y_pred)[0], axis=-1)


@keras.saving.register_keras_serializable(package="zoo.ptb")
class BitsPerCharacter(keras.metrics.Mean):
    """The mean cross-entropy of the targets that are not below zero, in bits.

    Example:

    >>> metric = BitsPerCharacter()
    >>> metric.update_state(np.array([[1, 0, -1]]), np.zeros((1, 3, 2)))
    >>> round(float(metric.result()), 4)
    1.0
    """

    def __init__(self, name: str = "bits_per_character", **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        nats, counts = _nats(y_true, y_pred)
        return super().update_state(nats / math.log(2), sample_weight=counts)


def _nats(targets, logits):
    """Returns the cross-entropy of each target, and 1 for each that counts, 0 for the others."""
    counts = targets >= 0
    dtype = "float64" if keras.backend.standardize_dtype(logits.dtype) == "float64" else "float32"
    nats = ops.sparse_categorical_crossentropy(
        ops.where(counts, targets, 0), ops.cast(logits, dtype), from_logits=True
    )
    counts = ops.cast(counts, dtype)
    return nats * counts, counts
