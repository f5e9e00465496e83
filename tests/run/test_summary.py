"""What the program's process left becomes a record: worked out by hand."""

import ast

import pytest

from tests.approval import approve
from tests.examples.watched import INIT_RUNS, MATMUL, MINIMIZE, SEGMENT, TRAIN_RUNS, WATCHED
from tflab.exporters import json
from tflab.records import watched as records
from tflab.records.timed import Owner
from tflab.run import sampler, summary, view, write_fault, write_segment


def watched(wall_ns=10_000, status=0, **fields):
    return summary.watched(("train.py",), {**SEGMENT, **fields}, wall_ns, status)


def test_a_segment_becomes_a_record(tmp_path):
    write_segment(str(tmp_path), SEGMENT)
    assert ast.literal_eval((tmp_path / "segment").read_text()) == SEGMENT
    segment = summary.read(tmp_path)
    seen = summary.watched(("train.py", "--epochs", "3"), segment, 10_000, 0)
    approve("watched.json", json.document(**json.plain(seen)))


def test_steps_that_wait_for_data_are_split_between_two_owners():
    process = watched(groups=[INIT_RUNS, {**TRAIN_RUNS, "waited_ns": (1_000, 1_000)}]).process
    ns = {owner.owner: owner.ns for owner in process.owners}
    # A quarter of 4,000 ns in all threads, and so of 3,000 ns in the main thread
    assert (ns["waiting for data in group 2"], ns["steps of group 2"]) == (750, 2_250)
    assert sum(ns.values()) == 10_000


def test_all_that_a_segment_may_say_is_in_the_record():
    """A place without a function's name is a module's own; a group of many graphs has no lines."""
    traced = {"name": "f", "made": "a.py:7", "functions": 1, "tracings": 2, "ns": 9, "first_ns": 5}
    traced |= {"place": "train.py:4", "changed": (("x", "3", "4"),)}
    grown = {"graph": 1, "first": 3, "last": 21, "runs": 8, "rises": 6, "made": {"a.py:4": 4}}
    of_function = {
        **TRAIN_RUNS,
        "number": 3,
        "function": "f",
        "not_finite": {"loss:0": 3},
        "first_runs": 2,
    }
    seen = watched(
        stopped=True,
        forked=True,
        notes=["A note."],
        groups=[
            {**TRAIN_RUNS, "graph": 0},
            of_function,
            {**INIT_RUNS, "number": 4, "graph": 0, "later": True},
        ],
        graphs=[[]],
        lines={
            ("/c/a.py", 1, "f"): (20, 99),
            ("/c/a.py", 1, "g"): (5, 21),
            ("/c/z.py", 2, "g"): (22, 9),
        },
        called={},
        elsewhere={},
        functions=[traced],
        grown=[grown],
        kept=[{"function": "f", "calls": 128, "tensors": 256, "place": "a.py:9"}],
        memory={"first_bytes": 10, "last_bytes": 90, "place": "a.py:7 in f"},
        for_children={("a.py", 1, "f"): (5, 1), ("a.py", 2, "f"): (50, 4)},
    )
    approve("watched-rare.json", json.document(**json.plain(seen)))


def lines_of(group, *graphs):
    segment = {**summary.NOTHING, "groups": [group], "graphs": graphs}
    return summary.lines_of(segment, [[*summary.op_times(group, graphs)]])


def test_a_line_has_the_time_of_all_its_nodes_of_a_phase():
    more = [*SEGMENT["graphs"][0], ("z", "forward", MATMUL, "Add")]
    group = {**TRAIN_RUNS, "ops": {**TRAIN_RUNS["ops"], "z": (2, 30, 2, 20)}}
    (first, *_) = lines_of(group, more)
    assert (first.forward_ns, first.backward_ns) == (2 * 100 + 2 * 30, 600)
    assert first.nodes == ("y", "y_grad", "z")
    assert [line.total_ns for line in WATCHED.lines] == [800, 230, 170, 90, 6]


