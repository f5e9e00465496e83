"""Graph: the graph of the largest group, and the runtime's versions of it, saved on request.

The program's process writes it at its end; the command reads it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflab.errors import TflabError
from tflab.measurements.decoding import WrongError, decoded, encoded
from tflab.records.graph import Node
from tflab.records.placed import Fate, Origin, Pass
from tflab.records.watched import OpTimes, Recorded, RecordedValues
from tflab.run.groups import RunGroup

NAME, VALUES = "graph", "values"
MOST_NODES = 10_000  # limit for a graph that is saved


@dataclass(frozen=True)
class Account:
    """The fate of each node of a graph, pass by pass."""

    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]


NOT_SEEN = Account((), (), ())


def write(
    folder: str,
    group: RunGroup,
    nodes: tuple[Node, ...],
    executed: tuple[Node, ...],
    account: Account,
    parts: Any,
) -> None:
    """Save the graph of a group. `parts` are the GraphDefs that ran. Raises TflabError for a graph
    that is too large."""
    from tflab.runtime import devices, kernels

    if len(nodes) > MOST_NODES:
        raise TflabError(f"The graph has {len(nodes):,} nodes; at most {MOST_NODES:,} are kept.")
    origins, ledger = account.origins, account.ledger
    graph = Recorded(
        group=group.number,
        nodes=nodes,
        derived=derived(group.graph),
        variables=len(group.graph.get_collection("trainable_variables")),
        fetches=group.fetches,
        executed=executed,
        passes=account.passes,
        ledger=ledger,
        origins=origins,
        assignments=tuple(devices.assignments(group.graph, executed, origins, ledger)),
        kernels=tuple(kernels.chosen(parts, group.graph)),
        traced=group.traced,
        ops={name: OpTimes(runs, ns) for name, (runs, ns, _) in group.ops.items()},
    )
    Path(folder, NAME).write_text(json.dumps(encoded(graph)), encoding="utf-8")


def derived(graph: Any) -> dict[str, str]:
    """Each node of a gradient, with the node of the program from which it is derived."""
    from tflab.runtime import nodes

    names = (op.name for op in graph.get_operations())
    forward = ((name, nodes.forward_of(graph, name)) for name in names)
    return {name: origin for name, origin in forward if origin}


def read(folder: Path) -> tuple[Recorded | None, RecordedValues | None, tuple[str, ...]]:
    """The saved graph and values, or why they cannot be read; None if none were saved."""
    kept: list[Any] = []
    notes: list[str] = []
    for kind, name in ((Recorded, NAME), (RecordedValues, VALUES)):
        file, content = folder / name, None
        try:
            if file.exists():
                content = decoded(kind, json.loads(file.read_text(encoding="utf-8")))
        except (WrongError, ValueError, RecursionError) as error:
            notes.append(f"The {name} of the largest group cannot be read: {error}.")
        kept.append(content)
    return kept[0], kept[1], tuple(notes)
