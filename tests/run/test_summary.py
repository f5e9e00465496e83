"""What the program's process left becomes a record: worked out by hand."""

import ast

import pytest

from tests.examples.watched import (
    INIT_RUNS,
    MATMUL,
    MINIMIZE,
    SEGMENT,
    TRAIN_RUNS,
    WATCHED,
)
from tflab.records.timed import Owner
from tflab.records.watched import MadeAnew, Process, TracedFunction, Tracing
from tflab.run import sampler, summary, view, watcher


def watched(wall_ns=10_000, status=0, **fields):
    return summary.watched(("train.py",), {**SEGMENT, **fields}, wall_ns, status)


def test_a_segment_becomes_a_record(tmp_path):
    watcher.write_segment(str(tmp_path), SEGMENT)
    assert ast.literal_eval((tmp_path / watcher.SEGMENT).read_text()) == SEGMENT
    segment = summary.read(tmp_path)
    assert summary.watched(("train.py", "--epochs", "3"), segment, 10_000, 0) == WATCHED


def test_steps_that_wait_for_data_are_split_between_two_owners():
    owners = watched(groups=[INIT_RUNS, {**TRAIN_RUNS, "waited_ns": 1_000}]).process.owners
    ns = {owner.owner: owner.ns for owner in owners}
    # A quarter of 4,000 ns in all threads, and so of 3,000 ns in the main thread
    assert (ns["waiting for data in group 2"], ns["steps of group 2"]) == (750, 2_250)
    assert sum(ns.values()) == 10_000
    assert all(map(view.is_run, (owner for owner in owners if "group 2" in owner.owner)))


def test_all_that_a_segment_may_say_is_in_the_record():
    """A place without a function's name is a module's own; a group of many graphs has no lines."""
    traced = {"function": "f", "line": None, "changed": [], "again": False, "ns": 5}
    called = {**traced, "line": ("/code/train.py", 4, "<module>"), "changed": [("x", "3", "4")]}
    called |= {"again": True, "number": 2, "way": 3, "created": True}
    function = {"number": 2, "name": "f", "ordinal": 1, "alike": 1, "tracings": 2}
    anew = {"made": ("a.py", 1, "f"), "line": ("a.py", 2, "<module>"), "functions": 3, "ns": 8}
    of_function = {**TRAIN_RUNS, "function": "f", "not_finite": {"loss:0": 3}, "first_runs": 2}
    seen = watched(
        stopped=True,
        forked=True,
        notes=["A note."],
        groups=[{**TRAIN_RUNS, "graph": 0}, of_function],
        graphs=[[]],
        lines={("/c/a.py", 1, "f"): 20, ("/c/a.py", 1, "g"): 5, ("/c/z.py", 2, "g"): 22},
        called={},
        fates={"counts": {}, "not_run": 2},
        tracings=[traced, called],
        more_tracings=1_200,
        functions=[{**function, "ns": 9, "first_ns": 4, "last": called}],
        made_anew=[anew],
    )
    last = Tracing("f", "train.py:4", True, (("x", "3", "4"),), 5, 2, 3, True)
    assert (seen.stopped, seen.fates, seen.not_run, watched().not_run) == (True, {}, 2, 0)
    assert [(group.graph, group.not_finite, group.first_runs) for group in seen.groups] == [
        ("other graphs", None, 1),
        ("function f", {"loss:0": 3}, 2),
    ]
    assert [(line.line, line.python_ns, line.forward_ns) for line in seen.lines] == [
        *((1, 25, 0), (2, 22, 0)),
    ]
    assert seen.costliest == ("a.py:1 in f", 25)
    assert seen.tracings == (Tracing("f", "", False, (), 5), last)
    assert seen.functions == (TracedFunction(2, "f", 1, 1, 2, 9, 4, last),)
    assert seen.made_anew == (MadeAnew("a.py:1 in f", "a.py:2", 3, 8),)
    assert seen.notes == (
        "Forked child processes were not watched.",
        "Of 1,202 tracings of functions, only the first 2 are listed.",
        "A note.",
    )


@pytest.mark.parametrize(
    "function, later, name",
    [("", True, "later groups"), ("step", True, "later functions"), ("", False, "other graphs")],
)
def test_groups_without_a_graph_of_their_own_have_names(function, later, name):
    assert summary.graph_of({"function": function, "later": later, "graph": 0}) == name


def lines_of(group, *graphs):
    return summary.lines_of([summary.of_lines(group, graphs)], graphs, {}, {})


def test_a_line_has_the_time_of_all_its_nodes_of_a_phase():
    more = [*SEGMENT["graphs"][0], ("z", "forward", MATMUL, "Add")]
    group = {**TRAIN_RUNS, "ops": {**TRAIN_RUNS["ops"], "z": (2, 30, 2, 20)}}
    (first, *_) = lines_of(group, more)
    assert (first.forward_ns, first.backward_ns) == (2 * 100 + 2 * 30, 600)
    assert first.nodes == ("y", "y_grad", "z")
    assert [*map(summary.total_ns, WATCHED.lines)] == [800, 230, 170, 6]


