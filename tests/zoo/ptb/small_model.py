"""A small language model, and its sizes."""

import keras

from zoo.ptb.model import CharacterModel

SYMBOLS = "abcde"
TIME, UNITS, EMBEDDING = 3, 6, 4
RNN = {"return_sequences": True, "return_state": True}


def lstm_model(layers: int = 2, **options) -> CharacterModel:
    """Makes a model of LSTMs."""
    stack = [keras.layers.LSTM(UNITS, **RNN) for _ in range(layers)]
    return CharacterModel(SYMBOLS, stack, EMBEDDING, **options)
