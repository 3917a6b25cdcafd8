"""Rotational units of memory and the models of two papers, as Keras 3 layers."""

from rum_keras.rotation import rotate, rotation_angle, rotation_matrix
from rum_keras.rum import RUM
from rum_keras.rum_cell import RUMCell

__all__ = ["RUM", "RUMCell", "rotate", "rotation_angle", "rotation_matrix"]
