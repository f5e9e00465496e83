"""Lettering: names and numbers as a picture writes them, cut to the points that there are."""

import pytest

from tflab.exporters.plots import style

GRADIENT = "gradients/conv2/Conv2D_grad/Conv2DBackpropInput"
SPACE = "\N{NO-BREAK SPACE}"


def test_a_name_of_thirty_letters_is_whole_and_a_longer_one_loses_its_outer_scopes():
    assert style.short_name("a" * 30) == "a" * 30
    assert style.short_name("scope/" * 20 + "Relu", 15) == "…/scope/Relu"
    assert style.short_name(GRADIENT) == "…/Conv2DBackpropInput"


def test_a_last_part_that_is_too_long_is_cut():
    assert style.short_name("a" * 20 + "b" * 11) == "a" * 14 + "…" + "a" * 4 + "b" * 11
    assert style.short_name("s/" + "a" * 12, 9) == "…aaaaaaaa"


def test_a_name_has_one_line_and_no_characters_that_a_font_cannot_hold():
    assert style.short_name("conv\n2\x00") == r"conv\x0a2\x00"
    assert style.distinct_names(["a\u202e", "a"], 16) == [r"a\u202e", "a"]


def test_names_that_would_look_the_same_get_more_letters():
    names = [f"gradients/conv{n}/Conv2D_grad/Conv2DBackpropInput" for n in (1, 2)]
    assert style.distinct_names(names, 16) == [
        "…conv1/…/Conv2DBackpropInput",
        "…conv2/…/Conv2DBackpropInput",
    ]
    assert style.distinct_names(["conv1/a", "conv1/a"], 5) == ["…/a", "…/a"]


def test_names_are_numbered_where_twice_the_letters_do_not_tell_them_apart():
    names = ["a" * 20 + letter + "a" * 20 for letter in "bc"]
    assert style.distinct_names(names, 5) == ["aaaaaa…#1", "aaaaaa…#2"]


def test_a_text_is_wrapped_between_words_but_not_between_a_number_and_its_unit():
    """A letter of DejaVu Sans at 10 points is between 2.8 and 9.9 points wide."""
    words = "A step of 2.00 ms: 2 ops of 5"
    step = style.text_width("A step of", 10)
    assert style.wrapped(words, step + 1, 10) == [
        *("A step of", f"2.00{SPACE}ms:", f"2{SPACE}ops of", "5")
    ]
    assert style.wrapped(words, step, 10)[0] == "A step"
    assert style.wrapped(words, 10_000, 10) == [f"A step of 2.00{SPACE}ms: 2{SPACE}ops of 5"]
    assert style.wrapped(words, 1, 10) == [
        *("A", "step", "of", f"2.00{SPACE}ms:", f"2{SPACE}ops", "of", "5")
    ]
    assert style.wrapped("", 100, 10) == [""]


def test_bold_words_need_more_room():
    room = style.text_width("A step of", 10) + 1
    assert style.wrapped("A step of", room, 10) == ["A step of"]
    assert style.wrapped("A step of", room, 10, "bold") == ["A step", "of"]
    assert style.wrapped("A step of", room, 11) == ["A step", "of"]


def test_the_essential_of_a_name_leaves_out_the_scopes_within_its_layer():
    assert style.without_inner_scopes(GRADIENT) == "gradients/conv2/Conv2DBackpropInput"
    assert style.without_inner_scopes("conv1/Relu") == "conv1/Relu"
    assert style.without_inner_scopes("x") == "x"


def test_the_essential_of_a_gradient_is_not_that_of_a_node_of_its_layer():
    assert style.without_inner_scopes("gradients/mul/x_grad/Mul") == "gradients/mul/Mul"
    assert style.without_inner_scopes("mul/Mul") == "mul/Mul"


@pytest.mark.parametrize(
    ("room", "lines"),
    [
        (300, [GRADIENT]),
        (200, ["gradients/conv2/Conv2D_grad/", "Conv2DBackpropInput"]),
        (100, ["gradients/conv2/", "Conv2D_grad/", "Conv2DBackpropInput"]),
        (80, ["gradients/conv2/", "Conv2D_grad/", "Conv2DBackprop", "Input"]),
        (70, []),
    ],
)
def test_a_name_is_folded_between_its_scopes_and_where_need_be_between_their_words(room, lines):
    assert style.folded_name(GRADIENT, room, 8.5) == lines


def test_a_part_that_is_exactly_as_wide_as_the_room_fits():
    name = "conv1/Relu"
    assert style.folded_name(name, style.text_width(name, 9), 9) == [name]
    assert style.folded_name(name, style.text_width("conv1/", 9), 9) == ["conv1/", "Relu"]
    assert style.folded_name("batch_norm", style.text_width("batch_", 9), 9) == ["batch_", "norm"]
    assert style.folded_name("Relu", style.text_width("Relu", 9) - 0.1, 9) == []


def test_ticks_are_round_times():
    times = {1: "1 ns", 1_000: "1 us", 2_500: "2.5 us", 10**6: "1 ms", 2.5e9: "2.5 s"}
    assert {ns: style.time_tick(ns) for ns in times} == times
    assert style.time_tick(200_000, 3) == "200 us"
    assert style.without_zeros("10.0 KiB") == "10 KiB"
