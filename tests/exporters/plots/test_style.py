"""Style: the sheet of a picture, its letters and round ticks, in inches and points."""

import pytest
from matplotlib.figure import Figure

from tests.exporters.plots.pictures import caption, ticks, title
from tflab import units
from tflab.exporters.plots import style

WORDS = "Ops run in parallel, so all of it may be more than the wall time."


def test_long_words_are_wrapped_within_the_margins_and_the_sheet_grows():
    figure, _ = style.canvas(WORDS * 2, WORDS * 4, 3.0)
    weights = [line.get_weight() for line in figure.texts]
    assert weights == ["bold"] * 3 + ["normal"] * 3
    assert (title(figure), caption(figure)) == (WORDS * 2, WORDS * 4)
    assert max(len(line.get_text()) for line in figure.texts[:3]) <= 65
    head = 0.12 + 1.4 * (3 * 13 + 3 * 9.5) / 72 + 0.08
    assert figure.get_figheight() == pytest.approx(head + 3.0)
    assert style.wrapped("takes 12 ms", 8) == ["takes", "12\N{NO-BREAK SPACE}ms"]


def test_a_message_has_no_panel_and_no_character_that_a_font_cannot_hold():
    figure = style.message("conv\n1", "Step 9\x00.")
    assert (figure.axes, title(figure), caption(figure)) == ([], r"conv\x0a1", r"Step 9\x00.")
    assert figure.get_figheight() == pytest.approx(2 * 0.12 + 1.4 * 22.5 / 72 + 0.08)


@pytest.mark.parametrize(
    ("limit", "words", "expected"),
    [
        (4.5e6, units.time, [(n * 10**6, f"{n} ms") for n in range(5)]),
        (1, units.time, [(pytest.approx(n / 5), f"{n / 5:g} ns") for n in range(6)]),
        (600e3, units.time, [(n * 1000, f"{n} us") for n in (0, 200, 400, 600)]),
        (1.2e3, units.time, [(n * 250, f"{n / 4:g} us") for n in range(5)]),
        (2.5 * 2**20, units.size, [(n * 2**19, f"{n / 2:g} MiB") for n in range(6)]),
    ],
)
def test_ticks_are_round_numbers_of_one_unit_from_0_to_the_limit(limit, words, expected):
    axes = Figure().subplots()
    axes.set_xlim(0, 2 * limit)
    style.ruled(axes.xaxis, limit, words)
    assert ticks(axes.xaxis) == expected


def test_a_chinese_line_ends_after_a_comma_or_a_stop_and_gets_no_space():
    one, two, three = (
        "批大小从 1 增加到 64\uff1a",
        "单步耗时变为 4.72 倍\uff0c",
        "每秒处理 3 张\u3002",
    )
    lines = style.wrapped(one + two + three, 56)
    assert [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] == [one + two, three]
