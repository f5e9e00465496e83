"""Check points: the values against which formulas are checked, computed by the graph as written.

The first point is a batch of the data with the initial values of the variables. At the others the
batch has another size, and variables and fed floating-point numbers are changed at random, so a
formula that agrees by accident (with a variable of zeros, say) no longer agrees.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from math import prod
from typing import Any

import numpy as np
import tensorflow as tf

from tflab.analysis import values as analysis
from tflab.analysis.evaluation import NOWHERE, Points
from tflab.analysis.gradient_graph import GradientGraph
from tflab.datasets import Whole
from tflab.errors import RefusedError
from tflab.lifecycle.graph_copies import Copy, Values
from tflab.records.graph import Node, output_name, with_makers
from tflab.records.options import Options, Program
from tflab.runtime import session

ROWS = (16, 8, 3)  # of a batch: few if the graph is large, and more than one
NODES = 8_000  # formulas of a larger graph are neither checked nor printed
BYTES = 16_000_000  # of all values of a point; the largest tensors are omitted
SECONDS = 20  # for all points: a changed value may make a loop endless
ROUNDING = {tf.float64: 1e-6, tf.float32: 1e-4}
MOVES = (  # how far values are changed: relative to their size, and at least
    (0.1, 0.05),
    (0.5, 0.7),
)
REAL = ("float", "int", "uint", "bool")  # prefixes of types


def nodes_of(graph: GradientGraph) -> list[Node]:
    """Return the nodes whose tensors formulas may contain, but for those inside loops and branches,
    which may not run; none if they are too many."""
    needed = with_makers(graph.nodes, graph.owners.keys() | graph.called)
    if len(needed) > NODES:
        return []
    inside = analysis.depths(graph.nodes)
    return [node for node in graph.nodes if node.name in needed and not inside[node.name]]


def computed(copy: Copy, program: Program, graph: GradientGraph, options: Options) -> Points:
    """Return the values of all tensors that formulas of a graph may contain."""
    nodes = nodes_of(graph)
    if not nodes:
        return NOWHERE
    batches = list(batches_of(program, nodes, options))
    fetches = names(fetchable(nodes, max(map(rows_of, batches))))
    points = []
    rng = np.random.default_rng(0)
    start = time.monotonic()
    for batch, move in zip(batches, ((0, 0), *MOVES), strict=True):
        if time.monotonic() - start > SECONDS:
            return NOWHERE
        variables = {name: perturbed(value, rng, *move) for name, value in copy.initial.items()}
        feeds = {name: perturbed(value, rng, *move) for name, value in batch.items()}
        try:
            copy.assign(variables)
            values = copy.run(fetches, feeds, SECONDS)
        except tf.errors.DeadlineExceededError:
            return NOWHERE
        except (tf.errors.OpError, RefusedError):  # this point is not possible
            continue
        points.append(
            {name: np.asarray(value).astype(np.float64) for name, value in values.items()}
        )
    return Points(tuple(points), ROUNDING[copy.dtype]) if len(points) > 1 else NOWHERE


def names(tensors: Iterable[str]) -> dict[str, str]:
    """Return the tensors with the names by which they are fetched."""
    return {tensor: tensor if ":" in tensor else f"{tensor}:0" for tensor in tensors}


def rows_of(batch: Values) -> int:
    return max((len(value) for value in batch.values() if np.ndim(value)), default=1)


def batch_of(program: Program, rows: int, number: int = 0) -> Values:
    """Return one of the batches of this size, by fed tensor."""
    feeds = sorted(tensor.name for tensor in program.model.feeds)
    batch = next(islice(session.feed_batches(program, rows), number, None))
    return dict(zip(feeds, batch, strict=True))


def batches_of(program: Program, nodes: Sequence[Node], options: Options) -> Iterator[Values]:
    """Yield a batch for each point, of another size if the graph accepts any."""
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
        other = min(max(rows, ROWS[-1]) + place, program.dataset("train").size)
        size = rows if fixed or not place else other
        yield batch_of(program, size, place)


def fetchable(nodes: Sequence[Node], rows: int) -> list[str]:
    """Return the tensors of real numbers that one run can fetch within the limit, the smallest
    first."""
    size_of = sizes(nodes, rows)
    order = sorted(size_of, key=lambda tensor: size_of[tensor])
    totals = accumulate(size_of[tensor] for tensor in order)
    return [tensor for tensor, total in zip(order, totals, strict=True) if total <= BYTES]


def sizes(nodes: Sequence[Node], rows: int) -> dict[str, int]:
    """Return the bytes of each tensor of real numbers, with this many rows for open dimensions."""
    return {
        output_name(node.name, number): (
            8 * prod(rows if dim is None else dim for dim in output.shape or ())
        )
        for node in nodes
        for number, output in enumerate(node.outputs)
        if output.dtype.startswith(REAL)
    }


def perturbed(value: Any, rng: np.random.Generator, parts: float, more: float) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype.kind != "f":
        return value
    noise = rng.normal(size=(2, *value.shape))
    return value + parts * noise[0] * value + more * noise[1]
