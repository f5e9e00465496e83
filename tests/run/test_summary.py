"""What the program's process left becomes records, and these what one reads: worked out by hand."""

import ast
from dataclasses import replace

import pytest

from tests.shown import grid, layout
from tflab.records.timed import Owner
from tflab.records.watched import Group, Process, Tracing, Watched, WatchedLine
from tflab.run import line_table, sampler, summary, view, watcher

MATMUL = ("/code/train.py", 3, "y = tf.matmul(x, w)")
MINIMIZE = ("/code/train.py", 5, "train = optimizer.minimize(loss)")
SEGMENT = {
    "until_ns": 9_900,
    "final": True,
    "faults": [],
    "owners": {"start of Python": 100, "Python between steps": 300, "import of TensorFlow": 2_000},
    "lines": {("/code/train.py", 9, "next_batch"): 200, ("/code/train.py", 5, "<module>"): 70},
    "called": {("/code/train.py", 9, "next_batch"): 30, ("/code/train.py", 4, "<module>"): 6},
    "runs": 5,
    "stopped": False,
    "notes": [],
    "groups": [
        {
            "graph": 1,
            "function": "",
            "fetches": ("init",),
            "feeds": {},
            "calls": 1,
            "cold_ns": 500,
            "total_ns": 0,
            "main_ns": (500, 0),
            "in_other_threads": 0,
            "traced": 0,
            "scale": 0,
            "waited_ns": 0,
            "times": [],
            "ops": {},
        },
        {
            "graph": 1,
            "function": "",
            "fetches": ("loss:0", "train"),
            "feeds": {"x:0": "(8, 4)"},
            "calls": 5,
            "cold_ns": 900,
            "total_ns": 4_000,
            "main_ns": (900, 3_000),
            "in_other_threads": 0,
            "traced": 2,
            "scale": 2.0,
            "waited_ns": 0,
            "times": [700, 1_000, 900],
            "ops": {
                "y": (2, 100, 2, 60),
                "y_grad": (4, 300, 2, 160),
                "w/update": (2, 50, 2, 30),
                "_SOURCE": (2, 7, 2, 4),
                "loss": (2, 20, 2, 10),
            },
        },
    ],
    "graphs": [
        [
            ("x", "forward", None, "Placeholder"),
            ("y", "forward", MATMUL, "MatMul"),
            ("y_grad", "backward", MATMUL, "MatMul"),
            ("w/update", "update", MINIMIZE, "ApplyAdam"),
        ]
    ],
    "fates": {"group": 2, "counts": {"executed": 3, "unreached": 1}},
    "own_ns": 150,
}
GROUPS = (
    Group("graph 1", ("init",), {}, 1, None, 500, 0, 0, 0),
    Group(
        "graph 1",
        ("loss:0", "train"),
        {"x:0": "(8, 4)"},
        5,
        900.0,
        900,
        4_000,
        2,
        0,
        on_lines_ns=900,
    ),
)
WATCHED = Watched(
    program=("train.py", "--epochs", "3"),
    groups=GROUPS,
    process=Process(
        10_000,
        (
            Owner("start of Python", 100),
            Owner("import of TensorFlow", 2_000),
            Owner("first runs", 1_400),
            Owner("steps of group 2", 3_000),
            Owner("Python between steps", 300),
            Owner("tflab", 150),
            Owner("end of Python", 3_050),
        ),
    ),
    lines=(
        # 4 runs but the first, of which 2 were traced
        WatchedLine("/code/train.py", 3, MATMUL[2], ("y", "y_grad"), 200, 600, 0, 0, 12),
        WatchedLine("/code/train.py", 9, "", (), 0, 0, 0, 200, 0, 30),
        WatchedLine("/code/train.py", 5, MINIMIZE[2], ("w/update",), 0, 0, 100, 70, 4),
        WatchedLine("/code/train.py", 4, "", (), 0, 0, 0, 0, 0, 6),
    ),
    exit_status=0,
    fates={"executed": 3, "unreached": 1},
    costliest=("train.py:9 in next_batch", 230),
    stopped=False,
    notes=(),
    tracings=(),
)


