"""The plot of buffers: its boxes, its names and every word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex

from tests.buffers_by_hand import BUFFERS, CONV, GRAD, KB, LOSS, MASK, NEVER
from tests.pictures import caption, ticks, title, words
from tests.records_by_hand import CPU_0
from tflab.exporters.plots import buffers, style
from tflab.exporters.plots.buffers import Part
from tflab.records.buffers import Amount


@pytest.fixture(scope="module")
def figure():
    return buffers.draw(BUFFERS)


def boxes(axes) -> list[tuple]:
    """(from, until, low, high, colour, hatch) of every box that is filled."""
    return [
        (
            *(box.get_x(), box.get_x() + box.get_width()),
            *(box.get_y(), box.get_y() + box.get_height()),
            *(to_hex(box.get_facecolor()).upper(), box.get_hatch()),
        )
        for box in axes.patches
        if box.get_fill()
    ]


def test_a_box_is_a_buffer_at_its_addresses_without_the_gaps_between_them(figure):
    (axes,) = figure.axes
    low, mask = 12, 12 + 96 * KB
    assert boxes(axes) == [
        (2_000, 11_000, low, mask, style.BLUE, None),  # conv
        (11_000, 23_000, low, mask, style.BLUE, None),  # tanh, in place
        (23_000, 40_000, low, mask, style.PALE, "///"),
        (40_000, 51_000, low, mask, style.ORANGE, None),
        (42_000, 62_000, mask, mask + 48 * KB, style.ORANGE, None),  # grads/conv_grad
        (13_000, 17_000, mask, mask + 32 * KB, style.BLUE, None),  # pool:1
        (17_000, 33_000, mask, mask + 32 * KB, style.PALE, "///"),
        (22_000, 22_500, 4, 12, style.BLUE, None),
        (21_000, 62_000, 0, 4, style.BLUE, None),  # loss is kept
    ]


def test_boxes_that_can_be_seen_have_a_white_frame(figure):
    (axes,) = figure.axes
    frames = [box for box in axes.patches if not box.get_fill()]
    assert len(frames) == 7
    assert {to_hex(frame.get_edgecolor()) for frame in frames} == {"#ffffff"}


def test_names_stand_in_the_longest_part_of_what_a_node_wrote(figure):
    (axes,) = figure.axes
    names = {text.get_text(): text for text in axes.texts}
    assert [name.replace("\n", "") for name in words(axes)] == [
        *("conv", "tanh", "grads/tanh_grad", "grads/conv_grad", "pool:1"),
    ]
    assert [names[name].get_position()[0] for name in ("conv", "tanh", "pool:1")] == [
        *(6_500, 31_500, 25_000),
    ]
    assert names["conv"].get_color() == "white"
    assert names["tanh"].get_color() == names["pool:1"].get_color() == style.INK


def test_no_name_reaches_out_of_its_box(figure):
    (axes,) = figure.axes
    inside = [box.get_window_extent() for box in axes.patches if box.get_fill()]
    for text in axes.texts:
        name = text.get_window_extent()
        assert any(
            box.x0 <= name.x0 and name.x1 <= box.x1 and box.y0 <= name.y0 and name.y1 <= box.y1
            for box in inside
        ), text.get_text()


def test_a_name_stands_upright_where_only_that_fits():
    late = replace(CONV, tensor="a_long_name", in_place=(), from_ns=49_000, backward_ns=None)
    wide = replace(MASK, from_ns=0)
    (axes,) = buffers.draw(replace(BUFFERS, buffers=(late, wide))).axes
    angles = {text.get_text(): text.get_rotation() for text in axes.texts}
    assert angles == {"a_long_name": 90, "pool:1": 0}


def test_a_box_is_measured_in_points_of_the_page(figure):
    (axes,) = figure.axes
    part = Part("conv", "forward", 0, 31_000, 12, 12 + 36 * KB, named=True)
    width, height = (side / axes.figure.dpi * 72 for side in axes.bbox.size)
    expected = (width / 2, height * 36 * KB / (144 * KB + 12))
    assert buffers.in_points(axes, part) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "room", "lines", "expected"),
    [
        ("gradients/conv1/Relu_grad/ReluGrad", 400, 1, "gradients/conv1/Relu_grad/ReluGrad"),
        ("gradients/conv1/Relu_grad/ReluGrad", 70, 4, "gradients/\nconv1/\nRelu_grad/\nReluGrad"),
        ("gradients/conv1/Relu_grad/ReluGrad", 130, 1, "gradients/conv1/ReluGrad"),
        ("gradients/conv1/Relu_grad/ReluGrad", 60, 1, "ReluGrad"),
        ("gradients/conv1/Relu_grad/ReluGrad", 30, 9, ""),
        ("MatMul_1", 400, 0, ""),
        ("MatMul_1", 40, 5, ""),  # never within a word
    ],
)
def test_the_longest_form_of_a_name_that_fits_is_taken(name, room, lines, expected):
    assert buffers.fitting(name, room, lines) == expected


def test_the_axes_are_times_of_the_step_and_bytes_of_addresses(figure):
    (axes,) = figure.axes
    assert axes.get_xlim() == (0, 62_000)
    assert axes.get_ylim() == (0, 144 * KB + 12)
    assert ticks(axes.xaxis) == [
        *((0, "0 us"), (20_000, "20 us"), (40_000, "40 us"), (60_000, "60 us")),
    ]
    assert ticks(axes.yaxis) == [
        *((0, "0 KiB"), (50 * KB, "50 KiB"), (100 * KB, "100 KiB")),
    ]
    assert axes.get_xlabel() == "time since the step's start"
    assert axes.get_ylabel() == "addresses (gaps omitted)"


def test_the_words_above_say_how_to_read_it(figure):
    assert title(figure) == "176 KiB in 5 buffers, at 144 KiB of addresses"
    assert caption(figure) == (
        "Step 7. Each box is a buffer: its width is its lifetime, its height its size. The next "
        "box at the same height reuses its addresses. Blue: written by forward ops. Hatched: "
        "only the backward pass still needs it. Orange: written by gradients or updates. A line "
        "within a box: an op worked in place, which saved 192 KiB."
    )


def test_the_words_above_an_inference_say_nothing_of_gradients():
    none = Amount(0, 0)
    forward = replace(BUFFERS, buffers=(LOSS,), for_backward=none, in_place=none)
    assert buffers.caption(forward, 1).endswith(" Blue: written by forward ops.")
    assert buffers.caption(replace(forward, buffers=(LOSS, MASK)), 1).endswith(
        "The largest 1 of 2 are drawn."
    )


def test_of_very_many_buffers_the_largest_are_drawn(monkeypatch):
    monkeypatch.setattr(buffers, "MANY", 2)
    drawn = buffers.draw(BUFFERS)
    assert len(boxes(drawn.axes[0])) == 5
    assert caption(drawn).endswith("The largest 2 of 5 are drawn.")


def test_without_buffers_a_sentence_says_so():
    drawn = buffers.draw(replace(BUFFERS, buffers=()))
    assert (drawn.axes, title(drawn)) == ([], "No op requested memory")
    assert caption(drawn) == "Step 7 has no buffers."


def parts(item) -> list[Part]:
    return list(buffers.parts(item, 100, 70_000))


def test_the_parts_of_a_buffer_are_what_nodes_wrote_one_after_the_other():
    low, high = 100, 100 + 96 * KB
    assert parts(CONV) == [
        Part("conv", "forward", 2_000, 11_000, low, high, True),
        Part("tanh", "forward", 11_000, 23_000, low, high, False),
        Part("tanh", "waiting", 23_000, 40_000, low, high, True),
        Part("grads/tanh_grad", "backward", 40_000, 51_000, low, high, True),
    ]
    assert parts(GRAD) == [
        Part("grads/conv_grad", "backward", 42_000, 62_000, 100, 100 + 48 * KB, True)
    ]
    assert parts(LOSS) == [Part("loss", "forward", 21_000, 70_000, 100, 104, True)]


def test_what_is_needed_for_the_backward_pass_from_the_start_has_no_other_part():
    early = replace(MASK, backward_ns=13_000)
    assert parts(early) == [Part("pool:1", "waiting", 13_000, 33_000, 100, 100 + 32 * KB, True)]


def test_a_buffer_of_no_length_is_drawn_all_the_same():
    assert parts(replace(NEVER, until_ns=22_000)) == [
        Part("shape", "forward", 22_000, 22_000, 100, 108, True)
    ]


def test_memory_of_two_machines_is_stacked():
    there = replace(MASK, device=CPU_0.replace("task:0", "task:1"), address=0x10)
    below = buffers.placed((CONV, MASK, GRAD, there))
    assert list(map(below, (CONV, MASK, GRAD, there))) == [0, 96 * KB, 96 * KB, 144 * KB]
