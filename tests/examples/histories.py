"""Histories by hand: a fused convolution, and the nodes of a product with their values."""

from dataclasses import replace

from tests.records_by_hand import CPU_1, op_row
from tflab.follow import node_history
from tflab.records.graph import GradientNode, Source, Tensor
from tflab.records.placed import CompiledKernel, Fate, Kernel, Origin
from tflab.records.stages import NodeHistory, Touch
from tflab.records.values import Statistics, Value

FUSED = NodeHistory(
    name="conv",
    op="Conv2D",
    kind="gradient",
    source=Source("project/model.py", 7, "build", "y = tf.nn.conv2d(x, w)"),
    inputs=("split:1", "read"),
    control_inputs=("ready",),
    outputs=(Tensor("float32", (None, 3)), Tensor("int64", None)),
    consumers=("relu", "loss"),
    gradient_function="_Conv2DGrad (nn_grad.py:577)",
    gradient_nodes=("grads/conv", "grads/conv_1"),
    no_gradient="is not to be shown",
    derived_from="square",
    fate=Fate("conv", "fused", "remapper", "relu"),
    origin=Origin("conv", "layout"),
    touches=(
        Touch("layout", 1, "added", ""),
        Touch("MklLayoutRewritePass", 4, "rewritten", "Conv2D to _MklConv2D"),
        Touch("remapper", 6, "fused", "relu"),
    ),
    carrier="relu",
    carries=("bias:0", "twin"),
    ran_as="_FusedConv2D",
    ran_outputs=(Tensor("float32", (16, 3)),),
    kernel=Kernel("relu", "_FusedConv2D", CPU_1, "CPU, float32"),
    code=(CompiledKernel("f", ("add",), ("conv",), 64, ("%a = add(%x, %y)",), ("fadd a",), ()),),
    times={
        4: op_row(
            *("relu", "_FusedConv2D", "relu", "conv"),
            *(1_203, 9_000_000, 150_000, 120_000, 0.375, 3 * 2**10, 1_254_400, 8.36, 451_000),
        ),
        16: op_row(
            *("relu", "_FusedConv2D", "relu", "conv"),
            *(301, 70_000_000, 420_000, 400_000, 0.45, 12 * 2**10, None, None, 1_260_000),
        ),
    },
)
PLAIN = NodeHistory("x", "Placeholder", "runtime", None, (), (), ())


def value(tensor, numbers, shape=(), op="Mul", kind="computed", after=None, **known):
    unsaid = dict.fromkeys(("mean", "min", "max"))
    return Value(
        values=numbers,
        tensor=tensor,
        node=tensor.partition(":")[0],
        op=op,
        kind=kind,
        dtype="float32",
        shape=shape,
        after=after and Statistics(after, -1, -1, -1, -1),
        **{"not_finite": 0, **unsaid, **known},
    )


def history(name, kind="gradient", fate="executed", into=None):
    became = Fate(name, fate, None, into)
    outputs = (Tensor("float32", None),)
    taken = ("x", "y", "unknown") if name == "mul" else ()
    blank = NodeHistory(name, "Op", kind, None, taken, (), outputs, fate=became)
    return replace(blank, carrier=name if fate == "executed" else into, ran_as="Op")


def meaning(name, formula, towards, complete=True, bookkeeping=None, used=True):
    return GradientNode(name, formula, towards, complete, used, bookkeeping)


MEANINGS = (
    meaning("seed", "1", "dL/d(loss)", bookkeeping="start"),
    meaning("product", "x * dL/d(mul)", "dL/dy", complete=False),
    meaning("sum", "sum(x * dL/d(mul))", "dL/dy"),
    meaning("gate", "", "dL/dy", bookkeeping="gate"),
    meaning("back", "2 * error", "dL/d(mul)"),
    meaning("gate_1", "", "dL/d(mul)", bookkeeping="gate"),
    meaning("fused", "mul * 2", "dL/dx", used=False),
)
HISTORIES = {
    node.name: node
    for node in (
        history("x", "forward", "removed", "_arg_x"),
        history("y", "forward"),
        history("mul", "forward"),
        history("loss", "forward"),
        history("seed", fate="folded", into="one"),
        history("product"),
        history("sum"),
        history("gate", fate="unreached"),
        history("back"),
        history("gate_1", fate="removed", into="back"),
        history("fused", fate="fused", into="back"),
    )
}
ONE = value("one:0", (1.0,), (1,), "Const", "constant")
Y = value("y", (0.5,), (), "VarHandleOp", "variable", after=(2.25,))
X = value("x:0", (1.0, 2.0), (2,), "Placeholder", "fed")
MUL = value("mul:0", (0.5, 1.0), (2,))
LOSS = value("loss:0", (7.0,), ())
PRODUCT = value("product:0", (3.0, 4.0), (2,))
SUM = value("sum:0", (-3.5,), ())
BACK = value("back:0", (6.0, 6.0), (2,))
GATE = replace(BACK, tensor="gate_1:0", node="gate_1")
SEED = value("seed:0", (1.0,), ())
VALUES = (ONE, Y, X, MUL, LOSS, PRODUCT, SUM, BACK, GATE, SEED)
KNOWN = node_history.with_values(HISTORIES, MEANINGS, VALUES)
