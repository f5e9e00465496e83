"""A differentiated graph by hand: loss = mean(x * y) over four rows, as `tf.gradients` makes it."""

import numpy as np

from tflab.analysis.evaluation import Points
from tflab.analysis.gradient_graph import GradientGraph
from tflab.records.gradients import GradientCall
from tflab.records.graph import Node, Tensor
from tflab.records.stages import Gradient

FOUR = (Tensor("float32", (4,)),)
ONE = (Tensor("float32", ()),)
INTS = (Tensor("int32", (1,)),)
GRAD = "gradients/mul_grad"


def node(name, op, *inputs, outputs=FOUR, after=()):
    return Node(name, op, inputs, after, outputs=outputs)


FORWARD = (
    node("x", "Placeholder"),
    node("y", "VarHandleOp", outputs=(Tensor("resource", ()),)),
    node("mul/Read", "ReadVariableOp", "y", outputs=ONE),
    node("mul", "Mul", "x", "mul/Read"),
    node("axes", "Const", outputs=INTS),
    node("loss", "Mean", "mul", "axes", outputs=ONE),
)
OF_LOSS = (
    node("gradients/loss_grad/shape", "Const", outputs=INTS),
    node("gradients/loss_grad/Tile", "Tile", "gradients/start", "gradients/loss_grad/shape"),
    node("gradients/loss_grad/Const", "Const", outputs=ONE),
    node(
        "gradients/loss_grad/truediv",
        "RealDiv",
        "gradients/loss_grad/Tile",
        "gradients/loss_grad/Const",
    ),
)
OF_MUL = (
    node(f"{GRAD}/Mul", "Mul", "gradients/loss_grad/truediv", "mul/Read"),
    node(f"{GRAD}/Mul_1", "Mul", "x", "gradients/loss_grad/truediv"),
    node(f"{GRAD}/axes", "Const", outputs=INTS),
    node(f"{GRAD}/Sum", "Sum", f"{GRAD}/Mul_1", f"{GRAD}/axes", outputs=(Tensor("float32", (1,)),)),
    node(f"{GRAD}/shape", "Const", outputs=(Tensor("int32", (0,)),)),
    node(f"{GRAD}/Reshape", "Reshape", f"{GRAD}/Sum", f"{GRAD}/shape", outputs=ONE),
    node(f"{GRAD}/tuple/group_deps", "NoOp", outputs=(), after=(f"{GRAD}/Mul", f"{GRAD}/Reshape")),
    node(f"{GRAD}/tuple/control_dependency", "Identity", f"{GRAD}/Mul"),
    node(f"{GRAD}/tuple/control_dependency_1", "Identity", f"{GRAD}/Reshape", outputs=ONE),
)
SHARED = (
    node("gradients/Shape", "Const", outputs=(Tensor("int32", (0,)),)),
    node("gradients/Const", "Const", outputs=ONE),
    node("gradients/start", "Fill", "gradients/Shape", "gradients/Const", outputs=ONE),
)
UPDATE = node("train", "ResourceApplyGradientDescent", "y", f"{GRAD}/tuple/control_dependency_1")
NODES = (*FORWARD, *SHARED, *OF_LOSS, *OF_MUL, UPDATE)
END = f"{GRAD}/tuple/control_dependency_1"  # the gradient by y


def names(nodes):
    return tuple(node.name for node in nodes)


GRADIENTS = (
    Gradient("mul", "Mul", "_MulGrad", names(OF_MUL)),
    Gradient("loss", "Mean", "_MeanGrad", names(OF_LOSS)),
)
CALLS = (
    GradientCall("loss", ("gradients/start",), ("gradients/loss_grad/truediv", None)),
    GradientCall(
        "mul", ("gradients/loss_grad/truediv",), (f"{GRAD}/tuple/control_dependency", END)
    ),
    GradientCall("mul/Read", (END,), (END,)),
)
ATTRIBUTES = {
    "axes": {"value": [0]},
    "gradients/Shape": {"value": []},
    "gradients/Const": {"value": 1.0},
    "gradients/loss_grad/shape": {"value": [4]},
    "gradients/loss_grad/Const": {"value": 4.0},
    f"{GRAD}/axes": {"value": [0]},
    f"{GRAD}/shape": {"value": []},
}


def values(x, y):
    """What each node of the graph computes."""
    mul, quarters = x * y, np.full(4, 0.25)
    sum_of_products = np.array([np.sum(x * quarters)])
    return {
        "x": x,
        "mul/Read": y,
        "mul": mul,
        "loss": np.mean(mul),
        "gradients/Const": np.ones(()),
        "gradients/start": np.ones(()),
        "gradients/loss_grad/Tile": np.ones(4),
        "gradients/loss_grad/Const": np.float64(4),
        "gradients/loss_grad/truediv": quarters,
        f"{GRAD}/Mul": quarters * y,
        f"{GRAD}/Mul_1": x * quarters,
        f"{GRAD}/Sum": sum_of_products,
        f"{GRAD}/Reshape": sum_of_products[0],
        f"{GRAD}/tuple/control_dependency": quarters * y,
        f"{GRAD}/tuple/control_dependency_1": sum_of_products[0],
    }


POINTS = Points(
    (
        values(np.array([1.0, 2, 3, 4]), np.float64(2)),
        values(np.array([-0.5, 0.3, 2, 7]), np.float64(-1.5)),
    ),
    rounding=1e-9,
)
GRAPH = GradientGraph(NODES, GRADIENTS, names(SHARED), CALLS, ATTRIBUTES, POINTS)
