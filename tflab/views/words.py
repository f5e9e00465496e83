"""Words: the text for sources, tensors and counts in all views."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from tflab.records import Peaks, Source, Tensor
from tflab.units import percent

LONGEST = 40  # rows of a table; JSON has the rest

FATES = {  # the meaning of each; `analysis.ledger` decides them
    "executed": "runs under its own name",
    "unreached": "not needed by the fetches",
    "folded": "computed in advance, now a constant",
    "merged": "equal to another node, which stays",
    "fused": "part of another node's kernel",
    "removed": "bypassed, or no longer used",
    "compiled": "compiled by XLA with other nodes",
}


def place(source: Source | None) -> str:
    return f"{os.path.basename(source.file)}:{source.line}" if source else ""


def tensor(output: Tensor) -> str:
    """`float32 [?, 10]`: `?` is an unknown dimension."""
    if output.shape is None:
        return f"{output.dtype} [...]"
    dims = ", ".join("?" if dim is None else str(dim) for dim in output.shape)
    return f"{output.dtype} [{dims}]"


def roof(peaks: Peaks) -> str:
    """What a short benchmark reached; on a busy machine, that the machine may do more."""
    busy = " (measured while the machine was busy, so it may reach more)" if peaks.busy else ""
    return f"{peaks.gflops:,.0f} GFLOP/s, with {peaks.gigabytes_per_s:,.1f} GB/s from memory{busy}"


def of_roof(share: float | None) -> str:
    """`12.5 %`; an op above the roof shows that the roof is too low, but not by how much."""
    if share is None:
        return ""
    return "above" if share > 1 else percent(share)


def counted(things: Iterable[str]) -> str:
    """`2 Const, Identity`: each with its count, the most frequent first."""
    counts = Counter(things)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.most_common())
