"""Advice: options with which a graph from a file runs, after it failed without them.

Options are advised only if a step of the same graph ran with them. Each trial builds the graph
again, as the command would; if it fails for another reason, the search continues from there.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from tflab import models
from tflab.errors import LateError, RanDryError, RefusedError, TflabError, UnreadyError
from tflab.escaping import with_full_stop
from tflab.lifecycle import frontend, least_memory, placement
from tflab.records.options import Options, Program
from tflab.runtime import session
from tflab.saved_graphs import feeding, made_up

LISTED = 3  # fed tensors that a sentence names
TRIED_S = 10  # time limit of each step; after it no other trial starts
TRIED = 10  # options tried for one failure

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


def with_advice(error: TflabError, program: Program, options: Options) -> TflabError:
    """The error, with the made-up values of the node that failed, and the options that help."""
    doubted = made_up_behind(error, program, options)
    if not (doubted or (isinstance(error, UnreadyError) and (error.shapes or error.fetches))):
        return error
    helpful = search(error, program, options)
    names = [name for name, _ in error.shapes] if isinstance(error, UnreadyError) else []
    text = with_full_stop(str(error))
    if doubted:
        described = "; ".join(
            f"'{feeding.label(tensor)}' ({tensor.dtype.base_dtype.name} {list(shape)})"
            for tensor, shape in doubted[:LISTED]
        )
        text += f" It was fed made-up values: {described}."
        names = [feeding.label(doubted[0][0])]
    if helpful:
        text += f" {advised(names, options, helpful)}"
    return reworded(error, text)


def reworded(error: TflabError, text: str) -> TflabError:
    """The same error in other words."""
    copied = copy.copy(error)
    copied.args = (text,)
    return copied


def is_harmless(options: Options) -> bool:
    """Whether a step may be tried: a graph that may do more than compute would do that again."""
    return not (options.saved.side_effects or options.saved.allowed)


def advised(names: Sequence[str], before: Options, after: Options) -> str:
    """`Give --feed x=FILE.npy, or --shape x=16,4 for made-up values.`"""
    if after.fetches != before.fetches:
        return f"Give --fetch {' '.join(after.fetches)}."
    known = dict(before.saved.shapes)
    new = [(name, shape) for name, shape in after.saved.shapes if known.get(name) != shape]
    shapes = " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in new)
    files = " ".join(f"{name}=FILE.npy" for name in names)
    return f"Give --feed {files}, or --shape {shapes} for made-up values."


def search(error: TflabError, program: Program, options: Options) -> Options | None:
    """Options with which a step ran; None if none did in time."""
    model = program.name
    if not models.is_file(model) or not is_harmless(options):
        return None
    messages, end = {str(error)}, time.monotonic() + TRIED_S
    best_attempt: tuple[TflabError, Program | None, Options] | None = (error, program, options)
    while best_attempt is not None:
        further = None
        for proposed in islice(proposals(*best_attempt), TRIED):
            if time.monotonic() > end:
                return None
            failure, built = attempt(model, proposed)
            if failure is None:
                return proposed
            if further is None and str(failure) not in messages:
                further = failure, built, proposed
            messages.add(str(failure))
        best_attempt = further
    return None


def proposals(error: TflabError, program: Program | None, options: Options) -> Iterator[Options]:
    """Options that might help, the most likely first."""
    if isinstance(error, UnreadyError):
        if error.shapes:
            yield with_shapes(options, error.shapes)
        yield from (replace(options, fetches=(name,)) for name in error.fetches)
    elif program is not None:
        for tensor, shape in made_up_behind(error, program, options)[:LISTED]:
            for other in other_shapes(tensor, shape, str(error)):
                yield with_shapes(options, ((feeding.label(tensor), other),))


def with_shapes(options: Options, shapes: Shapes) -> Options:
    together = tuple({**dict(options.saved.shapes), **dict(shapes)}.items())
    return replace(options, saved=replace(options.saved, shapes=together))


def attempt(model: str, options: Options) -> tuple[TflabError | None, Program | None]:
    """Why a step of the graph cannot run with these options (None if it can), and its program."""
    options = replace(options, cluster=())
    program = None
    try:
        built = frontend.of_model(model, options)
        program = built.program
        if program is None:
            return TflabError(built.blocked), None
        rows = program.model.fixed_batch or options.batch_size
        values = next(session.feed_batches(program, rows))
        fetches = placement.resolve(program, options.fetches)
        fetches = fetches or placement.default_fetches(program)
        least_memory.check(built.nodes, fetches, rows)
        step = session.step_of(program, fetches)
        config = session.config_of(options)
        config.operation_timeout_in_ms = TRIED_S * 1000
        with session.fresh(program.graph, options, config) as live:
            session.begin(live, session.start_of(program))
            step.callable(live)(*values)
    except TflabError as error:
        return error, program
    except MemoryError:
        return TflabError("it needs more memory than is available"), program
    return None, program


def other_shapes(tensor: Any, shape: Sequence[int], message: str) -> Iterator[tuple[int, ...]]:
    """Shapes that may fit; shapes with a number that the runtime named come first."""
    if tensor.shape.rank is not None and None not in tensor.shape.as_list()[1:]:
        return
    dimensions = dict.fromkeys(int(number) for number in made_up.NUMBER.findall(message))
    numbers = [number for number in dimensions if number not in shape and number]
    rows = shape[0] if shape else 1
    others = made_up.other_shapes(tensor.shape, numbers)
    for other in sorted(others, key=lambda sizes: set(sizes).isdisjoint(numbers)):
        sizes = tuple(rows if size is None else size for size in other)
        if sizes != tuple(shape):
            yield sizes


def made_up_behind(
    error: TflabError, program: Program, options: Options
) -> list[tuple[Any, tuple[int, ...]]]:
    """The fed tensors with made-up values that lead to the node that failed, the nearest first,
    with the shapes that they were fed. For a node inside a function, those that lead to its
    call; for an unknown node, all."""
    final = isinstance(error, RanDryError | LateError)
    if final or not isinstance(error, RefusedError) or not program.model.made_up:
        return []
    rows = program.model.fixed_batch or options.batch_size
    batch = next(session.feed_batches(program, rows))
    shapes = dict(zip(session.step_of(program, ()).feeds, (v.shape for v in batch), strict=True))
    names = {op.name for op in program.graph.get_operations()}
    failed = next((name for name in error.nodes if name in names), None)
    if failed is None:
        tensors = [program.graph.get_tensor_by_name(name) for name in shapes]
    else:
        tensors = made_up.leading_to(program.graph, failed, shapes)
    return [
        (tensor, shapes[tensor.name])
        for tensor in tensors
        if feeding.label(tensor) in program.model.made_up
    ]
