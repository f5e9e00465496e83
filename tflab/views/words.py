"""Words: the text for sources, tensors, counts and ratios in all views."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isfinite

from tflab.records.graph import Node, Source, Tensor, edge_count
from tflab.units import plural, three_digits

FATES = {  # the meaning of each; `analysis.fates` decides them
    "executed": "stays, under its own name",
    "unreached": "not needed by the fetches",
    "folded": "computed in advance, now a constant",
    "merged": "equal to another node, which stays",
    "fused": "part of another node's kernel",
    "removed": "bypassed, replaced or not used",
    "compiled": "in a cluster of nodes that XLA compiled",
}
DIFFERENT = "slower", "faster"  # verdicts


def place(source: Source | None) -> str:
    return f"{os.path.basename(source.file)}:{source.line}" if source else ""


def tensor(output: Tensor) -> str:
    """Return `float32 [?, 10]`: `?` is an unknown dimension."""
    if output.shape is None:
        return f"{output.dtype} [...]"
    dims = ", ".join("?" if dim is None else str(dim) for dim in output.shape)
    return f"{output.dtype} [{dims}]"


def graph_size(nodes: tuple[Node, ...]) -> str:
    """Return `19 nodes, 18 edges`."""
    return f"{plural(len(nodes), 'node')}, {plural(edge_count(nodes), 'edge')}"


def counted(things: Iterable[str]) -> str:
    """Return `2 Const, Identity`: each with its count, the most frequent first."""
    counts = Counter(things)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.most_common())


def listed(names: Sequence[str], most: int, comma: str = ", ") -> str:
    """Return `a, b, c and 5 more`."""
    more = len(names) - most
    return comma.join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def ends_text(low: float, high: float) -> str:
    """Return `[0.98, 1.02]`; "" if there are too few observations."""
    return f"[{three_digits(low)}, {three_digits(high)}]" if isfinite(high) else ""
