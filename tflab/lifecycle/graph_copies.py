"""Graph copies: a program's graph once more, in float64 if its ops allow that, with variables that
can be set. What is printed about gradients is checked in such a copy."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, product
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tflab.analysis import values as analysis
from tflab.analysis.expressions import NOWHERE, Points
from tflab.analysis.gradient_graph import GradientGraph
from tflab.errors import RefusedError
from tflab.lifecycle import values as fetching
from tflab.records.graph import VARIABLES, Node, node_of, output_name, session_name, with_makers
from tflab.records.options import Options, Program
from tflab.runtime import nodes, session

HALVES = (tf.bfloat16, tf.float16)
NARROW = {dtype.as_datatype_enum for dtype in (tf.float32, *HALVES)}
WIDE = tf.float64.as_datatype_enum

# Nodes that fill tables, or connect iterators with their data
FILLS = re.compile(
    r"MakeIterator|(LookupTableImport|InitializeTable(FromTextFile|FromDataset)?)(V2)?"
)

Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Copy:
    """A copy of the graph in an open session."""

    live: tf1.Session
    dtype: tf.DType  # float64, or float32 for an unchanged copy
    nodes: Set[str]
    readers: Mapping[str, tf.Tensor]  # variable -> its value
    setters: Mapping[str, tf.Operation]  # variable -> the node that sets it
    half: str = ""  # the half precision in which the program computes a part of it
    initial: Values = field(default_factory=dict)  # variable -> the value with which it starts
    batch: Values = field(default_factory=dict)  # with which the copy was seen to run
    whole: Values = field(default_factory=dict)  # the batch of a step

    def assign(self, values: Values) -> None:
        """Set these variables."""
        fed = {self.setters[name].inputs[1]: value for name, value in values.items()}
        self.live.run([self.setters[name] for name in values], fed)

    def run(self, fetches: Any, feeds: Mapping[str, Any], seconds: int | None = None) -> Any:
        """Return the values of these tensors. Feeds of nodes that are not in the copy are ignored.
        Raises RefusedError for a value that does not fit."""
        fed = {name: value for name, value in feeds.items() if node_of(name) in self.nodes}
        options = tf1.RunOptions(timeout_in_ms=1000 * seconds) if seconds else None
        try:
            return self.live.run(fetches, fed, options)
        except ValueError as error:  # a value does not fit its placeholder
            raise RefusedError(" ".join(str(error).split())) from error


@contextmanager
def opened(
    program: Program,
    fetches: Sequence[str],
    wanted: Sequence[str],
    batches: Sequence[Values],
    options: Options,
) -> Iterator[Copy]:
    """Open a copy of the part of the graph that computes `fetches` and `wanted`, in float64 if such
    a copy can be imported and computes all of them from one of the batches. Raises RefusedError if
    the graph cannot be copied, initialised or run."""
    start = session.start_of(program)
    graph, whole = program.graph, program.graph.as_graph_def()
    named = {*map(node_of, start.targets)}  # a file may name nodes that its graph lacks
    targets = {op.name: op.type for op in graph.get_operations() if op.name in named}
    fills = [name for name, op in targets.items() if FILLS.fullmatch(op)]
    ends = {*map(node_of, (*fetches, *wanted, *fills))}
    needed = part_of(whole, nodes.needed(graph, ends))
    resources: dict[tuple[str, str], str] = {}  # two variables may share one
    for node in needed.node:
        if node.op in VARIABLES:
            own = "" if node.op == "VarHandleOp" else node.name
            shared = node.attr["shared_name"].s.decode() or own
            resources.setdefault((node.attr["container"].s.decode(), shared), node.name)
    variables = [*resources.values()]
    starting = part_of(whole, nodes.needed(graph, {*variables, *targets}))
    del whole  # it may be large
    types = {attr.type for node in all_nodes(needed) for attr in node.attr.values()}
    half = next((half.name for half in HALVES if half.as_datatype_enum in types), "")
    initial: Values = {}
    if starting.node:  # a session refuses to run anything in a graph without nodes
        with copied(starting, variables, tf.float32, options) as copy:
            session.begin(copy.live, start)
            initial = copy.live.run(dict(copy.readers))
    attempts = [*product((tf.float64, tf.float32), batches)]
    for attempt in attempts:
        dtype, batch = attempt
        with ExitStack() as stack:
            try:
                graph_def = widen_graph(needed) if dtype == tf.float64 else needed
                copy = stack.enter_context(copied(graph_def, variables, dtype, options))
                copy.run(fills, start.feeds)
                copy.assign(initial)
                more = map(session_name, wanted if dtype == tf.float64 else ())
                copy.run([*fetches, *more], batch)
            except (tf.errors.OpError, RefusedError, ValueError):
                if attempt is attempts[-1]:
                    raise
                continue  # some ops have no float64 version, some graphs take no small batch
            yield replace(copy, half=half, initial=initial, batch=batch, whole=batches[-1])
            return


@contextmanager
def copied(
    graph_def: tf1.GraphDef, variables: Iterable[str], dtype: tf.DType, options: Options
) -> Iterator[Copy]:
    """Open a session with this graph in this process. No pass folds or merges its nodes."""
    readers, setters = {}, {}
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(graph_def, name="")
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise RefusedError(f"The graph cannot be copied: {reason}") from error
        for name in variables:
            op = graph.get_operation_by_name(name)
            value = tf1.placeholder(dtype_of(op.outputs[0]))
            if op.type == "VarHandleOp":
                handle = op.outputs[0]
                readers[name] = tf.raw_ops.ReadVariableOp(resource=handle, dtype=value.dtype)
                setters[name] = tf.raw_ops.AssignVariableOp(resource=handle, value=value)
            else:
                readers[name] = op.outputs[0]
                assign = tf.raw_ops.Assign(ref=op.outputs[0], value=value, validate_shape=False)
                setters[name] = assign.op
    names = {op.name for op in graph.get_operations()}
    alone = replace(options, soft_placement=True, cluster=())
    with session.fresh(graph, alone, fetching.config_of(alone)) as live:
        yield Copy(live, dtype, names, readers, setters)


def part_of(graph_def: tf1.GraphDef, names: Set[str]) -> tf1.GraphDef:
    """Return these nodes of a graph, with all functions. A node that had to be on the device of
    another no longer has to, because the other one may be missing."""
    kept = [node for node in graph_def.node if node.name in names]
    part = tf1.GraphDef(node=kept, library=graph_def.library, versions=graph_def.versions)
    for node in part.node:
        node.attr.pop("_class", None)
    return part


def all_nodes(graph_def: tf1.GraphDef) -> Iterator[tf1.NodeDef]:
    """Yield the nodes of a graph and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def widen_graph(graph_def: tf1.GraphDef) -> tf1.GraphDef:
    """Return the GraphDef with float64 in attributes, lists of types and constants."""
    wide = type(graph_def)()
    wide.CopyFrom(graph_def)
    attributes = [attr for node in all_nodes(wide) for attr in node.attr.values()]
    for function in wide.library.function:
        for arg in (*function.signature.input_arg, *function.signature.output_arg):
            arg.type = WIDE if arg.type in NARROW else arg.type
            for handle in arg.handle_data:
                handle.dtype = WIDE if handle.dtype in NARROW else handle.dtype
        of_args = function.arg_attr.values()
        attributes += [attr for of_arg in of_args for attr in of_arg.attr.values()]
    for attr in attributes:
        if attr.type in NARROW:  # writing another kind of value would remove the present one
            attr.type = WIDE
        for index, dtype in enumerate(attr.list.type):
            attr.list.type[index] = WIDE if dtype in NARROW else dtype
        if attr.tensor.dtype in NARROW:
            value = tf.make_ndarray(attr.tensor).astype(np.float64)
            attr.tensor.CopyFrom(tf.make_tensor_proto(value, tf.float64))
    return wide


