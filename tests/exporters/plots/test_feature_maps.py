"""Feature maps: how channels become tiles, and what is said of those that are cut."""

from dataclasses import replace

import numpy as np

from tests.maps_by_hand import IMAGES, KERNELS, RELU
from tflab.exporters.plots import feature_maps
from tflab.records.values import IMAGE, KERNEL, LAYER


def test_channels_stand_in_rows_of_eight_and_colour_images_stay_as_they_are():
    tiles = feature_maps.tiled(np.arange(9.0).reshape(1, 1, 9), LAYER)
    assert tiles.shape == (3, 15)  # a gap of one element
    assert tiles[0, ::2].tolist() == [*range(8)] and tiles[2, 0] == 8
    assert np.isneginf(tiles[1]).all() and np.isneginf(tiles[2, 1:]).all()
    assert feature_maps.tiled(np.zeros((4, 5, 3)), IMAGE).shape == (4, 5, 3)
    # Channels in go down, channels out go across
    kernel = np.zeros((2, 2, 3, 4)) + 10 * np.arange(3)[:, None] + np.arange(4)
    tiles = feature_maps.tiled(kernel, KERNEL)
    assert tiles[::3, ::3].tolist() == [[10.0 * down + n for n in range(4)] for down in range(3)]
    assert tiles.shape == (3 * 3 - 1, 4 * 3 - 1)


def test_what_is_cut_is_said():
    assert feature_maps.size_of(replace(RELU, shape=(2, 2, 20))) == "2 x 2, 20 channels, 2 shown"
    kernel = replace(KERNELS, shape=(1, 2, 9, 2))
    assert feature_maps.size_of(kernel) == "1 x 2, 9 in (down), 2 out, 1 x 2 shown"
    assert feature_maps.size_of(IMAGES) == "2 x 3, fed"
