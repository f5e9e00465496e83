"""Formulas: each node of a graph as an expression of its inputs.

Formulas are composed from types, edges, shapes and constants alone. Ops that only move or reshape
numbers are transparent; an op without a rule is represented by its node's name. These formulas are
proposals: `expressions.Points` checks them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, reduce
from itertools import dropwhile
from math import isfinite, prod
from typing import Any

import numpy as np

from tflab.analysis import expressions as ex
from tflab.analysis.expressions import Call, Expression, Name
from tflab.records.graph import Node, Shape, node_of

# Rules
#
# A rule is a line of text: the op's inputs, and what it computes of them. A type without a rule
# appears by name in the formulas of others. A rule may be wrong for some inputs (a broadcast, an
# attribute): a formula is printed only after its value was compared.

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
    "SparseSoftmaxCrossEntropyWithLogits": "x, labels: softmax(x) - one_hot(labels, size(x, -1))",
}


def applied(rule: str, args: Sequence[Expression]) -> Expression | None:
    """Return a rule's formula for these inputs; None if it takes another number of inputs."""
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


# Nodes

Attributes = Mapping[str, Mapping[str, Any]]  # node -> its constant's value, its transposes, ...
Parts = Sequence[Expression]

# Prefixes of types that hold fewer numbers than float32
ROUNDED = ("int", "uint", "bool", "float16", "half", "bfloat16", "float8")
MOST = 40  # names and ops of a formula; a larger one is replaced by its node's name
# Ops on whole numbers, as gradients of reductions have them
WHOLE: dict[str, Callable[..., np.ndarray]] = {
    "AddV2": np.add,
    "FloorMod": np.mod,
    "Range": np.arange,
}
REPEATS = ("Tile", "BroadcastTo", "Fill")
TERMS = 100  # of a sum that has a formula: a longer one is not read, and nests too deeply


class Composer:
    """Composes formulas of the nodes of a graph, which come in the order of their dependencies."""

    def __init__(self, nodes: Iterable[Node], attributes: Attributes) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.attributes = attributes
        self.whole: dict[str, tuple[int, ...] | None] = {}  # constants of whole numbers
        self.goals: dict[str, Call] = {}  # shapes of what repeats a number, or is made of that
        for node in self.nodes.values():
            self.whole[node.name] = self.whole_numbers(node)

    def shape(self, tensor: str) -> Shape:
        name, _, number = tensor.partition(":")
        outputs = self.nodes[name].outputs if name in self.nodes else ()
        return outputs[int(number or 0)].shape if int(number or 0) < len(outputs) else None

    def formula(self, node: Node, args: Parts) -> Expression:
        """Return the formula of a node from those of its inputs; its name if there is no rule."""
        own = self.constant(node) or Name(node.name, node.name)
        if not args or self.rounds(node):
            return own
        goals = [arg for arg in args if ex.calls(arg, "shape")] if node.op in REPEATS else []
        goals += [self.goals[name] for name in map(node_of, node.inputs) if name in self.goals]
        if goals:
            self.goals[node.name] = goals[0]
        if node.op in SEEN_THROUGH:
            return args[0]
        if node.op in RESHAPES and self.alike(node):
            value = args[0]
            if isinstance(value, Call):  # a reduction then does not keep its dimensions
                options = [option for option in value.keywords if option.arg != "keepdims"]
                value = Call(value.function, *value.args, shape=value.shape, options=options)
            return value
        if node.op in RULES:
            return applied(RULES[node.op], args) or own
        special = SPECIAL.get(node.op)
        return (special and special(self, node, args)) or own

    def rounds(self, node: Node) -> bool:
        """Return whether a cast changes numbers: to whole ones, to 0 and 1, to fewer digits."""
        return node.op == "Cast" and any(
            output.dtype.startswith(ROUNDED) for output in node.outputs
        )

    def constant(self, node: Node) -> Expression | None:
        value = self.attributes.get(node.name, {}).get("value")
        if node.op != "Const" or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return ex.number(value) if isfinite(value) else None

    def whole_numbers(self, node: Node) -> tuple[int, ...] | None:
        """Return the value of a small tensor of integers, if the graph alone decides it."""
        if node.outputs and not node.outputs[0].dtype.startswith("int"):
            return None
        if node.op == "Const":
            value = self.attributes.get(node.name, {}).get("value")
            values: list[Any] = value if isinstance(value, list) else [value]
            return tuple(values) if all(isinstance(item, int) for item in values) else None
        known = [self.whole.get(node_of(tensor)) or () for tensor in node.inputs]
        if node.op not in WHOLE or not all(known):
            return None
        if node.op == "Range" and abs(known[1][0] - known[0][0]) >= MOST:
            return None
        arrays = (np.array(values if len(values) > 1 else values[0]) for values in known)
        with np.errstate(divide="ignore"):
            return tuple(WHOLE[node.op](*arrays).ravel().tolist())

    def alike(self, node: Node) -> bool:
        """Return whether a reshaped tensor still broadcasts with the same others: it gained or lost
        leading dimensions of 1, or it restores a shape that broadcasting changed."""
        if undoes_broadcasting(self.nodes, self.nodes.get(node_of(node.inputs[0]))):
            return True
        shapes = (self.shape(node.inputs[0]), self.shape(node.name))
        if None in shapes:
            return False
        before, after = ([*dropwhile(lambda dim: dim == 1, shape or ())] for shape in shapes)
        return before == after

    def axes(self, node: Node) -> tuple[int, ...] | None:
        """Return the axes of a sum or mean, counted from 0; None if the graph does not say."""
        shape = self.shape(node.inputs[0])
        axes = self.whole.get(node_of(node.inputs[1]))
        if axes is None:
            return None
        return axes if shape is None else tuple(axis % max(1, len(shape)) for axis in axes)

    def sized(self, tensor: str, formula: Expression) -> tuple[Expression, Shape] | None:
        """Return how formulas write a tensor that holds a shape, `(2, 1)` or `shape(x)`, and that
        shape, which is None if only the step knows it. Return None if neither is known."""
        if ex.calls(formula, "shape"):
            return formula, formula.shape
        dims = self.whole.get(node_of(tensor))
        return None if dims is None else (ex.dims(dims), dims)


