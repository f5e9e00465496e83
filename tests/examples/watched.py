"""A watched program, worked out by hand: what its process leaves, and the record of it."""

from tflab.records.graph import Node, Source
from tflab.records.placed import Fate, Pass, Takeover
from tflab.records.timed import Owner
from tflab.records.values import Entered, NotFinite, Value
from tflab.records.watched import (
    Group,
    OpTimes,
    Process,
    Recorded,
    RecordedValues,
    SampledLine,
    TracedFunction,
    Watched,
    WatchedLine,
    WatchedOp,
)

MATMUL = ("/code/train.py", 3, "y = tf.matmul(x, w)")
MINIMIZE = ("/code/train.py", 5, "train = optimizer.minimize(loss)")
RUNS = {
    "graph": 1,
    "function": "",
    "later": False,
    "feeds": {},
    "total_ns": 0,
    "in_other_threads": 0,
    "traced": 0,
    "trace_ns": 2,
    "scale": 0,
    "waited_ns": (0, 0),
    "times": [],
    "ops": {},
    "types": {},
    "stages": {},
    "first_runs": 1,
    "not_finite": None,
}
INIT_RUNS = {**RUNS, "fetches": ("init",), "calls": 1, "cold_ns": 500, "main_ns": (500, 0)}
TRAIN_RUNS = {
    **RUNS,
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
    "faults": [],
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
    "in_data": {},
    "for_children": {},
    "runs": 5,
    "stopped": False,
    "overhead": 5.0,
    "notes": [],
    "groups": [INIT_RUNS, TRAIN_RUNS],
    "graphs": [
        [
            ("x", "forward", None, "Placeholder"),
            ("y", "forward", MATMUL, "MatMul"),
            ("y_grad", "backward", MATMUL, "MatMul"),
            ("w/update", "update", MINIMIZE, "ApplyAdam"),
        ]
    ],
    "fates": {
        "group": 2,
        "counts": {"executed": 3, "unreached": 1},
        "not_run": 0,
        "path": {"y": 0.5, "y_grad": 0.25, "_SOURCE": 0.25},
    },
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
        "overhead_for_ten": None,
    }
    times = (median_ns, cold_ns, total_ns)
    return Group(graph, fetches, feeds or {}, calls, *times, **{**usual, **fields})


INIT = group("graph 1", ("init",), cold_ns=500)
TRAIN = group(
    *("graph 1", ("loss:0", "train"), {"x:0": "(8, 4)"}, 5, 900.0, 900, 4_000),
    traced=2,
)


def line(file, number, code="", nodes=(), **fields):
    """A line without the times that are not given."""
    names = ("forward_ns", "backward_ns", "update_ns", "waiting_ns", "runs", "traced")
    kinds = ("python", "tensorflow", "elsewhere")
    sampled = (f"{kind}_{what}" for kind in kinds for what in ("ns", "samples"))
    usual = {**dict.fromkeys((*names, *sampled), 0), "path_share": None}
    return WatchedLine(file, number, code, nodes, **{**usual, **fields})


WATCHED = Watched(
    program=("train.py", "--epochs", "3"),
    groups=(INIT, TRAIN),
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
        line(
            *("/code/train.py", 3, MATMUL[2], ("y", "y_grad")),
            forward_ns=200,
            backward_ns=600,
            runs=12,
            traced=2,
            path_share=0.75,
        ),
        line(
            *("/code/train.py", 9),
            python_ns=200,
            python_samples=900,
            tensorflow_ns=30,
            tensorflow_samples=16,
        ),
        line(
            *("/code/train.py", 5, MINIMIZE[2], ("w/update",)),
            update_ns=100,
            runs=4,
            traced=2,
            python_ns=70,
            python_samples=64,
        ),
        line("/code/data.py", 2, elsewhere_ns=90, elsewhere_samples=25),
        line("/code/train.py", 4, tensorflow_ns=6, tensorflow_samples=9),
    ),
    exit_status=0,
    stopped=False,
    fates={"executed": 3, "unreached": 1},
    not_run=0,
    costliest=SampledLine("train.py:9 in next_batch", 230, 916),
    elsewhere=SampledLine("data.py:2 in load", 90, 25),
    open_run=None,
    for_children=None,
    ops=(
        WatchedOp("MatMul", 8, 600, 2 / 3, "train.py:3"),
        WatchedOp("_FusedMatMul", 4, 200, 2 / 9, "train.py:3"),
        WatchedOp("ApplyAdam", 4, 100, 1 / 9, "train.py:5"),
    ),
    findings=(),
    input_pipeline=None,
    grown_graphs=(),
    grown_memory=None,
    notes=(),
    compiled=(),
    functions=(),
    values=None,
    graph=None,
)

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
    gone = (Takeover("m", "fused", "y"), Takeover("init", "removed", None))
    fates = ("executed", "fused", "folded", "executed", "unreached", "executed")
    graph = Recorded(
        group=2,
        nodes=nodes,
        derived={"g": "y"},
        variables=1,
        fetches=("g:0",),
        executed=(Node("x", "Op"), Node("six", "Const"), Node("y", "_Fused", ("x", "six"))),
        passes=(Pass("remapper", 0, 6, 4, removed=("m", "init"), taken=gone),),
        ledger=tuple(
            Fate(node.name, fate, None, "y" if fate == "fused" else None)
            for node, fate in zip(nodes, fates, strict=True)
        ),
        origins=(),
        assignments=(),
        kernels=(),
        traced=2,
        ops={"y": OpTimes(2, 1_000), "x": OpTimes(4, 30)},
    )
    lines = (
        line(
            *(file, 4, code[4], ("y", "six", "g")),
            forward_ns=500,
            backward_ns=250,
            runs=8,
            traced=1,
            path_share=0.9,
        ),
        line(file, 1, code[1], python_ns=150, python_samples=25, waiting_ns=5, traced=2),
        line(file, 3, code[3], ("m",)),
    )
    parts = {**vars(WATCHED), "program": (file,), "lines": lines, "graph": graph}
    return Watched(**parts)


PLACE = {"after": None, "moved": None, "shape": (3,)}
Y = Value(
    **PLACE,
    values=(-3e38, -1.5, "NaN"),
    mean=-2.0,
    min=-3e38,
    max=-1.5,
    not_finite=1,
    tensor="y:0",
    node="y",
    op="_Fused",
    kind="computed",
    dtype="float32",
)
SIX = Value(
    **PLACE,
    values=("text", True, 7),
    mean=None,
    min=None,
    max=None,
    not_finite=0,
    tensor="six:0",
    node="six",
    op="Const",
    kind="constant",
    dtype="string",
)
MADE_NAN = NotFinite(
    *("y:0", "y", "_Fused", "computed", 1, 0, 3),
    source=None,
    derives=None,
    entered=(Entered("x", 2, 0, 1, -4.0, 1e300),),
)
VALUES = RecordedValues(
    group=2,
    function="",
    run=3,
    ns=900,
    values=(Y, SIX),
    origins=(MADE_NAN,) * 3,
    not_finite=("g:0",),
    updated=(),
)
