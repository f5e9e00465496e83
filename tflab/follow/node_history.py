"""Node history: one node, from the line that made it to the time that it took.

Each stage knows its own graph; a history combines what they say about one name, and about its
carrier if the node was fused into another. The records go through four functions, in the order of
the stages: from_program, with_placement, with_times, with_values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tflab.analysis.gradient_graph import gradient_name
from tflab.errors import UsageError, did_you_mean
from tflab.exporters import notebook
from tflab.follow import view
from tflab.records.graph import GradientNode, Node, graph_def_name, makers, node_of, turned_around
from tflab.records.measured import OpStats
from tflab.records.placed import CompiledKernel, Fate, Pass
from tflab.records.stages import (
    Backward,
    Execution,
    NodeHistory,
    Placement,
    Stage,
    Touch,
    find_stage,
)
from tflab.records.values import FED, Value
from tflab.units import short_device
from tflab.views.values import elements
from tflab.views.words import counted, grouped

NEAREST = 5  # names that are suggested instead of one that does not exist

Histories = dict[str, NodeHistory]
notebook.show_as(NodeHistory, view.blocks)


def histories(
    stages: Sequence[Stage], tables: Mapping[int, Sequence[OpStats]] | None = None
) -> Histories:
    """Return the history of every node that any stage knows: the user's in the order in which they
    were made, then those of the runtime.

    `stages` are the results of a walk; `tables` hold the rows by node of its step, by batch size.
    """
    backward, ran = find_stage(stages, Backward), find_stage(stages, Execution)
    by_name = from_program(stages[0], backward)
    if placement := find_stage(stages, Placement):
        by_name = with_placement(by_name, placement)
    by_name = with_times(by_name, ran, tables or {})
    meanings = backward.gradient_nodes if backward else ()
    return with_values(by_name, meanings, ran.values if ran else ())


def find(name: str, among: Mapping[str, NodeHistory], whose: str | None = None) -> NodeHistory:
    """Return the history of one node. Raises UsageError, with the nearest names, if there is none.

    The error names the graph: `whose` it is, if that is known.
    """
    if node_of(name) in among:
        return among[node_of(name)]
    graph = f"the graph of {whose}" if whose else "the graph"
    hint = did_you_mean(name, list(among), NEAREST)
    raise UsageError(f"There is no node '{name}' in {graph}.{hint}")


def from_program(frontend: Stage, backward: Backward | None) -> Histories:
    """Return what the program knows about its nodes: lines, tensors, gradients."""
    nodes = backward.nodes if backward else frontend.nodes
    forward = {node.name: node for node in frontend.nodes}
    updates = set(backward.update_nodes) if backward else set()
    gradients = {gradient.forward: gradient for gradient in backward.gradients} if backward else {}
    stops = reversed(backward.gradient_stops) if backward else ()
    ways = {stop.variable: stop.path for stop in stops}  # the first of each
    derived = {name: made.forward for made in gradients.values() for name in made.nodes}
    users = turned_around(makers(nodes))
    by_name = {}
    for node in nodes:
        name, gradient = node.name, gradients.get(node.name)
        written = forward.get(name, node)
        consumers = tuple(users.get(name, ()))
        kind = "forward" if name in forward else "update" if name in updates else "gradient"
        by_name[name] = replace(
            blank(written, kind),
            consumers=consumers,
            later_consumers=tuple(user for user in consumers if user not in forward)
            if name in forward
            else (),
            gradient_function=gradient.function if gradient else None,
            gradient_nodes=gradient.nodes if gradient else (),
            no_gradient=gradient.reason if gradient else None,
            gradient_path=ways.get(name, ()),
            derived_from=derived.get(name),
        )
    return by_name


def with_placement(by_name: Histories, placement: Placement) -> Histories:
    """Add what the runtime did to the user's nodes, and the runtime's own nodes."""
    executed = {node.name: node for node in placement.nodes}
    defined = {node.name: node for step in placement.passes for node in step.definitions}
    users = turned_around(makers(placement.nodes))
    origins = {origin.name: origin for origin in placement.origins}
    fates = {fate.name: fate for fate in placement.ledger}
    not_run = set(placement.not_run)
    carried = extra_work(fate for fate in placement.ledger if fate.into in executed)
    touched = touches(placement.passes)
    kernels = {kernel.name: kernel for kernel in placement.kernels}
    code: dict[str, list[CompiledKernel]] = {}
    for generated in (kernel for one in placement.generated for kernel in one.kernels):
        for name in generated.nodes:
            code.setdefault(name, []).append(generated)
    added = {
        name: replace(
            blank(node, "runtime"),
            consumers=tuple(users.get(name, ())),
            origin=origins.get(name),
        )
        for name, node in (defined | executed).items()
        if name not in by_name
    }
    placed = {}
    for name, history in (by_name | added).items():
        carrier = carrier_of(history, fates.get(name), executed)
        at = carrier or ""
        placed[name] = replace(
            history,
            fate=fates.get(name),
            touches=tuple(touched.get(name, ())),
            carrier=carrier,
            not_run=at in not_run,
            carries=tuple(carried.get(name, ())),
            ran_as=executed[at].op if carrier else None,
            ran_outputs=executed[at].outputs if carrier else (),
            kernel=kernels.get(at),
            code=tuple(dict.fromkeys(one for owner in (name, at) for one in code.get(owner, ()))),
        )
    return placed


def with_times(
    by_name: Histories, execution: Execution | None, tables: Mapping[int, Sequence[OpStats]]
) -> Histories:
    """Add the times of their carriers, whether the step waited for these, and the load."""
    known = {size: {row.key: row for row in rows} for size, rows in tables.items()}
    waited_for = set(execution.critical_path.nodes) if execution else set()
    timed = {key for rows in known.values() for key in rows}
    timed |= {row.key for row in execution.top_ops} if execution else set()
    return {
        name: replace(
            history,
            not_run=False if at in timed else history.not_run,
            times={size: rows[at] for size, rows in known.items() if at in rows},
            critical=at in waited_for,
            load=execution.load if execution else None,
        )
        if (at := history.carrier) is not None
        else history
        for name, history in by_name.items()
    }


def blank(node: Node, kind: str) -> NodeHistory:
    """Return a history with nothing but the node itself."""
    return NodeHistory(
        name=node.name,
        op=node.op,
        kind=kind,
        source=node.source,
        inputs=node.inputs,
        control_inputs=node.control_inputs,
        outputs=node.outputs,
    )


def carrier_of(history: NodeHistory, fate: Fate | None, executed: Mapping[str, Node]) -> str | None:
    """Return the executed node that does a node's work: itself, or its replacement. A
    removed node with several outputs has none, because each output may have another one."""
    if history.name in executed:
        return history.name
    several = len(history.outputs) > 1 and fate is not None and fate.fate == "removed"
    return fate.into if fate and fate.into in executed and not several else None


def extra_work(ledger: Iterable[Fate]) -> dict[str, list[str]]:
    """Return for each executed node the user's nodes whose work it does beside its own."""
    carried: dict[str, list[str]] = {}
    for fate in ledger:
        inside = fate.fate == "folded" and not fate.has_value  # a constant was computed from it
        if fate.into and fate.into != fate.name and not inside:
            carried.setdefault(fate.into, []).append(fate.name)
    return carried


