"""Batch fit: the line through the times of a row at each batch size."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records_by_hand import op_at_size
from tflab.analysis import batch_fit
from tflab.records.measured import Fit, OpStats, StepTimes
from tflab.records.timed import Spread

CALLS = 10  # of a row, and steps


def steps_of(*sizes: int) -> dict[int, StepTimes]:
    spread = Spread(100, 100, 100)
    return {size: StepTimes(CALLS, 640, spread, spread, 100, 100) for size in sizes}


LINES = st.integers(0, 10**9), st.integers(1, 10**7)  # fixed cost, cost an image
SEVERAL = st.lists(st.integers(1, 512), min_size=3, max_size=5, unique=True)


def measured(times: dict[int, float]) -> dict[int, OpStats]:
    """Cells of a row that takes this long in a step of each batch size."""
    return {
        size: op_at_size(CALLS, round(CALLS * ns), ns, ns, 0.5, requested_bytes=0, gflops=None)
        for size, ns in times.items()
    }


@settings(max_examples=30)
@given(*LINES, SEVERAL)
def test_a_line_is_found_again(fixed, per_image, sizes):
    cells = measured({size: fixed + per_image * size for size in sizes})
    fit = batch_fit.fit(cells, steps_of(*sizes))
    largest = fixed + per_image * max(sizes)
    assert fit.fixed_ns == pytest.approx(fixed, abs=1e-6 * largest)
    assert fit.per_image_ns == pytest.approx(per_image, abs=1e-6 * largest)
    assert fit.error == pytest.approx(0, abs=1e-6)


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
    fit = batch_fit.fit(measured({1: 100, 2: 100, 3: 200}), steps_of(1, 2, 3))
    # The line is 800/9, 1100/9, 1400/9: off by a ninth of 100, by 2/9 of 100 and by 2/9 of 200.
    assert fit == Fit(pytest.approx(500 / 9), pytest.approx(100 / 3), pytest.approx(2 / 9))


def test_a_fit_is_of_a_step_however_many_calls_and_steps_there_were():
    cells = {
        1: op_at_size(4, 600, 150, 0, 1, 0, None),
        16: op_at_size(8, 18_000, 2_250, 0, 1, 0, None),
        64: op_at_size(6, 53_820, 8_970, 0, 1, 0, None),
    }
    spread = Spread(1, 1, 1)
    by_size = {n: StepTimes(s, 1, spread, spread, 1, 1) for n, s in ((1, 2), (16, 4), (64, 3))}
    exact = pytest.approx(0, abs=1e-9)
    of_steps = Fit(pytest.approx(20), pytest.approx(280), exact)
    assert batch_fit.fit(cells, by_size, "layer") == of_steps
    assert batch_fit.fit(cells, by_size, "line") == of_steps


@pytest.mark.parametrize("by", ["op", "node"])
def test_a_fit_of_one_kind_of_op_is_of_a_call(by):
    cells = {n: op_at_size(8, 99, 500 + 30 * n, 0, 1, 0, None) for n in (1, 16, 64)}
    spread = Spread(1, 1, 1)
    by_size = dict.fromkeys(cells, StepTimes(4, 1, spread, spread, 1, 1))
    exact = pytest.approx(0, abs=1e-9)
    assert batch_fit.fit(cells, by_size, by) == Fit(pytest.approx(500), pytest.approx(30), exact)


@pytest.mark.parametrize("rise", [-20, 0, 0.4])
def test_a_line_that_falls_or_is_level_is_none(rise):
    assert (
        batch_fit.fit(measured({n: 5_000 + rise * n for n in (1, 16, 64)}), steps_of(1, 16, 64))
        is None
    )


@pytest.mark.parametrize("times", [{}, {16: 100}, {1: 100, 16: 200}, {1: 0, 16: 100, 64: 400}])
def test_fewer_than_three_batch_sizes_have_no_fit(times):
    assert batch_fit.fit(measured(times), steps_of(1, 16, 64)) is None


def test_rows_of_one_kind_of_op_are_told_by_a_call_and_others_by_a_step():
    row = op_at_size(8, 18_000, 2_250, 0, 1, 0, None)
    spread = Spread(1, 1, 1)
    steps = StepTimes(4, 1, spread, spread, 1, 1)
    assert [batch_fit.unit(by) for by in ("op", "node", "layer", "line")] == [
        *("call", "call", "step", "step")
    ]
    assert batch_fit.unit_ns(row, steps, "op") == 2_250
    assert batch_fit.unit_ns(row, steps, "line") == 4_500