def test_steps_that_wait_for_data_are_split_between_two_owners():
    groups = [SEGMENT["groups"][0], {**SEGMENT["groups"][1], "waited_ns": 1_000}]
    owners = summary.watched(("train.py",), {**SEGMENT, "groups": groups}, 10_000, 0).process.owners
    ns = {owner.owner: owner.ns for owner in owners}
    # A quarter of 4,000 ns in all threads, and so of 3,000 ns in the main thread
    assert (ns["waiting for data in group 2"], ns["steps of group 2"]) == (750, 2_250)
    assert sum(ns.values()) == 10_000
    assert all(map(view.is_run, (owner for owner in owners if "group 2" in owner.owner)))


def test_a_segment_becomes_a_record(tmp_path):
    watcher.write_segment(str(tmp_path), SEGMENT)
    assert ast.literal_eval((tmp_path / watcher.SEGMENT).read_text()) == SEGMENT
    segment = summary.read(tmp_path)
    assert summary.watched(("train.py", "--epochs", "3"), segment, 10_000, 0) == WATCHED


def test_a_segment_says_what_stopped_the_program_and_what_was_not_watched():
    """A place without a function's name is a module's own; a group of many graphs has no lines."""
    group = {**SEGMENT["groups"][1], "graph": 0}
    tracing = {"function": "f", "line": None, "changed": [], "again": False, "ns": 5}
    called = {**tracing, "line": ("/code/train.py", 4, "<module>")}
    segment = {
        **SEGMENT,
        "stopped": True,
        "forked": True,
        "notes": ["A note."],
        "groups": [group],
        "lines": {
            ("/code/a.py", 1, "f"): 20,
            ("/code/a.py", 1, "g"): 5,
            ("/code/z.py", 2, "g"): 22,
        },
        "called": {},
        "fates": {},
        "tracings": [tracing, called],
    }
    seen = summary.watched(("train.py",), segment, 10_000, 0)
    assert seen.stopped
    assert seen.fates == {}
    assert seen.notes == ("Forked child processes were not watched.", "A note.")
    assert seen.groups[0].graph == "other graphs"
    assert seen.costliest == ("a.py:1 in f", 25)
    times = [(line.line, line.forward_ns, line.update_ns, line.python_ns) for line in seen.lines]
    assert times[:2] == [(1, 0, 0, 25), (2, 0, 0, 22)]
    assert [traced.place for traced in seen.tracings] == ["", "train.py:4"]


def test_a_group_knows_where_nan_was_fetched():
    group = {**SEGMENT["groups"][1], "not_finite": {"loss:0": 3}}
    assert summary.group_of(group, {}).not_finite == {"loss:0": 3}
    assert summary.group_of(SEGMENT["groups"][1], {}).not_finite is None


def lines_of(group, *graphs):
    return summary.lines_of([summary.of_lines(group, graphs)], graphs, {}, {})


def test_a_line_has_the_time_of_all_its_nodes_of_a_phase():
    more = [*SEGMENT["graphs"][0], ("z", "forward", MATMUL, "Add")]
    group = SEGMENT["groups"][1]
    group = {**group, "ops": {**group["ops"], "z": (2, 30, 2, 20)}}
    (first, *_) = lines_of(group, more)
    assert (first.forward_ns, first.backward_ns) == (2 * 100 + 2 * 30, 600)
    assert first.nodes == ("y", "y_grad", "z")
    assert summary.total_ns(WATCHED.lines[2]) == 100 + 70
    assert summary.total_ns(WATCHED.lines[1]) == 200 + 30


