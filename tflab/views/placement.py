"""View of placement: the ledger, the passes, devices, transfers, kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tflab.analysis.fates import fates_in_step
from tflab.analysis.first_run import RUN
from tflab.analysis.passes import BETWEEN
from tflab.records.blocks import Block, Column, Fact, Table, shortened
from tflab.records.graph import Tensor
from tflab.records.placed import FirstPart, FirstRun, Toggle
from tflab.records.stages import Placement
from tflab.units import CLUSTER_JOBS, percent, plural, short_device, size, task_of, time
from tflab.views import generated_code, group_alike, pass_log
from tflab.views.words import FATES, LONGEST, REMAINS, counted, graph_size, tensor

NAMED = 100  # nodes of a graph that are listed by name
FETCHES = 12  # that are named
DEVICES = 3  # that are named
MOST_PARTS = 12  # of the first run that have a row; JSON has all
MOST_KERNELS = 10  # rows; JSON has every node
ORIGINS = {  # singular and plural of nodes that the runtime made
    "constant_folding": ("folded constant", "folded constants"),
    "feed": ("feed", "feeds"),
    "fetch": ("fetch", "fetches"),
    "transfer": ("end of a transfer", "ends of transfers"),
}
RUNTIMES = "(the runtime's)"  # if no node of that name was written


def facts(stage: Placement) -> list[Fact]:
    return [
        Fact("graph", f"{graph_size(stage.nodes)}, {len(stage.user_nodes):,} nodes before"),
        *fates_in_short(stage),
        Fact("fetches", group_alike.listed(stage.fetches, FETCHES)),
        Fact("data", stage.data, f"batch size {stage.batch_size}", detail=True),
        *balance(stage),
        *devices(stage),
        *taken_together(stage),
        *transferred(stage),
        *toggled(stage.toggle),
        *first_run(stage),
    ]


def tables(stage: Placement) -> list[Block]:
    """Return the fates of the nodes, the log of the passes, devices, transfers and kernels."""
    blocks: list[Block] = []
    if stage.toggle and stage.toggle.changes:
        blocks.append(toggled_fates(stage.toggle))
    if stage.passes:
        blocks += [fate_counts(stage), pass_log.pass_log(stage)]
    if stage.first_run:
        blocks.append(first_run_parts(stage, stage.first_run))
    if len(stage.partitions) > 1:
        blocks.append(partitions(stage))
    if len(assigned(stage)) > 1:
        blocks.append(reasons(stage))
    if stage.transfers:
        blocks.append(transfers(stage))
    if stage.kernels:
        blocks.append(kernels(stage))
    for generated in stage.generated:
        blocks += generated_code.blocks(generated, stage)
    return blocks


def fates_in_short(stage: Placement) -> Iterator[Fact]:
    """Yield the number of nodes of each fate."""
    counts = Counter(row.fate for row in stage.ledger).most_common()
    if counts:
        listed = ", ".join(f"{count:,} {fate}" for fate, count in counts)
        yield Fact("fates", listed, brief=True)


def balance(stage: Placement) -> Iterator[Fact]:
    """Yield the nodes that did not run, and those of the runtime; the ledger has all others."""
    if stage.not_run:
        count = plural(len(stage.not_run), "node")
        yield Fact("did not run", count, "in a branch that this step did not take")
    if stage.origins:
        made = plural(len(stage.origins), "node")
        yield Fact("made by the runtime", made, ", ".join(created(stage)), detail=True)


def created(stage: Placement) -> Iterator[str]:
    """Yield `2 folded constants`, `1 folded constant with the name of a folded node`, `1 feed`."""
    folded = {fate.name for fate in stage.ledger if fate.fate == "folded"}
    kinds = Counter((origin.origin, origin.name in folded) for origin in stage.origins)
    for (kind, kept), count in kinds.most_common():
        one, several = ORIGINS.get(kind, (f"by {kind}", f"by {kind}"))
        words = one if count == 1 else several
        yield f"{count:,} {words}{' with the name of a folded node' if kept else ''}"


def devices(stage: Placement) -> Iterator[Fact]:
    names = sorted(short_device(part.device) for part in stage.partitions)
    reasons = [reason for _, reason in assigned(stage)]
    value = ", ".join(names) if len(names) <= DEVICES else plural(len(names), "device")
    if names:
        why = reasons[0] if len(reasons) == 1 else ""
        yield Fact("devices", value, why, detail=len(names) == 1)


def taken_together(stage: Placement) -> Iterator[Fact]:
    """Yield the nodes that XLA compiled, and the first of the fusions."""
    compiled = [fate for fate in stage.ledger if fate.fate == "compiled"]
    if compiled:
        clusters = plural(len({fate.into for fate in compiled}), "cluster")
        yield Fact("compiled", plural(len(compiled), "node"), f"by XLA, as {clusters}")
    lost = pass_log.unreached(stage) | {fate.name for fate in compiled}
    fused = [line for step in stage.passes for line in pass_log.fusions(step, lost)]
    if fused:
        yield Fact("fused", fused[0], f"{plural(len(fused), 'fusion')} in all")


def transferred(stage: Placement) -> Iterator[Fact]:
    """Yield the bytes of a step on each route between devices, and between tasks."""
    routes: Counter[tuple[str, str]] = Counter()
    wire: Counter[bool] = Counter()
    for transfer in stage.transfers:
        ends = transfer.from_device, transfer.to_device
        first, second = map(short_device, ends)
        routes[first, second] += transfer.bytes or 0
        wire[task_of(ends[0]) != task_of(ends[1])] += transfer.bytes or 0
    if routes:
        sizes = ", ".join(f"{size(total)} from {a} to {b}" for (a, b), total in routes.items())
        yield Fact("transfers", sizes, "in every step")
    unknown = sum(transfer.bytes is None for transfer in stage.transfers)
    if unknown:
        yield Fact("of unknown size", plural(unknown, "transfer"), "besides")
    if routes and any(part.device.startswith(CLUSTER_JOBS) for part in stage.partitions):
        yield Fact("between tasks", size(wire[True]), f"and {size(wire[False])} inside tasks")


def toggled(toggle: Toggle | None) -> Iterator[Fact]:
    """Yield how many nodes remained when passes were switched off."""
    if toggle:
        changed = f"{len(toggle.changes):,} of yours have another fate"
        count = f"{toggle.node_count:,} nodes, usually {toggle.usual_node_count:,}"
        yield Fact(f"without {', '.join(toggle.without)}", count, changed)


def first_run(stage: Placement) -> Iterator[Fact]:
    """Yield the time of the first run, and of the passes in it that changed nothing."""
    first = stage.first_run
    if first is None:
        return
    once = f"{time(first.wall_ns)}, measured once"
    ran = sum(part.ns for part in first.parts if part.owner == RUN)
    yield Fact("first run", once, f"{time(ran)} of it in ops, the rest prepared them")
    idle = [part for part in first.parts if changed(stage, part) == set()]
    if idle:
        most = max(idle, key=lambda part: part.ns)
        spent = time(sum(part.ns for part in idle))
        by = f"in {plural(len(idle), 'run')} of passes, most in {called(most)}"
        yield Fact("changed nothing", f"{spent} of the first run", by, detail=True)


def first_run_parts(stage: Placement, first: FirstRun) -> Table:
    """The first run: every nanosecond with its owner."""

    def nodes(part: FirstPart) -> str:
        names = changed(stage, part)
        return "" if names is None else f"{len(names):,}" if names else "nothing"

    return shortened(
        f"The first run of a new session, {time(first.wall_ns)}, measured once",
        (
            Column("part", called, elastic=True, name=True, least=24),
            Column("time", lambda part: time(part.ns), right=True),
            Column("share", lambda part: percent(part.ns / first.wall_ns), right=True),
            Column("nodes changed", nodes, right=True),
        ),
        sorted(first.parts, key=lambda part: -part.ns),
        MOST_PARTS,
    )


def changed(stage: Placement, part: FirstPart) -> set[str] | None:
    """Return the nodes that a pass changed; None for what is no pass of the graph."""
    key = part.owner, part.iteration
    log = [step.changed for step in stage.passes if (step.name, step.iteration) == key]
    return set[str]().union(*log) if log and part.owner not in BETWEEN else None


def called(part: FirstPart) -> str:
    again = f" (iteration {part.iteration + 1})" if part.iteration else ""
    return f"{part.owner}{again}"


def fate_counts(stage: Placement) -> Table:
    """The ledger in numbers: each fate, and the passes responsible."""
    meanings = FATES | ({"executed": REMAINS} if stage.not_run else {})
    rows = []
    for fate, count in Counter(row.fate for row in stage.ledger).most_common():
        passes = Counter(row.by for row in stage.ledger if row.fate == fate and row.by)
        by = ", ".join(f"{number} by {name}" for name, number in passes.most_common())
        rows.append((fate, count, f"rewritten: {by}" if fate == "executed" and by else by))
    return Table(
        f"What became of the {plural(len(stage.user_nodes), 'node')} of the graph",
        (
            Column("fate", lambda row: row[0]),
            Column("nodes", lambda row: f"{row[1]:,}", right=True),
            Column("meaning", lambda row: meanings[row[0]], spare=1),
            Column("by", lambda row: row[2], elastic=True),
        ),
        tuple(rows),
    )


def nodes_not_run(stage: Placement) -> Iterable[Table]:
    """For a small graph: the nodes that did not run, by name, and the node that replaced each."""
    fates = fates_in_step(stage.ledger, stage.not_run)
    groups: dict[tuple[str, str], list[str]] = {}
    for row in stage.ledger:
        if (fate := fates[row.name]) != "executed":
            groups.setdefault((fate, row.by or ""), []).append(row.name)
    if groups and len(stage.ledger) <= NAMED:
        yield Table(
            "The nodes that did not run as they were written, by name",
            (
                Column("fate", lambda row: row[0][0]),
                Column("pass", lambda row: row[0][1]),
                Column("nodes", lambda row: group_alike.listed(row[1], LONGEST), elastic=True),
            ),
            tuple(groups.items()),
        )


def assigned(stage: Placement) -> Counter[tuple[str, str]]:
    """Return the number of nodes by device and reason; colocations and resources are one each."""
    return Counter((short_device(row.device), general(row.reason)) for row in stage.assignments)


def reasons(stage: Placement) -> Table:
    """Why nodes are on their devices."""
    return shortened(
        "Why each node is on its device, by the placer's rules",
        (
            Column("device", lambda row: row[0][0]),
            Column("because", lambda row: row[0][1], elastic=True),
            Column("nodes", lambda row: f"{row[1]:,}", right=True),
        ),
        assigned(stage).most_common(),
        LONGEST,
    )


def general(reason: str) -> str:
    if reason.startswith("colocated with"):
        return "colocated with another node"
    return "on the device of its resource" if reason.startswith("where its resource") else reason


def toggled_fates(toggle: Toggle) -> Table:
    """How fates changed when passes were switched off."""
    changes: dict[tuple[str, str], list[str]] = {}
    for change in toggle.changes:
        changes.setdefault((change.usual, change.now), []).append(change.name)
    return Table(
        f"Nodes with another fate without {', '.join(toggle.without)}",
        (
            Column("usual fate", lambda row: row[0][0]),
            Column("fate now", lambda row: row[0][1]),
            Column("nodes", lambda row: f"{len(row[1]):,}", right=True),
            Column("which", lambda row: group_alike.listed(row[1], LONGEST), elastic=True),
        ),
        tuple(changes.items()),
    )


def partitions(stage: Placement) -> Table:
    ops = {node.name: node.op for node in stage.nodes}
    return Table(
        "Partitions: one graph for each device",
        (
            Column("device", lambda part: short_device(part.device)),
            Column("nodes", lambda part: str(len(part.nodes)), right=True),
            Column(
                "types",
                lambda part: counted(ops[name] for name in part.nodes),
                elastic=True,
                spare=1,
            ),
        ),
        stage.partitions,
    )


def transfers(stage: Placement) -> Table:
    return shortened(
        "Transfers in every step (a tensor of 0 bytes only enforces the order)",
        (
            Column("tensor", lambda t: t.tensor),
            Column("from", lambda t: short_device(t.from_device)),
            Column("to", lambda t: short_device(t.to_device)),
            Column("shape", lambda t: tensor(Tensor(t.dtype, t.shape))),
            Column("bytes", lambda t: "?" if t.bytes is None else f"{t.bytes:,}", right=True),
            Column("send and receive", lambda t: f"{t.send}, {t.recv}", elastic=True, spare=1),
        ),
        stage.transfers,
        LONGEST,
    )


def kernels(stage: Placement) -> Table:
    """Ops with their kernels, one row per kind: changed types first, those that the runtime
    added last."""
    types = {node.name: node.op for node in stage.user_nodes}
    counts: Counter[tuple[str, str, str]] = Counter()
    on_gpu: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in stage.kernels:
        kind = types.get(row.name, RUNTIMES), row.op, row.constraints
        counts[kind] += 1
        on_gpu.setdefault(kind, {})[row.on_gpu or "none"] = None
    rows = sorted(
        counts.items(), key=lambda row: (row[0][0] == RUNTIMES, row[0][0] == row[0][1], -row[1])
    )
    return shortened(
        "Kernels (inferred: the registration with the highest priority that matches device, types "
        "and label)",
        (
            Column("written", lambda row: row[0][0]),
            Column("runs as", lambda row: row[0][1]),
            Column("nodes", lambda row: str(row[1]), right=True),
            Column("registered for", lambda row: row[0][2], elastic=True, least=20, spare=1),
            Column(
                "on a GPU (not run)",
                lambda row: " or ".join(on_gpu[row[0]]),
                elastic=True,
                least=18,
                spare=2,
            ),
        ),
        rows,
        MOST_KERNELS,
    )
