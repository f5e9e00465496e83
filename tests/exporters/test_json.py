"""JSON: what other programs may rely on, for stages made by hand."""

import json
import math
from dataclasses import dataclass, field

from tests.records_by_hand import op_stats, op_total
from tflab.exporters import json as exported
from tflab.records.cluster import Network, Offset, TaskTime, WireTensor
from tflab.records.gradients import Derivative, GradientNode, Link
from tflab.records.graph import Call, Function, Node, Source, Tensor
from tflab.records.node_history import NodeHistory
from tflab.records.placed import (
    Assignment,
    Fate,
    FateChange,
    Generated,
    Kernel,
    Origin,
    Partition,
    Pass,
    Rewrite,
    Takeover,
    Toggle,
    Transfer,
)
from tflab.records.stages import Backward, Execution, Frontend, Gradient, GradientCheck, Placement
from tflab.records.timed import (
    CriticalPath,
    Holder,
    KernelTime,
    LiveBytes,
    Memory,
    Occupancy,
    OpMemory,
    OpRun,
    Owner,
    Race,
    Spread,
    StepShape,
    StepTime,
)
from tflab.records.values import Entered, NotFinite, PathPoint, Statistics, Value, ValuesStep
from tflab.records.verdicts import Experiment, Untried, Verdict


class Live:
    """What means something inside this process only, like a tf.Graph."""


PROGRAM = Live()
LINE = Source("math_grad.py", 7, "_AddGrad", "return grad")
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
    top_ops=(op_total("neg", "Neg", 1, 60, 60, 60.0, 1.0),),
    top_types=(op_total("Neg", "Neg", 1, 60, 60, 60.0, 1.0),),
    time_ledger=(Owner("busy", 60), Owner("idle", 40)),
    wall_ns=100,
    critical_path=CriticalPath(("x", "neg"), 60, 1.0),
    memory=Memory((OpMemory("neg", 64),), 64),
)
STAGES = [FRONTEND, BACKWARD, PLACEMENT, EXECUTION]


def objects() -> dict[str, dict]:
    """The stages as another program reads them, by name."""
    document = json.loads(exported.stages("toy", {"cpus": 2}, STAGES))
    return {stage["stage"]: stage for stage in document["stages"]}


def test_one_object_holds_model_environment_and_stages_in_order():
    document = json.loads(exported.stages("toy", {"cpus": 2}, STAGES))
    assert (document["model"], document["environment"]) == ("toy", {"cpus": 2})
    names = [stage["stage"] for stage in document["stages"]]
    assert names == ["frontend", "backward", "placement", "execution"]
    assert set(document) == {"model", "environment", "stages"}


def test_an_error_stands_beside_the_stages_before_it():
    document = json.loads(exported.stages("toy", {}, [FRONTEND], "No kernel."))
    assert (document["error"], len(document["stages"])) == ("No kernel.", 1)


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
            "phase": "forward",
            "forward_source": None,
        },
        {
            "name": "neg",
            "op": "Neg",
            "inputs": ["x"],
            "control_inputs": ["x"],
            "device": "CPU:0",
            "outputs": [],
            "source": None,
            "phase": "forward",
            "forward_source": None,
        },
    ]


def test_nothing_live_and_no_graph_twice_is_written():
    def keys(value) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    kept_back = {"program", "user_nodes", "partition_graphs", "listings"}
    assert not keys(json.loads(exported.stages("toy", {}, STAGES))) & kept_back


# Every field of every stage

