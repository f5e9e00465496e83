"""The plot of feature maps: its rows, its bars and every word, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from tests.maps_by_hand import IMAGES, KERNELS, MAPS, RELU, SCORES
from tests.pictures import caption, plain, title, words
from tflab.exporters.plots import feature_maps, style


@pytest.fixture(scope="module")
def figure():
    return feature_maps.draw(MAPS)


def test_rows_stand_in_the_order_of_the_network_each_with_its_scale(figure):
    (axes,) = figure.axes
    assert list(map(plain, words(axes))) == [
        *("Value", "Gradient of the loss"),
        *("images", "2 x 3, fed", "0", "1"),
        "not computed: no variable's gradient needs it",
        *("conv/kernel", "1 x 2, 1 in (down), 2 out (across)", "-2", "+2", "-1", "+1"),
        *("conv/Relu", "2 x 2, 2 channels", "0", "4", "-0.04", "+0.04"),
        *("dense/BiasAdd", "left: its softmax, the probabilities"),
        *("0", "12.5 %", "1", "62.5 %", "2", "25.0 % label"),
        *("+0.010", "+0.050", "-0.060"),
    ]


def test_what_flowed_is_on_the_left_and_its_gradient_beside_it(figure):
    (axes,) = figure.axes
    tiles = [item for item in axes.images if np.asarray(item.get_array()).shape[0] > 1]
    places = [(item.get_extent()[0] > 200, item.get_extent()[3]) for item in tiles]
    # Of the images that are fed, there is no gradient.
    assert [right for right, _ in places] == [False, False, True, False, True]
    # Below its name stand the picture, its scale and some air: 28 points and 11. The image is 2 x
    # 2.5 points high. A kernel's tile is an eighth of the column: 28 of its 30 pixels are an
    # element; two tiles with the gap between them are 121 wide.
    column = (7.5 * 72 - 2 * 0.12 * 72 - 22) / 2
    kernel = 28 + 5 + 11 + 28
    relu = kernel + column / 4 * 30 / 121 + 11 + 28
    assert [top for _, top in places] == pytest.approx([28, kernel, kernel, relu, relu])
    relu, gradient = (np.asarray(image.get_array()) for image in tiles[3:])
    assert (relu[1, 1].tolist(), gradient[1, 1].tolist()) == ([0, 0, 0], [255, 255, 255])


def bars(axes) -> list[tuple]:
    """(left end, length, colour, top) of every bar."""
    return [
        (bar.get_x(), bar.get_width(), to_hex(bar.get_facecolor()).upper(), bar.get_y())
        for bar in axes.patches
        if bar.get_height() == 11
    ]


def test_probabilities_are_bars_and_gradients_lie_to_either_side_of_a_line(figure):
    (axes,) = figure.axes
    shares, gradients = bars(axes)[:3], bars(axes)[3:]
    longest = shares[1][1]
    assert [round(long / longest, 6) for _, long, *_ in shares] == [0.2, 1.0, 0.4]
    assert [color for *_, color, _ in shares] == [style.PALE, style.BLUE, style.PALE]
    (line,) = axes.lines
    middle = line.get_xdata()[0]
    assert [round(long / gradients[2][1], 6) for _, long, *_ in gradients] == pytest.approx(
        [1 / 6, 5 / 6, 1], abs=1e-5
    )
    assert [left for left, *_ in gradients[:2]] == [middle, middle]
    assert gradients[2][0] + gradients[2][1] == pytest.approx(middle)
    assert [color for *_, color, _ in gradients] == [style.ORANGE, style.ORANGE, style.BLUE]
    first = shares[0][3]
    assert [top - first for *_, top in (*shares, *gradients)] == 2 * [0, 14, 28]
    assert line.get_ydata().tolist() == [first, first + 3 * 14 - 3]
    edge, column = 0.12 * 72, (7.5 * 72 - 2 * 0.12 * 72 - 22) / 2
    assert shares[0][0] == pytest.approx(edge + 8 + 5)  # after the number of the class
    assert longest == pytest.approx(column - (8 + 5) - 92)  # which leaves room for its own
    assert (middle, gradients[2][1]) == pytest.approx((edge + column * 1.5 + 22, column / 2 - 44))


def test_what_the_network_reads_and_what_it_is_are_bold(figure):
    bold = [text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold"]
    assert bold == ["images", "conv/kernel", "conv/Relu", "dense/BiasAdd",
                    "1", "62.5 %", "2", "25.0 % label"]  # fmt: skip


def test_title_and_caption_say_what_is_seen(figure):
    assert title(figure) == "The network reads the first image as 1, with 62.5 %; its label is 2"
    assert caption(figure) == (
        "This is the first step after initialisation, for the first image of its batch. It ran "
        "without graph passes, so that each node computes what the program defines. A kernel's "
        "gradient is for the whole batch. Each picture has its own scale: grey, with 0 in black; "
        "with both signs, blue is below 0, white is 0 and orange is above 0. The colour grows "
        "with the square root of the number, so that small numbers are visible."
    )


def test_without_label_gradients_or_probabilities_the_rest_is_drawn():
    alone = replace(SCORES, label=None, gradient=None, computed=True)
    drawn = feature_maps.draw(replace(MAPS, probabilities=alone))
    assert title(drawn) == "The network reads the first image as 1, with 62.5 %"
    assert words(drawn.axes[0])[-8:] == [
        *("left: probabilities", "0", "12.5 %", "1", "62.5 %", "2", "25.0 %"),
        "not computed: no variable's gradient needs it",
    ]
    nothing = feature_maps.draw(replace(MAPS, probabilities=None))
    assert title(nothing) == "What the network saw of the first image"
    assert "dense/BiasAdd" not in words(nothing.axes[0])


def test_what_is_cut_says_how_much_is_shown():
    relu = replace(RELU, shape=(2, 2, 64))
    kernel = replace(KERNELS, shape=(1, 2, 32, 64))
    texts = words(feature_maps.draw(replace(MAPS, maps=(IMAGES, kernel, relu))).axes[0])
    assert "2 x 2, 64 channels, 2 shown" in texts
    assert "1 x 2, 32 in (down), 64 out (across), 1 and 2 shown" in texts


def test_numbers_that_are_not_finite_are_spoken_of():
    bad = replace(RELU, gradient=np.full((2, 2, 2), np.nan))
    drawn = feature_maps.draw(replace(MAPS, maps=(IMAGES, bad)))
    assert "Vermilion: NaN or infinite." in caption(drawn)


def test_of_probabilities_that_are_not_finite_none_is_called_what_the_network_reads():
    scores = replace(
        SCORES, array=np.array([0.25, np.nan, 0.5]), gradient=np.array([np.inf, -1.0, np.nan])
    )
    drawn = feature_maps.draw(replace(MAPS, probabilities=scores))
    assert title(drawn) == (
        "What the network saw of the first image: its probabilities are not all finite"
    )
    texts = words(drawn.axes[0])
    assert [text.removesuffix(" label") for text in texts[-9:]] == [
        *("0", "25.0 %", "1", "nan", "2", "50.0 %"),
        *("+inf", "-1.0", "+nan"),
    ]
    lengths = [long for _, long, *_ in bars(drawn.axes[0])]
    assert [long / lengths[2] for long in lengths[:3]] == [0.5, 0, 1]
    assert [long / lengths[4] for long in lengths[3:]] == [0, 1, 0]


def test_for_a_phone_no_text_leaves_the_picture():
    long = replace(RELU, name="a/very/long/scope/of/a/model/with/blocks/in/blocks/conv2/Relu")
    with style.narrow():
        drawn = feature_maps.draw(replace(MAPS, maps=(IMAGES, KERNELS, long)))
    drawn.draw_without_rendering()
    for text in [*drawn.texts, *drawn.axes[0].texts]:
        box = text.get_window_extent()
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1, text.get_text()
    assert any("conv2/Relu" in words for words in map(str, words(drawn.axes[0])))


def test_maps_that_are_too_many_are_counted():
    def left_out(count):
        return list(feature_maps.left_out(replace(MAPS, left_out=count)))

    assert left_out(0) == []
    assert left_out(1) == ["1 more map is too many or too large to be drawn."]
    assert left_out(1_234) == ["1,234 more maps are too many or too large to be drawn."]
