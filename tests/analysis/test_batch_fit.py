"""Batch fit: the line through the times of a row at each batch size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records_by_hand import op_at_size
from tflab.analysis import batch_fit
from tflab.records.measured import Fit, StepTimes
from tflab.records.timed import Spread

EXACT = pytest.approx(0, abs=1e-6)


def steps(count):
    spread = Spread(100, 100, 100)
    return StepTimes(count, 640, spread, spread, 100, 100)


def fitted(cells, by="op"):
    """The fit of a row of (calls, total time, steps) at each batch size."""
    rows = {n: op_at_size(c, total, total / c, 0, 1, 0, None) for n, (c, total, _) in cells.items()}
    return batch_fit.fit(rows, {size: steps(count) for size, (*_, count) in cells.items()}, by)


def of_times(times):
    """The fit of a row that takes this long in each of ten calls and steps."""
    return fitted({size: (10, 10 * ns, 10) for size, ns in times.items()})


LINES = st.integers(0, 10**9), st.integers(1, 10**7)  # fixed cost, cost an image
SEVERAL = st.lists(st.integers(1, 512), min_size=3, max_size=5, unique=True)


@settings(max_examples=30)
@given(*LINES, SEVERAL)
def test_a_line_is_found_again(fixed, per_image, sizes):
    fit = of_times({size: fixed + per_image * size for size in sizes})
    largest = fixed + per_image * max(sizes)
    assert fit.fixed_ns == pytest.approx(fixed, abs=1e-6 * largest)
    assert fit.per_image_ns == pytest.approx(per_image, abs=1e-6 * largest)
    assert fit.error == EXACT


@settings(max_examples=30)
@given(st.dictionaries(st.integers(1, 512), st.integers(1, 10**9), min_size=3, max_size=5))
def test_no_line_near_a_fit_has_smaller_squares_of_relative_errors(times):
    fit = batch_fit.line(times)

    def squares(fixed, slope):
        return sum(((fixed + slope * size - ns) / ns) ** 2 for size, ns in times.items())

    least, most = squares(fit.fixed_ns, fit.per_image_ns), max(times.values())
    for other in (1e-3 * most, -1e-3 * most):
        assert least <= squares(fit.fixed_ns + other, fit.per_image_ns) * (1 + 1e-9)
        assert least <= squares(fit.fixed_ns, fit.per_image_ns + other) * (1 + 1e-9)
    errors = [abs(fit.fixed_ns + fit.per_image_ns * n - ns) / ns for n, ns in times.items()]
    assert fit.error == pytest.approx(max(errors), rel=1e-3, abs=1e-9)


def test_the_error_is_the_largest_relative_one():
    fit = of_times({1: 100, 2: 100, 3: 200})
    # The line is 800/9, 1100/9, 1400/9: off by a ninth of 100, by 2/9 of 100 and by 2/9 of 200.
    assert fit == Fit(pytest.approx(500 / 9), pytest.approx(100 / 3), pytest.approx(2 / 9))


CELLS = {1: (4, 600, 2), 16: (8, 18_000, 4), 64: (6, 53_820, 3)}  # two calls in each step


@pytest.mark.parametrize(
    ("by", "unit", "times"),
    [("op", "call", 1), ("node", "call", 1), ("layer", "step", 2), ("line", "step", 2)],
)
def test_a_fit_of_one_kind_of_op_is_of_a_call_and_of_others_of_a_step(by, unit, times):
    fit = Fit(pytest.approx(10 * times), pytest.approx(140 * times), EXACT)
    assert (fitted(CELLS, by), batch_fit.unit(by)) == (fit, unit)
    row = op_at_size(8, 18_000, 2_250, 0, 1, 0, None)
    assert batch_fit.unit_ns(row, steps(4), by) == 2_250 * times


@pytest.mark.parametrize(
    "times",
    [
        *({size: 5_000 + rise * size for size in (1, 16, 64)} for rise in (-20, 0, 0.4)),
        *({}, {16: 100}, {1: 100, 16: 200}, {1: 0, 16: 100, 64: 400}),  # fewer than three sizes
    ],
)
def test_a_line_that_falls_or_is_level_or_is_of_few_sizes_is_none(times):
    assert of_times(times) is None
