"""Advice: what to try where a step of a graph from a file failed on values that were made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflab.errors import RanDryError, RefusedError
from tflab.records import Options, Program
from tflab.runtime import session
from tflab.saved_graphs import feeding, shape_search

LISTED = 3  # fed tensors that a sentence names


def with_advice(error: RefusedError, program: Program, options: Options) -> RefusedError:
    """The error, with the feeds to try where what was made up leads to the node that failed."""
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
    other = another_shape(fed[0], shapes[fed[0].name], str(error))
    tries = f"--feed {name}=FILE.npy" + (
        f", or --shape {name}={other}" if other is not None else ""
    )
    told = type(error)(
        f"{str(error).rstrip('.')}. What it was fed is made up: {described}. Try {tries}."
    )
    told.nodes = error.nodes
    return told


def another_shape(tensor: Any, shape: Sequence[int], message: str) -> str | None:
    """A shape that may fit, with a number that the runtime named; None where none is open."""
    if tensor.shape.rank is not None and None not in tensor.shape.as_list()[1:]:
        return None
    named = dict.fromkeys(int(number) for number in shape_search.NUMBER.findall(message))
    numbers = [number for number in named if number not in shape and number]
    batched: shape_search.FedShape = (None, *shape[1:]) if shape else ()
    others = shape_search.other_shapes(tensor.shape, batched, numbers)
    other = next((other for other in others if other != batched), batched)
    return ",".join(str(shape[0] if size is None else size) for size in other)


def behind(error: RefusedError, program: Program, fed: Any) -> list[Any]:
    """The fed tensors that lead to the node that failed, the nearest first; of a node within a
    function those that lead to its call, and of one that is not known, all."""
    here = {op.name for op in program.graph.get_operations()}
    failed = next((name for name in error.nodes if name in here), None)
    if failed is None:
        return [program.graph.get_tensor_by_name(name) for name in fed]
    return shape_search.leading_to(program.graph, failed, fed)