def test_iterators_of_a_function_share_a_name_in_its_profile_and_so_have_no_line():
    """A profile of a function has types instead of names for what gets data."""
    ops = {"IteratorGetNext": (2, 30, 2, 20)}
    group = {**SEGMENT["groups"][1], "function": "step", "waited_ns": 70, "ops": ops}
    one = [("IteratorGetNext", "forward", MATMUL, "IteratorGetNext")]
    two = [*one, ("other", "forward", MINIMIZE, "IteratorGetNext")]
    ns = [[line.waiting_ns for line in lines_of(group, graph, [])] for graph in (one, two)]
    assert ns == [[70], [0, 0]]


def test_waiting_for_data_is_not_part_of_forward():
    """What a group waited is that of its dequeues, by their times; one of them has no line."""
    ops = {"a": (2, 30, 2, 20), "b": (2, 60, 2, 40), "c": (2, 10, 2, 5), "y": (2, 100, 2, 60)}
    group = {**SEGMENT["groups"][1], "waited_ns": 1_000, "ops": ops}
    graph = [
        ("a", "forward", MATMUL, "QueueDequeueManyV2"),
        ("b", "forward", MINIMIZE, "QueueDequeueManyV2"),
        ("c", "forward", None, "IteratorGetNext"),
        ("y", "forward", MATMUL, "MatMul"),
    ]
    made = summary.of_lines(group, [graph])
    first, second = summary.lines_of([made], [graph], {}, {})
    assert (first.line, first.forward_ns, first.waiting_ns, first.runs) == (5, 0, 600, 4)
    assert (second.line, second.forward_ns, second.waiting_ns, second.runs) == (3, 200, 300, 8)
    assert summary.total_ns(second) == 500
    assert summary.group_of(group, made).on_lines_ns == 1_100
    # Ops that ran at once cannot have more than the runs that they were in
    assert summary.group_of({**group, "total_ns": 1_099}, made).on_lines_ns == 1_099
    seen = summary.watched(("a.py",), {**SEGMENT, "groups": [group], "graphs": [graph]}, 9_000, 0)
    row = next(row for row in grid(line_table.table(seen)) if row[0] == "train.py:3")
    columns = ("line", "forward", "waiting", "Python", "TensorFlow", "code")
    assert grid(line_table.table(seen))[1] == columns
    assert row == ("train.py:3", "200 ns", "300 ns", "", "", MATMUL[2])


def test_a_node_takes_as_many_times_the_ns_of_the_traced_runs_as_its_group_says():
    """Of three traced runs of a loop, the longest counts as much as the others: 2 x 40 ns each."""
    group = {**SEGMENT["groups"][1], "traced": 3, "scale": 1.25, "ops": {"y": (6, 1_080, 3, 1_000)}}
    (first, *_) = lines_of(group, *SEGMENT["graphs"])
    assert (first.forward_ns, first.runs) == (150, 8)


def test_names_that_are_no_text_are_kept(tmp_path):
    """A program's files may have any bytes in their names."""
    name = "/code/\udcff\u00e4.py"
    watcher.write_segment(str(tmp_path), {**SEGMENT, "lines": {(name, 1, "f"): 5}})
    assert [*summary.read(tmp_path)["lines"]] == [(name, 1, "f")]


def test_a_process_that_left_nothing_is_not_seen(tmp_path):
    seen = summary.watched(("x.py",), summary.read(tmp_path), 700, -9)
    assert seen.process == Process(700, (Owner("not seen", 700),))
    assert seen.notes == ("The process ended before tflab wrote anything.",)
    assert seen.costliest is None


