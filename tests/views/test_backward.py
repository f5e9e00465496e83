"""The view of the backward stage, from records made by hand."""

from dataclasses import replace

from tests.examples.printed import approve_view
from tests.graph_notation import graph
from tests.records_by_hand import a_backward, source
from tflab.records.graph import Access, Call, Function, GradientStop, Node, Unordered
from tflab.records.stages import Gradient, GradientCheck
from tflab.views import stages

FORWARD = graph(
    "x=Placeholder; w=VarHandleOp; mul=Mul; labels=Placeholder; loss=Mean; print=Print; "
    "mul/Read=ReadVariableOp"
)
ADDED = graph(
    """gradients/grad_ys_0=Fill; gradients/loss/Tile=Tile; gradients/loss/Shape=Shape;
    gradients/mul/Shape=Shape; gradients/mul/Mul=Mul; gradients/mul/Mul_1=BroadcastGradientArgs;
    gradients/AddN=AddN; gradients/ys=Const; train/apply=ResourceApplyGradientDescent; train=NoOp"""
)
NO_VARIABLE = "it does not depend on a trainable variable"
OF_MUL = ("gradients/mul/Shape", "gradients/mul/Mul", "gradients/mul/Mul_1")
OF_LOSS = ("gradients/loss/Tile", "gradients/loss/Shape")
GRADIENTS = (
    Gradient("x", "Placeholder", None, (), NO_VARIABLE),
    Gradient("w", "VarHandleOp", None, (), "it has no inputs, so its gradient goes no further"),
    Gradient("mul", "Mul", "_MulGrad (math_grad.py:1404)", OF_MUL, None),
    Gradient("labels", "Placeholder", None, (), NO_VARIABLE),
    Gradient("loss", "Mean", "_MeanGrad (math_grad.py:270)", OF_LOSS, None),
    Gradient("print", "Print", None, (), NO_VARIABLE),
    Gradient("mul/Read", "ReadVariableOp", "_ReadGrad", (), "its gradient is passed on"),
)
CHECKS = (
    GradientCheck("conv/kernel", 2.51e-07, 8, 2_400, "float64", False, 1e-4),
    GradientCheck("conv/bias", 1.24e-06, 5, 16, "float64", False, 1e-4),
    GradientCheck("dense/kernel", 7.5e-08, 6, 840, "float64", False, 1e-4),
)
OLD = Function("old_1", (Call("cond", "then_branch"),), (Node("a", "Exp"),))
NEW = Function("grad_2", (Call("gradients/cond", "else_branch"),), (Node("a", "Neg"),) * 3)
STAGE = a_backward(
    nodes=(*FORWARD, *ADDED),
    added_nodes=tuple(node.name for node in ADDED),
    gradients=GRADIENTS,
    gradient_checks=CHECKS,
    variable_count=4,
    update_nodes=("train/apply", "train"),
    functions=(OLD, NEW),
    added_functions=("grad_2",),
)
READ, WRITE = Access("read", "reads", None), Access("train/apply", "writes", source(9))
ZERO = GradientCheck("a", 0.0, 4, 9, "float64", True, 1e-4)
MANY_OPS = tuple(replace(GRADIENTS[2], forward=f"n{n}", nodes=("gradients/ys",)) for n in range(43))
MASK = source(17, "mask = tf.round(gate)")
ROUND, SIGN = "its gradient function returned none", "its gradient function returned only zeros"
STOPS = (
    GradientStop("gate", "mask", "Round", MASK, ROUND, ("gate", "a", "mask", "loss")),
    GradientStop("b", "mask", "Round", MASK, ROUND, ("b", "mask", "loss")),
    GradientStop("s", "sg", "Sign", None, SIGN, ("s", "sg")),
    GradientStop("dead", "", "", None, "the loss does not depend on it", ()),
)

# Title -> what is different
VARIANTS = {
    "a gradient that is not finite": {
        "gradient_checks": (replace(CHECKS[0], max_relative_error=float("nan")), *CHECKS[:1])
    },
    "differences in float32": {"gradient_checks": (replace(CHECKS[0], precision="float32"),)},
    "a gradient that is stopped and agrees": {"stopped": ("s",)},
    "gradients that are 0": {"gradient_checks": (ZERO, replace(ZERO, tensor="b"), CHECKS[0])},
    "gradients that were not checked": {"gradient_checks": (), "unchecked": "no float variable"},
    "many forward ops": {"gradients": MANY_OPS, "added_nodes": ("gradients/ys",) * 48},
    "nothing was added": {"added_nodes": (), "unchecked": "the graph came with gradients"},
    "gradients stop": {"gradient_stops": STOPS},
    "an order is undefined": {"unordered": (Unordered("w", READ, WRITE, ("loss:0",)),)},
}


def test_the_view_says_what_came_from_which_op_and_whether_it_is_right():
    variants = {title: stages.blocks(replace(STAGE, **to)) for title, to in VARIANTS.items()}
    approve_view("views-backward.txt", stages.blocks(STAGE), variants)
