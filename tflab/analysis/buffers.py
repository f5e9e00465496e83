"""Buffers: the memory of one step by address, which tensors shared it, and what that saved.

The memory that a step requested is known in pieces (`tflab.analysis.pieces`). A buffer is a piece
that contains an output. Working memory is released before its op ends; it contains no output, and
the runtime gives no address for it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import filterfalse
from operator import attrgetter

from tflab.analysis import memory, pieces
from tflab.analysis.columns import columns
from tflab.analysis.memory import US
from tflab.analysis.pieces import Piece, end_ns
from tflab.records.buffers import (
    BACKWARD,
    FORWARD,
    Amount,
    AtPeak,
    Buffer,
    Buffers,
    Output,
    Use,
)
from tflab.records.graph import Node, output_name, with_dependents
from tflab.records.placed import Fate, Transfer
from tflab.records.timed import OpRun, StepTime

BLUR_US = 1  # records are accurate to a microsecond

Neighbours = Mapping[int, Sequence[Piece]]  # id of a piece -> other pieces


def buffers(
    runs: Sequence[OpRun],
    outputs: Sequence[Sequence[Output]],
    nodes: Sequence[Node],
    step: StepTime,
    backward: Collection[str] = (),
    transfers: Iterable[Transfer] = (),
    updates: Collection[str] = (),
) -> Buffers | None:
    """The buffers of one step, from its op runs and their outputs.

    `nodes` are the graph that ran; `backward` are those of its nodes that belong to the backward
    pass, and `updates` those that only update variables. None if the runtime gives no addresses.
    """
    every = pieces.of_step(runs, outputs, nodes, transfers)
    allocated = sorted((piece for piece in every if piece.output), key=attrgetter("from_us"))
    if not allocated:
        return None
    without_output = [piece for piece in every if not piece.output]
    working = [piece for piece in without_output if is_working(piece)]
    other = [piece for piece in without_output if not is_working(piece)]
    before, distinct_bytes = reuse(allocated)
    after: dict[int, list[Piece]] = {}
    for piece in allocated:
        for earlier in before[id(piece)]:
            after.setdefault(id(earlier), []).append(piece)
    all_buffers = tuple(
        buffer(piece, step, backward, updates, before, after) for piece in allocated
    )
    requested = amount(piece.bytes for piece in allocated)
    in_place = amount(size for piece in allocated for _, size in piece.in_place)
    passed_on = amount(size for piece in allocated for _, size in piece.passed_on)
    output_bytes = [piece.output.bytes for piece in allocated if piece.output]
    unexpected = [piece for piece in allocated if not is_expected(piece)]
    reused = sum(bool(before[id(piece)]) for piece in allocated)
    return Buffers(
        step=step.step,
        wall_ns=step.wall_ns,
        buffers=all_buffers,
        made=Amount(
            len(output_bytes) + in_place.count + passed_on.count,
            sum(output_bytes) + in_place.bytes + passed_on.bytes,
        ),
        passed_on=passed_on,
        in_place=in_place,
        requested=requested,
        reused=Amount(reused, requested.bytes - distinct_bytes),
        distinct=Amount(requested.count - reused, distinct_bytes),
        working=amount(piece.bytes for piece in working),
        other=amount(piece.bytes for piece in other),
        for_backward=amount(item.bytes for item in all_buffers if item.backward_ns is not None),
        at_peak=at_peak(runs, step, allocated, working, other),
        held_by_receiver=tuple(map(name_of, filter(is_held_by_receiver, unexpected))),
        unexpected=tuple(map(name_of, filterfalse(is_held_by_receiver, unexpected))),
    )


def amount(sizes: Iterable[int]) -> Amount:
    listed = list(sizes)
    return Amount(len(listed), sum(listed))


def is_working(piece: Piece) -> bool:
    """Whether the piece was released before its op ended."""
    return piece.until_us is not None and piece.until_us <= end_ns(piece.run) // US + BLUR_US


def is_expected(piece: Piece) -> bool:
    """Whether the piece was released while its last reader ran, as the graph implies: an executor
    releases the inputs of an op before it records the end of the op."""
    if piece.until_us is None:
        return True
    last = piece.last_reader or piece.run
    return last.start_ns // US - BLUR_US <= piece.until_us <= end_ns(last) // US + BLUR_US


def is_held_by_receiver(piece: Piece) -> bool:
    """Whether the piece was sent to another device and released after its last reader ended.

    The runtime's table of sent tensors holds one until the callback of its receiver returns. Other
    threads may run all of its readers before that (tensorflow/core/framework/local_rendezvous.cc).
    """
    last = piece.last_reader or piece.run
    return piece.sent and piece.until_us is not None and piece.until_us > end_ns(last) // US


def buffer(
    piece: Piece,
    step: StepTime,
    backward: Collection[str],
    updates: Collection[str],
    before: Neighbours,
    after: Neighbours,
) -> Buffer:
    """The piece as a record."""
    assert piece.output is not None
    last = piece.last_reader
    until_us = piece.until_us
    return Buffer(
        tensor=name_of(piece),
        op=piece.run.op,
        phase=phase(piece.run, backward),
        device=piece.run.device,
        allocator=piece.output.allocator,
        address=piece.output.address,
        bytes=piece.bytes,
        from_ns=time_in_step(step, piece.from_us * US),
        until_ns=None if until_us is None else time_in_step(step, until_us * US),
        freed_by=piece.freed_by,
        in_place=uses(piece.in_place, step, backward),
        passed_on=uses(piece.passed_on, step, backward),
        readers=tuple(dict.fromkeys(run.name for run in piece.readers)),
        last_reader=last.name if last else None,
        backward_ns=backward_ns(piece, step, backward, updates),
        before=tuple(name_of(earlier) for earlier in before.get(id(piece), ())),
        after=tuple(name_of(later) for later in after.get(id(piece), ())),
    )


def time_in_step(step: StepTime, ns: int) -> int:
    """Time since the start of the step, at least 0: events are accurate to a microsecond, so the
    first may seem to precede the step."""
    return max(0, ns - step.start_ns)


def name_of(piece: Piece) -> str:
    return output_name(piece.run.name, piece.output.slot if piece.output else 0)


def phase(run: OpRun, backward: Collection[str]) -> str:
    return BACKWARD if run.name in backward else FORWARD


def uses(
    shared: Iterable[tuple[OpRun, int]], step: StepTime, backward: Collection[str]
) -> tuple[Use, ...]:
    return tuple(
        Use(run.name, time_in_step(step, run.start_ns), phase(run, backward)) for run, _ in shared
    )


def backward_ns(
    piece: Piece, step: StepTime, backward: Collection[str], updates: Collection[str]
) -> int | None:
    """The end of the last forward op that used the piece, if a node of the backward pass reads it
    later that does not only update a variable."""
    last = piece.last_reader
    if piece.run.name in backward or last is None or last.name not in backward:
        return None
    if all(run.name in updates for run in piece.readers if run.name in backward):
        return None
    forward = (run for run in (piece.run, *piece.readers) if run.name not in backward)
    return time_in_step(step, max(map(end_ns, forward)))


def reuse(held: Iterable[Piece]) -> tuple[dict[int, list[Piece]], int]:
    """For each piece, by its id, the pieces that last had some of its addresses; and the total size
    of all addresses. Pieces are given in the order in which they were requested."""
    spaces: dict[str, tuple[list[int], list[tuple[int, Piece]]]] = {}
    before = {}
    for piece in held:
        assert piece.output is not None
        starts, ranges = spaces.setdefault(pieces.address_space(piece.run.device), ([], []))
        low, high = piece.output.address, piece.output.address + piece.bytes
        first = bisect_right(starts, low)
        first -= first > 0 and ranges[first - 1][0] > low
        last = bisect_left(starts, high, first)
        hit = [(starts[place], *ranges[place]) for place in range(first, last)]
        before[id(piece)] = pieces.distinct(owner for *_, owner in hit)
        left = [(start, low, owner) for start, _, owner in hit[:1] if start < low]
        right = [(high, end, owner) for _, end, owner in hit[-1:] if end > high]
        new = [*left, (low, high, piece), *right]
        starts[first:last] = [start for start, *_ in new]
        ranges[first:last] = [(end, owner) for _, end, owner in new]
    sizes = (
        end - start
        for starts, ranges in spaces.values()
        for start, (end, _) in zip(starts, ranges, strict=True)
    )
    return before, sum(sizes)


def at_peak(
    runs: Sequence[OpRun],
    step: StepTime,
    held: Iterable[Piece],
    working: Iterable[Piece],
    other: Iterable[Piece],
) -> AtPeak:
    """What was alive at the moment at which the allocators' records have the most memory alive."""
    at_us, recorded = memory.highest(*memory.curve(columns(runs)))

    def alive(among: Iterable[Piece]) -> int:
        return sum(piece.bytes for piece in among if piece.held_by(at_us))

    return AtPeak(
        time_in_step(step, at_us * US), recorded, alive(held), alive(working), alive(other)
    )


