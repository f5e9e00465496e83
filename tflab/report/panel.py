"""Panel: the life of one node as it stands beside a drawing, every name in it a link.

No TensorFlow in here. A line is a sequence of parts: plain text, a node to go to, a state of the
graph to go to, or a piece of code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflab.follow import view as story
from tflab.records import Life, Touch, node_of
from tflab.report.drawn import State
from tflab.units import short_device, time
from tflab.views.generated_code import steps
from tflab.views.words import place, tensor

MOST = 24  # neighbours that are written out


@dataclass(frozen=True)
class Link:
    """A node that can be gone to, under the text that names it."""

    node: str
    text: str


@dataclass(frozen=True)
class Moment:
    """A state of the graph that can be gone to."""

    state: int
    text: str


@dataclass(frozen=True)
class Code:
    text: str


Part = str | Link | Moment | Code
Line = tuple[Part, ...]


@dataclass(frozen=True)
class Section:
    title: str
    state: int | None  # that shows this part of the life
    lines: tuple[Line, ...]


def sections(life: Life, states: Sequence[State]) -> tuple[Section, ...]:
    """The four parts of a life; of those that a node never saw, it is told why not."""
    by_stage = {state.stage: number for number, state in reversed(list(enumerate(states)))}
    by_place = {state.place: number for number, state in enumerate(states)}
    found = [
        Section("Written", by_stage.get("frontend"), tuple(written(life))),
        Section("Differentiated", by_stage.get("backward"), tuple(differentiated(life))),
        Section("Placed", by_stage.get("placement"), tuple(placed(life, by_place))),
        Section("Executed", by_stage.get("execution"), tuple(executed(life))),
    ]
    return tuple(section for section in found if section.lines)


def written(life: Life) -> Iterator[Line]:
    yield (f"{story.origin(life).capitalize()}.",)
    if life.source:
        yield (f"{place(life.source)}  ", Code(life.source.code))
    if life.inputs:
        yield ("takes ", *links(life.inputs))
    if life.control_inputs:
        yield ("waits for ", *links(life.control_inputs))
    if life.outputs:
        yield (f"makes {', '.join(map(tensor, life.outputs))}",)
    if life.consumers:
        yield ("is used by ", *links(life.consumers))


def differentiated(life: Life) -> Iterator[Line]:
    if life.derived_from:
        yield ("derives ", *links([life.derived_from]))
    if life.gradient_nodes:
        yield (f"{life.gradient_function} made ", *links(life.gradient_nodes))
    elif life.no_gradient:
        yield (f"no gradient: {life.no_gradient}",)


def placed(life: Life, by_place: Mapping[int | None, int]) -> Iterator[Line]:
    for touch in life.touches:
        yield tuple(touched(touch, by_place.get(touch.place)))
    if life.fate:
        yield (f"fate: {story.FATES[life.fate.fate]}",)
    if life.origin:
        yield (f"comes from: {life.origin.origin}",)
    if life.carrier and life.carrier != life.name:
        yield ("lives on in ", *links([life.carrier]))
    if life.carries:
        yield ("does the work of ", *links(life.carries), " too")
    if life.assignment:
        yield (f"device {short_device(life.assignment.device)}: {life.assignment.reason}",)
    if life.kernel:
        kernel = life.kernel
        yield (f"kernel of {kernel.op}: {kernel.constraints or 'needs none'}",)
        if kernel.on_gpu:
            yield (f"a GPU would use (not run): {kernel.on_gpu}",)
    if life.code:
        yield ("code that XLA generates for it:",)
    for one in life.code:
        for step in steps(one):
            yield (Code(step),)


def touched(touch: Touch, state: int | None) -> Iterator[Part]:
    """`remapper: fused into conv1/Relu`."""
    yield touch.by if state is None else Moment(state, touch.by)
    yield f": {story.DEEDS.get(touch.what, touch.what)}"
    if touch.about and touch.what == "rewritten":
        yield f" from {touch.about}"
    elif touch.about:
        yield f" {story.LINKS.get(touch.what, 'into')} "
        yield Link(touch.about, touch.about)


def executed(life: Life) -> Iterator[Line]:
    if life.carrier is None:
        if life.fate:
            yield ("It did not run.",)
        return
    if life.carrier == life.name:
        yield (f"ran as {life.ran_as}",)
        if life.ran_outputs not in ((), life.outputs):
            yield (f"made {', '.join(map(tensor, life.ran_outputs))}",)
    else:
        yield ("its work was done by ", *links([life.carrier]), f", which ran as {life.ran_as}")
    if life.critical:
        yield ("on the longest chain of dependent ops: the step waits for it",)
    elif life.slack_ns is not None:
        yield (f"slack {time(life.slack_ns)}: it could take that much longer at no cost",)


def links(names: Sequence[str]) -> Iterator[Part]:
    """Names of nodes or tensors, with commas between them."""
    for number, name in enumerate(names[:MOST]):
        if number:
            yield ", "
        yield Link(node_of(name), name)
    if len(names) > MOST:
        yield f" and {len(names) - MOST} more"
