"""View of placement: the ledger, the passes, devices, transfers, kernels."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.analysis.passes import PURPOSES
from tflab.cli import environment
from tflab.records.blocks import LONGEST, Block, Column, Fact, Table, listing, numbers, table
from tflab.records.graph import Tensor, grouped
from tflab.records.placed import CompiledKernel, FirstPart, FirstRun, Generated, Pass, Takeover
from tflab.records.stages import Placement
from tflab.units import percent, plural, short_device, short_task, size, time
from tflab.views.words import FATES, counted, graph_size, listed, tensor

TITLE = "Placement: the graph is rewritten, given devices and cut into partitions"
DEAREST = 10  # parts of the first run that have a row of their own
MOST_KERNELS = 10  # rows; JSON has every node
RUNTIMES = "(the runtime's)"  # if no node of that name was written


def facts(stage: Placement) -> Iterator[Fact]:
    new = f", {plural(len(stage.origins), 'node')} new" if stage.origins else ""
    yield Fact("graph", f"{graph_size(stage.nodes)}{new}")
    if stage.ledger:
        counts = Counter(row.fate for row in stage.ledger).most_common()
        yield Fact("fates", ", ".join(f"{count:,} {fate}" for fate, count in counts), brief=True)
    yield Fact("fetches", ", ".join(stage.fetches))
    yield Fact("data", stage.data, f"batch size {stage.batch_size}", detail=True)
    yield from balance(stage)
    if names := sorted(short_device(part.device) for part in stage.partitions):
        yield Fact("devices", ", ".join(names), detail=len(names) == 1)
    if compiled := [row.into for row in stage.ledger if row.fate == "compiled"]:
        clusters = plural(len({*compiled}), "cluster")
        yield Fact("compiled", plural(len(compiled), "node"), f"by XLA, as {clusters}")
    yield from transferred(stage)
    if first := stage.first_run:
        yield Fact("first run", time(first.wall_ns), "of a new session, measured once")


def tables(stage: Placement) -> Iterator[Block]:
    """Yield the fates of the nodes, the log of the passes, devices, transfers and kernels."""
    if stage.passes:
        yield fate_counts(stage)
        yield pass_log(stage)
    if stage.first_run:
        yield first_run_parts(stage, stage.first_run)
    if len(stage.partitions) > 1:
        ops = {node.name: node.op for node in stage.nodes}
        yield table(
            "Partitions: one graph for each device",
            stage.partitions,
            Column("device", lambda part: short_device(part.device)),
            numbers("nodes", lambda part: str(len(part.nodes))),
            Column("op types", lambda p: counted(ops[n] for n in p.nodes), elastic=True, spare=1),
        )
    if stage.transfers:
        yield table(
            "Transfers in every step (a tensor of 0 bytes only enforces the order)",
            stage.transfers,
            Column("tensor", lambda t: t.tensor),
            Column("from", lambda t: short_device(t.from_device)),
            Column("to", lambda t: short_device(t.to_device)),
            Column("shape", lambda t: tensor(Tensor(t.dtype, t.shape))),
            numbers("bytes", lambda t: "?" if t.bytes is None else f"{t.bytes:,}"),
            Column("send and receive", lambda t: f"{t.send}, {t.recv}", elastic=True, spare=1),
        )
    if stage.kernels:
        yield kernels(stage)
    for generated in stage.generated:
        yield from code_of_cluster(generated, stage)


def balance(stage: Placement) -> Iterator[Fact]:
    """Yield the nodes that did not run and those that the runtime made, which no fate counts."""
    if stage.not_run:
        count = plural(len(stage.not_run), "node")
        yield Fact("did not run", count, "in a branch that this step did not take")
    if stage.origins:
        sources = Counter(row.origin for row in stage.origins).most_common()
        made = ", ".join(f"{count:,} by {origin}" for origin, count in sources)
        yield Fact("made by the runtime", made, detail=True)


def transferred(stage: Placement) -> Iterator[Fact]:
    """Yield the bytes of a step on each route between devices."""
    routes: Counter[str] = Counter()
    for transfer in stage.transfers:
        ends = map(short_device, (transfer.from_device, transfer.to_device))
        routes["from {} to {}".format(*ends)] += transfer.bytes or 0
    if routes:
        sizes = ", ".join(f"{size(total)} {route}" for route, total in routes.items())
        unknown = sum(transfer.bytes is None for transfer in stage.transfers)
        without = f", without {plural(unknown, 'transfer')} of unknown size" if unknown else ""
        yield Fact("transfers", sizes, f"in every step{without}")


def first_run_parts(stage: Placement, first: FirstRun) -> Table:
    """Return the first run as a table in which every nanosecond has one owner. Except in full, all
    but the dearest parts share two rows: passes that changed nothing, and others."""
    rows = [(part.owner + again(part), part.ns, changed(stage, part)) for part in first.parts]
    rows.sort(key=lambda row: -row[1])
    shown, less = rows[:DEAREST], rows[DEAREST:]
    for idle in (True, False):
        if rest := [(ns, count) for _, ns, count in less if (count == 0) is idle]:
            ns, count = (sum(own or 0 for own in column) for column in zip(*rest, strict=True))
            shown.append((plural(len(rest), "other"), ns, 0 if idle else count or None))
    return Table(
        "The first run of a new session, by what it did",
        (
            Column("part", lambda row: row[0], elastic=True, name=True),
            numbers("time", lambda row: time(row[1])),
            numbers("share", lambda row: percent(row[1] / first.wall_ns)),
            numbers("nodes changed", lambda row: "" if row[2] is None else f"{row[2]:,}"),
        ),
        tuple(shown),
        everything=(lambda: rows) if less else None,
    )


def again(part: FirstPart | Pass) -> str:
    return f" (iteration {part.iteration + 1})" if part.iteration else ""


def changed(stage: Placement, part: FirstPart) -> int | None:
    """Return how many nodes a pass changed; None for a part of a run that is no graph pass."""
    key = part.owner, part.iteration
    log = [step.changed for step in stage.passes if (step.name, step.iteration) == key]
    return len(set().union(*log)) if log else None


def fate_counts(stage: Placement) -> Table:
    """Return a table of the nodes of each fate, with the passes that are responsible."""
    rows = []
    for fate, count in Counter(row.fate for row in stage.ledger).most_common():
        passes = Counter(row.by for row in stage.ledger if row.fate == fate and row.by)
        by = ", ".join(f"{number} by {name}" for name, number in passes.most_common())
        rows.append((fate, count, f"rewritten: {by}" if fate == "executed" and by else by))
    return table(
        f"What became of the {plural(len(stage.user_nodes), 'node')} of the graph",
        rows,
        Column("fate", lambda row: row[0]),
        numbers("nodes", lambda row: f"{row[1]:,}"),
        Column("meaning", lambda row: FATES[row[0]], spare=1),
        Column("by", lambda row: row[2], hanging=True),
    )


def kernels(stage: Placement) -> Table:
    """Return a row for each kind of kernel: changed types first, nodes of the runtime last."""
    types = {node.name: node.op for node in stage.user_nodes}
    parts = grouped((fate.into, types[fate.name]) for fate in stage.ledger if fate.fate == "fused")

    def written(name: str) -> str:
        """Return the type of a node as it was written, with those that were fused into it."""
        return " + ".join([*parts.get(name, ()), types.get(name, RUNTIMES * (name not in parts))])

    kinds = Counter((written(row.name), row.op, row.constraints) for row in stage.kernels)
    rows = sorted(
        ((*kind, count) for kind, count in kinds.items()),
        key=lambda row: (row[0] == RUNTIMES, row[0] == row[1], -row[3]),
    )
    return table(
        "Kernels (inferred: the registration of the highest priority that fits the node)",
        rows,
        Column("written", lambda row: row[0]),
        Column("runs as", lambda row: row[1]),
        numbers("nodes", lambda row: str(row[3])),
        Column("registered for", lambda row: row[2], elastic=True, least=20, spare=1),
        most=MOST_KERNELS,
    )


# Generated code

SHOWN = 4  # kernels; the listings have the rest
LINES = 4  # of a language
LETTERS = 300  # of a line
INSTRUCTIONS = "A listing of machine instructions"
# Instructions of LLVM IR, x86-64 and AArch64 that compute with floating-point numbers
ARITHMETIC = re.compile(
    r"\b(?:f(?:mul|add|sub|div|ml[as]|n?madd|n?msub)"
    r"|v?(?:fn?m)?(?:mul|add|sub|div)(?:132|213|231)?[ps][sd])\b"
)


def code_of_cluster(code: Generated, stage: Placement) -> Iterable[Block]:
    size = sum(kernel.bytes for kernel in code.kernels)
    machine = f", {size:,} bytes of machine code" if size else ""
    opcodes = counted(opcode for kernel in code.kernels for opcode in kernel.opcodes)
    idle = "" if any(fate.fate == "compiled" for fate in stage.ledger) else " (not run here)"
    yield (
        f"XLA compiled {code.cluster}{idle} to compute {', '.join(code.fetches)} for a batch of "
        f"{code.batch_size}: {plural(len(code.kernels), 'kernel')} of {opcodes}{machine}."
    )
    if not size and (sentence := environment.lack(INSTRUCTIONS, *environment.EXTRAS["code"])):
        yield sentence
    larger = sorted(code.kernels, key=lambda kernel: -kernel.bytes)
    own = [kernel for kernel in larger if kernel.bytes or (not size and kernel.llvm)]
    for kernel in own[:SHOWN]:
        parts = ((language, [about, *lines]) for language, about, lines in listings(kernel))
        yield listing(f"{kernel.name}: {', '.join(kernel.nodes)}", parts)


def listings(kernel: CompiledKernel) -> Iterable[tuple[str, str, list[str]]]:
    """Yield (language, number of lines, first lines) of a kernel, of floating point if any."""
    languages = {"HLO": kernel.hlo, "LLVM IR": kernel.llvm, "machine code": kernel.machine}
    for language, lines in languages.items():
        chosen = [line for line in lines if ARITHMETIC.search(line)] or lines
        shown = [" ".join(line.split())[:LETTERS] for line in chosen[:LINES]]
        about = plural(len(lines), "line")
        if len(chosen) < len(lines):
            about += f", {len(chosen):,} of floating-point arithmetic"
        if len(shown) < len(chosen):
            about += f"; the first {LINES}:"
        if lines:
            yield language, about, shown


# The pass log

NAMED = 12  # nodes in a line
TAKEN = {  # fates of nodes that others took over, in words
    "folded": "folded into the constant",
    "merged": "merged with the equal",
    "compiled": "compiled into",
}


def pass_log(stage: Placement) -> Table:
    """Return a table of the passes and their changes."""
    title = "What each pass did to the graph"
    shown = listing(title, logged(stage, NAMED), LONGEST)
    whole = listing(title, logged(stage, sys.maxsize)).rows
    return replace(shown, everything=None if shown.rows == whole else lambda: whole)


def logged(stage: Placement, most: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the name of each pass with its changes, and one line for all without changes."""
    idle: list[str] = []
    for step, lines in changes(stage, most):
        if lines:
            purpose = f": {PURPOSES[step.name]}" if step.name in PURPOSES else ""
            about = f"{step.before:,} -> {step.after:,} nodes{again(step)}{purpose}"
            yield step.name, [about, *lines]
        else:
            idle.append(step.name)
    if idle:
        names = listed([*dict.fromkeys(idle)], most)
        yield plural(len(idle), "run"), [f"changed nothing: {names}"]