def touches(passes: Sequence[Pass]) -> dict[str, list[Touch]]:
    """Return for each node what each pass did to it, in the order of the passes."""
    found: dict[str, list[Touch]] = {}
    for place, step in enumerate(passes):
        for name, what, about in changes(step):
            found.setdefault(name, []).append(Touch(step.name, place, what, about))
    return found


def changes(step: Pass) -> Iterator[tuple[str, str, str]]:
    """Yield (node, what the pass did to it, the other node or the change that this is about)."""
    for name in step.added:
        yield name, "added", ""
    changed = {change.name for change in step.rewritten}
    gone = {*step.removed}
    bypassed = []  # which stay until a later pass removes them
    for taken in step.taken:
        into = taken.into if taken.into != taken.name else None
        reused = taken.into is None and taken.name in changed
        what = "reused" if reused else "replaced" if taken.replaced else taken.fate
        if what == "removed" and into and taken.name not in gone:
            bypassed.append((taken.name, "bypassed", into))
        else:
            yield taken.name, what, into or ""
    for rewrite in step.rewritten:
        yield rewrite.name, "rewritten", f"{rewrite.old} to {rewrite.new}"
    for name in step.rewired:
        yield name, "rewired", ""
    yield from bypassed
    for name in step.moved:
        yield name, "moved", ""


