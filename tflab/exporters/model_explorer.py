"""Model Explorer: the graph of each stage, and what its nodes took, for Google's graph viewer.

    model-explorer graphs.json --node_data_paths time-batch-16.json,memory-batch-16.json

The shapes are those of `graph_builder` and `node_data_builder` in the package
ai-edge-model-explorer 0.1.34, which is not needed to write them.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflab.records import Execution, Node, OpRun, Placement, Stage, node_of
from tflab.units import short_device
from tflab.views import stages as views
from tflab.views.words import place, tensor

FOLDER = "model-explorer"  # in the logdir
GRAPHS = "graphs.json"
COLOURS = ("#fff7ec", "#fdbb84", "#d7301f")  # from little to much
Attributes = dict[str, list[tuple[str, str]]]  # of each node


def write(
    folder: Path, model: str, stages: Sequence[Stage], runs: Mapping[int, Sequence[OpRun]]
) -> None:
    """The graphs, and for each batch size the time, share and memory of the nodes that ran."""
    folder.mkdir(parents=True)
    dump(folder / GRAPHS, collection(model, stages))
    ran = [graph_id(number, stage) for number, stage in enumerate(stages, 1) if runs_in(stage)]
    for batch_size, measured in runs.items():
        for name, (title, values) in node_data(measured).items():
            shown = f"{title}, batch {batch_size}"
            data = {graph: coloured(shown, values) for graph in ran}
            dump(folder / f"{name}-batch-{batch_size}.json", data)


def dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1), "utf-8")


def opening_line(folder: Path) -> str:
    """The command that opens what lies in a folder, coloured by time; the rest can be added."""
    whole = folder.resolve()  # the viewer asks its server, which may be elsewhere
    times = ",".join(sorted(str(path) for path in whole.glob("time-batch-*.json")))
    options = ("--node_data_paths", times) if times else ()
    return shlex.join(("model-explorer", str(whole / GRAPHS), *options))


# Graphs


def collection(model: str, stages: Sequence[Stage]) -> dict[str, Any]:
    """One graph for each stage, in their order."""
    known = attributes(stages)
    graphs = [
        graph(graph_id(number, stage), stage, known) for number, stage in enumerate(stages, 1)
    ]
    return {"label": model, "graphs": graphs, "graphSorting": "name_asc"}


def graph_id(number: int, stage: Stage) -> str:
    return f"{number} {views.name(stage)}"


def runs_in(stage: Stage) -> bool:
    """Whether the nodes of the stage are those that run."""
    return isinstance(stage, Placement | Execution)


def graph(name: str, stage: Stage, known: Attributes) -> dict[str, Any]:
    names = {node.name for node in stage.nodes}
    return {"id": name, "nodes": [graph_node(node, names, known) for node in stage.nodes]}


def graph_node(node: Node, names: set[str], known: Attributes) -> dict[str, Any]:
    """A node in the box of its name scope, with its edges and all that is known of it."""
    scope, _, own = node.name.rpartition("/")
    told = [("op", node.op), ("device", short_device(node.device)), *known.get(node.name, ())]
    return {
        "id": node.name,
        "label": own,
        "namespace": scope,
        "subgraphIds": [],
        "attrs": pairs(told),
        "incomingEdges": list(edges(node, names)),
        "inputsMetadata": [],
        "outputsMetadata": [
            {"id": str(number), "attrs": pairs([("tensor", tensor(output))])}
            for number, output in enumerate(node.outputs)
        ],
    }


def pairs(told: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Each key once: what was said first counts."""
    known: dict[str, str] = {}
    for key, value in told:
        if value:
            known.setdefault(key, value)
    return [{"key": key, "value": value} for key, value in known.items()]


def edges(node: Node, names: set[str]) -> Iterator[dict[str, str]]:
    """Its inputs by their places, then what it waits for."""
    waits = ((f"{name}:control", name) for name in node.control_inputs)
    for place_, (text, source) in enumerate((*((i, node_of(i)) for i in node.inputs), *waits)):
        if source in names:
            output = text.partition(":")[2] or "0"
            yield {
                "sourceNodeId": source,
                "sourceNodeOutputId": output,
                "targetNodeInputId": str(place_),
            }


def attributes(stages: Sequence[Stage]) -> Attributes:
    """What all stages together know of each node: its line, its fate and its kernel."""
    known: Attributes = defaultdict(list)
    for stage in stages:
        for node in stage.nodes:
            if node.source:
                known[node.name] += [("line", place(node.source)), ("code", node.source.code)]
        if isinstance(stage, Placement):
            for fate in stage.ledger:
                told = [("fate", fate.fate), ("pass", fate.by or ""), ("into", fate.into or "")]
                known[fate.name] += told
            for origin in stage.origins:
                known[origin.name].append(("made by", origin.origin))
            for assignment in stage.assignments:
                known[assignment.name].append(("why there", assignment.reason))
            for kernel in stage.kernels:
                known[kernel.name] += [
                    ("runs on", short_device(kernel.device)),
                    ("kernel", kernel.constraints),
                ]
    return known


# Node data


def node_data(runs: Sequence[OpRun]) -> dict[str, tuple[str, dict[str, float]]]:
    """File -> (title, value of each node): means over the steps that were traced."""
    steps = len({run.step for run in runs}) or 1
    time_us = mean(runs, steps, lambda run: run.duration_ns / 1000)
    whole = sum(time_us.values()) or 1.0
    return {
        "time": ("time in us", time_us),
        "share": ("share of all ops in %", {n: 100 * us / whole for n, us in time_us.items()}),
        "memory": ("memory asked for in bytes", mean(runs, steps, lambda r: r.requested_bytes)),
    }


def mean(runs: Iterable[OpRun], steps: int, amount: Callable[[OpRun], float]) -> dict[str, float]:
    """What a step has of it on average, by node."""
    sums: dict[str, float] = defaultdict(float)
    for run in runs:
        sums[run.name] += amount(run)
    return {name: total / steps for name, total in sums.items()}


def coloured(title: str, values: Mapping[str, float]) -> dict[str, Any]:
    last = len(COLOURS) - 1
    return {
        "name": title,
        "results": {name: {"value": round(value, 3)} for name, value in values.items()},
        "gradient": [
            {"stop": number / last, "bgColor": colour} for number, colour in enumerate(COLOURS)
        ],
    }
