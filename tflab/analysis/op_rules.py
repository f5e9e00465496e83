"""Op rules: the formula of each op type, and the types that only pass numbers on.

A rule is a line of text: the op's inputs, and what it computes of them. A type without a rule
appears by name in the formulas of others. A rule may be wrong for some inputs (a broadcast, an
attribute): a formula is printed only after its value was compared.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Expression

# Types that pass on the numbers of their first input
SEEN_THROUGH = (
    *("Identity", "ReadVariableOp", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape"),
    *("DeepCopy", "Cast"),
)
RESHAPES = ("Reshape", "ExpandDims", "Squeeze")
# have the numbers of their first input, in the same order, whatever these are
UNCHANGING = ("Identity", "Snapshot", "EnsureShape", "DeepCopy", *RESHAPES)
REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod")

# Ops of one argument that formulas write as functions
UNARY = (
    *("Exp", "Log", "Tanh", "Sqrt", "Sin", "Cos", "Sign", "Floor", "Ceil", "Log1p", "Expm1"),
    *("Abs", "Sigmoid", "Softplus", "Relu", "Softmax"),
)
RULES = {
    **{op: f"a: {op.lower()}(a)" for op in UNARY},
    "Maximum": "a, b: maximum(a, b)",
    "Minimum": "a, b: minimum(a, b)",
    "Greater": "a, b: a > b",
    "GreaterEqual": "a, b: a >= b",
    "Less": "a, b: a < b",
    "LessEqual": "a, b: a <= b",
    "Equal": "a, b: a == b",
    "NotEqual": "a, b: a != b",
    "Select": "c, a, b: where(c, a, b)",
    "SelectV2": "c, a, b: where(c, a, b)",
    "Add": "a, b: a + b",
    "AddV2": "a, b: a + b",
    "BiasAdd": "a, b: a + b",
    "Sub": "a, b: a - b",
    "Mul": "a, b: a * b",
    "RealDiv": "a, b: a / b",
    "Div": "a, b: a / b",
    "FloorDiv": "a, b: a // b",
    "FloorMod": "a, b: a % b",
    "Neg": "a: -a",
    "Pow": "a, b: a**b",
    "Square": "a: a**2",
    "SquaredDifference": "a, b: (a - b)**2",
    "Reciprocal": "a: 1 / a",
    "Inv": "a: 1 / a",
    "Rsqrt": "a: 1 / sqrt(a)",
    "L2Loss": "a: sum(a**2) / 2",
    "ZerosLike": "a: 0",
    # Formulas omit that a number is repeated in a larger tensor
    "OnesLike": "a: 1",
    "Fill": "dims, a: a",
    "Tile": "a, by: a",
    "BroadcastTo": "a, dims: a",
    "TanhGrad": "y, dy: dy * (1 - y**2)",
    "SigmoidGrad": "y, dy: dy * y * (1 - y)",
    "SqrtGrad": "y, dy: dy / (2 * y)",
    "ReciprocalGrad": "y, dy: -dy * y**2",
    "InvGrad": "y, dy: -dy * y**2",
    "RsqrtGrad": "y, dy: -dy * y**3 / 2",
    "SoftplusGrad": "dy, x: dy * sigmoid(x)",
    "ReluGrad": "dy, x: dy * (x > 0)",
    "SoftmaxCrossEntropyWithLogits": "x, labels: cross_entropy(x, labels)",
    "SparseSoftmaxCrossEntropyWithLogits": "x, labels: cross_entropy(x, labels)",
}
# The second output is the derivative with respect to the logits, computed on the way.
DERIVATIVES = {
    "SoftmaxCrossEntropyWithLogits": "x, labels: softmax(x) - labels",
    "SparseSoftmaxCrossEntropyWithLogits": ("x, labels: softmax(x) - one_hot(labels, size(x, -1))"),
}


def applied(rule: str, args: Sequence[Expression]) -> Expression | None:
    """Return what a rule says of these inputs; None if it has other inputs."""
    parameters, body = parsed(rule)
    if len(parameters) != len(args):
        return None
    return ex.substituted(body, dict(zip(parameters, args, strict=True)))


@cache
def parsed(rule: str) -> tuple[list[str], Expression]:
    """Return the parameters of a rule, and its body."""
    function = ast.parse(f"lambda {rule}", mode="eval").body
    assert isinstance(function, ast.Lambda)
    return [parameter.arg for parameter in function.args.args], function.body
