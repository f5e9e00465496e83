"""View of the pass log: what each pass of the runtime did to the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tflab.analysis.passes import PURPOSES
from tflab.records.blocks import Frame, Strip
from tflab.records.placed import Pass, Takeover
from tflab.records.stages import Placement
from tflab.units import plural, short_task
from tflab.views import group_alike
from tflab.views.words import LONGEST, counted

IDLE = "changed nothing"
NAMED = 12  # nodes in a line


def pass_log(stage: Placement) -> Strip:
    """Return the passes that changed the graph, one frame each, and the others in one line."""
    frames = []
    idle: list[str] = []
    lost = unreached(stage)
    types = {node.name: node.op for node in (*stage.nodes, *stage.user_nodes)}
    for step in stage.passes:
        defined = {node.name: node.op for node in step.definitions}
        types |= {name: defined[name] for name in step.added if name in defined}
        lines = tuple(happened(step, lost, types))
        types |= defined
        if lines:
            again = f" (iteration {step.iteration + 1})" if step.iteration else ""
            heading = f"{step.name}{again} {step.before:,} -> {step.after:,}"
            shown = group_alike.shortened(lines, LONGEST)
            everything = lines if shown != lines else ()
            frames.append(Frame(heading, PURPOSES.get(step.name, ""), shown, everything))
        else:
            idle.append(step.name)
    if idle:
        frames.append(Frame(plural(len(idle), "run"), f"{IDLE}: {each_once(idle)}", ()))
    return Strip("What each pass did to the graph (nodes before -> after)", tuple(frames))


def unreached(stage: Placement) -> set[str]:
    return {fate.name for fate in stage.ledger if fate.fate == "unreached"}


def each_once(names: Iterable[str]) -> str:
    """Return the names of passes in a line; a pass may run several times."""
    return ", ".join(dict.fromkeys(names))


def happened(step: Pass, lost: set[str], types: dict[str, str]) -> Iterable[str]:
    """What a pass did, one line for each kind of change."""
    pruned = [taken for taken in step.taken if taken.name in lost]
    if pruned:
        yield f"{len(pruned):,} not needed by the fetches: {kinds(pruned, types)}"
    others = [taken for taken in step.taken if taken.name not in lost]
    yield from fusions(step, lost)
    yield from grouped(others, "folded", "folded into the constant")
    yield from grouped(others, "merged", "merged with the equal")
    yield from grouped(others, "compiled", "compiled into")
    removed = [taken for taken in others if taken.fate == "removed"]
    fed = [taken for taken in removed if types.get(taken.into or "") == "_Arg"]
    if fed:
        yield group_alike.listed([f"{one.name} is fed through {one.into}" for one in fed], NAMED)
    yield from replacements([taken for taken in removed if taken.replaced], types)
    bypassed = [
        taken for taken in removed if taken.into and not taken.replaced and taken not in fed
    ]
    if bypassed:
        first = bypassed[0]
        yield (
            f"{len(bypassed):,} bypassed ({kinds(bypassed, types)}): the consumers of "
            f"{first.name}, for example, now take {first.into}"
        )
    changed = {change.name for change in step.rewritten}  # names that stand for other nodes now
    dropped = [taken for taken in removed if not taken.into and taken.name not in changed]
    if dropped:
        yield f"{len(dropped):,} no longer needed: {kinds(dropped, types)}"
    taken_over = {taken.into for taken in others}
    plain = [change for change in step.rewritten if change.name not in taken_over]
    if plain:
        pairs = counted(f"{change.old} -> {change.new}" for change in plain)
        yield f"{plural(len(plain), 'node')} rewritten: {pairs}"
    if step.added:
        yield f"{plural(len(step.added), 'node')} added: {group_alike.listed(step.added, NAMED)}"
    for task, names in step.sent:
        yield f"{plural(len(names), 'node')} sent to {short_task(task)}"
    if step.moved:
        yield f"{plural(len(step.moved), 'node')} given a device"
    if step.rewired and not (step.taken or step.rewritten or step.added):
        yield f"{plural(len(step.rewired), 'node')} re-wired"


def replacements(replaced: Sequence[Takeover], types: dict[str, str]) -> Iterable[str]:
    """`1 replaced (Mul): Square_Mul (Square) does the work of Mul`."""
    for first in replaced[:1]:
        heir = f"{first.into} ({types[first.into or '']})"
        example = ", for example" if len(replaced) > 1 else ""
        work = f"{heir} does the work of {first.name}{example}"
        yield f"{len(replaced):,} replaced ({kinds(replaced, types)}): {work}"


def kinds(taken: Sequence[Takeover], types: dict[str, str]) -> str:
    return counted(types.get(node.name, "(runtime)") for node in taken)


NAMED_AFTER_FIRST = ("_FusedBatchNormEx",)  # which also compute what takes their value


def fusions(step: Pass, lost: Collection[str]) -> Iterable[str]:
    """`conv1/Conv2D + conv1/Relu became one _FusedConv2D, named conv1/Relu`, in the order of the
    data; a node that the pass added is not one of the parts."""
    new = set(step.added)
    added = {node.name: node.op for node in step.definitions if node.name in new}
    rewritten = {change.name: change.new for change in step.rewritten}
    fused = [one for one in step.taken if one.fate == "fused" and one.name not in lost]
    for into, names in by_heir(fused).items():
        parts = [*names, into] if into in rewritten else names
        if rewritten.get(into) in NAMED_AFTER_FIRST:
            parts = [into, *names]
        op = rewritten.get(into) or added.get(into, "node")
        text = " + ".join(parts[:NAMED]) + f" + {len(parts) - NAMED:,} more" * (len(parts) > NAMED)
        yield f"{text} became one {op}, named {into}"


def grouped(taken: Iterable[Takeover], fate: str, words: str) -> Iterable[str]:
    for into, names in by_heir(node for node in taken if node.fate == fate).items():
        others = [name for name in names if name != into]
        if others:
            yield f"{words} {into}: {group_alike.listed(others, NAMED)}"
        else:
            yield f"became a constant: {into}"


def by_heir(taken: Iterable[Takeover]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for node in taken:
        groups.setdefault(node.into or "", []).append(node.name)
    return groups
