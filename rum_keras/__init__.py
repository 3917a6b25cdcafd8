"""Rotational units of memory and the models of two papers, as Keras 3 layers."""

from rum_keras.beam_search import beam_search
from rum_keras.cayley_rmsprop import CayleyRMSprop
from rum_keras.conv_s2s_decoder import ConvS2SDecoder
from rum_keras.conv_s2s_encoder import ConvS2SEncoder
from rum_keras.eurnn_cell import EURNNCell
from rum_keras.fast_slow_cell import FastSlowCell
from rum_keras.fast_weights_cell import FastWeightsCell
from rum_keras.fractional_rotation import fractional_rotation
from rum_keras.full_capacity_urnn_cell import FullCapacityURNNCell
from rum_keras.gated_conv1d import GatedConv1D
from rum_keras.goru_cell import GORUCell
from rum_keras.hyper_lstm_cell import HyperLSTMCell
from rum_keras.layer_norm_lstm_cell import LayerNormLSTMCell
from rum_keras.learned_associative_memory_cell import LearnedAssociativeMemoryCell
from rum_keras.modrelu import modrelu
from rum_keras.multi_hop_attention import MultiHopAttention
from rum_keras.nas_cell import NASCell
from rum_keras.pointer import (
    CoverageAttention,
    copy_distribution,
    copy_log_probability,
    coverage_loss,
)
from rum_keras.positioned_embedding import PositionedEmbedding
from rum_keras.qrnn import QRNN
from rum_keras.qrnn_cell import QRNNCell
from rum_keras.rotation import rotate, rotation_angle, rotation_matrix
from rum_keras.rum import RUM
from rum_keras.rum_cell import RUMCell
from rum_keras.unitary import unitarity_error
from rum_keras.urnn_cell import URNNCell
from rum_keras.weight_dropped_lstm import WeightDroppedLSTM
from rum_keras.weight_norm import WeightNormConv1D, WeightNormDense
from rum_keras.winograd import winograd_conv1d
from rum_keras.zoneout import Zoneout

__all__ = [
    "CayleyRMSprop",
    "ConvS2SDecoder",
    "ConvS2SEncoder",
    "CoverageAttention",
    "EURNNCell",
    "FastSlowCell",
    "FastWeightsCell",
    "FullCapacityURNNCell",
    "GORUCell",
    "GatedConv1D",
    "HyperLSTMCell",
    "LayerNormLSTMCell",
    "LearnedAssociativeMemoryCell",
    "MultiHopAttention",
    "NASCell",
    "PositionedEmbedding",
    "QRNN",
    "QRNNCell",
    "RUM",
    "RUMCell",
    "URNNCell",
    "WeightDroppedLSTM",
    "WeightNormConv1D",
    "WeightNormDense",
    "Zoneout",
    "beam_search",
    "copy_distribution",
    "copy_log_probability",
    "coverage_loss",
    "fractional_rotation",
    "modrelu",
    "rotate",
    "rotation_angle",
    "rotation_matrix",
    "unitarity_error",
    "winograd_conv1d",
]
