"""Check points: the values against which formulas are checked, computed by the graph as written.

The first point is a batch of the data with the initial values of the variables. At the others the
batch has another size, and variables and fed floating-point numbers are changed at random, so a
formula that agrees by accident (with a variable of zeros, say) no longer agrees.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from math import prod

import numpy as np
import tensorflow as tf

from tflab.analysis import values as analysis
from tflab.analysis.expressions import NOWHERE, Points
from tflab.analysis.gradient_graph import GradientGraph
from tflab.datasets import Whole
from tflab.errors import RefusedError
from tflab.lifecycle.graph_copies import Copy, Values
from tflab.records.graph import Node, output_name, session_name, with_makers
from tflab.records.options import Options, Program
from tflab.runtime import session

ROWS = (16, 8, 3)  # of a batch: few if the graph is large, and more than one
FEW = 4  # rows, with which the loss runs twice for each element of a gradient
NODES = 8_000  # formulas of a larger graph are neither checked nor printed
BYTES = 16_000_000  # of all values of a point; the largest tensors are omitted
SECONDS = 20  # for all points: a changed value may make a loop endless
ROUNDING = {tf.float64: 1e-6, tf.float32: 1e-4}
MOVES = (  # how far values are changed: relative to their size, and at least
    (0.1, 0.05),
    (0.5, 0.7),
)
REAL = ("float", "int", "uint", "bool")  # prefixes of types


@dataclass(frozen=True)
class CheckPoints:
    """What the graph computes at the points, and from what."""

    batches: tuple[Values, ...]  # one for each point
    small: Values  # a batch of few rows, for the many runs of the loss
    tensors: tuple[str, ...]  # that formulas may contain; none if they are too many


def of(program: Program, graph: GradientGraph, options: Options) -> CheckPoints:
    """Return the batches of the points, of several sizes if the graph accepts any, and the tensors
    of real numbers that formulas may contain.

    Tensors inside loops and branches are omitted, because they may not be computed, and so are the
    largest, beyond the limit for one run.
    """
    needed = with_makers(graph.nodes, graph.owners.keys() | graph.called)
    inside = analysis.depths(graph.nodes)
    small = len(needed) <= NODES
    nodes = [
        node for node in graph.nodes if small and node.name in needed and not inside[node.name]
    ]
    data, feeds = program.dataset("train"), program.model.feeds
    of_rows = [
        tensor.shape
        for tensor, column in feeds.items()
        if not isinstance(data.columns.get(column), Whole)
    ]
    rows = options.batch_size
    few, batch_sizes = rows, [rows] * (1 + len(MOVES))
    if not (program.model.fixed_batch or any(shape.rank and shape[0] for shape in of_rows)):
        fitting = (
            n for n in ROWS if sum(sizes(nodes or graph.nodes, n + len(MOVES)).values()) <= BYTES
        )
        rows = min(rows, next(fitting, ROWS[-1]))
        larger = (max(rows, ROWS[-1]) + place for place in range(1, 1 + len(MOVES)))
        few, batch_sizes = min(rows, FEW), [rows, *(min(other, data.size) for other in larger)]
    batches = [batch_of(program, size, place) for place, size in enumerate(batch_sizes)]
    most = max((len(v) for batch in batches for v in batch.values() if np.ndim(v)), default=1)
    size_of = sizes(nodes, most)
    order = sorted(size_of, key=lambda tensor: size_of[tensor])
    totals = accumulate(size_of[tensor] for tensor in order)
    fetched = (tensor for tensor, total in zip(order, totals, strict=True) if total <= BYTES)
    return CheckPoints(tuple(batches), batch_of(program, few), tuple(fetched))


def batch_of(program: Program, rows: int, number: int = 0) -> Values:
    """Return one of the batches of this size, by fed tensor."""
    feeds = sorted(tensor.name for tensor in program.model.feeds)
    batch = next(islice(session.feed_batches(program, rows), number, None))
    return dict(zip(feeds, batch, strict=True))


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
    """Return floating-point numbers, each changed by about these parts of it, and by more."""
    value = np.asarray(value)
    if value.dtype.kind != "f" or not (parts or more):
        return value
    moved = value + more * rng.standard_normal(value.shape, np.float32)
    if parts:  # large models have many numbers, and each draw takes its time
        moved += parts * rng.standard_normal(value.shape, np.float32) * value
    return moved