def test_of_a_process_that_was_killed_the_last_segment_counts(tmp_path):
    watcher.write_segment(str(tmp_path), {**SEGMENT, "final": False, "own_ns": 0, "fates": {}})
    seen = summary.watched(("x.py",), summary.read(tmp_path), 10_000, -9)
    assert seen.process.owners[-1] == Owner("not seen", 3_200)
    assert sum(owner.ns for owner in seen.process.owners) == 10_000
    assert seen.notes == ("Python did not end by itself: nothing is known after the first 0.0 s.",)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("", "the results could not be written; the disk may be full."),
    ],
)
def test_a_fault_of_tflab_is_said(fault, said, tmp_path):
    watcher.write_fault(str(tmp_path), fault)
    seen = summary.watched(("x.py",), summary.read(tmp_path), 700, 0)
    assert seen.notes == (f"tflab stopped watching because of this error: {said}",)


def test_a_program_without_runs_has_python_in_one_piece():
    segment = {**SEGMENT, "runs": 0, "groups": [], "owners": {sampler.BEFORE: 5_000}}
    owners = summary.ledger(segment, [], 10_000)
    assert owners == (Owner("Python", 5_000), Owner("tflab", 150), Owner("end of Python", 4_850))


def test_the_end_of_a_program_reads_like_this():
    said, table, fates, lines, few, missing = view.blocks(WATCHED, lines=True)
    # Outside of the first runs and the steps: 10,000 - 1,400 - 3,000 = 5,600
    assert said == (
        "tflab: train.py took 10.0 us and ended with exit status 0. 56 % of its time passed "
        "outside session.run, 2 % at train.py:9 in next_batch."
    )
    assert table.drawing
    assert layout(table) == ["", "time right", "share right", " gives way to 16"]
    assert grid(table) == [
        "Where the time went",
        ("", "time", "share", ""),
        ("start of Python", "100 ns", "1.0 %", ""),
        ("import of TensorFlow", "2.00 us", "20.0 %", ""),
        ("first runs", "1.40 us", "14.0 %", ""),
        ("steps of group 2", "3.00 us", "30.0 %", "4 runs, median 900 ns, 2 traced: loss:0, train"),
        ("Python between steps", "300 ns", "3.0 %", ""),
        ("tflab", "150 ns", "1.5 %", ""),
        ("end of Python", "3.05 us", "30.5 %", ""),
        0,
    ]
    assert fates == (
        "Of the 4 nodes of the graph, at the first run of the largest group: 3 executed and "
        "1 unreached."
    )
    assert few == ("The times of ops are estimates from few traced runs: 2 of the 4 of group 2.")
    # 900 ns are on lines: 500 + 900 + 4,000 - 900 are not
    assert missing == (
        "No line has 4.50 us of the 5.40 us of all runs: first runs (1.40 us) and time in which no "
        "op of a line ran (3.10 us)."
    )
    assert grid(lines) == [
        "The costliest lines, over all runs",
        ("line", "forward", "backward", "updates", "Python", "TensorFlow", "code"),
        ("train.py:3", "200 ns", "600 ns", "", "", "", "y = tf.matmul(x, w)"),
        ("train.py:9", "", "", "", "200 ns", "30 ns", ""),
        ("train.py:5", "", "", "100 ns", "70 ns", "", "train = optimizer.minimize(loss)"),
        ("train.py:4", "", "", "", "", "6 ns", ""),
        0,
    ]
    numbers = ("forward", "backward", "updates", "Python", "TensorFlow")
    right = [f"{name} right" for name in numbers]
    assert layout(lines) == ["line", *right, "code gives way to 16"]


def test_fates_are_listed_from_the_most_frequent_to_the_least():
    fates = {"fused": 2, "executed": 1_203, "unreached": 11}
    assert view.fates(Watched(**{**vars(WATCHED), "fates": fates})) == (
        "Of the 1,216 nodes of the graph, at the first run of the largest group: 1,203 executed, "
        "11 unreached and 2 fused."
    )


