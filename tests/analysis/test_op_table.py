"""Op table: a few nodes, put together by hand and by tflab."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab.analysis import op_table, row_labels, statistics
from tflab.errors import UsageError
from tflab.records.graph import Source
from tflab.records.measured import Costs, NodeStats, OpStats
from tflab.records.placed import Fate
from tflab.records.timed import OpRun

STEPS = 2
IMAGES = 8  # that the steps worked on
CPU = "/device:CPU:0"


def node(name, op, total, calls=STEPS, start=0.0, median=0.0, p95=0.0, requested=0, std=0.0):
    mean = total / calls
    return NodeStats(name, op, CPU, calls, total, mean, median, p95, start, requested, std)


STATS = (
    node("pool/MaxPool", "MaxPool", 100, start=30, median=45, p95=55, requested=64, std=5),
    node("conv/Relu", "_FusedConv2D", 600, start=20, median=290, p95=310, requested=128, std=10),
    node("_arg_images_0_0", "_Arg", 20, start=0, median=10, p95=10),
    node("gradients/conv/Relu_grad/ReluGrad", "ReluGrad", 80, start=40, median=40, p95=40),
    node("conv2/Relu", "_FusedConv2D", 200, calls=4, start=35, median=50, p95=70, requested=8),
)
COSTS = (
    Costs("conv/Relu", 3000, 100),
    Costs("pool/MaxPool", 400, 200),
    Costs("_arg_images_0_0", None, 0),
    Costs("gradients/conv/Relu_grad/ReluGrad", None, 50),
    Costs("conv2/Relu", 500, 25),
)
LEDGER = (
    Fate("conv/Conv2D", "fused", "remapper", "conv/Relu"),
    Fate("conv/BiasAdd", "fused", "remapper", "conv/Relu"),
    Fate("conv/Relu", "executed", "remapper", None),
    Fate("pool/MaxPool", "executed", None, None),
    Fate("conv2/Conv2D", "compiled", "XLA", "conv2/Relu"),
    Fate("conv2/Relu", "executed", None, None),
    Fate("conv2/twin", "merged", "CSE", "conv2/Relu"),
    Fate("conv2/old", "removed", "pruner", None),
)


def line(number, file="/models/net.py"):
    return Source(file, number, "build", "...")


SOURCES = {
    "conv/Conv2D": line(10),
    "conv/BiasAdd": line(11),
    "conv/Relu": line(11),
    "pool/MaxPool": line(12),
    "gradients/conv/Relu_grad/ReluGrad": line(11),
    "conv2/Conv2D": line(10),
    "conv2/Relu": line(11),
}


def tabulated(by, **options):
    given = {"costs": COSTS, "ledger": LEDGER, "sources": SOURCES} | options
    return op_table.table(STATS, by, STEPS, IMAGES, **given)


def test_a_row_by_type():
    assert tabulated("op")[0] == OpStats(
        key="_FusedConv2D",
        ops=("_FusedConv2D",),
        nodes=("conv/Relu", "conv2/Relu"),
        fused_from=("conv/Conv2D", "conv/BiasAdd", "conv2/Conv2D"),
        calls=6,
        total_ns=800,
        self_ns=800,
        mean_ns=800 / 6,
        median_ns=(2 * 290 + 4 * 50) / 6,
        p95_ns=(2 * 310 + 4 * 70) / 6,
        share=0.8,
        cumulative_share=0.8,
        requested_bytes=(2 * 128 + 4 * 8) // 2,
        flops=(2 * 3000 + 4 * 500) // 2,
        gflops=(2 * 3000 + 4 * 500) / 800,
        # Around 800 / 6: two calls of 300 +- 10, and four of 50.
        std_ns=pytest.approx(((2 * (500 / 3) ** 2 + 2 * 10**2 + 4 * (250 / 3) ** 2) / 6) ** 0.5),
        step_ns=400,
        step_std_ns=None,
        step_median_ns=None,
        peak_bytes=None,
        image_ns=100,
        forward_ns=800,
        backward_ns=0,
        update_ns=0,
    )


def test_the_rows_of_lines_have_their_code():
    rows = tabulated("op")
    coded = op_table.with_shares(rows, {"_FusedConv2D": "h = conv(x)"})
    assert [row.code for row in coded] == ["h = conv(x)", *[None] * (len(rows) - 1)]
    assert [row.share for row in coded] == [row.share for row in rows]


PHASES = {
    "gradients/conv/Relu_grad/ReluGrad": "backward",
    "conv2/Relu": "update",
    "of_another_graph": "update",
}


@pytest.mark.parametrize(
    ("by", "spent"),
    [
        (
            "line",
            {"net.py:11": (600, 80, 200), "net.py:12": (100, 0, 0), "(runtime)": (20, 0, 0)},
        ),
        (
            "op",
            {
                "_FusedConv2D": (600, 0, 200),
                "MaxPool": (100, 0, 0),
                "ReluGrad": (0, 80, 0),
                "_Arg": (20, 0, 0),
            },
        ),
    ],
)
def test_the_time_of_a_row_is_that_of_its_three_phases(by, spent):
    rows = tabulated(by, phases=PHASES)
    assert {row.key: (row.forward_ns, row.backward_ns, row.update_ns) for row in rows} == spent
    assert [sum(spent[row.key]) for row in rows] == [row.self_ns for row in rows]


def test_updates_of_an_optimiser_without_a_line_have_a_row_of_their_own():
    sources = {name: SOURCES[name] for name in SOURCES if name != "conv2/Relu"}
    rows = tabulated("line", phases=PHASES, sources=sources)
    assert summary(rows) == [
        ("net.py:11", 680),
        ("(the optimiser's step)", 200),
        ("net.py:12", 100),
        ("(runtime)", 20),
    ]


def test_a_row_by_node():
    assert tabulated("node")[2] == OpStats(
        key="pool/MaxPool",
        ops=("MaxPool",),
        nodes=("pool/MaxPool",),
        fused_from=(),
        calls=2,
        total_ns=100,
        self_ns=100,
        mean_ns=50,
        median_ns=45,
        p95_ns=55,
        share=0.1,
        cumulative_share=0.9,
        requested_bytes=64,
        flops=400,
        gflops=8,
        std_ns=5,
        step_ns=50,
        step_std_ns=5,
        step_median_ns=45,
        peak_bytes=None,
        image_ns=12.5,
        forward_ns=100,
        backward_ns=0,
        update_ns=0,
    )


def summary(found):
    return [(row.key, row.self_ns) for row in found]


def test_nodes_and_types_stand_in_the_order_of_self_time():
    assert summary(tabulated("op")) == [
        ("_FusedConv2D", 800),
        ("MaxPool", 100),
        ("ReluGrad", 80),
        ("_Arg", 20),
    ]
    equal = [node("b", "Op", 5), node("a", "Op", 5), node("c", "Op", 6)]
    assert summary(op_table.table(equal, "node", 1, None)) == [("c", 6), ("a", 5), ("b", 5)]


def run(name, op, duration, step=0):
    return OpRun(step, name, op, CPU, 0, duration)


def of_runs(runs, by):
    rows = op_table.table(statistics.fold(runs), by, 1, None)
    return [
        (row.key, row.op, row.calls, row.total_ns, row.self_ns, row.mean_ns, row.share)
        for row in rows
    ]


RUNS = [
    run("conv1/Relu", "_FusedConv2D", 50),
    run("add", "AddV2", 10),
    run("conv2/Relu", "_FusedConv2D", 20),
    run("conv1/Relu", "_FusedConv2D", 30, step=1),
    run("add", "AddV2", 10, step=1),
    run("conv2/Relu", "_FusedConv2D", 40, step=1),
]


def test_kept_runs_have_a_row_for_each_node_the_most_expensive_first():
    assert of_runs(RUNS, "node") == [
        ("conv1/Relu", "_FusedConv2D", 2, 80, 80, 40, 80 / 160),
        ("conv2/Relu", "_FusedConv2D", 2, 60, 60, 30, 60 / 160),
        ("add", "AddV2", 2, 20, 20, 10, 20 / 160),
    ]


def test_kept_runs_have_a_row_for_each_type_that_ran():
    assert of_runs(RUNS, "op") == [
        ("_FusedConv2D", "_FusedConv2D", 4, 140, 140, 35, 140 / 160),
        ("AddV2", "AddV2", 2, 20, 20, 10, 20 / 160),
    ]


def test_a_node_that_ran_as_two_types_has_two_rows():
    runs = [run("x", "Conv2D", 5), run("x", "_FusedConv2D", 4)]
    assert of_runs(runs, "node") == [
        ("x", "Conv2D", 1, 5, 5, 5, 5 / 9),
        ("x", "_FusedConv2D", 1, 4, 4, 4, 4 / 9),
    ]


def test_ops_that_took_no_time_have_no_share():
    assert of_runs([run("a", "Op", 0)], "node") == [("a", "Op", 1, 0, 0, 0, 0)]


OP_RUNS = st.builds(
    run, st.sampled_from("abc"), st.sampled_from(["Mul", "Add"]), st.integers(1, 2**40)
)


@settings(max_examples=30)
@given(st.lists(OP_RUNS, min_size=1), st.sampled_from(["op", "node"]))
def test_rows_add_up_to_all_runs(runs, by):
    rows = op_table.table(statistics.fold(runs), by, 1, None)
    assert sum(row.calls for row in rows) == len(runs)
    assert sum(row.total_ns for row in rows) == sum(run.duration_ns for run in runs)
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_the_time_of_an_image_is_not_known_where_the_images_are_not():
    (row,) = op_table.table([node("a", "Op", 5)], "node", 1, None)
    assert row.image_ns is None


def test_the_peak_of_a_row_comes_from_whoever_has_the_allocations():
    rows = tabulated("op", peak_bytes=lambda rows: [len(names) for names in rows])
    assert [(row.key, row.peak_bytes) for row in rows[:2]] == [("_FusedConv2D", 2), ("MaxPool", 1)]


def test_layers_stand_in_the_order_of_execution():
    assert summary(tabulated("layer")) == [
        ("(runtime)", 20),
        ("conv", 600),
        ("pool", 100),
        ("conv2", 200),
        ("gradients/conv", 80),
    ]


def test_a_layer_stands_where_its_last_node_runs_since_variables_are_read_early():
    stats = [
        node("b/x", "X", 1, start=2),
        node("a/y", "Y", 1, start=9),
        node("a/x", "X", 1, start=1),
    ]
    found = op_table.table(stats, "layer", 1, None)
    assert [(row.key, row.nodes, row.ops) for row in found] == [
        ("b", ("b/x",), ("X",)),
        ("a", ("a/x", "a/y"), ("X", "Y")),
    ]


def test_layers_within_calls_are_rows_of_their_own_names():
    call = "StatefulPartitionedCall/StatefulPartitionedCall/net"
    nodes = [
        node("Func/StatefulPartitionedCall/input/_0", "Identity", 1, start=1),
        node(f"{call}/conv1/Conv2D", "Conv2D", 1, start=2),
        node(f"{call}/dense/MatMul", "MatMul", 1, start=3),
    ]
    found = op_table.table(nodes, "layer", 1, None)
    assert [row.key for row in found] == ["StatefulPartitionedCall", "net/conv1", "net/dense"]


def test_layers_that_run_as_one_op_are_one_row_where_that_runs():
    ledger = [
        Fate("block/conv/Conv2D", "fused", "remapper", "block/relu/Relu"),
        Fate("block/bn/Norm", "fused", "remapper", "block/relu/Relu"),
        Fate("block/relu/Relu", "executed", "remapper", None),
        Fate("block/add/Add", "executed", None, None),
        Fate("out/MatMul", "compiled", "xla", "cluster_0/xla_run"),
    ]
    stats = [
        node("block/conv/Conv2D/ReadVariableOp", "ReadVariableOp", 1, start=0),
        node("block/bn/ReadVariableOp", "ReadVariableOp", 2, start=1),
        node("block/add/Add", "Add", 5, start=7),
        node("block/relu/Relu", "_FusedConv2D", 90, start=3),
        node("cluster_0/xla_run", "_XlaRun", 3, start=9),
    ]
    sources = dict.fromkeys(fate.name for fate in ledger)
    assert summary(op_table.table(stats, "layer", 1, None, ledger=ledger, sources=sources)) == [
        ("block/conv + bn + relu", 93),
        ("block/add", 5),
        ("cluster_0", 3),
    ]


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("_arg_images_0_0", "_Arg"),
        ("_retval_loss/mean_0_0", "_Retval"),
        ("_SOURCE", "NoOp"),
        ("conv1/Relu/_12", "_Send"),
        ("conv1/Relu/_13", "_Recv"),
    ],
)
@pytest.mark.parametrize("by", ["layer", "line"])
def test_the_runtimes_own_nodes_have_a_row_of_their_own(by, name, op):
    assert [row.key for row in op_table.table([node(name, op, 1)], by, 1, None)] == ["(runtime)"]


def test_layers_that_start_at_once_stand_in_the_order_of_their_names():
    stats = [node("b/x", "X", 1, start=2), node("a/x", "Y", 1, start=2)]
    assert [row.key for row in op_table.table(stats, "layer", 1, None)] == ["a", "b"]


# By line


def test_a_fused_nodes_time_belongs_to_its_line_and_the_other_lines_are_named():
    assert [(row.key, row.self_ns, row.fused_from) for row in tabulated("line")] == [
        ("net.py:11", 880, ("net.py:10",)),
        ("net.py:12", 100, ()),
        ("(runtime)", 20, ()),
    ]
    assert [row.code for row in tabulated("line")] == ["...", "...", None]
    assert {row.code for row in tabulated("layer")} == {None}


def test_a_node_without_a_line_says_so():
    stats = [node("ConstantFolding/mul", "Const", 1), node("imported", "Mul", 1)]
    (row,) = op_table.table(stats, "line", 1, None, sources={"imported": None})
    assert (row.key, row.nodes) == ("(no line)", ("ConstantFolding/mul", "imported"))


def test_a_fused_node_without_a_line_says_so():
    ledger = [Fate("a/x", "fused", "remapper", "a/y"), Fate("a/y", "executed", None, None)]
    (row,) = op_table.table(
        [node("a/y", "Y", 1)], "line", 1, None, ledger=ledger, sources={"a/y": line(1)}
    )
    assert (row.key, row.fused_from) == ("net.py:1", ("(no line)",))


def test_two_files_of_one_name_are_not_mixed_up():
    stats = [node("a", "X", 3), node("b", "X", 2), node("c", "X", 1)]
    sources = {"a": line(1, "/one/net.py"), "b": line(1, "/two/net.py"), "c": line(1, "/main.py")}
    assert [row.key for row in op_table.table(stats, "line", 1, None, sources=sources)] == [
        "/one/net.py:1",
        "/two/net.py:1",
        "main.py:1",
    ]


# Quantiles


def test_quantiles_of_several_nodes_come_from_whoever_has_the_runs():
    asked = []

    def quantile(names, q):
        asked.append((names, q))
        return 100 * q

    first = tabulated("op", quantile=quantile)[0]
    assert (first.median_ns, first.p95_ns) == (50, 95)
    assert asked[:2] == [(("conv/Relu", "conv2/Relu"), 0.5), (("conv/Relu", "conv2/Relu"), 0.95)]


# Deviations


def test_the_deviation_of_a_step_comes_from_whoever_has_the_steps():
    asked = []

    def step_std_ns(names):
        asked.append(names)
        return 7.0

    found = tabulated("layer", step_std_ns=step_std_ns, step_median_ns=lambda names: len(names))
    assert [row.step_median_ns for row in found] == [len(row.nodes) for row in found]
    assert {row.step_std_ns for row in found} == {7}
    assert asked == [row.nodes for row in found]


def test_without_the_steps_only_a_node_that_runs_once_in_each_has_their_deviation():
    assert {row.key: row.step_std_ns for row in tabulated("node")} == {
        "conv/Relu": 10,
        "conv2/Relu": None,  # which runs twice in a step
        "pool/MaxPool": 5,
        "gradients/conv/Relu_grad/ReluGrad": 0,
        "_arg_images_0_0": 0,
    }


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 10**9), min_size=1), min_size=1))
def test_the_deviation_of_a_row_is_that_of_all_its_calls(durations):
    stats = [
        node(f"a/{index}", "X", sum(times), len(times), std=float(np.std(times)))
        for index, times in enumerate(durations)
    ]
    (row,) = op_table.table(stats, "layer", 1, None)
    assert row.std_ns == pytest.approx(np.std(np.concatenate(durations)), rel=1e-9, abs=1e-3)


# What is not known


def unknown(*costs):
    stats = [node("a/x", "X", 10), node("a/y", "Y", 10)]
    (row,) = op_table.table(stats, "layer", STEPS, None, costs=costs)
    return row.flops, row.gflops


def test_without_costs_there_are_no_flops():
    assert unknown() == (None, None)


def test_where_the_flops_of_one_node_are_not_known_the_row_has_none():
    assert unknown(Costs("a/x", 40, 10), Costs("a/y", None, 10)) == (None, None)
    assert unknown(Costs("a/x", 40, 10)) == (None, None)
    assert unknown(Costs("a/x", 40, 10), Costs("a/y", 0, 10)) == (40, 4)


def test_no_covered_flops_are_not_zero_flops():
    assert unknown(Costs("a/x", None, 10), Costs("a/y", None, 10)) == (None, None)


def test_nodes_that_took_no_time_have_no_speed_and_no_share():
    (row,) = op_table.table([node("a", "X", 0)], "node", 1, None, costs=[Costs("a", 5, 5)])
    assert row.gflops is None
    assert (row.share, row.cumulative_share) == (0, 0)


@pytest.mark.parametrize("by", row_labels.KEYS)
def test_without_statistics_there_are_no_rows(by):
    assert op_table.table([], by, 0, 0) == ()


def test_an_unknown_key_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match="by 'colour'; choose from op, node, layer, line"):
        op_table.table(STATS, "colour", STEPS, IMAGES)


# Any statistics


NAMES = ["a", "a/x", "a/y", "b/x", "gradients/a/x", "_arg_a", "c/d/e", "gradients/Fill"]
MANY = st.lists(
    st.builds(
        node,
        st.sampled_from(NAMES),
        st.sampled_from(["Mul", "Add", "_Send"]),
        st.integers(0, 2**40),
        calls=st.integers(1, 1000),
        start=st.floats(0, 1e9),
        median=st.floats(0, 1e12),
        p95=st.floats(0, 1e12),
        requested=st.integers(0, 2**30),
    ),
    min_size=1,
    unique_by=lambda one: one.name,
)


@pytest.mark.slow
@settings(max_examples=30)
@given(MANY, st.integers(1, 50), st.sampled_from(row_labels.KEYS))
def test_rows_by_any_key_account_for_every_node_and_nanosecond(stats, steps, by):
    sources = {"a/x": line(1), "b/x": line(1), "c/d/e": line(2)}
    found = op_table.table(stats, by, steps, None, costs=COSTS, ledger=LEDGER, sources=sources)
    everything = sum(one.total_ns for one in stats)
    assert sorted(name for row in found for name in row.nodes) == sorted(n.name for n in stats)
    assert sum(row.self_ns for row in found) == everything
    assert sum(row.total_ns for row in found) == everything
    assert sum(row.calls for row in found) == sum(one.calls for one in stats)
    assert len({row.key for row in found}) == len(found)
    shares = [row.cumulative_share for row in found]
    assert shares == sorted(shares)
    if everything:
        assert sum(row.share for row in found) == pytest.approx(1)
        assert shares[-1] == 1
    for row in found:
        inside = [one for one in stats if one.name in row.nodes]
        lowest, highest = (f(one.median_ns for one in inside) for f in (min, max))
        assert lowest * (1 - 1e-9) <= row.median_ns <= highest * (1 + 1e-9)