CALLED = Function("twice", (Call("neg", "f"),), (Node("arg", "_Arg"),), ("out:0",))
WRITTEN_CALLED = {
    "name": "twice",
    "called_by": [{"node": "neg", "attribute": "f", "function": None}],
    "nodes": [
        {
            "name": "arg",
            "op": "_Arg",
            "inputs": [],
            "control_inputs": [],
            "device": "",
            "outputs": [],
            "source": None,
            "phase": "forward",
            "forward_source": None,
        }
    ],
    "returns": ["out:0"],
}
GRAPH = (
    Node("a", "Const", device="CPU:1"),
    Node("b", "AddV2", ("a", "a:1"), ("c",), outputs=(Tensor("int64", (2, None)),)),
)
WRITTEN_GRAPH = {
    "node_count": 2,
    "edge_count": 3,
    "nodes": [
        {
            "name": "a",
            "op": "Const",
            "inputs": [],
            "control_inputs": [],
            "device": "CPU:1",
            "outputs": [],
            "source": None,
            "phase": "forward",
            "forward_source": None,
        },
        {
            "name": "b",
            "op": "AddV2",
            "inputs": ["a", "a:1"],
            "control_inputs": ["c"],
            "device": "",
            "outputs": [{"dtype": "int64", "shape": [2, None]}],
            "source": None,
            "phase": "forward",
            "forward_source": None,
        },
    ],
}


def object_of(stage) -> dict:
    (stage_object,) = json.loads(exported.stages("toy", {}, [stage]))["stages"]
    return stage_object


def test_every_field_of_the_frontend():
    stage = Frontend(PROGRAM, GRAPH, ("a note",), "refused", (CALLED,))
    assert object_of(stage) == {
        "stage": "frontend",
        **WRITTEN_GRAPH,
        "notes": ["a note"],
        "blocked": "refused",
        "functions": [WRITTEN_CALLED],
    }


def test_every_field_of_the_backward_stage():
    stage = Backward(
        PROGRAM,
        GRAPH,
        added_nodes=("g1", "g2"),
        gradients=(
            Gradient("a", "Const", None, (), "no path"),
            Gradient("b", "AddV2", "_AddGrad (math_grad.py:7)", ("g1", "g2")),
        ),
        gradient_checks=(
            GradientCheck("w", float("nan"), 8, 20, "float64"),
            GradientCheck("v", 1e-9, 5, 6, "float32", True, 0.02),
        ),
        data="numbers",
        variable_count=9,
        update_nodes=("u",),
        shared_nodes=("s", "t"),
        unchecked="too many",
        inferred=True,
        functions=(CALLED,),
        added_functions=("grad_of_twice",),
        gradient_nodes=(
            GradientNode("g1", "x * dL/d(b)", "dL/dy", False, True, None, LINE),
            GradientNode("g2", "", None, False, False, "shape", None, decided=False),
        ),
        chain_rule=(Link("b", "a + y", "y", "y/read", "dL/dy", "sum(dL/d(b))", False),),
        derivatives=(
            Derivative("z", "z", 0.25, None, 0.0),
            Derivative("y", "2 * y", [1.5, float("nan")], 1e-8, 3e-8),
        ),
        stopped=("still",),
        custom_gradients=("own",),
    )
    assert object_of(stage) == {
        "stage": "backward",
        **WRITTEN_GRAPH,
        "added_nodes": ["g1", "g2"],
        "gradients": [
            {"forward": "a", "op": "Const", "function": None, "nodes": [], "reason": "no path"},
            {
                "forward": "b",
                "op": "AddV2",
                "function": "_AddGrad (math_grad.py:7)",
                "nodes": ["g1", "g2"],
                "reason": None,
            },
        ],
        "gradient_checks": [
            {"tensor": "w", "max_relative_error": None},
            {"tensor": "v", "max_relative_error": 1e-9},
        ],
        "data": "numbers",
        "variable_count": 9,
        "update_nodes": ["u"],
        "shared_nodes": ["s", "t"],
        "unchecked": "too many",
        "inferred": True,
        "functions": [WRITTEN_CALLED],
        "added_functions": ["grad_of_twice"],
        "gradient_nodes": [
            {
                "name": "g1",
                "formula": "x * dL/d(b)",
                "towards": "dL/dy",
                "complete": False,
                "used": True,
                "bookkeeping": None,
                "line": {
                    "file": "math_grad.py",
                    "line": 7,
                    "function": "_AddGrad",
                    "code": "return grad",
                },
                "decided": True,
            },
            {
                "name": "g2",
                "formula": "",
                "towards": None,
                "complete": False,
                "used": False,
                "bookkeeping": "shape",
                "line": None,
                "decided": False,
            },
        ],
        "chain_rule": [
            {
                "forward": "b",
                "computes": "a + y",
                "by": "y",
                "source": "y/read",
                "gradient": "dL/dy",
                "formula": "sum(dL/d(b))",
                "alone": False,
            }
        ],
        "processed": [],
        "stopped": ["still"],
        "custom_gradients": ["own"],
        "derivatives": [
            {
                "variable": "z",
                "formula": "z",
                "value": 0.25,
                "difference": None,
                "checked": 0.0,
            },
            {
                "variable": "y",
                "formula": "2 * y",
                "value": [1.5, None],
                "difference": 1e-8,
                "checked": 3e-8,
            },
        ],
    }