def changes(stage: Placement, most: int = NAMED) -> Iterator[tuple[Pass, tuple[str, ...]]]:
    """Yield each pass with a line for each kind of change, with at most so many names."""
    lost = {fate.name for fate in stage.ledger if fate.fate == "unreached"}
    types = {node.name: node.op for node in (*stage.nodes, *stage.user_nodes)}
    for step in stage.passes:
        # Until a pass defines a node anew, the node has the type that earlier passes gave it
        defined = {node.name: node.op for node in step.definitions}
        types |= {name: defined[name] for name in step.added if name in defined}
        yield step, tuple(happened(step, lost, types, most))
        types |= defined


def happened(step: Pass, lost: set[str], types: Mapping[str, str], most: int) -> Iterator[str]:
    """Yield what a pass did, one line for each kind of change."""
    if pruned := [taken for taken in step.taken if taken.name in lost]:
        yield f"not needed by the fetches: {counts(pruned, types)}"
    yield from fusions(step, lost, most)
    others = [taken for taken in step.taken if taken.name not in lost]
    for fate, words in TAKEN.items():
        same = grouped((node.into or "", node.name) for node in others if node.fate == fate)
        for into, names in same.items():
            taken = listed([name for name in names if name != into], most)
            yield f"{words} {into}: {taken}" if taken else f"became a constant: {into}"
    # Names that stand for other nodes now
    renamed = {*step.rewired, *(change.name for change in step.rewritten)}
    removed = [taken for taken in others if taken.fate == "removed"]
    yield from removals(removed, renamed, types, most)
    heirs = {taken.into for taken in others}
    if plain := [change for change in step.rewritten if change.name not in heirs]:
        pairs = counted(f"{change.old} -> {change.new}" for change in plain)
        yield f"{plural(len(plain), 'node')} rewritten: {pairs}"
    if step.added:
        yield f"{plural(len(step.added), 'node')} added: {listed(step.added, most)}"
    for task, sent in step.sent:
        yield f"{plural(len(sent), 'node')} sent to {short_task(task)}"
    if step.moved:
        yield f"{plural(len(step.moved), 'node')} given a device"
    if step.rewired and not (step.taken or step.rewritten or step.added):
        yield f"{plural(len(step.rewired), 'node')} re-wired"


