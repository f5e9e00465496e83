"""What was observed of a step so that it can be compared elsewhere, and later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Turns = tuple[tuple[int, ...], ...]  # ns of the steps of each turn or round, in their order


@dataclass(frozen=True)
class Fingerprint:
    """What tells one model and its data from another, without the names of files."""

    graph: str  # digest of the nodes that the step needs: types, edges, attributes that matter
    nodes: int
    edges: int
    ops: Mapping[str, int]  # type -> number of nodes
    feeds: tuple[str, ...]  # `images:0 float32 [?, 32, 32, 1]`
    data: str  # digest of what is fed: size, and first rows of the split
    weights: str | None  # digest of constants and given values; None where a run draws them anew


@dataclass(frozen=True)
class Process:
    """A process of its own: all of its steps together are one observation. By batch size."""

    untraced_ns: Mapping[int, Turns]
    traced_ns: Mapping[int, Turns]
    rows_ns: Mapping[int, Mapping[str, float]]  # key of a row -> its time in a traced step, median


@dataclass(frozen=True)
class Observed:
    fingerprint: Fingerprint
    # By batch size, the steps that the tables are of, which all ran in one process
    untraced_ns: Mapping[int, Turns]
    traced_ns: Mapping[int, Turns]
    processes: tuple[Process, ...]