def test_every_field_of_the_placement():
    graph_pass = Pass(
        "remapper",
        1,
        before=9,
        after=7,
        added=("n",),
        removed=("o", "p"),
        rewritten=(Rewrite("q", "Conv2D", "_FusedConv2D"),),
        rewired=("r",),
        moved=("s",),
        taken=(Takeover("o", "fused", "q"), Takeover("p", "removed", None)),
        definitions=GRAPH,
    )
    stage = Placement(
        PROGRAM,
        GRAPH,
        user_nodes=NODES,
        fetches=("b:0",),
        batch_size=16,
        data="numbers",
        passes=(graph_pass,),
        ledger=(Fate("o", "fused", "remapper", "q"),),
        origins=(Origin("_arg", "feed"),),
        partitions=(Partition("CPU:0", ("b",)), Partition("CPU:1", ("a",))),
        transfers=(Transfer("a", "a/_0", "a/_1", "CPU:1", "CPU:0", "float32", (3, None), 48),),
        assignments=(Assignment("a", "CPU:1", "asked for"),),
        kernels=(Kernel("b", "AddV2", "CPU:0", "T=int64", 2, "cpu", "gpu"),),
        generated=(Generated("c0", ("b:0",), 4, (), {"f.ll": "code"}),),
        partition_graphs=(Live(),),
        toggle=Toggle(("remapper",), 5, 6, (FateChange("o", "fused", "executed"),)),
        not_run=("a",),
        notes=("a note",),
    )
    assert object_of(stage) == {
        "stage": "placement",
        **WRITTEN_GRAPH,
        "fetches": ["b:0"],
        "batch_size": 16,
        "data": "numbers",
        "passes": [
            {
                "name": "remapper",
                "iteration": 1,
                "before": 9,
                "after": 7,
                "added": ["n"],
                "removed": ["o", "p"],
                "rewritten": [{"name": "q", "from": "Conv2D", "to": "_FusedConv2D"}],
                "rewired": ["r"],
                "moved": ["s"],
                "taken": [
                    {"name": "o", "fate": "fused", "into": "q"},
                    {"name": "p", "fate": "removed", "into": None},
                ],
            }
        ],
        "ledger": [{"name": "o", "fate": "fused", "by": "remapper", "into": "q"}],
        "origins": [{"name": "_arg", "origin": "feed"}],
        "partitions": [
            {"device": "CPU:0", "nodes": ["b"]},
            {"device": "CPU:1", "nodes": ["a"]},
        ],
        "transfers": [
            {
                "tensor": "a",
                "send": "a/_0",
                "recv": "a/_1",
                "from": "CPU:1",
                "to": "CPU:0",
                "dtype": "float32",
                "shape": [3, None],
                "bytes": 48,
            }
        ],
        "assignments": [{"name": "a", "device": "CPU:1", "reason": "asked for"}],
        "kernels": [
            {
                "name": "b",
                "op": "AddV2",
                "device": "CPU:0",
                "types": "T=int64",
                "registrations": 2,
                "constraints": "cpu",
                "on_gpu": "gpu",
            }
        ],
        "toggle": {
            "without": ["remapper"],
            "usual_node_count": 5,
            "node_count": 6,
            "changes": [{"name": "o", "usual": "fused", "now": "executed"}],
        },
        "not_run": ["a"],
        "notes": ["a note"],
    }


