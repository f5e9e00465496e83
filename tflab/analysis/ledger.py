"""Ledger: every node of the user's graph has one fate, every executed node one origin.

No TensorFlow in here. The account closes: the executed nodes are the user's with the fate
`executed` and those that have an origin, each once.

Fates: `executed` under its own name, perhaps with another type; `unreached`, because the fetches
do not depend on it; `folded` into a constant; `merged` with a twin; `fused` into a node that does
its work too; `compiled` into an XLA cluster; `removed`, because what used it takes its value from
another node, or because nothing needed it any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tflab.records import Fate, Node, Origin, Pass, Taken, node_of

FATES = ("executed", "unreached", "folded", "merged", "fused", "removed", "compiled")
INLINERS = ("function_optimizer", "LowerFunctionalOpsPass")  # they open functions at their calls
ROLES = {  # nodes that the runtime makes for its own ends, by type
    "_Arg": "feed",
    "_Retval": "fetch",
    "_Send": "transfer",
    "_Recv": "transfer",
    "_HostSend": "transfer",
    "_HostRecv": "transfer",
}


def fates(
    user_nodes: Sequence[Node],
    passes: Sequence[Pass],
    executed: Sequence[Node],
    fetches: Iterable[str],
    feeds: Iterable[str],
) -> tuple[Fate, ...]:
    """One Fate for each node of the user's graph, in its order."""
    running = {node.name for node in executed}
    gone, folded = events(passes)
    rewritten = {change.name: step.name for step in passes for change in step.rewritten}
    needed = reached(user_nodes, fetches, feeds)

    def fate(name: str) -> Fate:
        if name in folded and (name in running or name in gone):
            return Fate(name, "folded", folded[name], heir(name, gone, running))
        if name in running:
            return Fate(name, "executed", rewritten.get(name), None)
        if name not in gone:
            return Fate(name, "removed", None, None)
        by, taken = gone[name]
        if name not in needed:
            return Fate(name, "unreached", by, None)
        into = heir(name, gone, running)
        # `into` is None where the one that took it over was itself not needed later.
        return Fate(name, taken.fate, by, into)

    return tuple(fate(node.name) for node in user_nodes)


def events(passes: Sequence[Pass]) -> tuple[dict[str, tuple[str, Taken]], dict[str, str]]:
    """The pass that took each node out of the graph, and the pass that folded it in place.

    It is the first since the node last came into the graph: one that was fused and left as an
    Identity goes later, with others of that kind, and that says nothing of its work.
    """
    gone: dict[str, tuple[str, Taken]] = {}
    folded: dict[str, str] = {}
    for step in passes:
        for name in step.added:
            gone.pop(name, None)
        for taken in step.taken:
            if taken.into == taken.name:
                folded[taken.name] = step.name
            else:
                gone.setdefault(taken.name, (step.name, taken))
    return gone, folded


def heir(name: str, gone: Mapping[str, tuple[str, Taken]], running: set[str]) -> str | None:
    """The executed node at the end of the chain of those that took over from one another."""
    seen: set[str] = set()
    current: str | None = name
    while current is not None and current not in running:
        if current in seen or current not in gone:
            return None
        seen.add(current)
        current = gone[current][1].into
    return current


def reached(nodes: Sequence[Node], fetches: Iterable[str], feeds: Iterable[str]) -> set[str]:
    """All that the fetches depend on; what is fed is needed, what is behind it is not."""
    fed = set(map(node_of, feeds))
    by_name = {node.name: node for node in nodes}
    waiting = [node_of(name) for name in fetches]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in found or name not in by_name:
            continue
        found.add(name)
        if name not in fed:
            waiting.extend(map(node_of, by_name[name].inputs))
            waiting.extend(by_name[name].control_inputs)
    return found


def origins(
    ledger: Sequence[Fate], passes: Sequence[Pass], executed: Sequence[Node]
) -> Iterator[Origin]:
    """One Origin for each executed node that is not the user's own."""
    users = {fate.name for fate in ledger if fate.fate == "executed"}
    written = {fate.name for fate in ledger}
    maker = {name: step.name for step in passes for name in step.added}
    folder = {fate.name: fate.by for fate in ledger if fate.fate == "folded"}
    for node in executed:
        if node.name not in users:
            by = ROLES.get(node.op) or maker.get(node.name) or folder.get(node.name)
            call = caller(node.name, written) if by in INLINERS else None
            yield Origin(node.name, f"{by}, from {call}" if call else by or "unknown")


def caller(name: str, written: set[str]) -> str | None:
    """The call of a function that a node was inlined from: the runtime puts its name in front."""
    parts = name.removeprefix("Func/").split("/")
    prefixes = ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
    return next((prefix for prefix in prefixes if prefix in written), None)
