"""View of placement: the ledger, devices, transfers, kernels. The log of the passes is a
separate view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tflab.analysis.fates import fates_in_step
from tflab.records.blocks import Block, Column, Table, shortened
from tflab.records.graph import Tensor
from tflab.records.placed import Toggle
from tflab.records.stages import Placement
from tflab.units import CLUSTER_JOBS, plural, short_device, size, task_of
from tflab.views import generated_code, numbered, pass_log
from tflab.views.words import FATES, LONGEST, REMAINS, counted, tensor

NAMED = 100  # nodes of a graph that are listed by name
FETCHES = 12  # that are named
MOST_KERNELS = 10  # rows; JSON has every node
ORIGINS = {  # singular and plural of nodes that the runtime made
    "constant_folding": ("folded constant", "folded constants"),
    "feed": ("feed", "feeds"),
    "fetch": ("fetch", "fetches"),
    "transfer": ("end of a transfer", "ends of transfers"),
}
RUNTIMES = "(the runtime's)"  # if no node of that name was written


def blocks(stage: Placement) -> Iterable[Block]:
    nodes, had = plural(len(stage.nodes), "node"), f"the graph had {len(stage.user_nodes):,}"
    yield (
        f"To compute {numbered.listed(stage.fetches, FETCHES)}, {nodes} "
        f"{'remain where' if stage.not_run else 'run;'} {had}. "
        f"Batch size {stage.batch_size}, data: {stage.data}."
    )
    if stage.not_run and not stage.passes:
        yield f"{not_taken(stage)}."
    yield from stage.notes
    if stage.passes:
        yield pass_log.pass_log(stage)
        yield fate_counts(stage)
        yield balance(stage)
        yield reasons(stage)
    if stage.toggle:
        yield toggled(stage.toggle)
    yield partitions(stage)
    if stage.transfers:
        yield transfers(stage)
        yield cuts(stage)
    yield kernels(stage)
    for generated in stage.generated:
        yield from generated_code.blocks(generated, stage)


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
                Column("nodes", lambda row: numbered.listed(row[1], LONGEST), elastic=True),
            ),
            tuple(groups.items()),
        )


def balance(stage: Placement) -> str:
    """The nodes of the graph that runs, as a sum of executed and made nodes."""
    executed = sum(fate.fate == "executed" for fate in stage.ledger)
    runtime_nodes = ", ".join(created(stage))
    total = f"= {len(stage.nodes):,} that run"
    if stage.not_run:
        total = f"= {len(stage.nodes):,} in the graph that runs; {not_taken(stage)}"
    return (
        f"{executed:,} executed under their own name + {len(stage.origins):,} made by the runtime"
        + (f" ({runtime_nodes})" if runtime_nodes else "")
        + f" {total}."
    )


def not_taken(stage: Placement) -> str:
    """`43 of them did not run in this step, because their branch was not taken`."""
    count = len(stage.not_run)
    whose = "their" if count > 1 else "its"
    return f"{count:,} of them did not run in this step, because {whose} branch was not taken"


def created(stage: Placement) -> Iterator[str]:
    """`2 folded constants (keeping the names of folded nodes)`, `2 feeds`, `1 fetch`."""
    folded = {fate.name for fate in stage.ledger if fate.fate == "folded"}
    origins: dict[str, list[str]] = {}
    for origin in stage.origins:
        origins.setdefault(origin.origin, []).append(origin.name)
    for kind, names in sorted(origins.items(), key=lambda item: -len(item[1])):
        count, kept = len(names), len(folded.intersection(names))
        one, several = ORIGINS.get(kind, (f"by {kind}", f"by {kind}"))
        words = one if count == 1 else several
        some = "" if kept == count else f"{kept:,} of them "
        yield f"{count:,} {words}" + (f", {some}with the name of a folded node" if kept else "")


def reasons(stage: Placement) -> Table:
    """Why nodes are on their devices; colocations and resources are one row each."""
    counts = Counter((short_device(row.device), general(row.reason)) for row in stage.assignments)
    return shortened(
        "Why each node is on its device, by the placer's rules",
        (
            Column("device", lambda row: row[0][0]),
            Column("because", lambda row: row[0][1], elastic=True),
            Column("nodes", lambda row: f"{row[1]:,}", right=True),
        ),
        counts.most_common(),
        LONGEST,
    )


def general(reason: str) -> str:
    if reason.startswith("colocated with"):
        return "colocated with another node"
    return "on the device of its resource" if reason.startswith("where its resource") else reason


def toggled(toggle: Toggle) -> Block:
    """How fates changed when passes were switched off."""
    title = (
        f"Without {', '.join(toggle.without)}: {toggle.node_count:,} nodes remain instead of "
        f"{toggle.usual_node_count:,}"
    )
    if not toggle.changes:
        return f"{title}. The fate of every node is unchanged."
    changes: dict[tuple[str, str], list[str]] = {}
    for change in toggle.changes:
        changes.setdefault((change.usual, change.now), []).append(change.name)
    return Table(
        title,
        (
            Column("usual fate", lambda row: row[0][0]),
            Column("fate now", lambda row: row[0][1]),
            Column("nodes", lambda row: f"{len(row[1]):,}", right=True),
            Column("which", lambda row: numbered.listed(row[1], LONGEST), elastic=True),
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


def cuts(stage: Placement) -> str:
    totals: Counter[tuple[str, str]] = Counter()
    for transfer in stage.transfers:
        route = short_device(transfer.from_device), short_device(transfer.to_device)
        totals[route] += transfer.bytes or 0
    sizes = ", ".join(f"{size(total)} from {a} to {b}" for (a, b), total in totals.items())
    unknown = sum(transfer.bytes is None for transfer in stage.transfers)
    besides = f", besides {plural(unknown, 'tensor')} of unknown size" if unknown else ""
    return f"A step transfers {sizes}{besides}.{between_tasks(stage)}"


def between_tasks(stage: Placement) -> str:
    """For a cluster: how much of it is sent between processes, and how much stays inside one."""
    if not any(part.device.startswith(CLUSTER_JOBS) for part in stage.partitions):
        return ""
    wire = within = 0
    for transfer in stage.transfers:
        if task_of(transfer.from_device) == task_of(transfer.to_device):
            within += transfer.bytes or 0
        else:
            wire += transfer.bytes or 0
    return f" {size(wire)} of it is sent between tasks, and {size(within)} stays within a task."


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