def test_a_node_takes_as_many_times_the_ns_of_the_traced_runs_as_its_group_says():
    """Of three traced runs of a loop, the longest counts as much as the others: 2 x 40 ns each."""
    group = {**TRAIN_RUNS, "traced": 3, "scale": 1.25, "ops": {"y": (6, 1_080, 3, 1_000)}}
    (first, *_) = lines_of(group, *SEGMENT["graphs"])
    assert (first.forward_ns, first.runs) == (150, 8)


def test_iterators_of_a_function_share_a_name_in_its_profile_and_so_have_no_line():
    """A profile of a function has types instead of names for what gets data."""
    ops = {"IteratorGetNext": (2, 30, 2, 20)}
    group = {**TRAIN_RUNS, "function": "step", "waited_ns": 70, "ops": ops}
    one = [("IteratorGetNext", "forward", MATMUL, "IteratorGetNext")]
    two = [*one, ("other", "forward", MINIMIZE, "IteratorGetNext")]
    ns = [[line.waiting_ns for line in lines_of(group, graph, [])] for graph in (one, two)]
    assert ns == [[70], [0, 0]]


def test_waiting_for_data_is_not_part_of_forward():
    """What a group waited is that of its dequeues, by their times; one of them has no line."""
    ops = {"a": (2, 30, 2, 20), "b": (2, 60, 2, 40), "c": (2, 10, 2, 5), "y": (2, 100, 2, 60)}
    group = {**TRAIN_RUNS, "waited_ns": 1_000, "ops": ops}
    graph = [
        ("a", "forward", MATMUL, "QueueDequeueManyV2"),
        ("b", "forward", MINIMIZE, "QueueDequeueManyV2"),
        ("c", "forward", None, "IteratorGetNext"),
        ("y", "forward", MATMUL, "MatMul"),
    ]
    first, second = lines_of(group, graph)
    assert (first.line, first.forward_ns, first.waiting_ns, first.runs) == (5, 0, 600, 4)
    assert (second.line, second.forward_ns, second.waiting_ns, second.runs) == (3, 200, 300, 8)
    assert summary.total_ns(second) == 500
    made = summary.of_lines(group, [graph])
    assert summary.group_of(group, made).on_lines_ns == 1_100
    # Ops that ran at once cannot have more than the runs that they were in
    assert summary.group_of({**group, "total_ns": 1_099}, made).on_lines_ns == 1_099


def test_names_that_are_no_text_are_kept(tmp_path):
    """A program's files may have any bytes in their names."""
    name = "/code/\udcff\u00e4.py"
    watcher.write_segment(str(tmp_path), {**SEGMENT, "lines": {(name, 1, "f"): 5}})
    assert [*summary.read(tmp_path)["lines"]] == [(name, 1, "f")]


def test_what_a_killed_process_left_is_its_last_segment():
    seen = watched(status=-9, final=False, own_ns=0)
    assert seen.process.owners[-1] == Owner("not seen", 3_200)
    assert sum(owner.ns for owner in seen.process.owners) == 10_000
    assert seen.notes == ("Python did not end by itself: nothing is known after the first 0.0 s.",)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (None, "The process ended before tflab wrote anything."),
        ("KeyError: 'x'", "tflab stopped watching because of this error: KeyError: 'x'"),
        (
            "",
            "tflab stopped watching because of this error: the results could not be written; the "
            "disk may be full.",
        ),
    ],
)
def test_a_process_that_left_nothing_or_only_a_fault_is_not_seen(fault, said, tmp_path):
    if fault is not None:
        watcher.write_fault(str(tmp_path), fault)
    seen = summary.watched(("x.py",), summary.read(tmp_path), 700, -9)
    assert seen.process == Process(700, (Owner("not seen", 700),))
    assert (seen.notes, seen.costliest) == ((said,), None)


def test_a_program_without_runs_has_python_in_one_piece():
    segment = {**SEGMENT, "runs": 0, "groups": [], "owners": {sampler.BEFORE: 5_000}}
    owners = summary.ledger(segment, [], 10_000)
    assert owners == (Owner("Python", 5_000), Owner("tflab", 150), Owner("end of Python", 4_850))


def test_a_line_has_the_time_of_its_comprehensions():
    """Up to Python 3.11 each is a function of its own."""
    lines = {("/a.py", 11, "load"): 5, ("/a.py", 11, "<listcomp>"): 9, ("/a.py", 14, "other"): 12}
    assert summary.costliest_line(lines) == ("a.py:11 in load", 14)
    assert summary.costliest_line({("/a.py", 3, "<module>"): 2}) == ("a.py:3", 2)
    assert summary.costliest_line({}) is None
