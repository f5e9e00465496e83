"""Data: what other programs may rely on, for stages made by hand."""

import json

import pytest

from tflab.exporters import data
from tflab.records import (
    Backward,
    Capture,
    CriticalPath,
    Execution,
    Frontend,
    Gradient,
    GradientCheck,
    Memory,
    Node,
    OpMemory,
    OpRun,
    OpTotal,
    Owner,
    Partition,
    Placement,
    Source,
    Spread,
    StepTime,
    Tensor,
    Transfer,
)


class Live:
    """What means something inside this process only, like a tf.Graph."""


PROGRAM = Live()
NODES = (
    Node(
        "x",
        "Placeholder",
        outputs=(Tensor("float32", (None, 10)), Tensor("int32", None)),
        source=Source("toy.py", 20, "build", 'x = placeholder("x")'),
    ),
    Node("neg", "Neg", ("x",), ("x",), "CPU:0"),
)
FRONTEND = Frontend(PROGRAM, NODES)
BACKWARD = Backward(
    PROGRAM,
    NODES,
    added_nodes=("neg_grad",),
    gradients=(Gradient("neg", "Neg", "math_grad.py:1 _NegGrad", ("neg_grad",)),),
    gradient_checks=(GradientCheck("w", 1e-9, 8, 20, "float64"),),
)
PLACEMENT = Placement(
    PROGRAM,
    NODES,
    user_nodes=NODES,
    fetches=("neg:0",),
    partitions=(Partition("CPU:0", ("x", "neg")),),
    transfers=(Transfer("x", "x/_0", "x/_1", "CPU:0", "CPU:1", "float32", (16,), 64),),
)
EXECUTION = Execution(
    PROGRAM,
    NODES,
    batch_size=16,
    data="numbers",
    warmup_steps=3,
    steps=1,
    untraced_step_ns=Spread(90, 80, 100),
    traced_step_ns=Spread(100, 100, 100),
    runs=(OpRun(0, "neg", "Neg", "CPU:0", 1000, 60, 64, ((1, 64, "cpu"), (2, -64, "cpu"))),),
    step_times=(StepTime(0, 990, 100),),
    top_ops=(OpTotal("neg", "Neg", 1, 60, 60, 60.0, 1.0),),
    top_types=(OpTotal("Neg", "Neg", 1, 60, 60, 60.0, 1.0),),
    time_ledger=(Owner("busy", 60), Owner("idle", 40)),
    wall_ns=100,
    critical_path=CriticalPath(("x", "neg"), 60, 1.0),
    memory=Memory((OpMemory("neg", 64),), 64),
    traces={16: Live()},
    captures=(Capture("toy-batch-16", (), ()),),
    hlo_protos={"toy-batch-16": {"module": b"proto"}},
)
STAGES = [FRONTEND, BACKWARD, PLACEMENT, EXECUTION]


def objects() -> dict[str, dict]:
    """The stages as another program reads them, by name."""
    text = json.dumps(data.as_object("toy", {"cpus": 2}, STAGES))
    return {stage["stage"]: stage for stage in json.loads(text)["stages"]}


def test_one_object_holds_model_environment_and_stages_in_order():
    found = data.as_object("toy", {"cpus": 2}, STAGES)
    assert (found["model"], found["environment"]) == ("toy", {"cpus": 2})
    names = [stage["stage"] for stage in found["stages"]]
    assert names == ["frontend", "backward", "placement", "execution"]
    assert set(found) == {"model", "environment", "stages"}


def test_an_error_stands_beside_the_stages_before_it():
    found = data.as_object("toy", {}, [FRONTEND], "No kernel.")
    assert (found["error"], len(found["stages"])) == ("No kernel.", 1)


def test_every_stage_counts_its_nodes_and_edges():
    counts = [(stage["node_count"], stage["edge_count"]) for stage in objects().values()]
    assert counts == [(2, 2)] * 4


def test_a_node_is_written_with_all_that_is_known_of_it():
    assert objects()["frontend"]["nodes"] == [
        {
            "name": "x",
            "op": "Placeholder",
            "inputs": [],
            "control_inputs": [],
            "device": "",
            "outputs": [
                {"dtype": "float32", "shape": [None, 10]},
                {"dtype": "int32", "shape": None},
            ],
            "source": {
                "file": "toy.py",
                "line": 20,
                "function": "build",
                "code": 'x = placeholder("x")',
            },
        },
        {
            "name": "neg",
            "op": "Neg",
            "inputs": ["x"],
            "control_inputs": ["x"],
            "device": "CPU:0",
            "outputs": [],
            "source": None,
        },
    ]


@pytest.mark.parametrize(
    "stage, promised",
    [
        ("frontend", "stage nodes node_count edge_count"),
        ("backward", "stage nodes node_count edge_count gradients added_nodes gradient_checks"),
        ("placement", "stage nodes node_count edge_count fetches partitions transfers"),
        (
            "execution",
            "stage nodes node_count edge_count warmup_steps steps untraced_step_ns traced_step_ns "
            "runs top_ops time_ledger wall_ns critical_path memory",
        ),
    ],
)
def test_a_stage_has_the_keys_that_were_promised(stage, promised):
    assert set(promised.split()) <= set(objects()[stage])


def test_gradients_and_their_checks_are_lists_of_objects():
    backward = objects()["backward"]
    assert {"forward": "neg", "nodes": ["neg_grad"]}.items() <= backward["gradients"][0].items()
    promised = {"tensor": "w", "max_relative_error": 1e-9}
    assert promised.items() <= backward["gradient_checks"][0].items()


def test_a_transfer_goes_from_one_device_to_another():
    (transfer,) = objects()["placement"]["transfers"]
    promised = {"tensor": "x", "from": "CPU:0", "to": "CPU:1", "bytes": 64}
    assert promised.items() <= transfer.items()


def test_measured_times_keep_their_names_and_units():
    execution = objects()["execution"]
    assert execution["steps"] == 1
    assert execution["untraced_step_ns"] == {"median": 90, "p10": 80, "p90": 100}
    assert execution["top_ops"] == [
        {
            "name": "neg",
            "op": "Neg",
            "calls": 1,
            "total_ns": 60,
            "self_ns": 60,
            "mean_ns": 60.0,
            "share": 1.0,
        }
    ]
    assert execution["time_ledger"] == [{"owner": "busy", "ns": 60}, {"owner": "idle", "ns": 40}]
    path = {"nodes": ["x", "neg"], "ns": 60, "parallelism": 1.0}
    assert path.items() <= execution["critical_path"].items()
    memory = {"per_op": [{"name": "neg", "requested_bytes": 64}], "peak_bytes": 64}
    assert memory.items() <= execution["memory"].items()


def test_a_run_keeps_its_clock_and_its_allocations():
    (run,) = objects()["execution"]["runs"]
    assert run == {
        "step": 0,
        "name": "neg",
        "op": "Neg",
        "device": "CPU:0",
        "start_ns": 1000,
        "duration_ns": 60,
        "requested_bytes": 64,
        "allocations": [[1, 64, "cpu"], [2, -64, "cpu"]],
    }


def test_nothing_live_and_no_graph_twice_is_written():
    def keys(value) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    kept_back = {"program", "traces", "user_nodes", "captures", "hlo_protos"}
    assert not keys(data.as_object("toy", {}, STAGES)) & kept_back