def test_a_node_takes_as_many_times_the_ns_of_the_traced_runs_as_its_group_says():
    """Of three traced runs of a loop, the longest counts as much as the others: 2 x 40 ns each."""
    group = {**TRAIN_RUNS, "traced": 3, "scale": 1.25, "ops": {"y": (6, 1_080, 3, 1_000)}}
    (first, *_) = lines_of(group, *SEGMENT["graphs"])
    assert first.forward_ns == 150


def test_iterators_of_a_function_share_a_name_in_its_profile_and_so_have_no_line():
    """A profile of a function has types instead of names for what gets data."""
    ops = {"IteratorGetNext": (2, 30, 2, 20)}
    group = {**TRAIN_RUNS, "function": "step", "waited_ns": (70, 70), "ops": ops}
    one = [("IteratorGetNext", "forward", MATMUL, "IteratorGetNext")]
    two = [*one, ("other", "forward", MINIMIZE, "IteratorGetNext")]
    ns = [[line.waiting_ns for line in lines_of(group, graph, [])] for graph in (one, two)]
    assert ns == [[70], [0, 0]]


def test_waiting_for_data_is_not_part_of_forward():
    """What a group waited is that of its dequeues, by their times; one of them has no line."""
    ops = {"a": (2, 30, 2, 20), "b": (2, 60, 2, 40), "c": (2, 10, 2, 5), "y": (2, 100, 2, 60)}
    group = {**TRAIN_RUNS, "waited_ns": (1_000, 1_000), "ops": ops}
    graph = [
        ("a", "forward", MATMUL, "QueueDequeueManyV2"),
        ("b", "forward", MINIMIZE, "QueueDequeueManyV2"),
        ("c", "forward", None, "IteratorGetNext"),
        ("y", "forward", MATMUL, "MatMul"),
    ]
    first, second = lines_of(group, graph)
    assert (first.line, first.forward_ns, first.waiting_ns) == (5, 0, 600)
    assert (second.line, second.forward_ns, second.waiting_ns) == (3, 200, 300)
    assert second.total_ns == 500


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
        ("", "this error: the results could not be written; the disk may be full."),
    ],
)
def test_a_process_that_left_nothing_or_only_a_fault_is_not_seen(fault, said, tmp_path):
    if fault is not None:
        write_fault(str(tmp_path), fault)
    seen = summary.watched(("x.py",), summary.read(tmp_path), 700, -9)
    assert seen.process == records.Process(700, (Owner("not seen", 700),))
    (note,) = seen.notes
    assert (note.endswith(said), seen.costliest) == (True, None)


def test_a_program_without_runs_has_python_in_one_piece():
    segment = {**summary.NOTHING, **SEGMENT, "runs": 0, "groups": []}
    owners = summary.ledger({**segment, "owners": {sampler.BEFORE: 5_000}}, 10_000)
    assert owners == (Owner("Python", 5_000), Owner("tflab", 150), Owner("end of Python", 4_850))


def test_a_line_has_the_time_of_its_comprehensions():
    """Up to Python 3.11 each is a function of its own."""
    python = {("/a.py", 11, "load"): (5, 40), ("/a.py", 11, "<listcomp>"): (9, 60)}
    called = {("/a.py", 14, "other"): (12, 40), ("/a.py", 11, "load"): (1, 0)}
    assert summary.costliest_line(python, called) == records.SampledLine("a.py:11 in load", 15, 100)
    assert summary.costliest_line({("/a.py", 3, "<module>"): (2, 10)}).place == "a.py:3"
    assert summary.costliest_line({}, {}) is None


@pytest.mark.parametrize(
    "first, second, named", [(9, 0, 0), (10, 0, 1), (60, 40, 0), (61, 40, 1), (600, 540, 0)]
)
def test_no_line_is_the_costliest_if_chance_may_have_made_it_the_first(first, second, named):
    """The difference of two counts has the standard deviation of the root of their sum."""
    spent = {("a.py", 1, "f"): (first * 10, first), ("a.py", 2, "f"): (second * 10, second)}
    assert (summary.costliest_line(spent) is not None) is bool(named)


