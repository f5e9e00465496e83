"""Over time: a point for each measurement of the step and of the largest rows, by hand."""

from dataclasses import replace
from math import inf

import pytest

from tests.measurements_by_hand import COMPARISON, changed, measurement
from tests.records_by_hand import BUSY
from tflab.compare import saved_measurements
from tflab.measurements import contrast
from tflab.records.measurements import Point

FIRST = measurement()
LAST = measurement((120.0, 121.2, 118.8), when="2026-03-09T07:05:00Z")
BETWEEN = measurement((150.0,), when="2026-03-05T09:00:00Z")
ALL = {"first": FIRST, "last": LAST, "between": BETWEEN}


def lines(measurements):
    return saved_measurements.lines(measurements, contrast.contrast(measurements))


def test_a_line_has_a_point_for_each_measurement_in_the_order_of_their_time():
    found = lines(ALL)
    assert found.measurements == ("first", "between", "last")
    assert found.when == (FIRST.when, BETWEEN.when, LAST.when)
    assert [(line.name, line.batch_size) for line in found.lines] == [
        ("step, untraced", 4),
        ("Conv2D", 4),
        ("MaxPool", 4),
        ("step, untraced", 16),
        ("Conv2D", 16),
        ("MaxPool", 16),
    ]
    step, conv, *_ = found.lines
    assert [point.processes for point in step.points] == [5, 1, 3]
    assert [round(point.ns) for point in step.points] == [99_997, 150_000, 119_996]
    assert [round(point.ns) for point in conv.points] == [59_998, 90_000, 71_998]
    low, high = step.points[2].low_ns, step.points[2].high_ns
    assert low < 119_996 < high
    assert step.points[1] == Point(pytest.approx(150_000), 0, inf, 1)
    assert (step.verdict.word, round(step.verdict.ratio, 3)) == ("slower", 1.2)


def test_an_op_that_did_not_run_has_no_point():
    without = tuple(
        replace(process, rows_ns={4: {"Conv2D": 5.0}, 16: {"Conv2D": 5.0}})
        for process in LAST.observed.processes
    )
    last = replace(LAST, observed=replace(LAST.observed, processes=without))
    found = lines({"a": FIRST, "b": last})
    pool = next(line for line in found.lines if line.name == "MaxPool")
    assert (pool.points[1], pool.verdict) == (None, None)


def test_on_a_busy_machine_nothing_is_concluded():
    found = lines({"a": FIRST, "b": changed(LAST, quality=BUSY)})
    assert {line.verdict.word for line in found.lines} == {"withheld"}


def test_where_the_first_file_is_the_latest_nothing_is_compared_with_it():
    found = lines({"last": LAST, "first": FIRST})
    assert found.measurements == ("first", "last")
    assert {line.verdict for line in found.lines} == {None}


def test_only_the_rows_that_cost_most_have_lines():
    def many(rows):
        return tuple(replace(row, key=f"{row.key}{n}") for row in rows for n in range(4))

    processes = tuple(
        replace(
            process,
            rows_ns={
                size: {f"{key}{n}": ns for key, ns in rows.items() for n in range(4)}
                for size, rows in process.rows_ns.items()
            },
        )
        for process in FIRST.observed.processes
    )
    tables = {size: many(rows) for size, rows in COMPARISON.tables.items()}
    item = changed(FIRST, rows=many(COMPARISON.rows), tables=tables)
    item = replace(item, observed=replace(item.observed, processes=processes))
    found = lines({"a": item, "b": item})
    assert [line.name for line in found.lines if line.batch_size == 4] == [
        *("step, untraced", "Conv2D0", "Conv2D1", "Conv2D2", "Conv2D3", "MaxPool0"),
    ]