def undoes_broadcasting(nodes: Mapping[str, Node], node: Node | None) -> bool:
    """Return whether a sum goes over the axes that broadcasting repeated."""
    by = nodes.get(node_of(node.inputs[1])) if node is not None and node.op == "Sum" else None
    return by is not None and by.op == "BroadcastGradientArgs"


def reduced(composer: Composer, node: Node, args: Parts) -> Expression | None:
    """Return a sum, a mean, a maximum, ... over some axes or all; of the dimensions of a shape, the
    product is `size(...)`. None if the axes are unknown."""
    if node.op == "Prod" and ex.calls(args[0], "shape"):
        return Call("size", *args[0].args, shape=args[0].shape)
    if undoes_broadcasting(composer.nodes, node):
        return sum_to(composer, node, args)
    axes, shape = composer.axes(node), composer.shape(node.inputs[0])
    if not axes:
        return args[0] if axes == () else None
    if shape is not None and set(axes) == set(range(len(shape))):
        if node.op == "Sum" and not ex.tensors(args[0]):  # one number stands for all elements
            goal = composer.goals.get(node_of(node.inputs[0]))
            if None not in shape:
                return ex.times(ex.number(prod(dim or 0 for dim in shape)), args[0])
            return ex.times(Call("size", *goal.args, shape=goal.shape), args[0]) if goal else None
        return ex.total(args[0], shape) if node.op == "Sum" else Call(node.op.lower(), args[0])
    options = over(axes)
    if composer.attributes.get(node.name, {}).get("keep_dims"):
        options.append(ast.keyword("keepdims", ast.Constant(True)))
    return Call(node.op.lower(), args[0], options=options)


def over(axes: Sequence[int]) -> list[ast.keyword]:
    """Return `axis=0` or `axis=(0, 2)`."""
    return [ast.keyword("axis", ex.number(axes[0]) if len(axes) == 1 else ex.dims(axes))]


def sum_to(composer: Composer, node: Node, args: Parts) -> Expression | None:
    """Return a sum over the axes that were broadcast; the gradient itself if none was."""
    maker, _, number = node.inputs[1].partition(":")
    goal = composer.sized(composer.nodes[maker].inputs[int(number or 0)], args[1])
    if goal is None:
        return None
    dims, known = goal
    if known is not None and known == composer.shape(node.inputs[0]):
        return args[0]
    return Call("sum_to", args[0], dims)


def gathered(composer: Composer, node: Node, args: Parts) -> Expression | None:
    """Return the dimensions of a shape along some axes; along all axes, the shape itself."""
    tensor, axes = args[0], composer.whole.get(node_of(node.inputs[1]))
    if not ex.calls(tensor, "shape") or not axes:
        return None
    if tensor.shape is not None and set(axes) == set(range(len(tensor.shape))):
        return tensor
    return Call("shape", *tensor.args, *map(ex.number, axes))


