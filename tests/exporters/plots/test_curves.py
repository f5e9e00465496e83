"""The plot of a training: every point, tick and word, worked out by hand."""

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from tests.pictures import caption, points, ticks, title
from tflab.exporters.plots import curves, style
from tflab.records.trained import Epoch, History, TrainingStep

# 2 epochs of 3 steps: the test is right more often than the training, and its loss is another
HISTORY = History(
    model="lenet",
    data="MNIST",
    batch_size=16,
    seed=7,
    steps=(
        TrainingStep(1, loss=2.4, accuracy=0.125, rate=0.05),
        TrainingStep(2, loss=1.5, accuracy=0.25, rate=0.04),
        TrainingStep(3, loss=1.2, accuracy=0.375, rate=0.03),
        TrainingStep(4, loss=0.9, accuracy=0.5, rate=0.02),
        TrainingStep(5, loss=0.8, accuracy=0.625, rate=0.01),
        TrainingStep(6, loss=0.6, accuracy=0.6875, rate=0.005),
    ),
    epochs=(
        Epoch(1, 3, 1.7, 0.3, 1.1, 0.4, seconds=2.0, images_per_second=24.0),
        Epoch(2, 6, 0.77, 0.6, 0.55, 0.7375, seconds=1.5, images_per_second=32.0),
    ),
    interrupted=False,
)


@pytest.fixture(scope="module")
def figure():
    return curves.draw(HISTORY)


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_the_upper_panel_has_the_loss_of_every_step_and_of_every_test(figure):
    above, _ = figure.axes
    train, test = above.lines
    assert points(train) == [(1, 2.4), (2, 1.5), (3, 1.2), (4, 0.9), (5, 0.8), (6, 0.6)]
    assert points(test) == [(3, 1.1), (6, 0.55)]
    assert legend(above) == ["training 0.6", "test 0.55"]
    assert (above.get_ylabel(), above.get_xlabel()) == ("loss", "")


def test_the_lower_panel_has_the_right_answers_of_every_step_and_of_every_test(figure):
    _, below = figure.axes
    train, test = below.lines
    assert points(train) == [
        (1, 0.125),
        (2, 0.25),
        (3, 0.375),
        (4, 0.5),
        (5, 0.625),
        (6, 0.6875),
    ]
    assert points(test) == [(3, 0.4), (6, 0.7375)]
    assert legend(below) == ["training 68.75 %", "test 73.75 %"]
    assert below.get_ylabel() == "right answers"
    assert below.get_xlabel() == "epoch (the first is 3 steps of 16 rows)"


def test_training_and_test_have_a_colour_and_a_line_style_each(figure):
    for axes in figure.axes:
        looks = [(to_hex(line.get_color()).upper(), line.get_linestyle()) for line in axes.lines]
        assert looks == [(style.BLUE, "-"), (style.VERMILION, "--")]


def test_ticks_are_epochs_losses_and_shares(figure):
    above, below = figure.axes
    for axes in figure.axes:
        assert axes.get_xlim() == (0, 6)
        assert ticks(axes.xaxis) == [(3, "1"), (6, "2")]
    assert above.get_ylim()[0] == 0 and above.get_ylim()[1] > 2.4
    assert below.get_ylim() == (0, pytest.approx(1.04))
    assert (above.get_yscale(), below.get_yscale()) == ("linear", "linear")
    assert [label for _, label in ticks(above.yaxis)] == ["0", "0.5", "1", "1.5", "2"]
    assert [label for _, label in ticks(below.yaxis)] == [
        *("0 %", "20 %", "40 %", "60 %", "80 %", "100 %")
    ]


def test_title_and_caption_say_what_is_drawn(figure):
    assert title(figure) == "lenet is right on 73.75 % of the test rows after 2 epochs"
    assert caption(figure) == (
        "Data: MNIST. Line: loss on the batch of each step, before its update (each step). "
        "Points: all test data, with the weights at the end of an epoch."
    )