def with_values(
    histories: Mapping[str, NodeHistory],
    gradient_nodes: Sequence[GradientNode],
    values: Iterable[Value],
) -> dict[str, NodeHistory]:
    """Return the histories with the purposes of gradient nodes and with the program's values."""
    meanings = {node.name: node for node in gradient_nodes}
    every = tuple(values)
    by_tensor = {graph_def_name(value.tensor): value for value in every}
    outputs = grouped((value.node, value) for value in every)
    complete = (node for node in gradient_nodes if node.complete and node.used)
    computing = grouped((node.towards, node.name) for node in complete if node.towards)
    return {
        name: replace(
            history,
            meaning=meanings.get(name),
            values=tuple(outputs.get(name) or fed(history, outputs)),
            taken=tuple(by_tensor[tensor] for tensor in history.inputs if tensor in by_tensor),
            gradient=last_gradient(
                outputs.get(name, ()),
                [outputs.get(one, ()) for one in computing.get(gradient_name(name), ())],
            ),
        )
        for name, history in histories.items()
    }


def fed(history: NodeHistory, outputs: Mapping[str, Sequence[Value]]) -> Iterator[Value]:
    """Yield the value of the placeholder that a node of the runtime hands on."""
    for placeholder in history.carries:
        yield from (value for value in outputs.get(placeholder, ()) if value.kind == FED)


def last_gradient(own: Sequence[Value], computed: Sequence[Sequence[Value]]) -> Value | None:
    """Return the value of the last node that computes a gradient; it has as many elements as the
    forward tensor."""
    for outputs in reversed(computed):
        if len(outputs) == 1 and (not own or elements(outputs[0].shape) == elements(own[0].shape)):
            return outputs[0]
    return None


# Unlike its neighbours
#
# A node that a pass left as it was is compared with one of its type that the pass changed, in the
# graph before that pass. These are differences that the pass log shows, not the reasons of the
# pass, which may look at more.

Graph = Mapping[str, Node]
Users = Mapping[str, Sequence[str]]
# The number of a name, which may be missing: `dense_1` is like `dense`
NUMBER = re.compile(r"(?<=[A-Za-z/])[_.-]?\d+|^\d+(?=/|$)")
INTO = {"fused": "into", "merged": "with", "folded": "into"}


def unlike_peers(placement: Placement, name: str) -> Iterator[str]:
    """Yield what differs from a node of the same type that was fused, merged or folded: one with a
    like name, or with a common input or user. Nothing is yielded for a node that did not run."""
    written = {node.name: node for node in placement.user_nodes}
    if not any(fate.name == name and fate.fate == "executed" for fate in placement.ledger):
        return
    users, node = users_of(written), written[name]
    does_work = any(f.into == name and f.is_work_of_replacement for f in placement.ledger)
    near = neighbours(node, users)
    for kind in INTO:
        fates = (f for f in placement.ledger if f.fate == kind and f.into)
        pairs = ((peer, f) for f in fates for peer in (f.name, f.into)[: 1 + (kind == "fused")])
        for peer, fate in pairs:
            one = written.get(peer or "")
            if one is None or one is node or one.op != node.op or (does_work and peer == fate.into):
                continue
            alike = NUMBER.sub("", one.name) == NUMBER.sub("", name)
            if not (alike or near & neighbours(one, users)):
                continue
            if sentence := compared(placement, name, one.name, fate):
                yield sentence
                break


