"""The figure of docs/scale.md: time and memory against op runs and nodes.

    python -m benchmarks.scale

It draws what `benchmarks.exports` and `benchmarks.placement` measure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import exports, placement
from tflab.runtime import child

FIGURE = Path(__file__).parents[1] / "docs" / "scale.png"
MB = 1e6


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__).parse_args()
    converted, nodes = child.call("benchmarks.scale:op_runs", False), list(placement.rows())
    figure(converted, nodes, FIGURE)
    print(*(f"{row.op_runs:>12,} {row.to:8} {row.measured}" for row in converted), sep="\n")
    print(exports.checked(converted), *nodes, sep="\n")


def op_runs(quick: bool) -> list[exports.Converted]:
    from benchmarks import lenet

    with TemporaryDirectory(prefix="tflab-") as folder, lenet.steps("training") as steps:
        trace = str(Path(folder, "trace"))
        recorded = exports.write_trace(trace, steps, 1_500 if quick else 100_000)
        return exports.growth(trace, recorded, quick)


def figure(
    converted: Sequence[exports.Converted], nodes: Sequence[dict[str, Any]], file: Path
) -> None:
    """Draw time (left) and memory (right), against op runs (above) and nodes (below)."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    drawing, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    (time_of_runs, memory_of_runs), (time_of_nodes, memory_of_nodes) = axes
    for to in exports.FORMATS:
        rows = [row for row in converted if row.to == to]
        counts = [row.op_runs for row in rows]
        label = f"convert --to {to}"
        time_of_runs.plot(counts, [row.measured.processor for row in rows], "o-", label=label)
        memory_of_runs.plot(counts, [row.measured.peak / MB for row in rows], "o-", label=label)
    sizes = [row["nodes"] for row in nodes]
    for stage in placement.STAGES:
        time_of_nodes.plot(sizes, [row[stage] for row in nodes], "o-", label=stage)
    sizes_mb = [row["mib"] * 2**20 / MB for row in nodes]
    memory_of_nodes.plot(sizes, sizes_mb, "o-", label="the stages before execution")
    for axis, below, left in (
        (time_of_runs, "op runs", "processor time (s)"),
        (memory_of_runs, "op runs", "memory of the process (MB)"),
        (time_of_nodes, "nodes", "time (s)"),
        (memory_of_nodes, "nodes", "memory of the process (MB)"),
    ):
        axis.set(xscale="log", yscale="log", xlabel=below, ylabel=left)
        low, high = axis.get_ylim()
        axis.set_ylim(10 ** floor(log10(low)), 10 ** ceil(log10(high)))  # whole decades
        for part in (axis.xaxis, axis.yaxis):
            part.set_major_formatter("{x:,.10g}")
            part.set_minor_formatter("")
        axis.grid(which="major", alpha=0.3)
        axis.legend()
    drawing.savefig(file, dpi=110)
    pyplot.close(drawing)


if __name__ == "__main__":
    main()
