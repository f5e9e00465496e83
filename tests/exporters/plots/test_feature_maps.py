"""The plot of feature maps: every tile, colour and word, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.maps_by_hand import IMAGES, KERNELS, MAPS, RELU
from tests.pictures import caption, title
from tflab.exporters.plots import feature_maps, style
from tflab.records.values import IMAGE, KERNEL, LAYER, FeatureMap

WHITE, BLACK = [1, 1, 1], [0, 0, 0]
BLUE, ORANGE, VERMILION = map(style.rgb, (style.BLUE, style.ORANGE, style.VERMILION))


def pixels(axes):
    (image,) = axes.images
    return image.get_array()


@pytest.fixture(scope="module")
def rows():
    """(left, right) axes of the image, the kernel, the layer and the classes."""
    axes = feature_maps.draw(MAPS).axes
    return list(zip(axes[::2], axes[1::2], strict=True))


def test_the_image_is_grey_from_its_least_element_to_its_largest(rows):
    left, right = rows[0]
    assert pixels(left).tolist() == [
        [BLACK, pytest.approx([0.5] * 3, abs=0.01), WHITE],
        [WHITE, BLACK, BLACK],
    ]
    assert left.get_title("left") == "images: 2 x 3, fed"
    assert left.get_xlabel() == "0 to 1"
    assert not right.axison


def test_a_kernel_has_a_tile_for_each_pair_of_channels_and_both_signs(rows):
    left, right = rows[1]
    assert left.get_title("left") == "conv/kernel: 1 x 2, 1 in (down), 2 out"
    assert left.get_xlabel() == "-2 to 2"
    drawn = pixels(left)[0]  # 1, 0 | -2, 0.5
    assert drawn[1].tolist() == pytest.approx(WHITE, abs=0.02)  # 0
    assert drawn[2].tolist() == WHITE  # the gap
    assert drawn[3].tolist() == pytest.approx(BLUE, abs=0.01)
    assert drawn[0].tolist() == pytest.approx((np.array(ORANGE) + 1) / 2, abs=0.01)
    assert drawn[4, 2] < 1
    assert right.get_title("left") == "gradient of the loss"
    assert right.get_xlabel() == "-1 to 1"


def test_a_layer_has_a_tile_for_each_channel_from_black_at_0(rows):
    left, _ = rows[2]
    assert left.get_title("left") == "conv/Relu: 2 x 2, 2 channels"
    shares = pixels(left)[..., 0]
    assert np.allclose(shares[:, :2], np.array([[0, 1], [2, 3]]) / 4, atol=0.01)
    assert np.allclose(shares[:, 3:], np.array([[4, 2], [0, 0]]) / 4, atol=0.01)
    assert shares[:, 2].tolist() == [1, 1]


def test_classes_have_their_probability_and_beside_it_their_gradient(rows):
    left, right = rows[3]
    assert [bar.get_width() for bar in left.patches] == [0.125, 0.625, 0.25]
    assert [label.get_text() for label in left.get_yticklabels()] == ["0", "1", "2 label"]
    assert [text.get_text() for text in left.texts] == ["12.5 %", "62.5 %", "25.0 %"]
    assert [text.get_text() for text in right.texts] == ["+0.010", "+0.050", "-0.060"]
    assert left.get_title("left") == "dense/BiasAdd: its softmax, the probabilities"


def test_title_and_caption(rows):
    figure = rows[0][0].figure
    assert title(figure) == "The network reads the first image as 1, with 62.5 %; its label is 2"
    assert caption(figure).startswith("This is the first step after initialisation, for the first")
    left_out = feature_maps.caption(replace(MAPS, left_out=1))
    assert left_out.endswith("1 more map is too many or too large to be drawn.")


def test_what_is_not_finite_is_vermilion_and_the_caption_says_so():
    array = np.array([[[np.nan], [2.0], [np.inf], [0.0]]])
    bad = FeatureMap("bad", LAYER, (1, 4, 1), array, None)
    figure = feature_maps.draw(replace(MAPS, maps=(bad,), probabilities=None))
    left, right = figure.axes
    assert pixels(left)[0].tolist() == [VERMILION, WHITE, VERMILION, BLACK]
    assert caption(figure).endswith("Vermilion: NaN or infinite.")
    assert "not computed" in right.texts[0].get_text()


def test_channels_stand_in_rows_of_eight_and_colour_images_stay_as_they_are():
    tiles = feature_maps.tiled(np.arange(9.0).reshape(1, 1, 9), LAYER)
    assert tiles.shape == (3, 15)  # a gap of one element
    assert tiles[0, ::2].tolist() == [*range(8)] and tiles[2, 0] == 8
    assert feature_maps.tiled(np.zeros((4, 5, 3)), IMAGE).shape == (4, 5, 3)
    assert feature_maps.tiled(np.zeros((2, 2, 3, 4)), KERNEL).shape == (3 * 3 - 1, 4 * 3 - 1)


def test_what_is_cut_is_said():
    many = replace(RELU, shape=(2, 2, 20))
    assert feature_maps.about(many) == "2 x 2, 20 channels, 2 shown"
    kernel = replace(KERNELS, shape=(1, 2, 9, 2))
    assert feature_maps.about(kernel) == "1 x 2, 9 in (down), 2 out, 1 x 2 shown"
    assert feature_maps.about(IMAGES) == "2 x 3, fed"
