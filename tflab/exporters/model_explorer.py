"""Model Explorer: the graph of each stage, and the times of its nodes, for Google's graph viewer.

model-explorer graphs.json --node_data_paths time-batch-16.json,memory-batch-16.json

The data shapes are those of `graph_builder` and `node_data_builder` in the package
ai-edge-model-explorer 0.1.34, which is not needed to write them.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from pathlib import Path
from typing import Any

from tflab.analysis import wires
from tflab.records.graph import Node, node_of
from tflab.records.placed import Transfer
from tflab.records.stages import Execution, Placement, Stage
from tflab.records.timed import OpRun
from tflab.units import short_device
from tflab.views import stages as views
from tflab.views.words import place, tensor

FOLDER = "model-explorer"  # in the logdir
GRAPHS, DEVICES, TIMES = "graphs.json", "devices.json", "time.json"
COLOURS = ("#fff7ec", "#fdbb84", "#d7301f")  # from little to much
Attributes = dict[str, list[tuple[str, str]]]  # of each node


def write(
    folder: Path, model: str, stages: Sequence[Stage], runs: Mapping[int, Sequence[OpRun]]
) -> None:
    """The graphs; if there are several devices, the device of each node; and for each batch size
    the time, share and memory of the nodes that ran."""
    folder.mkdir(parents=True)
    ran = {graph_id(i, stage): stage for i, stage in enumerate(stages, 1) if runs_in(stage)}
    devices = {graph: devices_of(stage.nodes) for graph, stage in ran.items()}
    write_graphs(folder, collection(model, stages), devices)
    for batch_size, measured in runs.items():
        for name, (title, values) in node_data(measured).items():
            data = coloured(f"{title}, batch {batch_size}", values)
            dump(folder / f"{name}-batch-{batch_size}.json", dict.fromkeys(ran, data))


def write_graphs(
    folder: Path, graphs: Mapping[str, Any], devices: Mapping[str, Mapping[str, str]]
) -> None:
    """The graphs, and the device of each node if a graph is on several."""
    dump(folder / GRAPHS, graphs)
    if any(len(set(used.values())) > 1 for used in devices.values()):
        dump(folder / DEVICES, {graph: by_device(used) for graph, used in devices.items()})


def dump(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=1), "utf-8")


def devices_of(nodes: Iterable[Node]) -> dict[str, str]:
    return {node.name: short_device(node.device) for node in nodes if node.device}


def opening_line(folder: Path) -> str:
    """The command that opens the contents of a folder, coloured by time; the device can be
    chosen, and the rest added."""
    absolute = folder.resolve()  # the viewer asks its server, which may be elsewhere
    files = (DEVICES, TIMES, "time-batch-*.json")  # the last of them colours
    data = ",".join(str(path) for name in files for path in sorted(absolute.glob(name)))
    options = ("--node_data_paths", data) if data else ()
    return shlex.join(("model-explorer", str(absolute / GRAPHS), *options))


# Graphs


def collection(model: str, stages: Sequence[Stage]) -> dict[str, Any]:
    """One graph for each stage, in their order."""
    node_attributes = attributes(stages)
    sent = [one for stage in stages if isinstance(stage, Placement) for one in stage.transfers]
    graphs = [
        graph(graph_id(number, stage), stage.nodes, node_attributes, sent)
        for number, stage in enumerate(stages, 1)
    ]
    return {"label": model, "graphs": graphs, "graphSorting": "name_asc"}


def graph_id(number: int, stage: Stage) -> str:
    return f"{number} {views.name(stage)}"


def runs_in(stage: Stage) -> bool:
    """Whether the nodes of the stage are those that run."""
    return isinstance(stage, Placement | Execution)


def graph(
    name: str, nodes: Sequence[Node], node_attributes: Attributes, transfers: Iterable[Transfer]
) -> dict[str, Any]:
    names = {node.name for node in nodes}
    senders = {one.recv: one.send for one in transfers}
    return {
        "id": name,
        "nodes": [graph_node(node, names, node_attributes, senders) for node in nodes],
    }


def graph_node(
    node: Node, names: set[str], node_attributes: Attributes, senders: Mapping[str, str]
) -> dict[str, Any]:
    """A node in the box of its name scope, with its edges and everything that is known about it."""
    scope, _, own = node.name.rpartition("/")
    attributes_of_node = [
        ("op", node.op),
        ("device", short_device(node.device)),
        *node_attributes.get(node.name, ()),
    ]
    return {
        "id": node.name,
        "label": own,
        "namespace": scope,
        "subgraphIds": [],
        "attrs": pairs(attributes_of_node),
        "incomingEdges": list(edges(node, names, senders)),
        "inputsMetadata": [],
        "outputsMetadata": [
            {"id": str(number), "attrs": pairs([("tensor", tensor(output))])}
            for number, output in enumerate(node.outputs)
        ],
    }


def pairs(attributes: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Each key once: the first value counts."""
    by_key: dict[str, str] = {}
    for key, value in attributes:
        if value:
            by_key.setdefault(key, value)
    return [{"key": key, "value": value} for key, value in by_key.items()]


