"""Advice: what to try where a step of a graph from a file failed on values that were made up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tflab.errors import RanDryError, RefusedError, TflabError
from tflab.records import Options, Program
from tflab.runtime import session
from tflab.saved_graphs import feeding, shape_search

LISTED = 3  # fed tensors that a sentence names
TRIED_S = 10  # in which steps with other values have to end
SHAPES = 10  # that are tried


def with_advice(
    error: RefusedError, program: Program, options: Options, fetches: Sequence[str]
) -> RefusedError:
    """The error, with the feeds to try where what was made up leads to the node that failed. A
    shape is among them where a step that computes the fetches ran with it."""
    if isinstance(error, RanDryError) or not program.model.made_up:
        return error
    batch = next(session.feed_batches(program, options.batch_size))
    shapes = dict(zip(session.step_of(program, ()).feeds, (v.shape for v in batch), strict=True))
    behind_it = behind(error, program, shapes)
    fed = [tensor for tensor in behind_it if feeding.label(tensor) in program.model.made_up]
    if not fed:
        return error
    described = "; ".join(
        f"'{feeding.label(t)}' ({t.dtype.base_dtype.name} {list(shapes[t.name])})"
        for t in fed[:LISTED]
    )
    name = feeding.label(fed[0])
    tries = f"--feed {name}=FILE.npy"
    others = islice(other_shapes(fed[0], shapes[fed[0].name], str(error)), SHAPES)
    end = time.monotonic() + TRIED_S
    for other in others:
        if time.monotonic() < end and runs(program, options, fetches, fed[0], other):
            tries += f", or --shape {name}={','.join(map(str, other))}"
            break
    told = type(error)(
        f"{str(error).rstrip('.')}. What it was fed is made up: {described}. Try {tries}."
    )
    told.nodes = error.nodes
    return told


def runs(
    program: Program, options: Options, fetches: Sequence[str], tensor: Any, shape: tuple[int, ...]
) -> bool:
    """Whether a step ends in time where this tensor is fed made-up values of this shape."""
    config = session.config_of(options)
    config.operation_timeout_in_ms = TRIED_S * 1000
    needed = {op.name for op in program.graph.get_operations()}
    try:
        step = session.step_of(program, fetches)
        values = list(next(session.feed_batches(program, options.batch_size)))
        values[step.feeds.index(tensor.name)] = feeding.values_of(tensor, shape, needed)[0]
        with session.fresh(program.graph, options, config) as live:
            session.begin(live, session.start_of(program))
            step.callable(live)(*values)
    except TflabError:
        return False
    return True


def other_shapes(tensor: Any, shape: Sequence[int], message: str) -> Iterator[tuple[int, ...]]:
    """Shapes that may fit, those first that have a number which the runtime named."""
    if tensor.shape.rank is not None and None not in tensor.shape.as_list()[1:]:
        return
    named = dict.fromkeys(int(number) for number in shape_search.NUMBER.findall(message))
    numbers = [number for number in named if number not in shape and number]
    batched: shape_search.FedShape = (None, *shape[1:]) if shape else ()
    others = dict.fromkeys(shape_search.other_shapes(tensor.shape, batched, numbers))
    rows = shape[0] if shape else 1
    for other in sorted(others, key=lambda sizes: set(sizes).isdisjoint(numbers)):
        if other != batched:
            yield tuple(rows if size is None else size for size in other)


def behind(error: RefusedError, program: Program, fed: Any) -> list[Any]:
    """The fed tensors that lead to the node that failed, the nearest first; of a node within a
    function those that lead to its call, and of one that is not known, all."""
    here = {op.name for op in program.graph.get_operations()}
    failed = next((name for name in error.nodes if name in here), None)
    if failed is None:
        return [program.graph.get_tensor_by_name(name) for name in fed]
    return shape_search.leading_to(program.graph, failed, fed)
