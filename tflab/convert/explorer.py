"""Explorer: the graph in the traces and the times of its nodes, for Google's Model Explorer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from tflab.analysis import tracks
from tflab.convert import decoded
from tflab.convert.reading import Recording
from tflab.errors import UsageError
from tflab.exporters import model_explorer
from tflab.exporters.model_explorer import Attributes, Data
from tflab.records.timed import OpRun
from tflab.runtime import trace
from tflab.units import percent, plural, short_device

Runs = Sequence[OpRun]


def write(folder: Path, recorded: Recording) -> Iterator[str]:
    """Write the graph and its node data, for all devices together and for each; yield sentences
    about what is missing.

    Raises UsageError if there is no graph.
    """
    if not recorded.nodes:
        raise UsageError(
            f"'{recorded.files[0]}' has no graph for Model Explorer to draw; give the graph that "
            "ran as --graph, or record the step with RunOptions(output_partition_graphs=True)."
        )
    name = recorded.capture().name
    others = (trace.EXECUTOR, decoded.RPC)
    runs = [run for run in recorded.runs if run.name not in others]
    drawn = {node.name for node in recorded.nodes}
    graph = model_explorer.graph(
        name, recorded.nodes, attributes(recorded, runs), recorded.transfers
    )
    content = {"label": name, "graphs": [graph]}
    model_explorer.write_graphs(folder, content, {name: devices_of(recorded, runs)})
    for file, (title, values) in node_data(runs, len(recorded.steps)).items():
        shown = {node: value for node, value in values.items() if node in drawn}
        if shown:
            data = {name: model_explorer.coloured(title, shown)}
            model_explorer.dump(folder / f"{file}.json", data)
    yield from not_drawn(tracks.work_runs(runs), drawn)
    received = sum(run.name == decoded.RPC for run in recorded.runs)
    if received:
        yield (
            f"{plural(received, 'row')} of the traces {are(received)} tensors on the wire "
            f"({decoded.RPC}), which belong to no node and are not in the graph."
        )


def attributes(recorded: Recording, runs: Runs) -> Attributes:
    """Facts about each node that are in the traces only: where it ran, and as which type."""
    devices: dict[str, dict[str, None]] = defaultdict(dict)
    types: dict[str, dict[str, None]] = defaultdict(dict)
    for name, op, device in dict.fromkeys((run.name, run.op, run.device) for run in runs):
        devices[name][short_device(device)] = types[name][op] = None
    known: Attributes = {}
    for node in recorded.nodes:
        ran_on, ran_as = ", ".join(devices[node.name]), ", ".join(types[node.name])
        known[node.name] = [
            ("ran on", ran_on if ran_on != short_device(node.device) else ""),
            ("ran as", ran_as if ran_as != node.op else ""),
        ]
    return known


def devices_of(recorded: Recording, runs: Runs) -> dict[str, str]:
    """The device of each node according to the graph, otherwise according to the traces: where it
    ran or was launched."""
    kinds = {track.device: track.kind for track in recorded.tracks}
    drawn = {node.name for node in recorded.nodes}
    ran = {
        run.name: short_device(run.device)
        for run in runs
        if run.name in drawn and kinds[run.device] in (tracks.OPS, tracks.LAUNCHES)
    }
    return model_explorer.devices_of(recorded.nodes) | ran


def node_data(runs: Runs, steps: int) -> Data:
    """The data of all devices together, in which the time of a node is that of its work, and of
    each device if there are several."""
    data = model_explorer.times(tracks.work_runs(runs), steps)
    data |= model_explorer.memory(runs, steps)
    by_device: dict[str, list[OpRun]] = defaultdict(list)
    for run in runs:
        by_device[run.device].append(run)
    if len(by_device) > 1:
        for file, (device, own) in zip(file_names(by_device), by_device.items(), strict=True):
            kind = tracks.track_kind(device)
            where = f" on {short_device(device)}" + (f" ({kind})" if kind != tracks.OPS else "")
            own_data = model_explorer.times(own, steps, where)
            own_data |= model_explorer.memory(own, steps, where)
            data |= {f"{kind}-{file}": values for kind, values in own_data.items()}
    return data


def file_names(devices: Iterable[str]) -> Iterator[str]:
    """A different name for each device that every file system accepts."""
    taken: set[str] = set()
    for device in devices:
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", short_device(device)).strip("-.") or "device"
        names = (plain if number == 1 else f"{plain}-{number}" for number in count(1))
        name = next(name for name in names if name.lower() not in taken)
        taken.add(name.lower())
        yield name


def not_drawn(work: Runs, drawn: set[str]) -> Iterator[str]:
    """A sentence about rows without a node in the graph, such as ops of the runtime."""
    missing = [run for run in work if run.name not in drawn]
    if missing:
        names = list(dict.fromkeys(run.name for run in missing))
        whole = sum(run.duration_ns for run in work)
        share = sum(run.duration_ns for run in missing) / whole if whole else 0
        verb = "belongs" if len(names) == 1 else "belong"
        yield (
            f"{plural(len(names), 'name')} in the traces {verb} to no node in the graph, such as "
            f"'{names[0]}': {percent(share)} of the time of all ops is not in the picture."
        )


def are(count: int) -> str:
    return "is" if count == 1 else "are"
