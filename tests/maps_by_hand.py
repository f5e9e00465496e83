"""Maps by hand: one convolution, which reads an image of 2 x 3 pixels as class 1 of 3."""

import numpy as np

from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap, Maps, Probabilities

IMAGES = FeatureMap(
    "images", IMAGE, (2, 3, 1), np.array([[[0.0], [0.5], [1.0]], [[1], [0], [0]]]), None
)
KERNELS = FeatureMap(
    "conv/kernel", KERNEL, (1, 2, 1, 2),
    np.array([[[[1.0, -2.0]], [[0.0, 0.5]]]]), np.array([[[[0.25, 0.0]], [[-0.25, 1.0]]]]),
)  # fmt: skip
RELU = FeatureMap(
    "conv/Relu", LAYER, (2, 2, 2),
    np.array([[[0.0, 4.0], [1.0, 2.0]], [[2.0, 0.0], [3.0, 0.0]]]),
    np.array([[[0.0, -0.04], [0.01, 0.02]], [[0.0, 0.0], [0.03, 0.0]]]),
)  # fmt: skip
SCORES = Probabilities(
    "dense/BiasAdd", False, np.array([0.125, 0.625, 0.25]), np.array([0.01, 0.05, -0.06]), 2
)
MAPS = Maps((IMAGES, KERNELS, RELU), SCORES, 0)
