"""Check points: the values against which formulas are checked, computed by the graph as written.

The first point is a batch of the data with the initial values of the variables. At the others the
batch has another size, and variables and fed floating-point numbers are changed at random, so a
formula that agrees by accident (with a variable of zeros, say) no longer agrees. Grappler is off;
if the graph has a float64 version, that one runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis.evaluation import NOWHERE, Points
from tflab.analysis.gradient_graph import GradientGraph, leading_to
from tflab.datasets import Whole
from tflab.errors import TflabError
from tflab.lifecycle import gradient_check, graph_copies
from tflab.records.graph import VARIABLES, Node, node_of, output_name
from tflab.records.options import Options, Program, Start
from tflab.runtime import session

ROWS = (16, 8, 3)  # of a batch: few if the graph is large, and more than one
NODES = 8_000  # formulas of a larger graph are neither checked nor printed
BYTES = 16_000_000  # of all values of a point; the largest tensors are omitted
SECONDS = 20  # for all points: a changed value may make a loop endless
TOO_SLOW = f"Computing the values that check the formulas takes more than {SECONDS} s."
ROUNDING = {tf.float64: 1e-6, tf.float32: 1e-4}
MOVES = (  # how far values are changed: relative to their size, and at least
    (0.1, 0.05),
    (0.5, 0.7),
)
REAL = ("float", "int", "uint", "bool")  # prefixes of types


def computed(program: Program, graph: GradientGraph, options: Options) -> Points:
    """The values of all tensors that formulas of a graph may contain; none if the graph cannot
    run."""
    ends = {*graph.owners(), *(call.forward for call in graph.calls)}
    nodes = {node.name: node for node in graph.nodes}
    needed = leading_to(nodes, ends)
    if program.model.unready or len(needed) > NODES:
        return NOWHERE
    options = replace(options, without=("grappler",), xla=False, soft_placement=True)
    listed = [node for node in graph.nodes if node.name in needed]
    try:
        return run(program, listed, options)
    except (TflabError, ValueError):
        return NOWHERE


def run(program: Program, nodes: Sequence[Node], options: Options) -> Points:
    batches = [
        dict(zip(feeds_of(program), batch, strict=True)) for batch in fed(program, nodes, options)
    ]
    tensors = fetchable(nodes, max(map(rows_of, batches)))
    session.step_of(program, [f"{node_of(tensor)}:0" for tensor in tensors])
    stateful = [node.name for node in nodes if node.op in VARIABLES]
    graph, variables = graph_copies.settable(program, stateful)
    variables = {name: variables[name] for name in stateful if name in variables}
    with session.fresh(graph, options) as live:
        first = gradient_check.first_values(live, program, variables)
    for copy, dtype in graph_copies.copies(graph, [*map(node_of, tensors), *first]):
        points = list(at_points(copy, tensors, first, batches, options))
        if len(points) > 1:
            return Points(tuple(points), ROUNDING[dtype])
    return NOWHERE


def rows_of(batch: Mapping[str, np.ndarray]) -> int:
    return max((len(value) for value in batch.values() if np.ndim(value)), default=1)


def feeds_of(program: Program) -> list[str]:
    return sorted(tensor.name for tensor in program.model.feeds)


def fed(program: Program, nodes: Sequence[Node], options: Options) -> Iterator[list[np.ndarray]]:
    """A batch for each point, of another size if the graph accepts any."""
    columns = program.dataset("train").columns
    of_rows = [
        tensor.shape
        for tensor, column in program.model.feeds.items()
        if not isinstance(columns.get(column), Whole)
    ]
    fixed = program.model.fixed_batch or any(shape.rank and shape[0] for shape in of_rows)
    fitting = (rows for rows in ROWS if sum(sizes(nodes, rows + len(MOVES)).values()) <= BYTES)
    rows = options.batch_size if fixed else min(options.batch_size, next(fitting, ROWS[-1]))
    for place in range(1 + len(MOVES)):
        size = rows if fixed or not place else max(rows, ROWS[-1]) + place
        yield next(islice(session.feed_batches(program, size), place, None))


def fetchable(nodes: Sequence[Node], rows: int) -> list[str]:
    """The tensors of real numbers that one run can fetch within the limit, the smallest first."""
    size_of = sizes(nodes, rows)
    order = sorted(size_of, key=lambda tensor: size_of[tensor])
    totals = accumulate(size_of[tensor] for tensor in order)
    return [tensor for tensor, total in zip(order, totals, strict=True) if total <= BYTES]


def sizes(nodes: Sequence[Node], rows: int) -> dict[str, int]:
    """The bytes of each tensor of real numbers, with this many rows for open dimensions."""
    hidden = within_frames(nodes)
    return {
        output_name(node.name, number): (
            8 * prod(rows if dim is None else dim for dim in output.shape or ())
        )
        for node in nodes
        if node.name not in hidden
        for number, output in enumerate(node.outputs)
        if output.dtype.startswith(REAL)
    }


def within_frames(nodes: Iterable[Node]) -> set[str]:
    """Return the nodes whose values cannot be fetched: inside loops, or in branches that are not
    taken."""
    framed: set[str] = set()
    dead: set[str] = set()
    for node in nodes:
        before = {*map(node_of, node.inputs), *node.control_inputs}
        if node.op.endswith("Enter") or (before & framed and not node.op.endswith("Exit")):
            framed.add(node.name)
        if node.op.endswith("Switch") or (before & dead and not node.op.endswith("Merge")):
            dead.add(node.name)
    return framed | dead


def at_points(
    graph: tf.Graph,
    tensors: Sequence[str],
    first: Mapping[str, np.ndarray],
    batches: Sequence[Mapping[str, np.ndarray]],
    options: Options,
) -> Iterator[dict[str, np.ndarray]]:
    """The values of tensors for each batch; a point that the graph refuses is omitted. Raises
    TflabError if the time is over."""
    start = time.monotonic()
    config = session.config_of(options)
    config.operation_timeout_in_ms = 1000 * SECONDS
    config.graph_options.optimizer_options.opt_level = -1  # L0: nothing is folded or merged
    operations = {op.name for op in graph.get_operations()}
    fetches = {tensor: tensor if ":" in tensor else f"{tensor}:0" for tensor in tensors}
    rng = np.random.default_rng(0)
    tables = (op.name for op in graph.get_collection("table_initializer"))
    with session.opened(graph, options, Start(tuple(tables)), config) as live:
        set_variables = graph_copies.setting(live, tuple(first)) if first else lambda: None
        for batch, move in zip(batches, ((0, 0), *MOVES), strict=True):
            if time.monotonic() - start > SECONDS:
                raise TflabError(TOO_SLOW)
            variables = [perturbed(value, rng, *move) for value in first.values()]
            feeds = {
                t: perturbed(v, rng, *move) for t, v in batch.items() if node_of(t) in operations
            }
            try:
                set_variables(*variables)
                values = live.run(fetches, feeds)
            except tf.errors.DeadlineExceededError as error:
                raise TflabError(TOO_SLOW) from error
            except (tf.errors.OpError, ValueError):
                continue
            yield {name: real(value) for name, value in values.items()}


def perturbed(value: Any, rng: np.random.Generator, parts: float, more: float) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value
    noise = rng.normal(size=(2, *value.shape))
    return value + parts * noise[0] * value + more * noise[1]


def real(value: Any) -> np.ndarray:
    return np.asarray(value).astype(np.float64)