def test_every_field_of_the_execution():
    stage = Execution(
        PROGRAM,
        GRAPH,
        batch_size=16,
        data="numbers",
        warmup_steps=2,
        steps=3,
        untraced_step_ns=Spread(median=90, p10=80, p90=101),
        traced_step_ns=Spread(median=110, p10=102, p90=130),
        runs=(
            OpRun(0, "a", "Const", "CPU:1", 1_000, 61),
            OpRun(1, "b", "Add", "CPU:0", 2_000, 62, 64, ((3, 64, "cpu"),)),
        ),
        step_times=(
            StepTime(0, 990, 111),
            StepTime(1, 1_990, 112, StepShape(4, 1.5, (Occupancy("CPU:0", 70, 0.25),))),
        ),
        top_ops=(op_total("b", "Add", 12, 720, 660, 61.5, 0.8),),
        top_types=(op_total("Add", "Add", 24, 1_440, 1_320, 60.5, 0.9),),
        time_ledger=(Owner("busy", 63), Owner("idle", 40)),
        wall_ns=103,
        critical_path=CriticalPath(("a", "b"), 59, 1.25, 1.125, (("a", 0), ("b", 7.5))),
        memory=Memory(
            (OpMemory("b", 64), OpMemory("a", 32)),
            65,
            LiveBytes(1, ((5, 66), (9, 0)), 67, 5, (Holder("b", "Add", 68, False),)),
        ),
        kernel_time=KernelTime(33, 44),
        race=Race(
            21,
            91.0,
            190.0,
            Verdict(2.125, 2.0, 2.25, 0.96875, 1.03125, 11, "slower"),
        ),
        experiments=(Experiment("b", "Add", 12.5, 11.0, 14.0, 6),),
        control=Experiment("control", "", 0.5, -1.0, 2.0, 7),
        untried=(Untried("w", "AssignAdd", "it changes something"),),
        one_by_one=Experiment("ops one by one", "", -3.5, -5.0, -2.0, 7),
        interrupted=True,
        values=(
            Value(
                (1.5, math.nan), 1.5, -1.0, 2.0, 1,
                tensor="y", node="y_1", op="VarHandleOp", kind="variable", dtype="float32",
                shape=(2,), moved=0.75,
                after=Statistics((7, True), None, None, None, 0),
            ),
        ),
        not_finite=(
            NotFinite(
                "b:1", "b", "Log", "computed", "float32", 4, 5, 60,
                Source("m.py", 3, "f", "log(a)"), None, False,
                (Entered("a:0", 9, 60, 5, 4, -1.5, 0.0),),
            ),
        ),
        values_step=ValuesStep(
            "the first", 99, ("a note",), (PathPoint(1, 2.5, {"y": 0.5}),), {"y": 3.0}, ("y",)
        ),
        network=Network(
            (TaskTime("task 1", 5, 6, 7, 4, 8, 9, 3, 2),),
            (WireTensor("t", "client", "task 1", 2, 40, 10.5, 1e9),),
            (Offset("/job:worker/task:1", 1.5, math.inf, 2),), 3, ("a sentence",),
        ),
        wires=(OpRun(0, "t_S1", "RecvTensor", "wire from client to task 1", 1, 2),),
        failure="it ended",
    )  # fmt: skip
    assert object_of(stage) == {
        "stage": "execution",
        **WRITTEN_GRAPH,
        "batch_size": 16,
        "data": "numbers",
        "warmup_steps": 2,
        "steps": 3,
        "untraced_step_ns": {"median": 90, "p10": 80, "p90": 101},
        "traced_step_ns": {"median": 110, "p10": 102, "p90": 130},
        "runs": [
            {
                "step": 0,
                "name": "a",
                "op": "Const",
                "device": "CPU:1",
                "start_ns": 1_000,
                "duration_ns": 61,
                "requested_bytes": 0,
                "allocations": [],
            },
            {
                "step": 1,
                "name": "b",
                "op": "Add",
                "device": "CPU:0",
                "start_ns": 2_000,
                "duration_ns": 62,
                "requested_bytes": 64,
                "allocations": [[3, 64, "cpu"]],
            },
        ],
        "step_times": [
            {"step": 0, "start_ns": 990, "wall_ns": 111, "shape": None},
            {
                "step": 1,
                "start_ns": 1_990,
                "wall_ns": 112,
                "shape": {
                    "most_at_once": 4,
                    "mean_at_once": 1.5,
                    "devices": [{"device": "CPU:0", "busy_ns": 70, "idle_share": 0.25}],
                },
            },
        ],
        "top_ops": [
            {
                "name": "b",
                "op": "Add",
                "calls": 12,
                "total_ns": 720,
                "self_ns": 660,
                "mean_ns": 61.5,
                "share": 0.8,
            }
        ],
        "top_types": [
            {
                "name": "Add",
                "op": "Add",
                "calls": 24,
                "total_ns": 1_440,
                "self_ns": 1_320,
                "mean_ns": 60.5,
                "share": 0.9,
            }
        ],
        "time_ledger": [{"owner": "busy", "ns": 63}, {"owner": "idle", "ns": 40}],
        "wall_ns": 103,
        "critical_path": {
            "nodes": ["a", "b"],
            "ns": 59,
            "parallelism": 1.25,
            "achieved_parallelism": 1.125,
            "slack": [["a", 0], ["b", 7.5]],
            "durations_ns": [],
        },
        "memory": {
            "per_op": [
                {"name": "b", "requested_bytes": 64},
                {"name": "a", "requested_bytes": 32},
            ],
            "peak_bytes": 65,
            "curve": {
                "step": 1,
                "points": [[5, 66], [9, 0]],
                "peak_bytes": 67,
                "peak_ns": 5,
                "holders": [{"name": "b", "op": "Add", "bytes": 68, "running": False}],
            },
        },
        "kernel_time": {"kernels_ns": 33, "op_runs_ns": 44},
        "race": {
            "steps": 21,
            "usual_step_ns": 91.0,
            "without_step_ns": 190.0,
            "verdict": {
                "ratio": 2.125,
                "low": 2.0,
                "high": 2.25,
                "control_low": 0.96875,
                "control_high": 1.03125,
                "observations": 11,
                "word": "slower",
            },
        },
        "experiments": [
            {
                "name": "b",
                "op": "Add",
                "once_more_ns": 12.5,
                "low_ns": 11.0,
                "high_ns": 14.0,
                "observations": 6,
                "predicted_ns": None,
            }
        ],
        "control": {
            "name": "control",
            "op": "",
            "once_more_ns": 0.5,
            "low_ns": -1.0,
            "high_ns": 2.0,
            "observations": 7,
            "predicted_ns": None,
        },
        "one_by_one": {
            "name": "ops one by one",
            "op": "",
            "once_more_ns": -3.5,
            "low_ns": -5.0,
            "high_ns": -2.0,
            "observations": 7,
            "predicted_ns": None,
        },
        "untried": [{"name": "w", "op": "AssignAdd", "reason": "it changes something"}],
        "interrupted": True,
        "load": None,
        "values": [
            {
                "tensor": "y",
                "node": "y_1",
                "op": "VarHandleOp",
                "kind": "variable",
                "dtype": "float32",
                "shape": [2],
                "values": [1.5, None],
                "mean": 1.5,
                "min": -1.0,
                "max": 2.0,
                "not_finite": 1,
                "moved": 0.75,
                "after": {
                    "values": [7, True],
                    **dict.fromkeys(("mean", "min", "max")),
                    "not_finite": 0,
                },
            }
        ],
        "not_finite": [
            {
                "tensor": "b:1",
                "node": "b",
                "op": "Log",
                "kind": "computed",
                "dtype": "float32",
                "nan": 4,
                "infinite": 5,
                "size": 60,
                "source": {"file": "m.py", "line": 3, "function": "f", "code": "log(a)"},
                "derives": None,
                "overflow": False,
                "entered": [
                    {
                        "tensor": "a:0",
                        "elements": 9,
                        "size": 60,
                        "zeros": 5,
                        "negative": 4,
                        "min": -1.5,
                        "max": 0.0,
                    }
                ],
            }
        ],
        "values_step": {
            "which": "the first",
            "ns": 99,
            "notes": ["a note"],
            "path": [{"step": 1, "loss": 2.5, "variables": {"y": 0.5}}],
            "answer": {"y": 3.0},
            "not_finite": ["y"],
        },
        "network": {
            "tasks": [
                {
                    "task": "task 1",
                    "computing_ns": 5,
                    "waiting_ns": 6,
                    "neither_ns": 7,
                    "overlapped_ns": 4,
                    "received_bytes": 8,
                    "sent_bytes": 9,
                    "alone_ns": 3,
                    "awaited_ns": 2,
                },
            ],
            "tensors": [
                {
                    "tensor": "t",
                    "from_task": "client",
                    "to_task": "task 1",
                    "calls": 2,
                    "bytes": 40,
                    "median_ns": 10.5,
                    "bits_per_s": 1e9,
                },
            ],
            "offsets": [
                {
                    "clock": "/job:worker/task:1",
                    "ahead_ns": 1.5,
                    "uncertainty_ns": None,
                    "applied_ns": 2,
                    "consistent": True,
                },
            ],
            "unrecorded": 3,
            "left_out": ["a sentence"],
        },
        "wires": [
            {
                "step": 0,
                "name": "t_S1",
                "op": "RecvTensor",
                "device": "wire from client to task 1",
                "start_ns": 1,
                "duration_ns": 2,
                "requested_bytes": 0,
                "allocations": [],
            },
        ],
        "failure": "it ended",
    }