# 450 steps in blocks of 3: each of a low, a middle and a high one
BLOCKS = replace(
    HISTORY,
    steps=tuple(
        TrainingStep(n, loss=(1.0, 2.0, 6.0)[n % 3], accuracy=(0.6, 0.7, 0.95)[n % 3], rate=0.1)
        for n in range(1, 451)
    ),
    epochs=(Epoch(1, 450, 3.0, 0.75, 2.5, 0.8, 2.0, 24.0),),
    interrupted=True,
)


def test_a_block_is_its_mean_at_its_middle_step():
    drawn = curves.draw(BLOCKS)
    for axes, mean in zip(drawn.axes, (3.0, 0.75), strict=True):
        line = points(axes.lines[0])
        assert [step for step, _ in line] == list(range(2, 450, 3))
        assert [value for _, value in line] == 150 * [pytest.approx(mean)]
    assert caption(drawn) == (
        "Data: MNIST. Line: loss on the batch of each step, before its update (mean of 3 steps). "
        "Points: all test data, with the weights at the end of an epoch. The training was "
        "interrupted."
    )
    assert drawn.axes[1].get_ylim() == pytest.approx((0.7, 1 + 0.04 * 0.3))
    assert curves.means([(1, 1.0), (2, 3.0), (4, 11.0), (6, 21.0), (8, 31.0)], 2) == [
        (1.5, 2.0),
        (6, 21.0),
    ]


def test_before_the_first_test_the_axis_counts_steps():
    drawn = curves.draw(replace(HISTORY, epochs=()))
    above, below = drawn.axes
    assert (len(above.lines), len(below.lines)) == (1, 1)
    assert legend(below) == ["training 68.75 %"]
    assert below.get_xlabel() == "step (of 16 rows)"
    assert ticks(below.xaxis) == [(n, str(n)) for n in range(7)]
    assert title(drawn) == "lenet after 6 steps, before its first test"
    assert caption(drawn) == (
        "Data: MNIST. Line: loss on the batch of each step, before its update (each step)."
    )


def test_of_many_epochs_some_have_a_tick():
    epochs = tuple(Epoch(n, 3 * n, 1, 0.5, 1, 0.5, 1, 48) for n in range(1, 26))
    steps = tuple(TrainingStep(n, 1.0, 0.5, 0.1) for n in range(1, 76))
    _, below = curves.draw(replace(HISTORY, steps=steps, epochs=epochs)).axes
    assert ticks(below.xaxis) == [(9 * n, str(3 * n)) for n in range(1, 9)]


def test_of_losses_far_apart_the_axis_is_logarithmic_with_ticks_at_1_2_and_5():
    steps = (replace(HISTORY.steps[0], loss=30.0), *HISTORY.steps[1:])
    above, _ = curves.draw(replace(HISTORY, steps=steps)).axes
    assert above.get_yscale() == "log"
    assert [label for _, label in ticks(above.yaxis)] == ["0.5", "1", "2", "5", "10", "20"]


def test_an_untrained_model_has_a_sentence():
    drawn = curves.draw(replace(HISTORY, steps=(), epochs=()))
    assert (drawn.axes, title(drawn)) == ([], "Nothing was learned")
    assert caption(drawn) == "lenet has no training steps."


@pytest.mark.parametrize(
    ("losses", "logarithmic"),
    [((1, 20), False), ((1, 20.1), True), ((0, 30), False), ((-1, 30), False), ((), False)],
)
def test_the_axis_of_losses_is_logarithmic_above_a_ratio_of_twenty(losses, logarithmic):
    assert curves.is_logarithmic(list(enumerate(losses))) is logarithmic


@pytest.mark.parametrize(
    ("train", "test", "edge"),
    [
        ((0.9, 0.9), (), 0.85),
        ((0.9, 0.9), (0.72, 0.95), 0.7),
        ((0.9, 0.9), (0.7,), 0.65),
        ((0.55, 0.55), (), 0.0),
        ((0.56, 0.56), (), 0.55),
        ((0.6, 0.8), (), 0.6),
    ],
)
def test_the_axis_of_right_answers_begins_at_a_round_share_below_them(train, test, edge):
    """The lower tenth of 0.6 and 0.8 is 0.62."""
    points_of = [list(enumerate(values)) for values in (train, test)]
    assert curves.lower_edge(*points_of) == pytest.approx(edge)


