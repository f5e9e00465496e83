"""Pieces: the memory that the op runs of a step requested from their allocators, and its contents.

They combine three records of the runtime: the address of each output, the allocations and releases
of each op run, and the inputs of each node of the graph that ran.

- Exact: address and size of a piece, and when it was requested. Also when it was released, unless
  its op run got several pieces of one size: the records do not say which of those was released, so
  their releases are assigned in the order of the pieces' last readers.
- Inferred: the readers of a piece, from the graph; and whether an op whose output is in the memory
  of an input overwrote it or passed it on, from its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tflab.records.buffers import Output
from tflab.records.graph import Node, output_name
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun

# Types that compute no new elements: an input's memory that they return is unchanged.
# Reductions return it only if there is nothing to reduce.
PASSING = frozenset(
    (
        *("CheckNumerics", "Identity", "IdentityN", "PlaceholderWithDefault", "PreventGradient"),
        *("Enter", "Exit", "Merge", "NextIteration", "Snapshot", "StopGradient", "Switch"),
        *("Bitcast", "BroadcastTo", "EnsureShape", "ExpandDims", "Reshape", "Squeeze"),
        *("GatherV2", "Slice", "Split", "SplitV", "StridedSlice", "Tile", "Transpose", "Unpack"),
        *("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"),
    )
)
# Types that keep the memory of an input: it goes to the caller, or becomes the variable's
KEEPING = ("_Retval", "AssignVariableOp")

Share = tuple[OpRun, int]  # an op run that returned a tensor, and the tensor's bytes


@dataclass
class Piece:
    """An allocation of an op run: its lifetime, its output and its readers."""

    run: OpRun
    bytes: int
    from_us: int
    until_us: int | None = None  # None: not released before the trace ended
    freed_by: str = "kept"  # as in `Buffer`
    output: Output | None = None  # for which it was requested; None if it contains no output
    readers: list[OpRun] = field(default_factory=list)
    in_place: list[Share] = field(default_factory=list)
    passed_on: list[Share] = field(default_factory=list)
    sent: bool = False  # whether a tensor in it went to another device

    @property
    def last_reader(self) -> OpRun | None:
        return max(self.readers, key=end_ns, default=None)

    def held_by(self, at_us: int) -> bool:
        """Whether it was alive at the end of a microsecond."""
        return self.from_us <= at_us and (self.until_us is None or at_us < self.until_us)


def end_ns(run: OpRun) -> int:
    return run.start_ns + run.duration_ns


def of_step(
    runs: Sequence[OpRun],
    outputs: Sequence[Sequence[Output]],
    nodes: Iterable[Node],
    transfers: Iterable[Transfer] = (),
) -> list[Piece]:
    """Every piece of a step, in the order of the starts of its op runs.

    `outputs` are those of each run. A received tensor lies where it was sent from, because devices
    of one process do not copy it.
    """
    sent = {transfer.recv: transfer.tensor for transfer in transfers}
    leaving = set(sent.values())
    inputs = {node.name: [sent.get(tensor, tensor) for tensor in node.inputs] for node in nodes}
    lies_in: dict[str, Piece] = {}  # tensor -> its piece
    by_address: dict[tuple[str, int], Piece] = {}  # the latest piece at each address
    pieces: list[Piece] = []
    for run, given in sorted(zip(runs, outputs, strict=True), key=lambda pair: pair[0].start_ns):
        input_pieces = [lies_in[tensor] for tensor in inputs.get(run.name, ()) if tensor in lies_in]
        for piece in distinct(input_pieces):
            piece.readers.append(run)
        asked_for = [Piece(run, size, time) for time, size, _ in run.allocations if size > 0]
        pieces += asked_for
        for output in given:
            tensor = output_name(run.name, output.slot)
            lies_in.pop(tensor, None)
            if not output.address:
                continue
            key = (address_space(run.device), output.address)
            holder = in_input(output, input_pieces) or requested_piece(output, asked_for)
            if holder is None and output.allocated_bytes:
                holder = by_address.get(key)  # of an input that the graph does not show
                if holder:
                    holder.readers.append(run)
            if holder is None:
                continue  # in a variable or a constant, which outlive the step
            if holder.run is run:
                holder.output = holder.output or output
                by_address[key] = holder
            else:
                shares = holder.passed_on if run.op in PASSING else holder.in_place
                shares.append((run, output.bytes))
            holder.sent = holder.sent or tensor in leaving
            lies_in[tensor] = holder
    release(pieces)
    return pieces


def distinct(pieces: Iterable[Piece]) -> list[Piece]:
    return list({id(piece): piece for piece in pieces}.values())


def address_space(device: str) -> str:
    """The address space of a device: the processors of a process share their memory."""
    task, _, kind = device.rpartition("device:")
    return task if kind.startswith("CPU") else device


def in_input(output: Output, input_pieces: Iterable[Piece]) -> Piece | None:
    """The piece of an input that contains an output, if there is one."""
    return next(
        (
            piece
            for piece in input_pieces
            if piece.output and piece.output.address == output.address
        ),
        None,
    )


def requested_piece(output: Output, asked_for: Sequence[Piece]) -> Piece | None:
    """The piece that was requested for an output: the runtime numbers the allocations of an op
    run."""
    fitting = [
        piece
        for piece in asked_for
        if piece.bytes == output.allocated_bytes
        and (piece.output is None or piece.output.address == output.address)
    ]
    numbered = asked_for[output.allocation - 1 : output.allocation] if output.allocation else ()
    return next((piece for piece in (*numbered, *fitting) if piece in fitting), None)


def release(pieces: Iterable[Piece]) -> None:
    """Assign each piece its release, if it has one."""
    by_size: dict[tuple[int, int], list[Piece]] = {}
    for piece in pieces:
        by_size.setdefault((id(piece.run), piece.bytes), []).append(piece)
    for (_, size), alike in by_size.items():
        times = sorted(time for time, change, _ in alike[0].run.allocations if change == -size)
        for piece, time in zip(sorted(alike, key=expected_end), times, strict=False):
            piece.until_us = time
            piece.freed_by = "record" if len(alike) == 1 else "order"


def expected_end(piece: Piece) -> tuple[bool, bool, int]:
    """The order in which pieces are released: working memory first, kept memory last."""
    kept = any(reader.op in KEEPING for reader in piece.readers)
    return piece.output is not None, kept, end_ns(piece.last_reader or piece.run)