def dtype_of(variable: tf.Variable | tf.Tensor) -> tf.DType:
    """Return the dtype of a variable's values; a graph from a file has only its handle."""
    if variable.dtype == tf.resource:
        return tf.dtypes.as_dtype(variable.op.get_attr("dtype"))
    return variable.dtype.base_dtype


# Check points: the values against which formulas are checked. The first point is a batch of the
# data with the initial values of the variables. At the others the batch has another size, and
# variables and fed floating-point numbers are changed at random, so a formula that agrees by
# accident (with a variable of zeros, say) no longer agrees.

ROWS = (16, 8, 3)  # of a batch: few if the graph is large, and more than one
FEW = 4  # rows, with which the loss runs twice for each element of a gradient
MOST_NODES = 8_000  # formulas of a larger graph are neither checked nor printed
BYTES = 16_000_000  # of all values of a point; the largest tensors are omitted
SECONDS = 20  # for all points: a changed value may make a loop endless
ROUNDING = {tf.float64: 1e-6, tf.float32: 1e-4}
MOVES = ((0.1, 0.05), (0.5, 0.7))  # how far values are changed: by their size, and in addition
REAL = ("float", "int", "uint", "bool")  # prefixes of types


@dataclass(frozen=True)
class CheckPoints:
    """The batches of the points, and the tensors that are computed at each."""

    batches: tuple[Values, ...]  # one for each point
    small: Values  # a batch of few rows, for the many runs of the loss
    tensors: tuple[str, ...]  # that formulas may contain; none if they are too many


