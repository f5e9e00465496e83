"""The chapter of a graph on one device and on two: what is placed where, and what is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflab.records import Execution, Placement, Stage
from tflab.report import drawing
from tflab.report.contents import Beside, DrawnGraph, Part, Recipe, Walked
from tflab.units import plural, short_device
from tflab.views import placement


def parts(one: Walked, two: Walked, name: str) -> Iterator[Part]:
    """`two` is a walk of the same model on two devices, up to its placement."""
    placing = two.placement
    yield (
        f"The same program on two devices: {counts(placing)}. Where an edge leads from one to the "
        "other, the runtime cuts it: a _Send on the one hands the tensor to a _Recv on the other. "
        f"{placement.cuts(placing)}"
    )
    yield Beside(tuple(drawn(walked, name) for walked in (one, two)), "device")
    yield placement.transfers(placing)
    yield Recipe(
        "Devices, _Send and _Recv are read from the runtime's own dumps; the bytes are those of "
        f"the shapes at batch size {placing.batch_size}.",
        f"python -m tflab.lifecycle --model {two.model} --devices {len(placing.partitions)} "
        "--stage placement",
    )


def counts(placing: Placement) -> str:
    """`20 nodes on CPU:0 and 37 nodes on CPU:1`."""
    rows = sorted((short_device(part.device), len(part.nodes)) for part in placing.partitions)
    return " and ".join(f"{plural(count, 'node')} on {device}" for device, count in rows)


def drawn(walked: Walked, name: str) -> DrawnGraph:
    """The graph as it is after its last pass, before anything has run."""
    stages = before_it_ran(walked)
    placing = walked.placement
    devices = plural(len(placing.partitions), "device")
    sent = f", {plural(len(placing.transfers), 'transfer')}" if placing.transfers else ""
    return DrawnGraph(
        name=f"{name} on {devices}: {plural(len(placing.nodes), 'node')}{sent}",
        drawing=drawing.draw(stages, walked.histories),
        histories=walked.histories,
        ns={},
        batch_size=placing.batch_size,
    )


def before_it_ran(walked: Walked) -> Sequence[Stage]:
    return [stage for stage in walked.stages if not isinstance(stage, Execution)]
