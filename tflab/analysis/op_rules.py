"""Op rules: which types of ops are which formulas, and which only hand numbers on.

No TensorFlow in here.
"""

from __future__ import annotations

from collections.abc import Callable

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression, Number, operation

# Types that hand on the numbers of their first input.
SEEN_THROUGH = (
    *("Identity", "ReadVariableOp", "Cast", "StopGradient", "PreventGradient", "Snapshot"),
    *("EnsureShape", "Conj", "DeepCopy"),
)
RESHAPES = ("Reshape", "ExpandDims", "Squeeze")
REPEATS = ("Tile", "BroadcastTo")

RULES: dict[str, Callable[..., Expression]] = {
    "Add": ex.add,
    "AddV2": ex.add,
    "BiasAdd": ex.add,
    "Sub": ex.subtract,
    "Mul": ex.times,
    "RealDiv": ex.divide,
    "Div": ex.divide,
    "Neg": ex.negative,
    "Square": lambda a: ex.power(a, 2),
    "SquaredDifference": lambda a, b: ex.power(ex.subtract(a, b), 2),
    "Reciprocal": lambda a: ex.divide(Number(1), a),
    "Inv": lambda a: ex.divide(Number(1), a),
    "Rsqrt": lambda a: ex.divide(Number(1), operation("Sqrt", a)),
    "ZerosLike": lambda a: Number(0),
    "OnesLike": lambda a: Number(1),
    "Fill": lambda shape, value: value,
    "TanhGrad": lambda y, dy: ex.times(dy, ex.subtract(Number(1), ex.power(y, 2))),
    "SigmoidGrad": lambda y, dy: ex.times(ex.times(dy, y), ex.subtract(Number(1), y)),
    "SqrtGrad": lambda y, dy: ex.divide(dy, ex.times(Number(2), y)),
    "ReciprocalGrad": lambda y, dy: ex.times(ex.negative(dy), ex.power(y, 2)),
    "InvGrad": lambda y, dy: ex.times(ex.negative(dy), ex.power(y, 2)),
    "RsqrtGrad": lambda y, dy: ex.divide(ex.times(ex.negative(dy), ex.power(y, 3)), Number(2)),
    "ReluGrad": lambda dy, x: ex.times(dy, operation("Greater", x, Number(0))),
    "SoftmaxCrossEntropyWithLogits": lambda a, b: operation("CrossEntropy", a, b),
    "SparseSoftmaxCrossEntropyWithLogits": lambda a, b: operation("CrossEntropy", a, b),
}
# The second output of these is the derivative by the logits, which they compute on the way.
DERIVATIVES: dict[str, Callable[..., Expression]] = {
    "SoftmaxCrossEntropyWithLogits": lambda a, b: ex.subtract(operation("Softmax", a), b),
    "SparseSoftmaxCrossEntropyWithLogits": lambda a, b: ex.subtract(
        operation("Softmax", a), operation("OneHot", b)
    ),
}

# Ops of which a formula of numbers consists, beside sums and means of everything: each with a sign
# or a name of its own.
ELEMENTWISE = (
    *("Add", "AddV2", "AddN", "Sub", "Mul", "RealDiv", "Div", "Neg", "Square", "SquaredDifference"),
    *("Reciprocal", "Inv", "Exp", "Log", "Tanh", "Sqrt", "Rsqrt", "Sigmoid", "Identity", "Cast"),
)
