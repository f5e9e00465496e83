"""A watched program by hand: what its process leaves, and the record of it, which is approved."""

from dataclasses import replace

from tests import graph_notation as notation
from tflab.records.graph import Node, Source
from tflab.records.values import NotFinite, Value
from tflab.records.watched import (
    Group,
    OpTimes,
    Recorded,
    RecordedValues,
    TracedFunction,
    Watched,
    WatchedLine,
)
from tflab.run import summary

MATMUL = ("/code/train.py", 3, "y = tf.matmul(x, w)")
MINIMIZE = ("/code/train.py", 5, "train = optimizer.minimize(loss)")
RUNS = {
    **dict.fromkeys(("total_ns", "in_other_threads", "traced", "traced_ns", "scale"), 0),
    **{name: {} for name in ("feeds", "ops", "types", "stages")},
    **dict.fromkeys(("graph", "first_runs", "number"), 1),
    "function": "",
    "later": False,
    "waited_ns": (0, 0),
    "times": [],
    "not_finite": None,
}
INIT_RUNS = {**RUNS, "fetches": ("init",), "calls": 1, "cold_ns": 500, "main_ns": (500, 0)}
TRAIN_RUNS = {
    **RUNS,
    "number": 2,
    "fetches": ("loss:0", "train"),
    "feeds": {"x:0": "(8, 4)"},
    "calls": 5,
    "cold_ns": 900,
    "total_ns": 4_000,
    "main_ns": (900, 3_000),
    "traced": 2,
    "scale": 2.0,
    "times": [700, 1_000, 900],
    "ops": {
        "y": (2, 100, 2, 60),
        "y_grad": (4, 300, 2, 160),
        "w/update": (2, 50, 2, 30),
        "_SOURCE": (2, 7, 2, 4),
        "loss": (2, 20, 2, 10),
    },
    "types": {"y": "_FusedMatMul"},
}
SEGMENT = {
    "until_ns": 9_900,
    "final": True,
    "owners": {"start of Python": 100, "Python between steps": 300, "import of TensorFlow": 2_000},
    "lines": {
        ("/code/train.py", 9, "next_batch"): (200, 900),
        ("/code/train.py", 5, "<module>"): (70, 64),
    },
    "called": {
        ("/code/train.py", 9, "next_batch"): (30, 16),
        ("/code/train.py", 4, "<module>"): (6, 9),
    },
    "elsewhere": {("/code/data.py", 2, "load"): (90, 25)},
    "runs": 5,
    "groups": [INIT_RUNS, TRAIN_RUNS],
    "graphs": [
        [
            ("x", "forward", None, "Placeholder"),
            ("y", "forward", MATMUL, "MatMul"),
            ("y_grad", "backward", MATMUL, "MatMul"),
            ("w/update", "update", MINIMIZE, "ApplyAdam"),
        ]
    ],
    "fates": {"counts": {"executed": 3, "unreached": 1}},
    "own_ns": 150,
}


def group(graph, fetches=(), feeds=None, calls=1, median_ns=None, cold_ns=0, total_ns=0, **fields):
    """A group of runs in the main thread, without what is rare."""
    usual = {
        "traced": 0,
        "in_other_threads": 0,
        "not_finite": None,
        "first_runs": 1,
        "waited_ns": (0, 0),
    }
    times = (median_ns, cold_ns, total_ns)
    return Group(graph, fetches, feeds or {}, calls, *times, **{**usual, **fields})


def line(file, number, code="", nodes=(), **fields):
    """A line without the times that are not given."""
    names = ("forward_ns", "backward_ns", "update_ns", "waiting_ns", "traced")
    kinds = ("python", "tensorflow", "elsewhere")
    sampled = (f"{kind}_{what}" for kind in kinds for what in ("ns", "samples"))
    usual = dict.fromkeys((*names, *sampled), 0)
    return WatchedLine(file, number, code, nodes, **{**usual, **fields})


WATCHED = summary.watched(("train.py", "--epochs", "3"), SEGMENT, 10_000, 0)
INIT, TRAIN = WATCHED.groups

SHAPE = (("x", "float32 (8, 4)", "float32 (7, 4)"),)
STEP = TracedFunction(
    "step", "train.py:2", 1, 3, 800_000, 500_000, "train.py:9 in train", changed=SHAPE
)
OTHER = TracedFunction("other", "", 1, 1, 900_000, 900_000, "train.py:4", ())

CODE = """import tensorflow as tf
x = tf.placeholder(tf.float32)
m = tf.matmul(x, w)
y = tf.nn.relu(m + 2 * 3)
init = tf.zeros([])
loss = y </script>
"""


def with_graph(file: str) -> Watched:
    """The program of these lines. `m` is fused into `y`, `six` is folded, `init` is not needed, and
    `g` is the gradient of `y`."""
    code = dict(enumerate(CODE.splitlines(), 1))

    def node(name, line, *inputs, phase="forward"):
        return Node(
            name, "Op", inputs, source=Source(file, line, "<module>", code[line]), phase=phase
        )

    nodes = (
        node("x", 2),
        node("m", 3, "x"),
        node("six", 4),
        node("y", 4, "m", "six"),
        node("init", 5),
        node("g", 4, "y", phase="backward"),
    )
    gone = notation.takeovers("m fused y, init removed")
    ledger = "x executed, m fused y, six folded, y executed, init unreached, g executed"
    graph = Recorded(
        nodes=nodes,
        derived={"g": "y"},
        variables=1,
        fetches=("g:0",),
        executed=notation.graph("x; six=Const; y=_Fused(x,six)"),
        passes=(replace(notation.one_pass("remapper: -m, -init", 6, 4, 0), taken=gone),),
        ledger=tuple(notation.fates(ledger)),
        origins=(),
        kernels=(),
        traced=2,
        ops={"y": OpTimes(2, 1_000), "x": OpTimes(4, 30)},
    )
    ran = {"forward_ns": 500, "backward_ns": 250, "traced": 1}
    waited = {"python_ns": 150, "python_samples": 25, "waiting_ns": 5, "traced": 2}
    lines = (
        line(file, 4, code[4], ("y", "six", "g"), **ran),
        line(file, 1, code[1], **waited),
        line(file, 3, code[3], ("m",)),
    )
    return replace(WATCHED, program=(file,), lines=lines, graph=graph)


Y = Value(
    *((-3e38, -1.5, "NaN"), -2.0, -3e38, -1.5, 1),  # with their mean, least, largest and not finite
    *("y:0", "y", "_Fused", "computed", "float32", (3,), None),
)
SIX = Value(
    *(("text", True, 7), None, None, None, 0),
    *("six:0", "six", "Const", "constant", "string", (3,), None),
)
MADE_NAN = NotFinite(
    *("y:0", "y", "_Fused", "computed", 1, 0, 3),
    source=None,
    derives=None,
)
VALUES = RecordedValues(
    group=2,
    function="",
    run=3,
    ns=900,
    values=(Y, SIX),
    origins=(MADE_NAN,) * 3,
    not_finite=("g:0",),
)