def edges(node: Node, names: set[str], senders: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Its inputs by their indices, then its control inputs; for a receive the send."""
    inputs = [(text.partition(":")[2] or "0", node_of(text)) for text in node.inputs]
    inputs += [("0", senders[node.name])] if node.name in senders else []
    inputs += [("control", name) for name in node.control_inputs]
    for number, (output, source) in enumerate(inputs):
        if source in names:
            yield {
                "sourceNodeId": source,
                "sourceNodeOutputId": output,
                "targetNodeInputId": str(number),
            }


def attributes(stages: Sequence[Stage]) -> Attributes:
    """What all stages together know about each node: its line, its fate and its kernel."""
    by_node: Attributes = defaultdict(list)
    for stage in stages:
        for node in stage.nodes:
            if node.source:
                by_node[node.name] += [("line", place(node.source)), ("code", node.source.code)]
        if isinstance(stage, Placement):
            for fate in stage.ledger:
                told = [("fate", fate.fate), ("pass", fate.by or ""), ("into", fate.into or "")]
                by_node[fate.name] += told
            for origin in stage.origins:
                by_node[origin.name].append(("made by", origin.origin))
            for assignment in stage.assignments:
                by_node[assignment.name].append(("why there", assignment.reason))
            for kernel in stage.kernels:
                by_node[kernel.name] += [
                    ("runs on", short_device(kernel.device)),
                    ("kernel", kernel.constraints),
                ]
    return by_node


# Node data


Values = dict[str, float]  # of each node
Data = dict[str, tuple[str, Values]]  # file -> its title and values


def node_data(runs: Sequence[OpRun]) -> Data:
    """The times of the ops in these steps, and over a cluster those of the tensors on the wire."""
    steps = len({run.step for run in runs}) or 1
    moving = [run for run in runs if run.op == wires.OP]
    ops = [run for run in runs if run.op != wires.OP]
    return times(ops, steps) | memory(ops, steps) | on_wire(moving)


def times(runs: Sequence[OpRun], steps: int, where: str = "") -> Data:
    """Means over the traced steps."""
    time_us = mean(runs, steps, lambda run: run.duration_ns / 1000)
    total_us = sum(time_us.values()) or 1.0
    percents = {name: 100 * us / total_us for name, us in time_us.items()}
    return {
        "time": (f"time{where} in us", time_us),
        "share": (f"share of all ops{where} in %", percents),
    }


def memory(runs: Sequence[OpRun], steps: int, where: str = "") -> Data:
    """Empty if no op requested memory: kernels of a GPU do not, and old traces do not record it."""
    requested = mean(runs, steps, lambda run: run.requested_bytes)
    title = f"memory requested{where} in bytes"
    return {"memory": (title, requested)} if any(requested.values()) else {}


def on_wire(runs: Sequence[OpRun]) -> Data:
    """Means over the recorded receives: the runtime omits some."""
    recorded = Counter(run.name for run in runs)
    sums = mean(runs, 1, lambda run: run.duration_ns / 1000)
    times_us = {name: us / recorded[name] for name, us in sums.items()}
    return {"wire": ("time on the wire in us", times_us)} if runs else {}


def mean(runs: Iterable[OpRun], steps: int, amount: Callable[[OpRun], float]) -> Values:
    """The mean per step, by node."""
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


def by_device(devices: Mapping[str, str]) -> dict[str, Any]:
    """A colour for each device, however many there are; a scope shows how many of each it
    contains."""
    names = sorted(set(devices.values()))
    colours = {name: hue(number / len(names)) for number, name in enumerate(names)}
    return {
        "name": "device",
        "results": {
            node: {"value": name, "bgColor": colours[name]} for node, name in devices.items()
        },
        "showExpandedSummaryOnGroupNode": True,
    }


def hue(turn: float) -> str:
    """A light colour, on which black letters can be read."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in hls_to_rgb(turn, 0.8, 0.7))