def compared(placement: Placement, name: str, peer: str, fate: Fate) -> str:
    """Return what differs from a node with this fate in the graph before its pass; "" if nothing
    that is known does."""
    graph = {node.name: node for node in placement.user_nodes}
    for place, step in enumerate(placement.passes):
        taken = next((one for one in step.taken if one.name == fate.name), None)
        if taken and taken.fate == fate.fate and taken.into and name in graph and peer in graph:
            into = taken.into
            if fate.fate == "fused":
                differences = [*of_fused(placement, graph, name, peer, into)]
            elif fate.fate == "merged":
                differences = [*of_merged(graph, name, peer, into)]
            else:
                known = {one.name for one in placement.ledger if one.fate == "folded"}
                differences = [*of_folded(graph, name, peer, known)]
            which = "" if into == fate.name else f" {INTO[fate.fate]} {into}"
            how = f"{fate.name} was {fate.fate}{which} by {step.name} (pass {place + 1})"
            return f"{how}; {'; '.join(differences)}" if differences else ""
        graph = {one: node for one, node in graph.items() if one not in {*step.removed}}
        graph |= {node.name: node for node in step.definitions}
    return ""


def of_fused(placement: Placement, graph: Graph, name: str, peer: str, into: str) -> Iterator[str]:
    """Yield the differences along both chains of ops, one of which became one kernel."""
    users = users_of(graph)
    fetched = {node_of(fetch) for fetch in placement.fetches}
    group = {fate.name for fate in placement.ledger if fate.fate == "fused" and fate.into == into}
    left = {*group, into} - {peer}
    waiting = [(graph[name], graph[peer])]
    while waiting:
        mine, its = waiting.pop(0)
        kinds = [("is on", short_device(mine.device), short_device(its.device))]
        for tensor, other in zip(mine.inputs, its.inputs, strict=False):
            if (maker := node_of(other)) in left and node_of(tensor) in graph:
                left.discard(maker)
                taken = graph[node_of(tensor)], graph[maker]
                kinds.append(("takes from", taken[0].op, taken[1].op))
                waiting += [taken] if taken[0].op == taken[1].op else []
        if its.name != into:  # who uses the result of the kernel does not matter
            taking, others = ([graph[u] for u in users.get(n.name, ())] for n in (mine, its))
            ops = [counted(sorted(user.op for user in each)) for each in (taking, others)]
            kinds.append(("is used by", ops[0] or "nothing", ops[1] or "nothing"))
            if (mine.name in fetched) != (its.name in fetched):
                yield f"{mine.name if mine.name in fetched else its.name} is fetched"
            for user in others:
                same = [node for node in taking if node.op == user.op]
                if user.name in left and len(same) == 1:
                    left.discard(user.name)
                    waiting.append((same[0], user))
        for what, own, other in kinds:
            if own != other:
                yield f"{mine.name} {what} {own}, {its.name} {what} {other}"


def of_merged(graph: Graph, name: str, peer: str, into: str) -> Iterator[str]:
    node = graph[name]
    equal = [one for one in graph.values() if (one.op, one.inputs) == (node.op, node.inputs)]
    same = into in graph and graph[peer].inputs == graph[into].inputs
    if node.inputs and same and equal == [node]:
        yield f"both have the same inputs, and no other {node.op} has those of {name}"


def of_folded(graph: Graph, name: str, peer: str, known: set[str]) -> Iterator[str]:
    def varying(node: Node) -> list[str]:
        makers = (graph.get(node_of(tensor)) for tensor in node.inputs)
        others = (one for one in makers if one and one.op != "Const" and one.name not in known)
        return [f"{one.name} ({one.op})" for one in others]

    if graph[peer].inputs and not varying(graph[peer]) and (others := varying(graph[name])):
        yield f"all its inputs are constant, and {name} takes {', '.join(others)}"


def users_of(graph: Graph) -> Users:
    return turned_around(makers(graph.values()))


def neighbours(node: Node, users: Users) -> set[str]:
    return {*map(node_of, node.inputs), *users.get(node.name, ())}
