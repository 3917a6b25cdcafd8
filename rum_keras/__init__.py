"""Rotational units of memory and the models of two papers, as Keras 3 layers."""

from rum_keras.cayley_rmsprop import CayleyRMSprop
from rum_keras.eurnn_cell import EURNNCell
from rum_keras.fast_slow_cell import FastSlowCell
from rum_keras.fast_weights_cell import FastWeightsCell
from rum_keras.fractional_rotation import fractional_rotation
from rum_keras.full_capacity_urnn_cell import FullCapacityURNNCell
from rum_keras.goru_cell import GORUCell
from rum_keras.hyper_lstm_cell import HyperLSTMCell
from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from rum_keras.learned_associative_memory_cell import LearnedAssociativeMemoryCell
from rum_keras.modrelu import modrelu
from rum_keras.nas_cell import NASCell
from rum_keras.rotation import rotate, rotation_angle, rotation_matrix
from rum_keras.rum import RUM
from rum_keras.rum_cell import RUMCell
from rum_keras.unitary import unitarity_error
from rum_keras.urnn_cell import URNNCell
from rum_keras.zoneout import Zoneout

__all__ = [
    "CayleyRMSprop",
    "EURNNCell",
    "FastSlowCell",
    "FastWeightsCell",
    "FullCapacityURNNCell",
    "GORUCell",
    "HyperLSTMCell",
    "LayerNormLSTMCell",
    "LearnedAssociativeMemoryCell",
    "NASCell",
    "RUM",
    "RUMCell",
    "URNNCell",
    "Zoneout",
    "fractional_rotation",
    "modrelu",
    "rotate",
    "rotation_angle",
    "rotation_matrix",
    "unitarity_error",
]
