"""Story: what each stage tells its reader, as sentences and tables. No TensorFlow in here.

A stage's result goes in, a list of blocks comes out; text and Markdown show the same blocks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from tflab import rails, scopes
from tflab.records import (
    Backward,
    Execution,
    Frontend,
    Gradient,
    Node,
    OpTotal,
    Placement,
    Source,
    Stage,
    Tensor,
    edge_count,
)
from tflab.table import Column, Table, percent, plural, shortened, size, time

Block = str | Table

DRAWN_WHOLE = 40  # nodes; a larger graph is shown as a tree of scopes
LONGEST = 40  # rows of a table; the rest is in the JSON
TOP = 10

TITLES = {
    Frontend: "Frontend: Python calls become nodes",
    Backward: "Backward: gradient functions add the other half of the graph",
    Placement: "Placement: the graph is rewritten, given devices and cut into partitions",
    Execution: "Execution: ops run in the order of their dependencies",
}


def title(stage: Stage) -> str:
    return TITLES[type(stage)]


def summary(stage: Stage) -> str:
    """One line: what this stage left behind."""
    counts = f"{plural(len(stage.nodes), 'node')}, {plural(edge_count(stage.nodes), 'edge')}"
    if isinstance(stage, Backward):
        return f"{counts}, {len(stage.added_nodes):,} of the nodes new"
    if isinstance(stage, Placement):
        return f"{counts} on {plural(len(stage.partitions), 'device')}"
    if isinstance(stage, Execution):
        return f"{counts}, {time(stage.untraced_step_ns.median)} a step"
    return counts


def tell(stage: Stage, expanded: Sequence[str] = ()) -> list[Block]:
    """The blocks of one stage. `expanded` names the scopes of the frontend that are opened."""
    if isinstance(stage, Frontend):
        return list(tell_frontend(stage, expanded))
    if isinstance(stage, Backward):
        return list(tell_backward(stage))
    if isinstance(stage, Placement):
        return list(tell_placement(stage))
    return list(tell_execution(stage))


def tell_frontend(stage: Frontend, expanded: Sequence[str]) -> Iterable[Block]:
    made_by = {(node.source.file, node.source.line) for node in stage.nodes if node.source}
    yield (
        f"{summary(stage)}, made by {plural(len(made_by), 'line')} of the program. "
        "Nothing is computed yet."
    )
    if len(stage.nodes) <= DRAWN_WHOLE and not expanded:
        yield drawing(stage.nodes, stage.program.ends)
        return
    tree = scopes.tree(stage.nodes)
    yield Table(
        "Name scopes (open one with --expand SCOPE)",
        (
            Column("scope", lambda line: line.branches + line.label),
            Column("nodes", lambda line: str(line.count), right=True),
            Column("types", lambda line: line.what, elastic=True),
            Column("first line", lambda line: place(line.node.source)),
        ),
        tuple(scopes.lines(tree, expanded)),
        drawing=True,
    )


def drawing(nodes: Sequence[Node], ends: Sequence[str]) -> Table:
    """The whole graph, a node a line, data flowing down the rails."""
    order = rails.ordered(nodes, ends)
    drawn = zip(rails.draw(order), order, strict=True)

    def code(row: tuple[str, Node]) -> str:
        return row[1].source.code if row[1].source else ""

    return Table(
        "The graph, data flowing down",
        (
            Column("", lambda row: row[0]),
            Column("node", lambda row: row[1].name),
            Column("op", lambda row: row[1].op),
            Column("output", lambda row: ", ".join(map(tensor, row[1].outputs))),
            Column("line", lambda row: place(row[1].source)),
            Column("code", code, elastic=True, least=34),
        ),
        tuple(drawn),
        drawing=True,
    )


def tell_backward(stage: Backward) -> Iterable[Block]:
    if not stage.added_nodes:
        yield "The model has no loss or no optimiser: nothing to differentiate, nothing added."
        return
    derived = sum(len(gradient.nodes) for gradient in stage.gradients)
    yield (
        f"{summary(stage)}: {derived} from gradient functions, {len(stage.shared_nodes)} that "
        f"start or add up gradients, {len(stage.update_nodes)} from the optimiser. "
        "Still nothing is computed."
    )
    types = {node.name: node.op for node in stage.nodes}
    with_gradient = [g for g in stage.gradients if g.nodes]
    yield shortened(
        "Forward ops, last first as differentiation met them, and what came from each",
        (
            Column("forward node", lambda g: g.forward),
            Column("type", lambda g: g.op),
            Column("gradient function", lambda g: (g.function or "").partition(" ")[0]),
            Column("nodes", lambda g: str(len(g.nodes)), right=True),
            Column("types", lambda g: kinds_of(g, types), elastic=True, least=28),
        ),
        with_gradient[::-1],
        LONGEST,
    )
    yield reasons(stage.gradients)
    yield from gradient_checks(stage)


def kinds_of(gradient: Gradient, types: dict[str, str]) -> str:
    counts = Counter(types[name] for name in gradient.nodes)
    return ", ".join(op if n == 1 else f"{n} {op}" for op, n in counts.most_common())


def reasons(gradients: Iterable[Gradient]) -> Table:
    """Forward ops without gradient nodes, by reason."""
    names: dict[str, list[str]] = {}
    for gradient in gradients:
        if gradient.reason:
            names.setdefault(gradient.reason, []).append(gradient.forward)
    return Table(
        "Forward ops without gradient nodes, and why",
        (
            Column("because", lambda row: row[0]),
            Column("nodes", lambda row: str(len(row[1])), right=True),
            Column("which", lambda row: ", ".join(row[1]), elastic=True),
        ),
        tuple(names.items()),
    )


def gradient_checks(stage: Backward) -> Iterable[Block]:
    if not stage.gradient_checks:
        yield "Gradients were not checked: the loss differs each time it is computed."
        return
    worst = max(stage.gradient_checks, key=lambda check: check.max_relative_error)
    yield shortened(
        f"Gradients against central finite differences, taken in {worst.precision}",
        (
            Column("variable", lambda check: check.tensor),
            Column("elements", lambda check: str(check.elements), right=True),
            Column("largest relative error", lambda c: f"{c.max_relative_error:.1e}", right=True),
        ),
        stage.gradient_checks,
        LONGEST,
    )
    yield f"The largest relative error is {worst.max_relative_error:.1e}, in {worst.tensor}."


def tell_placement(stage: Placement) -> Iterable[Block]:
    before = {node.name: node for node in stage.user_nodes}
    kept = [node for node in stage.nodes if node.name in before]
    retyped = [node for node in kept if node.op != before[node.name].op]
    made = [node for node in stage.nodes if node.name not in before]
    yield (
        f"To compute {', '.join(stage.fetches)}, {len(stage.nodes):,} nodes run where the graph "
        f"had {len(before):,}: {len(kept) - len(retyped):,} as they were, {len(retyped):,} under "
        f"their name with another type, and {len(made):,} that the runtime made. "
        f"{len(before) - len(kept):,} are gone: not needed, folded, fused or merged."
    )
    ops = {node.name: node for node in stage.nodes}
    yield Table(
        "Partitions: one graph for each device",
        (
            Column("device", lambda part: short_device(part.device)),
            Column("nodes", lambda part: str(len(part.nodes)), right=True),
            Column(
                "types", lambda part: scopes.kinds(ops[name] for name in part.nodes), elastic=True
            ),
        ),
        stage.partitions,
    )
    changes = Counter((before[node.name].op, node.op) for node in retyped)
    yield shortened(
        "Types that changed: what was written, and the implementation that runs",
        (
            Column("written", lambda row: row[0][0]),
            Column("runs as", lambda row: row[0][1]),
            Column("nodes", lambda row: str(row[1]), right=True),
        ),
        changes.most_common(),
        LONGEST,
    )
    if stage.transfers:
        yield shortened(
            "Transfers: tensors that cross from device to device in every step",
            (
                Column("tensor", lambda t: t.tensor),
                Column("from", lambda t: short_device(t.from_device)),
                Column("to", lambda t: short_device(t.to_device)),
                Column("shape", lambda t: tensor(Tensor(t.dtype, t.shape))),
                Column("bytes", lambda t: "?" if t.bytes is None else f"{t.bytes:,}", right=True),
                Column("send and receive", lambda t: f"{t.send}, {t.recv}", elastic=True),
            ),
            stage.transfers,
            LONGEST,
        )


def tell_execution(stage: Execution) -> Iterable[Block]:
    if stage.interrupted:
        yield "Interrupted: what follows was measured until then."
    yield (
        f"{plural(stage.steps, 'untraced step')} and as many traced ones in turn, after "
        f"{plural(stage.warmup_steps, 'warm-up step')} of each that are not counted. Batch size "
        f"{stage.batch_size}, data: {stage.data}."
    )
    yield Table(
        "Time of a step",
        (
            Column("step", lambda row: row[0]),
            Column("median", lambda row: time(row[1].median), right=True),
            Column("p10", lambda row: time(row[1].p10), right=True),
            Column("p90", lambda row: time(row[1].p90), right=True),
        ),
        (("untraced", stage.untraced_step_ns), ("traced", stage.traced_step_ns)),
    )
    yield Table(
        "Who owned the wall time of the traced steps",
        (
            Column("owner", lambda owner: owner.owner),
            Column("a step", lambda owner: time(owner.ns / stage.steps), right=True),
            Column("share", lambda owner: percent(owner.ns / stage.wall_ns), right=True),
        ),
        stage.time_ledger,
    )
    yield top_table("The op types that cost most", stage.top_types, stage, ())
    name = Column("node", lambda row: row.name, elastic=True)
    yield top_table("The nodes that cost most", stage.top_ops, stage, (name,))
    path = stage.critical_path
    yield (
        f"The longest chain of dependent ops has {plural(len(path.nodes), 'node')} and takes "
        f"{time(path.ns)}. All ops together are {path.parallelism:.2f} x as much work: with any "
        f"number of processors they could run at most that much faster than one by one."
    )
    dearest = stage.memory.per_op[0] if stage.memory.per_op else None
    if dearest:
        yield (
            f"The ops had at most {size(stage.memory.peak_bytes)} alive at once; "
            f"{dearest.name} asked for most, {size(dearest.requested_bytes)} a step."
        )


def top_table(
    heading: str, rows: Sequence[OpTotal], stage: Execution, first: tuple[Column, ...]
) -> Table:
    return Table(
        f"{heading} (self time, {plural(stage.steps, 'traced step')})",
        (
            *first,
            Column("type that ran", lambda row: row.op),
            Column("calls", lambda row: f"{row.calls:,}", right=True),
            Column("self", lambda row: time(row.self_ns), right=True),
            Column("a call", lambda row: time(row.mean_ns), right=True),
            Column("share", lambda row: percent(row.share), right=True),
        ),
        tuple(rows[:TOP]),
        more=max(0, len(rows) - TOP),
    )


def place(source: Source | None) -> str:
    return f"{os.path.basename(source.file)}:{source.line}" if source else ""


def tensor(output: Tensor) -> str:
    """`float32 [?, 10]`: an unknown dimension is a question mark."""
    if output.shape is None:
        return f"{output.dtype} [...]"
    dims = ", ".join("?" if dim is None else str(dim) for dim in output.shape)
    return f"{output.dtype} [{dims}]"


def short_device(device: str) -> str:
    """`/job:localhost/replica:0/task:0/device:CPU:1` as `CPU:1`."""
    return device.rpartition("device:")[2]