def test_a_sampled_time_says_what_its_samples_allow():
    times = {
        (1_000_000_000, 9): "",
        (1_000_000_000, 16): "500 ms to 1.5 s",
        (400_000_000, 100): "320 to 480 ms",
        (400_000_000, 399): "360 to 440 ms",
        (412_000_000, 400): "412 ms",
    }
    assert {sampled: view.sampled(*sampled) for sampled in times} == times


def test_a_run_that_did_not_end_is_an_owner_of_time():
    """It began 2,000 ns before the process was last seen, 100 ns before its end."""
    at = {"in_run_of": 2, "in_run_ns": 2_000, "in_run_at": ("/c/a.py", 7, "f")}
    seen = watched(status=-15, final=False, own_ns=0, **at)
    assert seen.open_run == records.OpenRun(2, 2_000, "a.py:7 in f")
    owners = {owner.owner: owner.ns for owner in seen.process.owners}
    assert owners["a run that did not end, of group 2"] == 2_000
    assert owners["not seen"] == 1_200
    assert sum(owners.values()) == 10_000


def ops_of(groups, graphs):
    return summary.ops_of(summary.op_times(group, graphs) for group in groups)


def test_ops_by_type_are_those_of_all_groups():
    """Ops that wait for data are left out."""
    ops = {"y": (2, 100, 2, 60), "w/update": (2, 100, 2, 60), "next": (2, 900, 2, 500)}
    graph = [
        ("y", "forward", MATMUL, "MatMul"),
        ("w/update", "update", MINIMIZE, "MatMul"),
        ("next", "forward", MATMUL, "QueueDequeueV2"),
    ]
    group = {**TRAIN_RUNS, "types": {}, "ops": ops}
    assert ops_of([group], [graph]) == (records.WatchedOp("MatMul", 400, 1),)
    late = {**group, "calls": 3, "ops": {"y": (2, 50, 2, 30)}, "scale": 1.0}
    (matmul,) = ops_of([group, late, {**INIT_RUNS, "graph": 0}], [graph])
    assert matmul == records.WatchedOp("MatMul", 450, 1)


def test_ops_that_tf_data_ran_during_a_profiled_call_are_not_those_of_the_function():
    ops = {"y": (2, 100, 2, 60), "PyFunc": (2, 900, 2, 500)}
    group = {**TRAIN_RUNS, "function": "step", "types": {"PyFunc": "PyFunc"}, "ops": ops}
    (matmul,) = ops_of([group], SEGMENT["graphs"])
    assert (matmul.op, matmul.share) == ("MatMul", 1)


def test_findings_are_of_runs_that_take_a_tenth_of_the_time():
    fates = {"findings": ["Half of it is lost."]}
    said = [watched(wall_ns, fates=fates).findings for wall_ns in (40_000, 40_001)]
    assert said == [("Half of it is lost.",), ()]


@pytest.mark.parametrize(
    "waited_ns, between_ns, at, runs", [(100, 99, 1, 4), (99, 100, 0, 5), (0, 0, None, None)]
)
def test_a_pipeline_is_that_of_the_longest_wait(waited_ns, between_ns, at, runs):
    group = {**TRAIN_RUNS, "waited_ns": (waited_ns, waited_ns)}
    seen = watched(
        groups=[group],
        owners={sampler.DATA: between_ns},
        in_data={("/code/data.py", 2, "load"): (90, 25)},
        fates={},
    ).input_pipeline
    line = records.SampledLine("data.py:2 in load", 90, 25)
    assert seen == ((at is not None and records.InputPipeline(at, runs, 100, "", line)) or None)


def test_a_pipeline_has_all_runs_that_waited():
    """Training and validation of Keras have one name; what the program waits for, one function may
    not take alone."""
    train, test = ({**TRAIN_RUNS, "number": at, "waited_ns": (60, 60)} for at in (1, 2))
    between = {"owners": {sampler.DATA: 110}, "fates": {}}
    seen = watched(groups=[train, test], **between).input_pipeline
    assert (seen.waited_ns, seen.runs) == (120, 8)
    seen = watched(groups=[train, {**test, "fetches": ("other",)}], **between).input_pipeline
    assert (seen.group, seen.waited_ns, seen.runs) == (0, 110, 0)


