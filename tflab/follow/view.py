"""The story of one node, from the line that made it to the time that it took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tflab.records import Life, Touch
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.units import short_device, time
from tflab.views import op_table
from tflab.views.generated_code import steps
from tflab.views.words import place, tensor

KINDS = {
    "forward": "written by the program",
    "gradient": "made by a gradient function",
    "update": "made by the optimiser",
    "runtime": "made by the runtime",
}
READ = "read from a file"  # where the file does not say which line made the node
FATES = {
    "executed": "executed under its own name",
    "unreached": "never needed for what was fetched",
    "folded": "folded into a constant",
    "merged": "merged with a twin",
    "fused": "fused into a node that does its work too",
    "removed": "removed, because its value could be had without it",
    "compiled": "compiled by XLA together with others",
}
DEEDS = {"moved": "given its device", "rewired": "its inputs changed"}
LINKS = {
    "fused": "into",
    "folded": "into",
    "compiled": "into",
    "merged": "with",
    "removed": "for",
    "rewritten": "from",
}
NAMES = 6  # of neighbours that are written out


def tell(life: Life) -> Iterable[Block]:
    frames = (
        Frame("1  Written", origin(life), tuple(line(life))),
        Frame("2  Differentiated", "", tuple(differentiated(life))),
        Frame("3  Placed", FATES[life.fate.fate] if life.fate else "", tuple(placed(life))),
        Frame("4  Executed", f"as {life.ran_as}" if life.ran_as else "", tuple(executed(life))),
    )
    yield Strip(
        f"The life of {life.name} ({life.op})",
        tuple(frame for frame in frames if frame.lines or frame.about),
    )
    if life.times:
        yield times(life)


def origin(life: Life) -> str:
    """Who made the node."""
    return READ if life.from_file and life.source is None else KINDS[life.kind]


def line(life: Life) -> Iterator[str]:
    if life.source:
        yield f"{place(life.source)}  {life.source.code}"
    if life.inputs:
        yield f"takes {some(life.inputs)}"
    if life.control_inputs:
        yield f"waits for {some(life.control_inputs)}"
    if life.outputs:
        yield f"makes {some([tensor(output) for output in life.outputs])}"
    if life.consumers:
        yield f"is used by {some(life.consumers)}"


def differentiated(life: Life) -> Iterator[str]:
    if life.derived_from:
        yield f"derives {life.derived_from}"
    if life.gradient_nodes:
        yield f"{life.gradient_function} made {some(life.gradient_nodes)}"
    elif life.no_gradient:
        yield f"no gradient: {life.no_gradient}"


def placed(life: Life) -> Iterator[str]:
    yield from map(touched, life.touches)
    if life.origin:
        yield f"comes from: {life.origin.origin}"
    if life.carrier and life.carrier != life.name:
        yield f"lives on in {life.carrier}"
    if life.carries:
        yield f"does the work of {some(life.carries)} too"
    if life.assignment:
        yield f"on {short_device(life.assignment.device)}: {life.assignment.reason}"
    if life.kernel:
        kernel = life.kernel
        yield f"kernel of {kernel.op}: {kernel.constraints or 'needs none'}"
        if kernel.on_gpu:
            yield f"a GPU would use: {kernel.on_gpu}"
    if life.code:
        yield "as XLA compiles it:"
    for one in life.code:
        yield from steps(one)


def touched(touch: Touch) -> str:
    """`remapper (pass 22): fused into conv1/Relu`."""
    about = f" {LINKS.get(touch.what, '')}".rstrip() + f" {touch.about}" if touch.about else ""
    return f"{touch.by} (pass {touch.place + 1}): {DEEDS.get(touch.what, touch.what)}{about}"


def executed(life: Life) -> Iterator[str]:
    if life.carrier == life.name and life.ran_outputs not in ((), life.outputs):
        yield f"makes {some([tensor(output) for output in life.ran_outputs])}"
    if life.critical:
        yield "on the longest chain of dependent ops: the step waits for it"
    elif life.slack_ns is not None:
        yield f"slack {time(life.slack_ns)}: it could take that much longer at no cost to the step"


def times(life: Life) -> Table:
    whose = "" if life.carrier == life.name else f", all of {life.carrier}"
    measured = op_table.columns(op_table.ONE_NODE, {"requested": "memory"})
    return Table(
        f"What it took in a warm, traced step{whose}",
        (
            Column("batch", lambda item: str(item[0]), right=True),
            *op_table.within(measured, lambda item: item[1]),
        ),
        tuple(life.times.items()),
    )


def some(names: Sequence[str]) -> str:
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {more} more" if more > 0 else "")