def test_executed_nodes_that_did_not_run_are_said():
    def said(not_run):
        return view.fates(replace(WATCHED, not_run=not_run)).partition("unreached.")[2]

    assert said(0) == ""
    assert said(1) == (
        " 1 of the executed nodes ran in no traced run, because its branch was not taken."
    )
    assert said(1_002) == (
        " 1,002 of the executed nodes ran in no traced run, because their branch was not taken."
    )
    assert said(None) == (
        " Whether all executed nodes ran is not known: the graph has branches, and no run was "
        "traced."
    )
    segment = {**SEGMENT, "fates": {**SEGMENT["fates"], "not_run": 2}}
    assert summary.watched(("a.py",), segment, 9, 0).not_run == 2
    assert summary.watched(("a.py",), SEGMENT, 9, 0).not_run == 0


def test_a_line_has_the_time_of_its_comprehensions():
    """Up to Python 3.11 each is a function of its own."""
    lines = {("/a.py", 11, "load"): 5, ("/a.py", 11, "<listcomp>"): 9, ("/a.py", 14, "other"): 12}
    assert summary.costliest_line(lines) == ("a.py:11 in load", 14)
    assert summary.costliest_line({("/a.py", 3, "<module>"): 2}) == ("a.py:3", 2)
    assert summary.costliest_line({}) is None


def test_a_growing_graph_is_told_by_its_many_groups():
    later = Group(
        summary.graph_of({"function": "", "graph": 0, "later": True}), (), {}, 151, *5 * [9]
    )
    seen = Watched(**{**vars(WATCHED), "groups": (*GROUPS, later)})
    assert view.about_group(later) == (
        "150 runs, median 9 ns, 9 traced: runs that fetch or are fed something other than all "
        "earlier groups"
    )
    first, second = view.many_groups(seen.groups)
    assert first == (
        "More than 2 groups of runs differ in what they fetch or in what they are fed; here the "
        "later ones are one group."
    )
    assert second == (
        "2 of the first 2 fetch or feed other tensors than earlier groups, and the runtime "
        "prepares the graph again for each of these groups. If the program makes new nodes "
        "between its runs, make them once, before the first run."
    )
    assert first in [*view.blocks(seen, lines=False)]
    other_shape = replace(GROUPS[1], feeds={"x:0": "(9, 4)"})
    assert [*view.many_groups((GROUPS[1], other_shape, later))] == [first]
    assert not [*view.many_groups(GROUPS)]


def test_functions_after_the_first_groups_are_told_as_functions():
    later = {**SEGMENT["groups"][1], "function": "step", "later": True, "graph": 0, "fetches": ()}
    later = {**later, "traced": 0, "scale": 0, "ops": {}, "calls": 160, "first_runs": 159}
    init = {**SEGMENT["groups"][0], "function": "step"}
    seen = summary.watched(("train.py",), {**SEGMENT, "groups": [init, later]}, 10_000, 0)
    assert [group.graph for group in seen.groups] == ["function step", "later functions"]
    assert view.about_group(seen.groups[1]) == (
        "1 run, median 900 ns: functions as they were traced after all earlier groups"
    )
    assert [*view.many_groups(seen.groups)] == [
        "Each tracing of a function makes a graph, whose calls are a group of runs. After the "
        "first 1 groups, 159 graphs of functions ran, which are one group here."
    ]
    assert next(view.time_outside_runs(seen)).startswith(
        "56 % of its time passed outside calls of functions,"
    )


def test_times_of_lines_that_rest_on_few_traced_runs_say_so():
    init, train = GROUPS
    said = "The times of ops are estimates from few traced runs: 2 of the 4 of group 2"
    assert [*line_table.few_traced(WATCHED)] == [f"{said}."]
    assert f"{said}." in [*view.blocks(WATCHED, lines=True)]
    small = replace(train, total_ns=10)  # in groups that hardly take time
    for others in ((), (small,), (replace(train, calls=11, traced=10), init)):
        seen = replace(WATCHED, groups=(init, train, *others))
        assert [*line_table.few_traced(seen)] == [f"{said}."]
    without = replace(train, on_lines_ns=0)
    assert [*line_table.few_traced(replace(WATCHED, groups=(init, without)))] == []
    for traced in (0, 4):  # none and all
        seen = replace(WATCHED, groups=(init, replace(train, traced=traced)))
        assert [*line_table.few_traced(seen)] == []
    seen = replace(WATCHED, groups=(init, *[replace(train, calls=1_001, traced=9)] * 5))
    assert [*line_table.few_traced(seen)] == [
        "The times of ops are estimates from few traced runs: 9 of the 1,000 of group 2, 9 of the "
        "1,000 of group 3, 9 of the 1,000 of group 4 and of 2 more groups."
    ]