def points_of(program: Program, graph: GradientGraph, options: Options) -> CheckPoints:
    """Return the batches of the points, of several sizes if the graph accepts any, and the tensors
    of real numbers that formulas may contain: not those inside loops and branches, which may not be
    computed, and not the largest, beyond the limit for one run."""
    needed = with_makers(graph.nodes, graph.owners.keys() | graph.called)
    inside = analysis.depths(graph.nodes)
    small = len(needed) <= MOST_NODES
    nodes = [
        node for node in graph.nodes if small and node.name in needed and not inside[node.name]
    ]
    data, rows = program.dataset("train"), options.batch_size
    few, batch_sizes = rows, [rows] * (1 + len(MOVES))
    if not program.model.fixed_batch:
        bytes_at = {n: sum(sizes_of(nodes or graph.nodes, n + len(MOVES)).values()) for n in ROWS}
        rows = min(rows, next((n for n in ROWS if bytes_at[n] <= BYTES), ROWS[-1]))
        larger = (max(rows, ROWS[-1]) + place for place in range(1, 1 + len(MOVES)))
        few, batch_sizes = min(rows, FEW), [rows, *(min(other, data.size) for other in larger)]
    batches = [batch_of(program, size, place) for place, size in enumerate(batch_sizes)]
    most = max((len(v) for batch in batches for v in batch.values() if np.ndim(v)), default=1)
    size_of = sizes_of(nodes, most)
    order = sorted(size_of, key=size_of.__getitem__)
    totals = accumulate(size_of[tensor] for tensor in order)
    fetched = (tensor for tensor, total in zip(order, totals, strict=True) if total <= BYTES)
    return CheckPoints(tuple(batches), batch_of(program, few), tuple(fetched))


def batch_of(program: Program, rows: int, number: int = 0) -> Values:
    """Return one of the batches of this size, by fed tensor."""
    feeds = sorted(tensor.name for tensor in program.model.feeds)
    batch = next(islice(session.feed_batches(program, rows), number, None))
    return dict(zip(feeds, batch, strict=True))


def sizes_of(nodes: Sequence[Node], rows: int) -> dict[str, int]:
    """Return the bytes of each tensor of real numbers, with this many rows for open dimensions."""
    return {
        output_name(node.name, number): (
            8 * prod(rows if dim is None else dim for dim in output.shape or ())
        )
        for node in nodes
        for number, output in enumerate(node.outputs)
        if output.dtype.startswith(REAL)
    }


def computed(copy: Copy, points: CheckPoints) -> Points:
    """Return the values of the tensors at each point."""
    fetches = {tensor: session_name(tensor) for tensor in points.tensors}
    values: list[Values] = []
    rng = np.random.default_rng(0)
    start = time.monotonic()
    for batch, move in zip(points.batches if fetches else (), ((0, 0), *MOVES), strict=False):
        if time.monotonic() - start > SECONDS:
            return NOWHERE
        variables = {name: perturbed(value, rng, *move) for name, value in copy.initial.items()}
        feeds = {name: perturbed(value, rng, *move) for name, value in batch.items()}
        try:
            copy.assign(variables)
            arrays = copy.run(fetches, feeds, SECONDS)
        except tf.errors.DeadlineExceededError:
            return NOWHERE
        except (tf.errors.OpError, RefusedError):  # this point is not possible
            continue
        values.append({name: np.asarray(array, np.float64) for name, array in arrays.items()})
    return Points(tuple(values), ROUNDING[copy.dtype]) if len(values) > 1 else NOWHERE


def perturbed(value: np.ndarray, rng: np.random.Generator, parts: float, more: float) -> np.ndarray:
    """Return floating-point numbers, each changed at random by about `parts` of it, plus `more`."""
    value = np.asarray(value)
    if value.dtype.kind == "f" and more:
        value = value + more * rng.standard_normal(value.shape, np.float32)
        if parts:  # large models have many numbers, and each draw takes its time
            value *= 1 + parts * rng.standard_normal(value.shape, np.float32)
    return value
