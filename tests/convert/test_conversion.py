"""Conversion: what recorded steps add up to, by hand, and all that is shown and written of it."""

import io
from dataclasses import replace

from tests.approval import approve
from tests.examples.printed import approve_view
from tests.examples.recordings import CPU, RECORDED
from tflab.convert import conversion
from tflab.convert.read import Recording
from tflab.exporters import text
from tflab.records.timed import CriticalPath, OpRun, StepTime

CONVERTED = conversion.convert(RECORDED)


def test_without_a_graph_there_is_no_critical_path_and_past_a_node_without_a_time_there_is():
    path = CONVERTED.critical_path
    assert (path.nodes, path.durations_ns) == (("x", "conv"), (30_000, 50_000))  # past `untimed`
    assert (path.ns, path.parallelism) == (80_000, 1.5)
    assert conversion.convert(replace(RECORDED, nodes=())).critical_path is None


def test_all_that_is_shown_of_many_steps_of_a_cpu_without_a_graph():
    """44 calls of n + 22.5 us on average; all together 44 * (78 + 12 * 22.5) us."""
    runs = tuple(
        OpRun(step, f"n{n:02}", f"Op{n}", CPU, 1_000_000 * step + 10_000 * n, 1_000 * (n + step))
        for step in range(1, 45)
        for n in range(1, 13)
    )
    files = ("0.pb", *(f"{step}.pb" for step in range(1, 45)))
    steps = tuple(
        StepTime(step, 1_000_000 * step + 10_000, (110 + 12 + step) * 1_000)
        for step in range(1, 45)
    )
    recorded = Recording(files, files, steps, runs)
    approve("convert-many.txt", text.as_text(conversion.blocks(conversion.convert(recorded))))


def test_a_step_that_is_more_than_twice_as_long_as_the_median_of_the_others_is_left_out():
    times = (901, 200, 100)
    runs = tuple(
        OpRun(step, "n", "Op", CPU, 0, ns, ns, ((0, ns, "cpu"),)) for step, ns in enumerate(times)
    )
    steps = tuple(StepTime(step, 0, ns) for step, ns in enumerate(times))
    found = conversion.convert(Recording(("0.pb",), ("a", "b", "c"), steps, runs))
    assert found.long_steps == steps[:1]
    assert [(row.calls, row.total_ns) for _, row in found.top_ops] == [(2, 300)]
    assert found.tracks == (conversion.TrackSummary(CPU, "ops", 2, 300),)
    assert (found.wall_ns, [part.ns for part in found.time_ledger]) == (300, [0, 300, 0, 0])
    assert (found.memory.peak_bytes, found.memory.curve.step) == (200, 1)
    shown = " ".join(text.as_text(conversion.blocks(found)).split())
    assert "100 ns from first op to last, c, the shorter of 2 steps" in shown
    why = "longer than 2 x the median of the other steps, as a first run can be"
    assert f"left out a (901 ns), {why}" in shown
    assert "What held the 200 B, 0 ns after b began" in shown


def test_a_single_step_may_include_the_set_up_of_its_session():
    lone = replace(RECORDED, labels=("c",), steps=RECORDED.steps[:1], runs=RECORDED.runs[:5])
    shown = " ".join(text.as_text(conversion.blocks(conversion.convert(lone))).split())
    about = "the only one: if it was the first of its session, its times include set-up"
    assert f"step 100 us from first op to last, {about}" in shown
    assert "4.00 KiB, 21.0 us after the step began" in shown


def test_a_long_step_is_compared_with_the_others_alone():
    """310 ns are more than twice the median of the others, 150 ns, but not of all, 160 ns."""

    def long_steps(*times):
        runs = tuple(OpRun(step, "n", "Op", CPU, 0, ns) for step, ns in enumerate(times))
        steps = tuple(StepTime(step, 0, ns) for step, ns in enumerate(times))
        recorded = Recording(("0.pb",), ("a", "b", "c", "d")[: len(times)], steps, runs)
        return [step.wall_ns for step in conversion.convert(recorded).long_steps]

    assert long_steps(310, 140, 160) == [310]
    assert long_steps(300, 140, 160) == []
    assert long_steps(201, 100) == [201]
    assert long_steps(200, 100) == []
    assert long_steps(900) == []


def test_a_path_without_edges_is_not_blamed_on_the_trace():
    variants = {"edges that the trace does not keep": CriticalPath((), 0, 0, ())}
    shown = {
        title: conversion.blocks(replace(CONVERTED, critical_path=path))
        for title, path in variants.items()
    }
    approve_view("views-trace.txt", conversion.blocks(CONVERTED), shown)


def test_all_that_is_written_for_other_programs():
    found, runs = io.StringIO(), io.StringIO()
    conversion.write_json(found, CONVERTED)
    approve("convert.json", found.getvalue())
    conversion.write_csv(runs, RECORDED)
    approve("convert.csv", runs.getvalue())
