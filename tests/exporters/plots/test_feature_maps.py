"""Feature maps: how channels become tiles, and what is said of those that are cut."""

from dataclasses import replace

import numpy as np

from tests.maps_by_hand import IMAGES, KERNELS, MAPS, RELU
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


def test_only_the_colours_in_use_are_explained():
    whole = " ".join(feature_maps.sentences(MAPS))
    assert "Grey: " in whole and "Blue is " in whole
    unsigned = feature_maps.sentences(replace(MAPS, maps=(IMAGES, replace(RELU, gradient=None))))
    assert "Blue" not in " ".join(unsigned)
    kernels = feature_maps.sentences(replace(MAPS, maps=(replace(KERNELS, gradient=None),)))
    assert "Grey" not in (words := " ".join(kernels)) and "Blue is " in words


def test_what_is_cut_is_said():
    assert feature_maps.about(replace(RELU, shape=(2, 2, 20))) == "2 x 2, 20 channels, 2 shown"
    kernel = replace(KERNELS, shape=(1, 2, 9, 2))
    assert feature_maps.about(kernel) == "1 x 2, 9 in (down), 2 out, 1 x 2 shown"
    assert feature_maps.about(IMAGES) == "2 x 3, fed"
