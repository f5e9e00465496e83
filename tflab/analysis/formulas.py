"""Formulas: each node of a graph as an expression of the values that go into it.

Composed from types, edges, shapes and constants alone. What only moves numbers or gives them
another shape is looked through; a type that is not known stays as `Type(a, b)`. No TensorFlow in
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle, dropwhile
from math import prod
from typing import Any

from tflab.analysis import expressions as ex
from tflab.analysis import op_rules
from tflab.analysis.expressions import Expression, Name, Number, operation
from tflab.records import Node, Shape, node_of

Attributes = Mapping[str, Mapping[str, Any]]  # node -> its constant's value, its transposes, ...
Parts = Sequence[Expression]

MOST = 40  # names and ops of a formula; what is larger is called by its node's name


class Composer:
    """Composes formulas of the nodes of one graph, given in an order of their dependencies."""

    def __init__(self, nodes: Iterable[Node], attributes: Attributes) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.attributes = attributes
        self.whole: dict[str, tuple[int, ...] | None] = {}  # constants that are whole numbers
        for node in self.nodes.values():
            self.whole[node.name] = self.whole_numbers(node)

    def shape(self, tensor: str) -> Shape:
        name, _, number = tensor.partition(":")
        outputs = self.nodes[name].outputs if name in self.nodes else ()
        return outputs[int(number or 0)].shape if int(number or 0) < len(outputs) else None

    def name(self, text: str, tensor: str) -> Name:
        return Name(text, self.shape(tensor))

    def formula(self, node: Node, args: Parts) -> Expression:
        """What a node computes of the formulas of its inputs."""
        if value := self.constant(node):
            return value
        if not args:
            return self.name(node.name, node.name)
        if node.op in op_rules.SEEN_THROUGH or (node.op in op_rules.RESHAPES and self.alike(node)):
            return args[0]
        if node.op in op_rules.REPEATS and self.repeats_one(node):
            return self.repeated(node, args)
        if node.op in op_rules.RULES and len(args) == op_rules.RULES[node.op].__code__.co_argcount:
            return op_rules.RULES[node.op](*args)
        if special := SPECIAL.get(node.op):
            return special(self, node, args)
        if node.op in op_rules.RESHAPES:
            return operation("Reshape", args[0])
        kept = [a for t, a in zip(node.inputs, args, strict=True) if not self.only_shapes(t)]
        return operation(node.op, *kept)

    def only_shapes(self, tensor: str) -> bool:
        """Whether a tensor says how large others are, or along which axes: no part of a formula."""
        node = self.nodes.get(node_of(tensor))
        return node is not None and (
            node.op in ("Shape", "ShapeN", "Rank") or self.whole[node.name] is not None
        )

    def constant(self, node: Node) -> Expression | None:
        value = self.attributes.get(node.name, {}).get("value")
        if node.op != "Const" or isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return Number(value)

    def whole_numbers(self, node: Node) -> tuple[int, ...] | None:
        """The value of a small tensor of whole numbers, where the graph alone decides it."""
        if node.outputs and not node.outputs[0].dtype.startswith("int"):
            return None
        if node.op == "Const":
            value = self.attributes.get(node.name, {}).get("value")
            values: list[Any] = value if isinstance(value, list) else [value]
            return tuple(values) if all(isinstance(item, int) for item in values) else None
        known = [self.whole.get(node_of(tensor)) for tensor in node.inputs]
        if node.op == "Range" and len(known) == 3 and all(known):
            start, stop, step = (values[0] for values in known if values)
            return tuple(range(start, stop, step or 1)) if abs(stop - start) < MOST else None
        if node.op in ("AddV2", "FloorMod") and len(known) == 2 and known[0] and known[1]:
            longest = max(map(len, (known[0], known[1])))
            pairs = zip(cycle(known[0]), cycle(known[1]), range(longest), strict=False)
            if node.op == "AddV2":
                return tuple(a + b for a, b, _ in pairs)
            return tuple(a % b if b else 0 for a, b, _ in pairs)
        return None

    def alike(self, node: Node) -> bool:
        """Whether a reshaped tensor still goes with the same others: it gained or lost leading
        dimensions of 1, or it is bookkeeping that brings back what broadcasting changed."""
        before, after = self.shape(node.inputs[0]), self.shape(node.name)
        if before is None or after is None:
            source = self.nodes.get(node_of(node.inputs[0]))
            return source is not None and undoes_broadcasting(self.nodes, source)
        return without_ones(before) == without_ones(after)

    def repeats_one(self, node: Node) -> bool:
        """Whether one number is repeated: in a formula it needs no sign."""
        shape = self.shape(node.inputs[0])
        return shape is not None and all(dim == 1 for dim in shape)

    def repeated(self, node: Node, args: Parts) -> Expression:
        """One number for every element of a shape; how many they are is said by the shape."""
        shape = self.shape(node.name)
        if shape is not None and None not in shape:
            return ex.repeated(args[0], Number(prod(dim or 0 for dim in shape)), shape)
        if isinstance(args[1], ex.Operation) and args[1].op == "Shape":
            return ex.repeated(args[0], operation("Size", *args[1].args, about=shape), shape)
        return ex.repeated(args[0], operation("Size", Name(node.name, shape), about=shape), shape)

    def axes(self, node: Node) -> tuple[int, ...] | None:
        """Those of a sum or mean, counted from the first; None where the graph does not say."""
        shape = self.shape(node.inputs[0])
        axes = self.whole.get(node_of(node.inputs[1]))
        if axes is None:
            return None
        return axes if shape is None else tuple(axis % max(1, len(shape)) for axis in axes)

    def all_axes(self, node: Node) -> bool:
        shape, axes = self.shape(node.inputs[0]), self.axes(node)
        return shape is not None and axes is not None and set(axes) == set(range(len(shape)))


def without_ones(shape: Sequence[int | None]) -> list[int | None]:
    return list(dropwhile(lambda dim: dim == 1, shape))


def undoes_broadcasting(nodes: Mapping[str, Node], node: Node) -> bool:
    """Whether a sum goes over the axes that were found to have been broadcast."""
    by = nodes.get(node_of(node.inputs[1])) if node.op == "Sum" else None
    return by is not None and by.op == "BroadcastGradientArgs"


def sum_of(composer: Composer, node: Node, args: Parts) -> Expression:
    shape = composer.shape(node.inputs[0])
    if undoes_broadcasting(composer.nodes, node):
        return args[0] if broadcast_nothing(composer, node) else operation("Unbroadcast", args[0])
    if composer.axes(node) == ():
        return args[0]
    if composer.all_axes(node):
        return ex.total(args[0], shape)
    return operation("Sum", args[0], about=axes_of(composer, node))


def axes_of(composer: Composer, node: Node) -> tuple[str, ...]:
    """The axes of a sum as they are written; a question mark where only a run shows them."""
    axes = composer.axes(node)
    return ("?",) if axes is None else tuple(map(str, axes))


def broadcast_nothing(composer: Composer, node: Node) -> bool:
    """Whether the shape before broadcasting was that of the gradient, as far as is known."""
    found, _, number = node.inputs[1].partition(":")
    asked = composer.nodes[found].inputs[int(number or 0)]
    shapes = composer.nodes.get(node_of(asked))
    if shapes is None or shapes.op != "Shape":
        return False
    shape = composer.shape(shapes.inputs[0])
    return shape is not None and shape == composer.shape(node.inputs[0])


def mean_of(composer: Composer, node: Node, args: Parts) -> Expression:
    if composer.axes(node) == ():
        return args[0]
    return operation(
        "Mean", args[0], about=None if composer.all_axes(node) else axes_of(composer, node)
    )


def shape_of(composer: Composer, node: Node, args: Parts) -> Expression:
    return operation("Shape", args[0], about=composer.shape(node.inputs[0]))


def gathered(composer: Composer, node: Node, args: Parts) -> Expression:
    """The dimensions of a shape along some axes; all of them are the shape itself."""
    whole, axes = args[0], composer.whole.get(node_of(node.inputs[1]))
    if isinstance(whole, ex.Operation) and whole.op == "Shape" and axes is not None:
        if whole.about is not None and set(axes) == set(range(len(whole.about))):
            return whole
        return operation("Shape", *whole.args, *map(Number, axes))
    return operation(node.op, *args[:2])


def product_of(composer: Composer, node: Node, args: Parts) -> Expression:
    """The product of all dimensions of a shape is how many elements there are."""
    shape = args[0]
    if isinstance(shape, ex.Operation) and shape.op == "Shape":
        return operation("Size", *shape.args, about=shape.about)
    return operation(node.op, args[0])


def bias_gradient(composer: Composer, node: Node, args: Parts) -> Expression:
    """A bias is added to every row and position: to all axes but that of the channels."""
    shape = composer.shape(node.inputs[0])
    if shape is None or composer.attributes.get(node.name, {}).get("data_format") == "NCHW":
        return operation("Sum", args[0], about=("?",))
    return operation("Sum", args[0], about=tuple(map(str, range(len(shape) - 1))))


def matrix_product(composer: Composer, node: Node, args: Parts) -> Expression:
    flags = composer.attributes.get(node.name, {})
    pairs = zip(args, (("transpose_a", "adj_x"), ("transpose_b", "adj_y")), strict=True)
    return operation(
        "MatMul",
        *(
            operation("Transpose", arg) if any(flags.get(name) for name in names) else arg
            for arg, names in pairs
        ),
    )


def sum_of_all(composer: Composer, node: Node, args: Parts) -> Expression:
    return operation("Add", *args) if len(args) > 1 else args[0]


SPECIAL: dict[str, Callable[[Composer, Node, Parts], Expression]] = {
    "Sum": sum_of,
    "Mean": mean_of,
    "Shape": shape_of,
    "GatherV2": gathered,
    "Prod": product_of,
    "MatMul": matrix_product,
    "BatchMatMulV2": matrix_product,
    "AddN": sum_of_all,
    "BiasAddGrad": bias_gradient,
}


def composed(
    composer: Composer,
    nodes: Iterable[Node],
    argument: Callable[[Node, str], Expression | None],
    most: int = MOST,
) -> dict[str, Expression]:
    """The formulas of these nodes by tensor. `argument` says how a node calls one of its inputs;
    where it has no name for it, the formula of that input takes its place.

    Nodes come in an order of their dependencies, and each looks at its own inputs only: the time
    is linear in the graph, however deep that is.
    """
    formulas: dict[str, Expression] = {}

    def arg(node: Node, tensor: str) -> Expression:
        value = argument(node, tensor) or formulas.get(tensor)
        return value if value is not None and value.size <= most else composer.name(tensor, tensor)

    for node in nodes:
        args = [arg(node, tensor) for tensor in node.inputs]
        formulas[node.name] = composer.formula(node, args)
        if node.op in op_rules.DERIVATIVES and len(args) == 2:
            formulas[f"{node.name}:1"] = op_rules.DERIVATIVES[node.op](*args)
            continue
        whole = formulas[node.name]
        if isinstance(whole, ex.Operation) and whole.op == node.op:
            for number in range(1, len(node.outputs)):
                formulas[f"{node.name}:{number}"] = operation(f"{node.op}[{number}]", *whole.args)
    return formulas
