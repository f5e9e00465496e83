"""Hand-in: the report of the lab, in the order of its steps, from tables of the other chapters."""

from __future__ import annotations

from collections.abc import Iterator

from tflab.exporters import plots
from tflab.exporters.plots.graph import Edge, Track
from tflab.records.blocks import Column, numbers, table
from tflab.records.graph import Node, edge_count, node_of
from tflab.records.stages import Backward
from tflab.report import contents, drawing, parts
from tflab.report.contents import Box, Chapter, Lab, Method, Part, Walked, nodes_of
from tflab.views import words

OTHERS = "not of one layer"  # the label of a box without one
ABOUT = "Each part names its step of the lab, and the command that repeats it."


def chapters(lab: Lab) -> Iterator[Chapter]:
    """The environment, the graph, the curves, the costliest ops, the batch sizes, and other
    configurations, as far as they were measured."""
    yield Chapter("Step 1: environment", (contents.pairs("", lab.environment),))
    if lab.walked:
        yield Chapter("Step 3: data-flow graph", tuple(graph(lab.walked)))
    if lab.history or not lab.interrupted:
        title = parts.training_title(lab.history).lower()
        yield Chapter(f"Steps 2 and 4: {title}", tuple(parts.training(lab.model, lab.history)))
    if not lab.compared:
        return
    swept, size = contents.swept(lab.compared), lab.compared.batch_sizes[-1]
    bars = contents.picture("op_bars", plots.op_bars.draw, lab.compared.tables[size], "op")
    dearest = parts.dearest(lab.compared)
    yield Chapter("Step 5: the ten most expensive ops", (dearest, bars, swept))
    sizes = (
        parts.found(lab.compared),
        parts.calls_at_each_size(lab.compared),
        contents.picture("batch_sizes", plots.batch_sizes.draw, lab.compared),
        swept,
    )
    yield Chapter("Step 6: batch sizes", sizes)
    changed = tuple(parts.configurations(lab.compared))
    yield Chapter("Step 7: hardware and configuration", changed)


def graph(walked: Walked) -> Iterator[Part]:
    """The picture of the graph, and its size at each stage."""
    stages = [
        ("as written", walked.stages[0].nodes),
        *(("with gradients", s.nodes) for s in walked.stages if isinstance(s, Backward)),
        ("that runs", walked.placement.nodes),
    ]
    *_, (_, nodes), _ = stages
    yield contents.picture("graph", plots.graph.draw, walked.model, *layers(walked, nodes))
    yield table(
        "",
        stages,
        Column("graph", lambda row: row[0]),
        numbers("nodes", lambda row: f"{len(row[1]):,}"),
        numbers("edges", lambda row: f"{edge_count(row[1]):,}"),
    )
    yield Method(
        "The graph is read from the session that ran it; TensorBoard's Graphs shows it node by "
        "node.",
        f"python -m tflab.lifecycle --model {walked.model} --logdir runs/{walked.model}\n"
        "tensorboard --logdir runs",
    )


def layers(walked: Walked, nodes: tuple[Node, ...]) -> tuple[list[Track], list[Edge]]:
    """The outer boxes of the report's drawing with some of these nodes, and the edges between
    them, each with the shape that all of its tensors have."""
    by_name = {node.name: node for node in nodes}
    box_of: dict[str, str] = {}

    def named(box: Box) -> tuple[str, str, str]:
        inside = [by_name[name] for name in nodes_of(box) if name in by_name]
        box_of.update((node.name, box.name) for node in inside)
        size = inside[0].op if len(inside) == 1 else f"{len(inside)} nodes"
        return box.name, box.label or OTHERS, size if inside else ""

    tracks: list[Track] = []
    for track in drawing.draw(walked.stages, walked.histories).tracks:
        rows = ([named(box) for box in row if isinstance(box, Box)] for row in track.rows)
        tracks.append((track.label, tuple(tuple(b for b in row if b[2]) for row in rows)))
    shapes: dict[tuple[str, str], set[str]] = {}
    for node in nodes:
        for tensor in node.inputs:
            source = node_of(tensor)
            ends = box_of.get(source, ""), box_of[node.name]
            if ends[0] and ends[0] != ends[1]:
                outputs = by_name[source].outputs
                place = int(tensor.partition(":")[2] or 0)
                shape = words.tensor(outputs[place]) if place < len(outputs) else ""
                shapes.setdefault(ends, set()).add(shape)
    return tracks, [(*ends, min(text) if len(text) == 1 else "") for ends, text in shapes.items()]