def test_the_tracings_of_a_function_are_one_group():
    """The times of a sample stand for all runs: of 8 runs 4 times are known, each counts twice."""
    first = {**TRAIN_RUNS, "function": "step", "times": [1, 3, 5, 4], "not_finite": {"result 0": 9}}
    second = {**first, "calls": 9, "times": [9, 7, 8, 6]}
    second |= {"graph": 2, "not_finite": {"result 0": 4}, "waited_ns": (8, 9)}
    seen = watched(groups=[INIT_RUNS, first, second], graphs=[*SEGMENT["graphs"], []])
    _, group = seen.groups
    assert (group.calls, group.first_runs, group.traced) == (14, 2, 4)
    assert (group.median_ns, group.not_finite) == (6.5, {"result 0": 4})
    assert (group.cold_ns, group.total_ns, group.waited_ns) == (1_800, 8_000, (8, 9))
    ns = {owner.owner: owner.ns for owner in seen.process.owners}
    assert (ns["first runs"], ns["steps of group 2"]) == (500 + 1_800, 6_000 - 6)
    assert sum(ns.values()) == 10_000
    assert view.count_of(group) == "12 runs in 2 tracings, median 6 ns"


@pytest.mark.parametrize(
    "spent, profiled_ns, stage",
    [
        # Prefetch waits for the rest; MapAndBatch has 30 ns without its Map, which has 60
        (
            {"Root": 99, "Root::Prefetch": 98, "Root::Prefetch::MapAndBatch": 90}
            | {"Root::Prefetch::MapAndBatch::Map": 60},
            119,
            "Map",
        ),
        ({"Root": 99, "Root::Map": 50, "Root::Map::TensorSlice": 20}, 60, ""),  # half
        ({"Root::Map::TensorSlice": 20}, 60, ""),  # of calls of Map that took longer than these
        ({"Root": 99, "Root::Prefetch": 98}, 60, ""),
        ({}, 0, ""),
    ],
)
def test_the_costliest_stage_takes_most_of_the_calls_without_its_sources(spent, profiled_ns, stage):
    stages = {f"Iterator::{path}": ns for path, ns in spent.items()}
    groups = [{"stages": stages, "traced_ns": profiled_ns}, {"stages": {}, "traced_ns": 900}]
    assert summary.costliest_stage(groups) == stage


def test_a_line_of_several_groups_is_known_as_well_as_the_one_with_fewest_traces():
    counts = (3, 1, 2)
    seen = watched(groups=[{**TRAIN_RUNS, "traced": traced} for traced in counts])
    assert {line.line: line.traced for line in seen.lines} == {3: 1, 5: 1, 9: 0, 2: 0, 4: 0}


def test_the_costliest_line_has_the_runs_that_it_began():
    """The runs of the main thread took 500 + 900 + 3,000 ns, three quarters of them at line 9."""
    at, other = ("/code/train.py", 9, "next_batch"), ("/code/train.py", 4, "<module>")
    seen = watched(in_runs={at: (30, 10), other: (10, 90)})
    assert seen.costliest == records.SampledLine("train.py:9 in next_batch", 230, 916)
    assert seen.with_runs == records.SampledLine("train.py:9 in next_batch", 230 + 3_300, 916 + 10)
    for few in ({at: (30, 9), other: (10, 90)}, {other: (10, 90)}, {}):
        assert watched(in_runs=few).with_runs is None


def test_a_bound_is_said_where_a_profile_hardly_waits():
    group = {**TRAIN_RUNS, "waited_ns": (40, 2_000)}
    (note,) = watched(groups=[group], fates={}).notes
    assert note.startswith("loss:0, train waited for data between 30 ns and 1.50 us; ")
    for bounds in ((2_000, 2_100), (1_600, 2_000)):  # they hardly differ
        assert watched(groups=[{**group, "waited_ns": bounds}], fates={}).notes == ()
