"""Paths: small graphs whose longest chains can be counted on fingers."""

from itertools import pairwise

import numpy as np
import pytest

from tests.examples.runs import run, runs
from tests.graph_notation import graph
from tests.records_by_hand import run as run_of
from tflab.analysis import critical_path
from tflab.records.graph import Node, in_order
from tflab.records.placed import Transfer
from tflab.records.timed import CriticalPath

FAR = 10**6  # nanoseconds
NO_PATH = CriticalPath((), 0, 0, ())
SENT = Transfer("a", "send", "recv", "CPU:0", "CPU:1", "float32", (1,), 4, "")


def timed(text):
    """Runs one after the other and far apart, by their durations; by their starts if these are
    said, too."""
    parts = [part.split(maxsplit=1) for part in text.split(";") if part]
    said = [rest.partition(" ")[2][:1].isdigit() for _, rest in parts]
    return [
        run(f"{name} {rest}" if starts else f"{name} {place * FAR} {rest}")
        for place, ((name, rest), starts) in enumerate(zip(parts, said, strict=True))
    ]


def path_of(nodes, runs, transfers=(SENT,)):
    return critical_path.critical_path(graph(nodes), runs, transfers)


# Graph | runs | the longest chain with its durations | the work of its step

AB = "a; b(a)"
SENDS = "a; send=_Send(a); recv=_Recv; b(recv)"
CYCLE = "in; a(in,c); b(a); c(b,c); out(c)"  # c waits for itself, too
LOST = "short; long; lost; first=Gone(short); second=Gone(first,long,lost); end(second)"
PATHS = {
    "the longer side of a diamond is critical": """
        top; left(top); right(top:1); bottom(left,right)
        | top 0 10; left 10 20; right 15 30; bottom 50 40
        | top 10, right 30, bottom 40 | 100""",
    "the chain goes back to the parent that ended last whatever its name": """
        a; b; c(a,b) | a 9; b 2; c 1 | a 9, c 1 | 12""",
    "a chain has no parallelism": "a; b(^a) | a 3; b 4 | a 3, b 4 | 7",
    "ops that do not wait for each other are as parallel as there are of them": """
        a; b; c; d | a 5; b 5; c 5; d 5 | a 5 | 20""",
    "the kernels of a node run one after the other": f"""
        {AB} | a 5 @/gpu:0/stream:13; a 7 @/gpu:0/stream:13; b 1 | a 5, a 7, b 1 | 13""",
    "a run waits through all nodes that were not recorded": f"""
        {LOST} | short 2; long 9; end 1 | long 9, end 1 | 12""",
    "also through several of them": f"""
        {LOST} | short 9; long 2; end 1 | short 9, end 1 | 12""",
    "of several runs of a node each is a link": f"""
        {AB}; c | a 5; a 8; b 1; b 2; c 4 | a 8, b 2 | 20""",
    "a chain goes through a transfer to the other device": f"""
        {SENDS}; c | a 10; b 20; c 25 | a 10, b 20 | 55""",
    "without the transfer there is none": """
        a; send=_Send(a); other=_Recv; b(other); c
        | a 10; b 20; c 25 | c 25 | 55""",
    # In whole microseconds, a run may begin before the one that it waits for has ended
    "a chain whose links overlap by rounding": f"""
        {AB} | a 0 5000; b 4000 10 | a 5000, b 10 | 5010""",
    "of several steps the chain is that of the lower median": """
        a | a 1000; a 4 #1; a 6 #2; a 7 #3 | a 6 | 6""",
    "a step whose links overlap is left out unless such steps are the half": f"""
        {AB} | a 5; b 10; a 7 #1; b 10 #1; a 0 5e6 #2; b 1e6 10 #2
        | a 5, b 10 | 15""",
    "a step whose receive was not recorded is left out": f"""
        {SENDS} | a 5; b 10; a 5 #1; recv 90 #1; b 10 #1; a 5 #2; b 11 #2
        | a 5, recv 90, b 10 | 105""",
    "runs and inputs of unknown nodes do not count": """
        a(elsewhere) | a 1; elsewhere 9 | a 1 | 1""",
    "a cycle is cut where a node did not wait": f"""
        {CYCLE} | in 1; b 3; c 4; out 5; a 2
        | b 3, c 4, out 5 | 15""",
    # The runs of a loop: its n-th run waits for that of its own iteration
    "a run of an iteration waits for none of a later one": """
        switch=Switch; body(switch) | switch 5; switch 50; body 10; body 1
        | switch 50, body 1 | 66""",
    "a switch runs once more to leave the loop": """
        switch=Switch; body(switch) | switch 5; switch 50; switch 3; body 10; body 1
        | switch 50, body 1 | 69""",
}


def numbers(text):
    return [(name, int(ns)) for name, ns in (part.split() for part in text.split(","))]


