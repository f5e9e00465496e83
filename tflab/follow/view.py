"""View of a node history in sections of lines, from the line that made it to its times.

A part of a line is text, a link to a node, a link to a pass, or code. `blocks` joins the parts to
text; a page can show them as links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tflab.analysis.chain_rule import WHY
from tflab.analysis.fates import CALLS, SWITCHES
from tflab.analysis.gradient_graph import gradient_name
from tflab.records.blocks import Block, Table, listing, numbers, table
from tflab.records.graph import graph_def_name, node_of
from tflab.records.options import STAGES
from tflab.records.stages import NodeHistory, Touch
from tflab.records.values import FED, VARIABLE
from tflab.units import short_device, time
from tflab.views import execution, op_table
from tflab.views.values import amounts_of
from tflab.views.words import FATES, place, tensor

KINDS = {
    "forward": "made by the program",
    "gradient": "made by a gradient function",
    "update": "made by the optimiser",
    "runtime": "made by the runtime",
}
CHANGES = {
    "removed": "taken out of the graph",
    "reused": "its name now belongs to a node that computes something else",
}
PREPOSITIONS = {
    "fused": "into",
    "folded": "into",
    "compiled": "into",
    "merged": "with",
    "removed": "for",
    "replaced": "by",
    "bypassed": "in favour of",
    "rewritten": "from",
}
MOST = 4  # nodes that a line names, and inputs or outputs whose values are shown


@dataclass(frozen=True)
class Link:
    """A text that names a node, one of its tensors, or a pass."""

    text: str
    to: str | int  # a node, or the index of a pass among all passes of the placement


@dataclass(frozen=True)
class Code:
    text: str


Part = str | Link | Code
Line = tuple[Part, ...]


@dataclass(frozen=True)
class Section:
    """What one stage did to the node."""

    stage: str  # as on the command line
    about: str
    lines: tuple[Line, ...]


def blocks(history: NodeHistory, recorded: str = "") -> Iterable[Block]:
    """Yield fate, sections and times of a node; `recorded` is its time in a watched program."""
    parts = (
        (
            f"{1 + STAGES.index(section.stage)}  {section.stage.title()}",
            [*filter(None, [section.about]), *map(text_of, section.lines)],
        )
        for section in sections(history)
    )
    yield f"{headline(history)}{recorded}."
    yield listing("", parts)
    if (table := times(history)).rows:
        yield table
        yield from execution.load_line(history.load)


def headline(history: NodeHistory) -> str:
    """Return `conv/Conv2D (Conv2D, model.py:7): fused into conv/Relu; median call of conv/Relu:
    84.6 us at batch 1, 179 us at batch 16`."""
    fate, itself = history.fate, history.carrier == history.name
    about = ", ".join(filter(None, [history.op, place(history.source)]))
    what = KINDS[history.kind] if fate is None else fate.fate
    if history.carrier and history.not_run is not False:
        taken = "that no traced step took" if history.not_run else "of which no run was traced"
        return f"{history.name} ({about}): in a branch {taken}"
    if fate and history.carrier and not itself:
        way = "in favour of" if fate.fate == "removed" else PREPOSITIONS[fate.fate]
        what += f" {way} {history.carrier}"
    elif fate and fate.fate == "folded" and itself:
        what += f": runs as {history.ran_as}"
    calls = [f"{time(row.median_ns)} at batch {size}" for size, row in times(history).rows]
    if calls and (itself or (fate and fate.fate in ("fused", "merged", "compiled"))):
        of = "" if itself else f" of {history.carrier}"
        what += f"; median call{of}: {', '.join(calls)}"
    return f"{history.name} ({about}): {what}"


def sections(history: NodeHistory) -> tuple[Section, ...]:
    """Return a section for each stage that knows something about the node. That of the stage in
    which the node was made begins with its source line, inputs, outputs and users."""
    own = history.carrier == history.name and history.ran_as and history.not_run is False
    made_in = {"forward": "frontend", "runtime": "placement"}.get(history.kind, "backward")
    about = {
        "placement": fate_words(history),
        "execution": f"as {history.ran_as}" if own else "",
        made_in: KINDS[history.kind],
    }
    every = {
        "frontend": (),
        "backward": backward_lines(history),
        "placement": placement_lines(history),
        "execution": execution_lines(history),
    }
    made = {made_in: tuple(frontend_lines(history))}
    found = (
        Section(stage, about.get(stage, ""), (*made.get(stage, ()), *lines))
        for stage, lines in every.items()
    )
    return tuple(section for section in found if section.about or section.lines)


def text_of(line: Line) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in line)


def fate_words(history: NodeHistory) -> str:
    """Return the fate of the node and what it means; "" if it is unknown."""
    fate = history.fate
    if fate is None:
        return ""
    words = FATES[fate.fate]
    if fate.fate == "folded" and not fate.has_value:
        words = "used before the steps to compute a constant"
    elif fate.replaced:
        words = "a node that a pass made does its work"
    elif fate.fate == "removed" and fate.into:
        words = "its consumers take its value from another node"
    return f"{fate.fate}: {words}"


def frontend_lines(history: NodeHistory) -> Iterator[Line]:
    if history.source:
        yield (f"{place(history.source)}  ", Code(history.source.code))
    yield from linked("takes ", history.inputs)
    yield from linked("waits for ", history.control_inputs)
    if history.outputs:
        yield (f"makes {', '.join(map(tensor, history.outputs))}",)
    yield from linked("is used by ", history.consumers)


def backward_lines(history: NodeHistory) -> Iterator[Line]:
    yield from linked(
        "part of the gradient of ", [history.derived_from] if history.derived_from else []
    )
    if node := history.meaning:
        goal = f"{'is' if node.complete else 'leads to'} {node.towards}" if node.towards else ""
        goal += "; no variable needs it" if goal and not node.used else ""
        if node.bookkeeping:
            yield (f"bookkeeping ({node.bookkeeping}): {WHY[node.bookkeeping]}",)
            yield from [(goal,)] if goal else []
        elif node.formula:
            yield ("computes ", Code(node.formula), *([f", which {goal}"] if goal else []))
    yield from linked(f"{history.gradient_function} made ", history.gradient_nodes)
    yield from linked("also used by ", history.later_consumers)
    if history.no_gradient and not history.gradient_nodes:
        yield (f"no gradient nodes: {history.no_gradient}",)
    if history.gradient_path:
        yield ("way to the loss: ", *links(history.gradient_path, len(history.gradient_path)))


def placement_lines(history: NodeHistory) -> Iterator[Line]:
    for touch in history.touches:
        yield tuple(parts_of_touch(touch))
    yield from ((f"unlike it, {sentence}",) for sentence in history.unlike)
    if history.origin:
        yield (f"comes from: {history.origin.origin}",)
    yield from linked("also does the work of ", history.carries)
    if kernel := history.kernel:
        of = "" if history.carrier == history.name else f" of {kernel.name}"
        yield (f"device{of}: {short_device(kernel.device)}",)
        registered = f", registered for {kernel.constraints}" if kernel.constraints else ""
        yield (f"kernel{of}: {kernel.op}{registered}",)
    if history.code:
        ran = history.fate is not None and history.fate.fate == "compiled"
        about = f"XLA's code{'' if ran else ', not run here'}"
        code = ", ".join(one.name for one in history.code)
        yield (f"{about}: {code}, listed by python -m tflab.lifecycle --stage placement",)


def parts_of_touch(touch: Touch) -> Iterator[Part]:
    """Yield `remapper: fused into conv1/Relu`."""
    yield Link(touch.by, touch.place)
    what = touch.what if touch.about else CHANGES.get(touch.what, touch.what)
    yield f": {what}"
    if touch.about:
        yield f" {PREPOSITIONS[touch.what]} "
        yield touch.about if touch.what == "rewritten" else Link(touch.about, touch.about)


def execution_lines(history: NodeHistory) -> Iterator[Line]:
    fate = history.fate
    if history.carrier is None:
        if fate or history.touches:
            yield ("it did not run",)
    elif history.not_run is not False:
        why = " did not run: its branch was not taken in any traced step"
        if history.not_run is None:
            why = " is in a branch or after one; no run was traced, so whether it ran is not known"
        itself = history.carrier == history.name
        yield (f"it{why}",) if itself else (*links([history.carrier]), why)
    elif history.carrier != history.name:
        # For a folded or removed node the carrier does no work
        done = "its computation was done by "
        if fate and fate.fate == "folded":
            done = "it was used before the steps to compute the constant "
            if fate.has_value:
                done = "it was computed before the steps; its value is stored in "
        elif fate and fate.fate == "removed" and not fate.replaced:
            # No step may have taken the output of a switch
            took = "take their value" if history.ran_as in SWITCHES else "took the value"
            done = f"it did not run; its consumers {took} from "
        yield (done, *links([history.carrier]), f", which ran as {history.ran_as}")
    elif history.ran_outputs != history.outputs and any(one.shape for one in history.ran_outputs):
        yield (f"output in a step: {', '.join(map(tensor, history.ran_outputs))}",)
    yield from value_lines(history)


def value_lines(history: NodeHistory) -> Iterator[Line]:
    """Yield the values of the node's inputs and outputs, and the gradient of the loss."""
    ran = history.fate is None or history.fate.fate == "executed"
    if history.fate and history.fate.fate == "unreached":
        return
    off = "" if ran else " with the passes off"
    for value in history.taken[:MOST]:
        name = graph_def_name(value.tensor)
        yield ("input ", *links([name]), f"{off}: {amounts_of(value, value.shape)}")
    for value in history.values[:MOST]:
        is_first = graph_def_name(value.tensor) == node_of(value.tensor)
        computed = ("value" if is_first else f"value of {value.tensor}") + off
        about = {FED: "fed", VARIABLE: "before the step"}.get(value.kind, computed)
        yield (f"{about}: {amounts_of(value, value.shape)}",)
        if value.after is not None:
            yield (f"after the step: {amounts_of(value.after, value.shape)}",)
    if history.gradient is not None:
        amounts = amounts_of(history.gradient, history.gradient.shape)
        name = gradient_name(history.name)
        yield (f"{name}, computed by ", *links([history.gradient.node]), f": {amounts}")


def times(history: NodeHistory) -> Table:
    """Return the times of the node's carrier. A call, branch or loop that was inlined has none."""
    inlined = CALLS.match(history.op) and history.ran_as in ("Identity", "IdentityN", "NoOp")
    columns = op_table.columns(op_table.ONE_NODE)
    rows = () if inlined else tuple(history.times.items())
    return table(
        f"Calls of {history.carrier} in warm, traced steps",
        rows,
        numbers("batch", lambda item: str(item[0])),
        *(
            column
            for column in op_table.columns_of(columns, lambda item: item[1])
            if {*map(column.cell, rows)} - {"", "0", "0 B"}
        ),
    )


def linked(about: str, names: Sequence[str]) -> Iterator[Line]:
    """Yield a line with links to these nodes or tensors, if there are any."""
    if names:
        yield (about, *links(names))


def links(names: Sequence[str], most: int = MOST) -> Iterator[Part]:
    """Yield names of nodes or tensors, with commas between them."""
    for number, name in enumerate(names[:most]):
        if number:
            yield ", "
        yield Link(name, node_of(name))
    if len(names) > most:
        yield f" and {len(names) - most:,} more"
