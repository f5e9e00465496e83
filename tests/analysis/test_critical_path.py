"""Paths: small graphs whose longest chains and slack can be counted on fingers."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.records_by_hand import run
from tflab.analysis import critical_path
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath, OpRun

FAR = 10**6  # nanoseconds


def timed(**durations: int) -> list[OpRun]:
    """One after the other, far enough apart."""
    return [run(name, place * FAR, took) for place, (name, took) in enumerate(durations.items())]


def chain(nodes, runs, transfers=()) -> tuple:
    """The longest chain, its length and the possible parallelism."""
    path = critical_path.critical_path(nodes, runs, transfers)
    return path.nodes, path.ns, path.parallelism


DIAMOND = [
    Node("top", "Op"),
    Node("left", "Op", ("top",)),
    Node("right", "Op", ("top:1",)),
    Node("bottom", "Op", ("left", "right")),
]


def test_the_longer_side_of_a_diamond_is_critical_and_the_other_has_slack():
    runs = [run("top", 0, 10), run("left", 10, 20), run("right", 15, 30), run("bottom", 50, 40)]
    assert critical_path.critical_path(DIAMOND, runs) == CriticalPath(
        ("top", "right", "bottom"),
        ns=80,
        parallelism=100 / 80,
        achieved_parallelism=100 / 85,  # from 45 to 50 nothing runs
        slack=(("top", 0), ("left", 10), ("right", 0), ("bottom", 0)),
        durations_ns=(10, 30, 40),
    )


def test_the_chain_goes_back_to_the_parent_that_ended_last_whatever_its_name():
    nodes = [Node("a", "Op"), Node("b", "Op"), Node("c", "Op", ("a", "b"))]
    assert chain(nodes, timed(a=9, b=2, c=1))[0] == ("a", "c")


def test_a_transfer_of_which_one_end_is_missing_joins_nothing():
    transfer = Transfer("a", "send", "recv", "CPU:0", "CPU:1", "float32", (1,), 4)
    for name in ("send", "recv"):
        assert critical_path.dependencies([Node(name, "Op")], [transfer]) == {name: []}


# The longest chain


def test_the_kernels_of_a_node_run_one_after_the_other():
    stream = "/device:GPU:0/stream:13"
    nodes = [Node("a", "Op"), Node("b", "Op", ("a",))]
    kernels = [OpRun(0, "a", "Op", stream, 0, 5), OpRun(0, "a", "Op", stream, FAR, 7)]
    path = critical_path.critical_path(nodes, [*kernels, run("b", 2 * FAR, 1)])
    assert (path.nodes, path.durations_ns) == (("a", "a", "b"), (5, 7, 1))


def test_a_run_waits_through_all_nodes_that_were_not_recorded():
    nodes = [
        *(Node(name, "Op") for name in ("short", "long", "lost")),
        *(Node("first", "Gone", ("short",)), Node("second", "Gone", ("first", "long", "lost"))),
        Node("end", "Op", ("second",)),
    ]
    assert chain(nodes, timed(short=2, long=9, end=1)) == (("long", "end"), 10, 12 / 10)
    assert chain(nodes, timed(short=9, long=2, end=1)) == (("short", "end"), 10, 12 / 10)


def test_the_slack_of_a_node_is_the_least_of_its_runs():
    nodes = [Node("a", "Op"), Node("b", "Op", ("a",)), Node("c", "Op")]
    runs = [run("a", 0, 5), run("a", FAR, 8), run("b", 2 * FAR, 1), run("b", 3 * FAR, 2)]
    path = critical_path.critical_path(nodes, [*runs, run("c", 4 * FAR, 4)])
    assert dict(path.slack) == {"a": 0, "b": 0, "c": 6}  # the first runs have 4


def test_a_later_run_with_more_slack_does_not_hide_an_earlier_one_with_less():
    # a runs twice: 5 and then b's 10; the second run of a, 2 ns, could end 13 ns later
    links = critical_path.Links(["a", "a", "b"], [5, 2, 10], [[], [], [0]])
    path = critical_path.path_of_step(links, 1.0)
    assert (path.nodes, path.ns, dict(path.slack)) == (("a", "b"), 15, {"a": 0, "b": 0})


def test_the_time_of_a_node_is_the_lower_median_of_its_steps():
    runs = [run("a", 0, 5), run("a", 9, 2), run("a", 0, 3, 1), run("b", 0, 1, 1)]
    assert critical_path.median_per_step(runs) == {"a": 3, "b": 1}


def test_a_chain_has_no_parallelism():
    nodes = [Node("a", "Op"), Node("b", "Op", control_inputs=("a",))]
    assert chain(nodes, timed(a=3, b=4)) == (("a", "b"), 7, 1)


def test_ops_that_do_not_wait_for_each_other_are_as_parallel_as_there_are_of_them():
    nodes = [Node(name, "Op") for name in "abcd"]
    assert chain(nodes, timed(a=5, b=5, c=5, d=5)) == (("a",), 5, 4)


def test_a_chain_goes_through_a_transfer_to_the_other_device():
    nodes = [
        Node("a", "Op"),
        Node("send", "_Send", ("a",)),
        Node("recv", "_Recv"),
        Node("b", "Op", ("recv",)),
        Node("c", "Op"),
    ]
    transfer = Transfer("a", "send", "recv", "CPU:0", "CPU:1", "float32", (1,), 4)
    runs = timed(a=10, b=20, c=25)
    path = critical_path.critical_path(nodes, runs, [transfer])
    assert (path.nodes, path.ns, path.parallelism) == (("a", "b"), 30, 55 / 30)
    assert dict(path.slack) == {"a": 0, "b": 0, "c": 5}
    assert chain(nodes, runs) == (("c",), 25, 55 / 25)


def looped(body_ns, back="NextIteration", *more):
    """A loop whose body is `body_ns` long in each iteration; every other node takes 1 ns."""
    nodes = [
        Node("enter", "Enter"),
        Node("merge", "Merge", ("enter", "next")),
        Node("switch", "Switch", ("merge",)),
        Node("body", "Op", ("switch:1", "limit")),
        Node("limit", "Enter"),
        Node("next", back, ("body",)),
        Node("exit", "Exit", ("switch",)),
    ]
    runs, now = [run("limit", 0, 1), run("enter", FAR, 1)], 2 * FAR
    for took in body_ns:
        for name, ns in (("merge", 1), ("switch", 1), ("body", took), ("next", 1)):
            runs.append(run(name, now, ns))
            now += FAR
    for name in ("merge", "switch", "exit"):
        runs.append(run(name, now, 1))
        now += FAR
    return nodes, runs


@pytest.mark.parametrize("back", ["NextIteration", "RefNextIteration"])
def test_a_loop_is_in_the_chain_once_for_each_iteration(back):
    iteration = ("merge", "switch", "body", "next")
    nodes, runs = looped((10, 20, 30), back)
    path = critical_path.critical_path(nodes, runs)
    assert path.nodes == ("enter", *iteration, *iteration, *iteration, "merge", "switch", "exit")
    assert path.ns == 1 + (3 + 10) + (3 + 20) + (3 + 30) + 3 == sum(path.durations_ns)
    assert dict(path.slack) == dict.fromkeys({node.name for node in nodes} - {"limit"}, 0) | {
        "limit": 2  # the enter, the merge and the switch before the body take 3
    }


@pytest.mark.parametrize("exits", [0, 1], ids=["as often", "once more, to leave the loop"])
def test_a_run_waits_for_that_of_its_own_iteration_also_where_later_ones_had_ended(exits):
    nodes = [Node("switch", "Switch"), Node("body", "Op", ("switch",))]
    runs = [
        run("switch", 0, 5),
        run("switch", FAR, 50),
        *[run("switch", 2 * FAR, 3)] * exits,
        run("body", 3 * FAR, 10),
        run("body", 4 * FAR, 1),
    ]
    path = critical_path.critical_path(nodes, runs)
    assert (path.durations_ns, path.ns) == ((50, 1), 51)


def test_a_chain_whose_links_overlap_is_not_given():
    nodes = [Node("a", "Op"), Node("b", "Op", ("a",))]
    late = [run("a", 0, 5 * FAR), run("b", FAR, 10)]
    assert critical_path.critical_path(nodes, late) == CriticalPath((), 0, 0)
    rounded = [run("a", 0, 5000), run("b", 4000, 10)]  # in whole microseconds
    assert critical_path.critical_path(nodes, rounded).nodes == ("a", "b")
    early = [run("b", 0, 10), run("a", FAR, 10)]
    assert critical_path.critical_path(nodes, early) == CriticalPath((), 0, 0)


def test_the_chain_is_no_longer_than_the_step():
    nodes, runs = looped((10, 20, 30))
    span = max(run.start_ns + run.duration_ns for run in runs) - min(run.start_ns for run in runs)
    assert critical_path.critical_path(nodes, runs).ns <= span


def test_of_several_steps_the_chain_is_that_of_the_median():
    runs = [run("a", 0, duration, step) for step, duration in enumerate((1000, 4, 6))]
    assert chain([Node("a", "Op")], runs) == (("a",), 6, 1)


def test_steps_whose_links_overlap_are_left_out_unless_they_are_the_half():
    nodes = [Node("a", "Op"), Node("b", "Op", ("a",))]
    kept = [run("a", 0, 5), run("b", FAR, 10), run("a", 0, 7, 1), run("b", FAR, 10, 1)]
    overlapping = [run("a", 0, 5 * FAR, 2), run("b", FAR, 10, 2)]
    assert chain(nodes, kept + overlapping) == (("a", "b"), 15, 1)
    assert chain(nodes, kept[:2] + overlapping) == ((), 0, 0)


def test_a_step_whose_receive_was_not_recorded_is_left_out():
    nodes = [
        *(Node("a", "Op"), Node("send", "_Send", ("a",))),
        *(Node("recv", "_Recv"), Node("b", "Op", ("recv",))),
    ]
    transfer = Transfer("a", "send", "recv", "CPU:0", "CPU:1", "float32", (1,), 4)
    steps = [timed(a=5, b=10), timed(a=5, recv=90, b=10), timed(a=5, b=11)]
    runs = [run._replace(step=step) for step, own in enumerate(steps) for run in own]
    assert chain(nodes, runs, [transfer]) == (("a", "recv", "b"), 105, 1)


def test_runs_and_inputs_of_unknown_nodes_do_not_count():
    nodes = [Node("a", "Op", ("elsewhere",))]
    assert chain(nodes, timed(a=1, elsewhere=9)) == (("a",), 1, 1)


def test_without_runs_there_is_no_chain():
    assert critical_path.critical_path(DIAMOND, []) == CriticalPath((), 0, 0)


def test_without_nodes_there_is_no_chain():
    assert critical_path.critical_path([], timed(a=1)) == CriticalPath((), 0, 0)


# Graphs that are deep, or that TensorFlow would not have made

MANY = [f"n{index}" for index in range(20_000)]


@pytest.mark.slow
def test_a_deep_graph_is_walked_without_recursion():
    nodes = [Node("n0", "Op"), *(Node(name, "Op", (last,)) for last, name in pairwise(MANY))]
    runs = [run(name, place, 1) for place, name in enumerate(MANY)]
    path = critical_path.critical_path(nodes[::-1], runs)
    assert (path.nodes, path.ns) == (tuple(MANY), 20_000)
    assert {ns for _, ns in path.slack} == {0}


def test_a_cycle_is_cut_and_where_its_nodes_did_not_wait_there_is_no_chain():
    nodes = [
        Node("in", "Op"),
        Node("a", "Op", ("in", "c")),
        Node("b", "Op", ("a",)),
        Node("c", "Op", ("b", "c")),  # waits for itself, too
        Node("out", "Op", ("c",)),
    ]
    runs = timed(**{"in": 1, "b": 3, "c": 4, "out": 5, "a": 2})  # cut where `b` waits for `a`
    assert chain(nodes, runs) == (("b", "c", "out"), 12, 15 / 12)
    assert chain(nodes, timed(**{"in": 1, "a": 2, "b": 3, "c": 4, "out": 5})) == ((), 0, 0)


@pytest.mark.slow
def test_a_cycle_of_everything_does_not_end_the_search():
    nodes = [Node(name, "Op", (last,)) for last, name in pairwise([MANY[-1], *MANY])]
    assert set(critical_path.waits(nodes, ())) == set(MANY)


def test_an_order_keeps_all_nodes_and_puts_parents_first():
    parents = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}
    ordered = critical_path.in_order(parents)
    assert (list(ordered), ordered) == (["a", "b", "c", "d"], parents)


# Work over busy time


def test_achieved_parallelism_is_work_over_the_time_in_which_something_ran():
    together = [run("a", 0, 10), run("b", 0, 10), run("c", 50, 10)]
    assert critical_path.achieved_parallelism(together) == 30 / 20


def test_runs_of_different_steps_do_not_overlap():
    assert critical_path.achieved_parallelism([run("a", 0, 10), run("a", 0, 10, step=1)]) == 1


def test_without_time_nothing_was_achieved():
    assert (
        critical_path.achieved_parallelism([])
        == critical_path.achieved_parallelism(timed(a=0))
        == 0
    )


# What holds for every graph


@st.composite
def graphs(draw):
    """(nodes, runs): each node waits for some of those before it; durations are even."""
    count = draw(st.integers(1, 12))
    nodes, runs = [], []
    for index in range(count):
        before = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else ()
        nodes.append(Node(f"n{index}", "Op", tuple(f"n{parent}" for parent in before)))
        runs.append(run(f"n{index}", 0, 2 * draw(st.integers(0, 20))))
    return nodes, runs


def later(runs: list[OpRun], name: str, ns: float) -> list[OpRun]:
    """The same runs, but one node takes longer."""
    return [run._replace(duration_ns=run.duration_ns + ns * (run.name == name)) for run in runs]


@pytest.mark.slow
@settings(max_examples=30)
@given(graphs())
def test_an_op_may_end_later_by_its_slack_and_not_by_more(graph):
    nodes, runs = graph
    path = critical_path.critical_path(nodes, runs)
    assert {name for name, _ in path.slack} == {node.name for node in nodes}
    for name, slack in path.slack:
        assert slack >= 0
        assert critical_path.critical_path(nodes, later(runs, name, slack)).ns == path.ns
        assert critical_path.critical_path(nodes, later(runs, name, slack + 1)).ns == path.ns + 1
    assert all(dict(path.slack)[name] == 0 for name in path.nodes)


@settings(max_examples=30)
@given(graphs())
def test_the_chain_is_no_longer_than_the_work_and_no_shorter_than_any_op(graph):
    nodes, runs = graph
    path = critical_path.critical_path(nodes, runs)
    durations = {run.name: run.duration_ns for run in runs}
    assert max(durations.values()) <= path.ns <= sum(durations.values())
    assert path.ns == sum(durations[name] for name in path.nodes)
    waits = {node.name: node.inputs for node in nodes}
    assert all(before in waits[after] for before, after in pairwise(path.nodes))
    assert path.ns * path.parallelism == pytest.approx(sum(durations.values()))


# A real trace


@pytest.mark.tensorflow
@pytest.mark.parametrize("model, options", [("lenet", {}), ("toy", {"devices": 2})])
def test_a_walk_has_slack_for_its_ops(walked, model, options):
    stage = walked(model, **options)["execution"]
    path = stage.critical_path
    assert path.parallelism >= 1
    assert path.achieved_parallelism >= 1
    assert {name for name, _ in path.slack} <= {run.name for run in stage.runs}
    assert all(dict(path.slack)[name] == 0 for name in path.nodes)
    assert path.ns == sum(path.durations_ns) <= max(step.wall_ns for step in stage.step_times)


@pytest.mark.tensorflow
@pytest.mark.parametrize("lowered", [True, False], ids=["v1 frames", "functional"])
def test_a_recorded_loop_gives_convert_and_lifecycle_one_number(lowered, tmp_path):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from tflab.convert import conversion, read
    from tflab.runtime import nodes as graph_nodes
    from tflab.runtime import trace

    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [200, 200])
        if lowered:
            out = tf1.while_loop(lambda i, _: i < 7, lambda i, y: (i + 1, y @ x), [0, x])[1]
        else:
            out = tf.raw_ops.While(
                input=[0, x, x],
                cond=tf.function(lambda i, _, __: i < 7).get_concrete_function(
                    tf.TensorSpec([], tf.int32),
                    tf.TensorSpec([200, 200]),
                    tf.TensorSpec([200, 200]),
                ),
                body=tf.function(lambda i, y, x: (i + 1, y @ x, x)).get_concrete_function(
                    tf.TensorSpec([], tf.int32),
                    tf.TensorSpec([200, 200]),
                    tf.TensorSpec([200, 200]),
                ),
            )[1]
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=3, output_partition_graphs=True)
        with tf1.Session() as session:
            session.run(out, {x: [[0.0] * 200] * 200}, options, metadata)
    types = {node.name: node.op for graph in metadata.partition_graphs for node in graph.node}
    ran = [
        node
        for graph in metadata.partition_graphs
        for node in graph_nodes.from_graph_def(graph, {}, {})
    ]
    path = critical_path.critical_path(ran, trace.op_runs(0, metadata.step_stats, types))
    (tmp_path / "run_metadata").write_bytes(metadata.SerializeToString())
    recorded = read.read([str(tmp_path / "run_metadata")])
    assert conversion.convert(recorded).critical_path == path
    assert path.ns == sum(path.durations_ns) <= recorded.steps[0].wall_ns
    products = [name for name in path.nodes if types[name].endswith("MatMul")]
    assert len(products) == (7 if lowered else 0)
    assert lowered or any("While" in types[name] for name in path.nodes)