def test_twelve_epochs_have_a_tick_each_and_thirteen_every_second():
    shown = []
    for count in (12, 13):
        axes = Figure().subplots()
        epochs = tuple(Epoch(n, n, 1, 0.5, 1, 0.5, 1, 48) for n in range(1, count + 1))
        steps = tuple(TrainingStep(n, 1.0, 0.5, 0.1) for n in range(1, count + 1))
        curves.epochs_axis(axes, replace(HISTORY, steps=steps, epochs=epochs, batch_size=1))
        shown.append([label for _, label in ticks(axes.xaxis)])
    assert shown == [[str(n) for n in range(1, 13)], [str(n) for n in range(2, 13, 2)]]
    assert axes.get_xlabel() == "epoch (the first is 1 step of 1 row)"


def test_steps_on_the_axis_are_whole_numbers():
    axes = Figure().subplots()
    curves.epochs_axis(axes, replace(HISTORY, steps=HISTORY.steps[:1], epochs=(), batch_size=1))
    assert axes.get_xlim() == (0, 1)
    assert [place for place, _ in ticks(axes.xaxis)] == [0, 1]
    assert axes.get_xlabel() == "step (of 1 row)"
    steps = tuple(TrainingStep(n, 1.0, 0.5, 0.1) for n in range(1, 18))
    curves.epochs_axis(axes, replace(HISTORY, steps=steps, epochs=()))
    assert axes.get_xlim() == (0, 17)
    assert [place for place, _ in ticks(axes.xaxis)] == [0, 3, 6, 9, 12, 15]


def test_a_loss_that_is_no_number_is_left_out_and_counted():
    steps = (HISTORY.steps[0], replace(HISTORY.steps[1], loss=float("nan")), *HISTORY.steps[2:])
    drawn = curves.draw(replace(HISTORY, steps=steps))
    assert [step for step, _ in points(drawn.axes[0].lines[0])] == [1, 3, 4, 5, 6]
    assert caption(drawn).endswith("1 step had a loss that is not finite, and cannot be drawn.")


def test_numbers_have_three_digits_and_shares_two_decimals_without_zeros_at_the_end():
    assert [curves.plain(value) for value in (2.3456, 0.5, 100.0)] == ["2.35", "0.5", "100"]
    assert [curves.percent(share) for share in (0.9905, 0.905, 1.0, 0.12345, 0.0)] == [
        *("99.05 %", "90.5 %", "100 %", "12.35 %", "0 %")
    ]


def test_the_headline_is_the_last_test_or_that_there_was_none():
    assert curves.headline(HISTORY) == ("lenet is right on 73.75 % of the test rows after 2 epochs")
    assert curves.headline(replace(HISTORY, epochs=HISTORY.epochs[:1])) == (
        "lenet is right on 40 % of the test rows after 1 epoch"
    )
    assert curves.headline(replace(HISTORY, epochs=())) == (
        "lenet after 6 steps, before its first test"
    )


def test_a_model_that_classifies_nothing_has_one_panel_and_its_loss_in_the_headline():
    nan = float("nan")
    steps = tuple(replace(step, accuracy=nan) for step in HISTORY.steps)
    epochs = tuple(
        replace(epoch, train_accuracy=nan, test_accuracy=nan) for epoch in HISTORY.epochs
    )
    figure = curves.draw(replace(HISTORY, steps=steps, epochs=epochs))
    (axes,) = figure.axes
    assert axes.get_ylabel() == "loss"
    assert axes.get_xlabel().startswith("epoch")
    last = HISTORY.epochs[-1]
    assert figure.get_label().startswith(
        f"{HISTORY.model}: a test loss of {last.test_loss:.3g} after {last.epoch} epoch"
    )
    assert "right" not in figure.get_label()