def reshaped(composer: Composer, node: Node, args: Parts) -> Expression | None:
    if len(args) != 2:
        return None
    axes: Sequence[int] = kept_axes(composer, node)
    if node.op == "ExpandDims":
        axes = composer.whole.get(node_of(node.inputs[1])) or ()
    if axes:
        return reduce(
            lambda value, axis: Call("expand_dims", value, ex.number(axis)), axes, args[0]
        )
    goal = composer.sized(node.inputs[1], args[1]) if node.op == "Reshape" else None
    return Call("reshape", args[0], goal[0]) if goal else None


def kept_axes(composer: Composer, node: Node) -> list[int]:
    """Return the axes at which a reshape inserts dimensions of 1, as the gradient of a reduction
    does: `DynamicStitch` puts ones into the shape of its input. Return [] for any other reshape."""
    shape = composer.nodes.get(node_of(node.inputs[1]))
    if shape is None or shape.op != "DynamicStitch" or len(shape.inputs) != 4:
        return []
    every, axes = (composer.whole.get(node_of(shape.inputs[place])) for place in (0, 1))
    before, ones = composer.shape(node.inputs[0]), node_of(shape.inputs[3])
    fill = composer.nodes.get(ones)
    if fill is not None and fill.op == "Fill":
        ones = node_of(fill.inputs[1])
    if not every or not axes or before is None or len(before) + len(axes) != len(every):
        return []
    return sorted(axes) if set(composer.whole.get(ones) or ()) == {1} else []


def transposed(composer: Composer, node: Node, args: Parts) -> Expression | None:
    order = composer.whole.get(node_of(node.inputs[1]))
    if order is None:
        return None
    backwards = order == tuple(range(len(order)))[::-1]
    return Call("transpose", args[0], *([] if backwards else [ex.dims(order)]))


def bias_gradient(composer: Composer, node: Node, args: Parts) -> Expression | None:
    """Return the sum over all axes except the channels, to each of which one bias was added."""
    shape = composer.shape(node.inputs[0])
    if shape is None or composer.attributes.get(node.name, {}).get("data_format") == "NCHW":
        return None
    return Call("sum", args[0], options=over(range(len(shape) - 1)))


def matrix_product(composer: Composer, node: Node, args: Parts) -> Expression:
    flags = composer.attributes.get(node.name, {})
    pairs = zip(args, (("transpose_a", "adj_x"), ("transpose_b", "adj_y")), strict=True)
    sides = (
        Call("transpose", arg) if any(flags.get(name) for name in names) else arg
        for arg, names in pairs
    )
    return Call("matmul", *sides)


SPECIAL: dict[str, Callable[[Composer, Node, Parts], Expression | None]] = {
    **dict.fromkeys(REDUCTIONS, reduced),
    **dict.fromkeys(RESHAPES, reshaped),
    "Shape": lambda of, node, args: Call("shape", *args, shape=of.shape(node.inputs[0])),
    "GatherV2": gathered,
    "MatMul": matrix_product,
    "BatchMatMulV2": matrix_product,
    "AddN": lambda of, node, args: reduce(ex.add, args) if len(args) <= TERMS else None,
    "BiasAddGrad": bias_gradient,
    "Transpose": transposed,
}


def composed(
    composer: Composer,
    nodes: Iterable[Node],
    argument: Callable[[Node, str], Expression | None],
    most: int = MOST,
    whole: Collection[str] = (),
) -> dict[str, Expression]:
    """Return the formulas of these nodes, by tensor, in time linear in the graph. For an input, a
    formula contains the name that `argument` returns or, if that is None, the formula of the input.
    In other formulas, a node whose own formula is longer than `most` is represented by its name. A
    node in `whole` then has no formula, and neither have the nodes that depend on it."""
    formulas: dict[str, Expression] = {}
    short: dict[str, Expression] = {}  # the formulas that others may contain, or names
    lost: set[str] = set()

    def add(tensor: str, formula: Expression | None) -> None:
        is_short = formula is None or ex.length(formula) <= most
        if not is_short and node_of(tensor) in whole:
            lost.add(node_of(tensor))
        elif formula is not None:
            formulas[tensor] = formula
            short[tensor] = formula if is_short else Name(tensor, tensor)

    for node in nodes:
        if any(node_of(tensor) in lost for tensor in node.inputs):
            lost.add(node.name)
            continue
        args = [argument(node, t) or short.get(t) or Name(t, t) for t in node.inputs]
        add(node.name, composer.formula(node, args))
        if node.op in DERIVATIVES:
            add(f"{node.name}:1", applied(DERIVATIVES[node.op], args))
        if node.op == "BroadcastGradientArgs":  # in a sum, its outputs stand for those shapes
            for tensor, formula in zip((node.name, f"{node.name}:1"), args, strict=True):
                add(tensor, formula)
    return formulas