# Records and values of any kind


@dataclass(frozen=True)
class Move:
    start: str = field(metadata={"json": "from"})
    live: object = field(metadata={"json": None})
    cost: float


def test_the_key_of_a_field_stands_at_the_field_and_so_does_what_is_left_out():
    assert exported.plain(Move("a", Live(), 2.5)) == {"from": "a", "cost": 2.5}


def test_a_number_that_is_not_finite_is_null():
    assert json.loads(exported.document(rate=(math.nan, math.inf, 1.5))) == {
        "rate": [None, None, 1.5]
    }


def test_keys_are_text_and_tuples_are_lists():
    assert exported.document(steps={16: (Move("a", None, 1.0),)}) == (
        '{\n "steps": {\n  "16": [\n   {\n    "from": "a",\n    "cost": 1.0\n   }\n  ]\n }\n}'
    )


def test_the_history_of_a_node_stands_beside_its_model_and_machine():
    history = NodeHistory("neg", "Neg", "forward", None, ("x",), (), ())
    document = json.loads(exported.node_history("toy", {"cpus": 2}, history))
    assert list(document) == ["model", "environment", "life"]
    assert (document["model"], document["environment"]) == ("toy", {"cpus": 2})
    assert (document["life"]["name"], document["life"]["inputs"]) == ("neg", ["x"])


def test_the_times_of_a_node_are_pairs_of_a_batch_size_and_all_of_a_row_but_its_images():
    row = op_stats("b", ops=("Add", "Mul"), calls=3, flops=7, share=0.5, image_ns=11.0)
    node = NodeHistory("b", "Add", "forward", None, (), (), (), times={4: row, 16: row})
    (size, small), (larger, _) = exported.plain(node)["times"]
    assert (size, larger) == (4, 16)
    assert small == {
        "key": "b",
        "ops": ["Add", "Mul"],
        "nodes": [],
        "fused_from": [],
        "calls": 3,
        "total_ns": -1,
        "self_ns": -1,
        "mean_ns": -1,
        "median_ns": -1,
        "p95_ns": -1,
        "share": 0.5,
        "cumulative_share": -1,
        "requested_bytes": -1,
        "flops": 7,
        "gflops": None,
        "std_ns": -1,
        "step_ns": -1,
        "step_std_ns": None,
        "peak_bytes": None,
    }