def test_time_that_no_line_has_is_said_under_the_lines():
    init, train = GROUPS
    untraced = replace(train, traced=0, cold_ns=0, total_ns=1_000, on_lines_ns=0)
    unnamed = replace(untraced, traced=4, total_ns=200)

    def said(*groups):
        return [*line_table.without_line(replace(WATCHED, groups=groups))]

    sentence = (
        "No line has 5.70 us of the 6.60 us of all runs: first runs (1.40 us), 1 group that was "
        "not traced (1.00 us), 1 group whose traces have no op of a line (200 ns) and time in "
        "which no op of a line ran (3.10 us)."
    )
    assert said(init, train, untraced, unnamed) == [sentence]
    assert said(untraced, untraced) == [
        "No line has 2.00 us of the 2.00 us of all runs: 2 groups that were not traced (2.00 us)."
    ]
    assert said() == []
    on_lines = replace(train, cold_ns=0, total_ns=4_000, on_lines_ns=3_961)
    assert said(on_lines) == []
    assert said(replace(on_lines, on_lines_ns=3_960)) == [
        "No line has 40 ns of the 4.00 us of all runs: time in which no op of a line ran (40 ns)."
    ]
    # Of less than 1 % each, no reason is named
    small = replace(on_lines, cold_ns=20, total_ns=3_980, on_lines_ns=3_960)
    assert said(small) == ["No line has 40 ns of the 4.00 us of all runs."]
    seen = replace(WATCHED, groups=(init, train, untraced, unnamed))
    assert sentence in [*view.blocks(seen, lines=True)]
    assert not any("No line has" in str(block) for block in view.blocks(seen, lines=False))


def test_a_group_that_was_not_traced_or_has_no_names_is_told_in_fewer_words():
    plain = Group("other graphs", (), {}, 3, None, 500, 0, 0, 0)
    assert view.about_group(plain) == "2 runs: compiled steps"


def test_many_owners_are_shown_as_the_largest_and_the_rest():
    owners = tuple(Owner(f"owner {number}", number) for number in range(1, 10))
    seen = Watched(("-m", "m"), (), Process(45, owners), (), 3, {}, ("m.py:1", 9), False, (), ())
    said, table = view.blocks(seen, lines=False)
    assert said == (
        "tflab: m took 45 ns and ended with exit status 3. No session and no tf.function ran a "
        "graph; 20 % of its time passed at m.py:1."
    )
    assert [row.owner for row in table.rows] == [
        *(f"owner {number}" for number in range(4, 10)),
        "all else",
    ]
    assert [*table.cells()][-1] == ("all else", "6 ns", "13.3 %", "owner 1, owner 2, owner 3")


def test_the_steps_of_the_largest_group_are_always_shown():
    owners = tuple(Owner(f"owner {number}", 100) for number in range(10))
    steps = (Owner("steps of group 1", 5), Owner("steps of group 2", 7))
    process = Process(1_012, owners + steps)
    shown = [row.owner for row in view.rows(Watched(**{**vars(WATCHED), "process": process}))]
    assert shown == [*(f"owner {number}" for number in range(5)), "steps of group 2", "all else"]