def backward_nodes(
    nodes: Sequence[Node], user_nodes: Iterable[Node], added: Iterable[str], ledger: Iterable[Fate]
) -> frozenset[str]:
    """The nodes of the graph that runs which belong to the backward pass; `added` are those of the
    user's graph.

    A node that the runtime made belongs to it if the node that it was inlined from does, or if all
    nodes whose work it does do; and, if it does no node's work, if it takes an input from the
    backward pass.
    """
    users = {node.name for node in user_nodes}
    backward = set(added)
    inlined = {node.name: caller(node.name, users) for node in nodes if node.name not in users}
    backward |= {name for name, by in inlined.items() if by in backward}
    users |= {name for name, by in inlined.items() if by}
    carried: dict[str, list[str]] = {}
    for fate in ledger:
        if fate.into and fate.into not in users:
            carried.setdefault(fate.into, []).append(fate.name)
    backward |= {name for name, work in carried.items() if backward.issuperset(work)}
    users |= carried.keys()
    added_nodes = [node for node in nodes if node.name not in users]
    return frozenset(with_dependents(added_nodes, backward) & {node.name for node in nodes})


def caller(name: str, users: Collection[str]) -> str | None:
    """The user's node in whose scope the runtime put the node of a function: `while/body/_1/MatMul`
    belongs to `while`."""
    scope = name
    while "/" in scope:
        scope = scope.rpartition("/")[0]
        if scope in users:
            return scope
    return None