def removals(
    removed: Sequence[Takeover], renamed: Collection[str], types: Mapping[str, str], most: int
) -> Iterator[str]:
    """Yield the nodes that were removed, by what their consumers take now."""
    fed = [taken for taken in removed if types.get(taken.into or "") == "_Arg"]
    if fed:
        yield listed([f"{one.name} is fed through {one.into}" for one in fed], most)
    if replaced := [taken for taken in removed if taken.replaced]:
        first = replaced[0]
        heir = f"{first.into} ({types[first.into or '']})"
        yield f"replaced: {counts(replaced, types)}; {heir} does the work of {first.name}"
    into_others = [taken for taken in removed if taken.into and not taken.replaced]
    if bypassed := [taken for taken in into_others if taken not in fed]:
        first = bypassed[0]
        one_of = "for example, " * (len(bypassed) > 1)
        now = f"{one_of}consumers of {first.name} now take {first.into}"
        yield f"bypassed: {counts(bypassed, types)}; {now}"
    if gone := [taken for taken in removed if not taken.into and taken.name not in renamed]:
        yield f"no longer needed: {counts(gone, types)}"


def counts(taken: Sequence[Takeover], types: Mapping[str, str]) -> str:
    return counted(types.get(node.name, "(runtime)") for node in taken)


def fusions(step: Pass, lost: Collection[str], most: int) -> Iterator[str]:
    """Yield `conv1/Conv2D + conv1/Relu became one _FusedConv2D, named conv1/Relu`. The parts are in
    the order of the data. A node that the pass added is not one of them."""
    new = set(step.added)
    added = {node.name: node.op for node in step.definitions if node.name in new}
    rewritten = {change.name: change.new for change in step.rewritten}
    fused = (one for one in step.taken if one.fate == "fused" and one.name not in lost)
    for into, names in grouped((one.into or "", one.name) for one in fused).items():
        parts = [*names, into] if into in rewritten else names
        op = rewritten.get(into) or added.get(into, "node")
        text = " + ".join(parts[:most]) + f" + {len(parts) - most:,} more" * (len(parts) > most)
        yield f"{text} became one {op}, named {into}"
