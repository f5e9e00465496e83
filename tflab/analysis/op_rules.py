"""Op rules: the formula of each op type, and the types that only pass numbers on.

A type without a rule appears by name in the formulas of others. A rule may be wrong for some inputs
(a broadcast, an attribute): a formula is printed only after its value was compared.
"""

from __future__ import annotations

from collections.abc import Callable

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression, Number, operation

# Types that pass on the numbers of their first input
SEEN_THROUGH = (
    *("Identity", "ReadVariableOp", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape"),
    *("DeepCopy", "Cast"),
)
RESHAPES = ("Reshape", "ExpandDims", "Squeeze")
# have the numbers of their first input, in the same order, whatever these are
UNCHANGING = ("Identity", "Snapshot", "EnsureShape", "DeepCopy", *RESHAPES)
# repeat the numbers of one tensor in a larger one
REPEATS = ("Tile", "BroadcastTo", "Fill", "OnesLike")
SHAPES = ("Shape", "ShapeN", "Rank", "Size", "BroadcastGradientArgs")
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod")
# Ops with an input that only gives a shape or axes, and the index of that input
SHAPE_PLACES = dict.fromkeys((*RESHAPES, *REDUCTIONS, "Tile", "BroadcastTo", "Transpose"), 1)
SHAPE_PLACES["Fill"] = 0


def unary(*ops: str) -> dict[str, Callable[..., Expression]]:
    """Ops of one argument, written as functions in formulas."""
    return {op: lambda a, op=op: operation(op, a) for op in ops}


def binary(*ops: str) -> dict[str, Callable[..., Expression]]:
    """Ops of two arguments."""
    return {op: lambda a, b, op=op: operation(op, a, b) for op in ops}


RULES: dict[str, Callable[..., Expression]] = {
    **unary("Exp", "Log", "Tanh", "Sqrt", "Sin", "Cos", "Sign", "Floor", "Ceil", "Log1p", "Expm1"),
    **unary("Abs", "Sigmoid", "Softplus", "Relu", "Softmax"),
    **binary("Maximum", "Minimum", "FloorDiv", "Greater", "GreaterEqual", "Less"),
    **binary("LessEqual", "Equal", "NotEqual"),
    "FloorMod": lambda a, b: operation("Mod", a, b),
    "Select": lambda c, a, b: operation("Where", c, a, b),
    "SelectV2": lambda c, a, b: operation("Where", c, a, b),
    "Add": ex.add,
    "AddV2": ex.add,
    "BiasAdd": ex.add,
    "Sub": ex.subtract,
    "Mul": ex.times,
    "RealDiv": ex.divide,
    "Div": ex.divide,
    "Neg": ex.negative,
    "Pow": ex.power,
    "Square": lambda a: ex.power(a, Number(2)),
    "SquaredDifference": lambda a, b: ex.power(ex.subtract(a, b), Number(2)),
    "Reciprocal": lambda a: ex.divide(Number(1), a),
    "Inv": lambda a: ex.divide(Number(1), a),
    "Rsqrt": lambda a: ex.divide(Number(1), operation("Sqrt", a)),
    "L2Loss": lambda a: ex.divide(operation("Sum", ex.power(a, Number(2))), Number(2)),
    "ZerosLike": lambda a: Number(0),
    "TanhGrad": lambda y, dy: ex.times(dy, ex.subtract(Number(1), ex.power(y, Number(2)))),
    "SigmoidGrad": lambda y, dy: ex.times(ex.times(dy, y), ex.subtract(Number(1), y)),
    "SqrtGrad": lambda y, dy: ex.divide(dy, ex.times(Number(2), y)),
    "ReciprocalGrad": lambda y, dy: ex.times(ex.negative(dy), ex.power(y, Number(2))),
    "InvGrad": lambda y, dy: ex.times(ex.negative(dy), ex.power(y, Number(2))),
    "RsqrtGrad": lambda y, dy: ex.divide(
        ex.times(ex.negative(dy), ex.power(y, Number(3))), Number(2)
    ),
    "SoftplusGrad": lambda dy, x: ex.times(dy, operation("Sigmoid", x)),
    "ReluGrad": lambda dy, x: ex.times(dy, operation("Greater", x, Number(0))),
    "SoftmaxCrossEntropyWithLogits": lambda a, b: operation("CrossEntropy", a, b),
    "SparseSoftmaxCrossEntropyWithLogits": lambda a, b: operation("CrossEntropy", a, b),
}
# The second output is the derivative with respect to the logits, computed on the way.
DERIVATIVES: dict[str, Callable[..., Expression]] = {
    "SoftmaxCrossEntropyWithLogits": lambda a, b: ex.subtract(operation("Softmax", a), b),
    "SparseSoftmaxCrossEntropyWithLogits": lambda a, b: ex.subtract(
        operation("Softmax", a), operation("OneHot", b, operation("Size", a, Number(-1)))
    ),
}
