"""Conversion: what recorded steps add up to, by hand, and all that is shown and written of it."""

import io
from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.recordings import CPU, RECORDED, TYPES
from tflab.analysis import tracks
from tflab.convert import conversion, view
from tflab.convert.read import Recording, TrackSummary
from tflab.exporters import text
from tflab.records.timed import CriticalPath, OpMemory, OpRun, StepTime

CONVERTED = conversion.convert(RECORDED)


def test_what_steps_add_up_to_is_worked_out_kind_by_kind():
    assert CONVERTED.recorded is RECORDED
    assert CONVERTED.wall_ns == 355_000
    assert [(owner.owner.split(" (")[0], owner.ns) for owner in CONVERTED.time_ledger] == [
        ("before the first op", 0),
        ("at least one op running", 333_000),
        ("no op running between ops", 22_000),
        ("after the last op", 0),
    ]
    assert [
        (kind, row.key, row.op, row.calls, row.total_ns, row.self_ns, row.mean_ns, row.share)
        for kind, row in CONVERTED.top_ops
    ] == [
        (kind, name, TYPES[name], calls, ns, ns, mean, pytest.approx(share))
        for kind, name, calls, ns, mean, share in (
            (tracks.KERNELS, "conv", 4, 190_000, 47_500, 1),
            (tracks.OPS, "neg", 3, 105_000, 35_000, 105 / 170),
            (tracks.OPS, "x", 3, 60_000, 20_000, 60 / 170),
            (tracks.LAUNCHES, "conv", 3, 15_000, 5_000, 1),
            (tracks.OPS, "y", 1, 5_000, 5_000, 5 / 170),
        )
    ]
    path = CONVERTED.critical_path
    assert (path.nodes, path.durations_ns) == (("x", "conv"), (30_000, 50_000))  # past `untimed`
    assert (path.ns, path.parallelism) == (80_000, 1.5)
    assert CONVERTED.memory.per_op[:3] == (
        OpMemory("x", 2048),
        OpMemory("neg", 341),
        OpMemory("conv", 171),
    )
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
    recorded = Recording(
        files, files, steps, runs, (TrackSummary(CPU, tracks.OPS, 528, 7_654_321),)
    )
    approve("convert-many.txt", text.as_text(view.blocks(conversion.convert(recorded))))


def test_edges_that_the_trace_does_not_keep_are_not_blamed_on_it():
    no_path = replace(CONVERTED, critical_path=CriticalPath((), 0, 0))
    (sentence,) = view.path(no_path)
    assert sentence == "The graph may not be the one that ran, because passes change edges."
    (fact,) = (fact for fact in view.facts(no_path) if fact.label == "critical path")
    assert fact.value == "not shown"


def test_ops_that_took_no_time_have_no_share_of_their_path():
    nothing = replace(CONVERTED.critical_path, ns=0, durations_ns=(0, 0))
    (table,) = view.path(replace(CONVERTED, critical_path=nothing))
    assert [cells[2:] for cells in table.cells()] == [("0 ns", "0.0 %")] * 2


def test_all_that_is_written_for_other_programs():
    found, runs = io.StringIO(), io.StringIO()
    conversion.write_json(found, CONVERTED)
    approve("convert.json", found.getvalue())
    conversion.write_csv(runs, RECORDED)
    approve("convert.csv", runs.getvalue())
