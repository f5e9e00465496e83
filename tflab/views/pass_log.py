"""View of the pass log: what each pass of the runtime did to the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tflab.analysis.passes import PURPOSES
from tflab.records.blocks import LONGEST, Frame, Strip
from tflab.records.placed import Pass, Takeover
from tflab.records.stages import Placement
from tflab.units import plural, short_task
from tflab.views.words import counted, grouped, listed

IDLE = "changed nothing"
NAMED = 12  # nodes in a line
TAKEN = {  # fates of nodes that others took over, in words
    "folded": "folded into the constant",
    "merged": "merged with the equal",
    "compiled": "compiled into",
}


def pass_log(stage: Placement) -> Strip:
    """Return the passes that changed the graph, one frame each, and the others in one line."""
    frames = []
    idle: list[str] = []
    for step, lines in changes(stage):
        if lines:
            again = f" (iteration {step.iteration + 1})" if step.iteration else ""
            heading = f"{step.name}{again} {step.before:,} -> {step.after:,}"
            more = len(lines) - LONGEST
            shown = (*lines[:LONGEST], f"... and {more:,} more") if more > 0 else lines
            about = PURPOSES.get(step.name, "")
            frames.append(Frame(heading, about, shown, lines if more > 0 else ()))
        else:
            idle.append(step.name)
    if idle:
        names = listed([*dict.fromkeys(idle)], NAMED)
        frames.append(Frame(plural(len(idle), "run"), f"{IDLE}: {names}", ()))
    return Strip("What each pass did to the graph (nodes before -> after)", tuple(frames))


def changes(stage: Placement) -> Iterator[tuple[Pass, tuple[str, ...]]]:
    """Yield each pass with what it did, a line for each kind of change."""
    lost = unreached(stage)
    types = {node.name: node.op for node in (*stage.nodes, *stage.user_nodes)}
    for step in stage.passes:
        # Until a pass defines a node anew, the node has the type that earlier passes gave it
        defined = {node.name: node.op for node in step.definitions}
        types |= {name: defined[name] for name in step.added if name in defined}
        yield step, tuple(happened(step, lost, types))
        types |= defined


def unreached(stage: Placement) -> set[str]:
    return {fate.name for fate in stage.ledger if fate.fate == "unreached"}


def happened(step: Pass, lost: set[str], types: Mapping[str, str]) -> Iterator[str]:
    """Yield what a pass did, one line for each kind of change."""
    if pruned := [taken for taken in step.taken if taken.name in lost]:
        yield f"not needed by the fetches: {counts(pruned, types)}"
    yield from fusions(step, lost)
    others = [taken for taken in step.taken if taken.name not in lost]
    for fate, words in TAKEN.items():
        for into, names in by_heir(node for node in others if node.fate == fate).items():
            taken = listed([name for name in names if name != into], NAMED)
            yield f"{words} {into}: {taken}" if taken else f"became a constant: {into}"
    renamed = {change.name for change in step.rewritten}  # names that stand for other nodes now
    yield from removals([taken for taken in others if taken.fate == "removed"], renamed, types)
    heirs = {taken.into for taken in others}
    if plain := [change for change in step.rewritten if change.name not in heirs]:
        pairs = counted(f"{change.old} -> {change.new}" for change in plain)
        yield f"{plural(len(plain), 'node')} rewritten: {pairs}"
    if step.added:
        yield f"{plural(len(step.added), 'node')} added: {listed(step.added, NAMED)}"
    for task, sent in step.sent:
        yield f"{plural(len(sent), 'node')} sent to {short_task(task)}"
    if step.moved:
        yield f"{plural(len(step.moved), 'node')} given a device"
    if step.rewired and not (step.taken or step.rewritten or step.added):
        yield f"{plural(len(step.rewired), 'node')} re-wired"


def removals(
    removed: Sequence[Takeover], renamed: Collection[str], types: Mapping[str, str]
) -> Iterator[str]:
    """Yield the nodes that were removed, by what their consumers take now."""
    fed = [taken for taken in removed if types.get(taken.into or "") == "_Arg"]
    if fed:
        yield listed([f"{one.name} is fed through {one.into}" for one in fed], NAMED)
    if replaced := [taken for taken in removed if taken.replaced]:
        first = replaced[0]
        heir = f"{first.into} ({types[first.into or '']})"
        yield f"replaced: {counts(replaced, types)}; {heir} does the work of {first.name}"
    into_others = [taken for taken in removed if taken.into and not taken.replaced]
    if bypassed := [taken for taken in into_others if taken not in fed]:
        first = bypassed[0]
        now = f"consumers of {first.name} now take {first.into}"
        yield f"bypassed: {counts(bypassed, types)}; {now}"
    if gone := [taken for taken in removed if not taken.into and taken.name not in renamed]:
        yield f"no longer needed: {counts(gone, types)}"


def counts(taken: Sequence[Takeover], types: Mapping[str, str]) -> str:
    return counted(types.get(node.name, "(runtime)") for node in taken)


def fusions(step: Pass, lost: Collection[str]) -> Iterator[str]:
    """Yield `conv1/Conv2D + conv1/Relu became one _FusedConv2D, named conv1/Relu`, in the order of
    the data; a node that the pass added is not one of the parts."""
    new = set(step.added)
    added = {node.name: node.op for node in step.definitions if node.name in new}
    rewritten = {change.name: change.new for change in step.rewritten}
    fused = [one for one in step.taken if one.fate == "fused" and one.name not in lost]
    for into, names in by_heir(fused).items():
        parts = [*names, into] if into in rewritten else names
        op = rewritten.get(into) or added.get(into, "node")
        text = " + ".join(parts[:NAMED]) + f" + {len(parts) - NAMED:,} more" * (len(parts) > NAMED)
        yield f"{text} became one {op}, named {into}"


def by_heir(taken: Iterable[Takeover]) -> dict[str, list[str]]:
    return grouped((node.into or "", node.name) for node in taken)