def test_a_line_of_little_time_is_not_named():
    little = Watched(**{**vars(WATCHED), "costliest": ("train.py:9", 99)})
    assert [*view.time_outside_runs(little)] == ["56 % of its time passed outside session.run."]
    enough = Watched(**{**vars(WATCHED), "costliest": ("train.py:9", 100)})
    assert "1 % at train.py:9." in next(view.time_outside_runs(enough))
    without = Watched(**{**vars(WATCHED), "costliest": None})
    assert [*view.time_outside_runs(without)] == ["56 % of its time passed outside session.run."]


def test_runs_in_other_threads_are_counted_and_the_times_are_those_of_the_main_thread():
    init, train = SEGMENT["groups"]
    both = {**train, "in_other_threads": 3}
    after = {**SEGMENT["owners"], sampler.AFTER: 800}
    segment = {**SEGMENT, "groups": [init, both], "owners": after}
    seen = summary.watched(("train.py",), segment, 10_000, 0)
    assert [*view.time_outside_runs(seen)] == [
        "56 % of the main thread's time passed outside session.run, 2 % at train.py:9 in "
        "next_batch.",
        "3 of 6 runs happened in other threads; the first table has the main thread's time.",
    ]
    rows = [row for row in view.rows(seen) if row.owner.startswith("Python")]
    assert [(row.owner, row.ns) for row in rows] == [
        ("Python between steps of the main thread", 300),
        ("Python after the last step of the main thread", 800),
    ]


def test_a_main_thread_without_runs_says_how_many_others_had():
    none = {**SEGMENT["groups"][1], "in_other_threads": 5, "main_ns": (0, 0)}
    owners = {sampler.BEFORE: 5_000}
    segment = {**SEGMENT, "runs": 0, "groups": [none], "owners": owners}
    seen = summary.watched(("train.py",), segment, 10_000, 0)
    assert [*view.time_outside_runs(seen)] == [
        "No session and no tf.function ran a graph in its main thread; 2 % of its time passed at "
        "train.py:9 in next_batch.",
        "5 of 5 runs happened in other threads; the first table has the main thread's time.",
    ]


def test_that_all_ops_ran_eagerly_is_said_only_if_it_is_known():
    def said(eager_ns=200, rest="end of Python", **known):
        owners = (Owner(sampler.EAGER, eager_ns), Owner(rest, 10_000 - eager_ns))
        process = Process(10_000, owners)
        seen = replace(WATCHED, groups=(), process=process, costliest=("a.py:3", 500), **known)
        return [*view.time_outside_runs(seen)]

    at_line = "5 % of its time passed at a.py:3."
    none = "No session and no tf.function ran a graph"
    assert said() == [f"{none}, so all ops ran eagerly; {at_line}"]
    assert said(eager_ns=99) == [f"{none}; {at_line}"]
    mapped = Tracing("Dataset_map_double", "a.py:2", False, (), 5)  # tf.data runs it
    assert said(tracings=(mapped,)) == [f"{none}; {at_line}"]
    assert said(rest="not seen") == [f"tflab saw no run; {at_line}"]
    broken = "tflab stopped watching because of this error: KeyError: 'x'"
    assert said(notes=(broken,)) == [f"tflab saw no run; {at_line}"]


def test_lines_without_time_make_no_table():
    lines = tuple(WatchedLine("a.py", 1, "x", ("x",), 0, 0, 0, 0, 0) for _ in range(2))
    bare = {"lines": lines, "fates": {}}
    _, _, *others = view.blocks(Watched(**{**vars(WATCHED), **bare}), lines=True)
    assert others == [*line_table.without_line(WATCHED)]


def test_what_ended_a_program_is_said():
    def ending(**fields):
        return view.ending(Watched(**{**vars(WATCHED), **fields}))

    assert ending(exit_status=-15) == "train.py took 10.0 us and was ended by signal 15."
    assert ending(stopped=True) == "train.py took 10.0 us; --steps interrupted it."
    assert ending(program=("-m", "package.train")).startswith("package.train took ")