@pytest.mark.parametrize("case", PATHS.values(), ids=PATHS.keys())
def test_the_longest_chain(case):
    nodes, recorded, chain, work = case.split("|")
    path = path_of(nodes, timed(recorded))
    assert list(zip(path.nodes, path.durations_ns, strict=True)) == numbers(chain)
    assert path.ns == sum(path.durations_ns)
    assert path.parallelism == int(work) / path.ns


@pytest.mark.parametrize(
    ("nodes", "recorded"),
    [
        (AB, "a 0 5e6; b 1e6 10"),  # overlapping
        (AB, "b 10; a 10"),  # in the wrong order
        (AB, "a 5; b 10; a 0 5e6 #2; b 1e6 10 #2"),  # in half of the steps
        (CYCLE, "in 1; a 2; b 3; c 4; out 5"),
        ("", "a 1"),
        (AB, ""),
    ],
)
def test_where_runs_did_not_wait_there_is_no_chain(nodes, recorded):
    assert path_of(nodes, timed(recorded)) == NO_PATH


def test_without_time_there_is_no_parallelism():
    assert path_of("a", timed("a 0")).parallelism == 0


def test_a_transfer_of_which_one_end_is_missing_joins_nothing():
    for name in ("send", "recv"):
        assert critical_path.waits([Node(name, "Op")], [SENT]) == {name: []}


def test_the_time_of_a_node_is_the_median_of_its_steps():
    recorded = runs("a 0 5; a 9 2; a 0 3 #1; b 0 1 #1")
    assert critical_path.median_per_step(recorded) == {"a": 5, "b": 1}


@pytest.mark.parametrize("back", ["NextIteration", "RefNextIteration"])
def test_a_loop_is_in_the_chain_once_for_each_iteration(back):
    nodes = f"""enter=Enter; merge=Merge(enter,next); switch=Switch(merge); body(switch:1,limit);
        limit=Enter; next={back}(body); exit=Exit(switch)"""
    turns = [f"merge 1; switch 1; body {took}; next 1" for took in (10, 20, 30)]
    recorded = timed("; ".join(["limit 1; enter 1", *turns, "merge 1; switch 1; exit 1"]))
    path = path_of(nodes, recorded)
    assert path.nodes == ("enter", *["merge", "switch", "body", "next"] * 3, *path.nodes[-3:])
    assert path.nodes[-3:] == ("merge", "switch", "exit")
    assert path.ns == 1 + (3 + 10) + (3 + 20) + (3 + 30) + 3 == sum(path.durations_ns)


# Graphs that are deep, or that TensorFlow would not have made

MANY = [f"n{index}" for index in range(20_000)]


@pytest.mark.slow
def test_a_deep_graph_is_walked_without_recursion():
    nodes = [Node("n0", "Op"), *(Node(name, "Op", (last,)) for last, name in pairwise(MANY))]
    recorded = [run_of(name, place, 1) for place, name in enumerate(MANY)]
    path = critical_path.critical_path(nodes[::-1], recorded)
    assert (path.nodes, path.ns) == (tuple(MANY), 20_000)


def test_an_order_keeps_all_nodes_and_puts_parents_first():
    parents = {"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}
    ordered = in_order(parents)
    assert (list(ordered), ordered) == (["a", "b", "c", "d"], parents)


# A real trace


@pytest.mark.tensorflow
@pytest.mark.parametrize("model, options", [("lenet", {}), ("toy", {"devices": 2})])
def test_a_walk_has_a_chain_of_its_ops(walked, model, options):
    stage = walked(model, **options)["execution"]
    path = stage.critical_path
    assert path.parallelism >= 1
    assert {*path.nodes} <= {run.name for run in stage.runs}
    assert path.ns == sum(path.durations_ns) <= max(step.wall_ns for step in stage.step_times)


@pytest.mark.tensorflow
def test_a_recorded_loop_gives_convert_and_lifecycle_one_number(tmp_path):
    import tensorflow as tf
    import tensorflow.compat.v1 as tf1

    from tflab.convert import conversion, read
    from tflab.runtime import nodes as graph_nodes
    from tflab.runtime import trace

    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [500, 500])  # so that nothing else takes as long
        out = tf1.while_loop(lambda i, _: i < 7, lambda i, y: (i + 1, y @ x), [0, x])[1]
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=3, output_partition_graphs=True)
        data = {x: np.zeros((500, 500))}
        session.run(out, data)
        session.run(out, data, options, metadata)
    parts = [graph_nodes.from_graph_def(part, {}, {}) for part in metadata.partition_graphs]
    ran = [node for part in parts for node in part]
    types = {node.name: node.op for node in ran}
    path = critical_path.critical_path(ran, trace.op_runs(0, metadata.step_stats, types))
    (tmp_path / "run_metadata").write_bytes(metadata.SerializeToString())
    recorded = read.read([str(tmp_path / "run_metadata")])
    assert conversion.convert(recorded).critical_path == path
    assert path.ns == sum(path.durations_ns) <= recorded.steps[0].wall_ns
    assert sum(types[name].endswith("MatMul") for name in path.nodes) == 7
