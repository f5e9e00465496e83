"""What was seen of a program that was watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.graph import Node
from tflab.records.placed import Assignment, Fate, Kernel, Origin, Pass
from tflab.records.timed import Owner


@dataclass(frozen=True)
class Group:
    """Runs of a session that did the same."""

    graph: str
    fetches: tuple[str, ...]  # tensors, and nodes that only had to run
    feeds: Mapping[str, str]  # tensor -> the shape that was fed
    calls: int
    median_ns: float | None  # of a random sample of the untraced runs but the first; None: of none
    cold_ns: int  # the first run
    total_ns: int  # all runs but the first
    traced: int


@dataclass(frozen=True)
class WatchedLine:
    """A line of the program: the time of the nodes that it made, and that of its own Python.

    Times of nodes are those of the traced runs, times runs over traced runs: they are those of all
    runs but the first as far as the traced ones are like the others. Python's time is sampled.
    """

    file: str
    line: int
    code: str
    nodes: tuple[str, ...]
    forward_ns: int
    backward_ns: int
    update_ns: int
    python_ns: int
    runs: int  # of the ops of these nodes, told from the traced runs like their times


@dataclass(frozen=True)
class OpTimes:
    """All runs of one op in the traced steps of a group."""

    runs: int
    ns: int


@dataclass(frozen=True)
class Recorded:
    """The graph of the largest group, from the nodes of the program to the graph that ran."""

    group: int  # its place among the groups, from 1
    nodes: tuple[Node, ...]  # of the program
    derived: Mapping[str, str]  # node of a gradient -> the node that it is derived from
    variables: int  # that are trained
    fetches: tuple[str, ...]
    executed: tuple[Node, ...]
    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]
    assignments: tuple[Assignment, ...]
    kernels: tuple[Kernel, ...]
    traced: int  # runs of the group
    ops: Mapping[str, OpTimes]  # by node of the graph that ran


@dataclass(frozen=True)
class Process:
    wall_ns: int
    owners: tuple[Owner, ...]  # of all of it


@dataclass(frozen=True)
class Watched:
    """A program from its start to its end."""

    program: tuple[str, ...]  # as it was given
    groups: tuple[Group, ...]
    process: Process
    lines: tuple[WatchedLine, ...]  # the costliest first
    stood_in: tuple[str, ...]  # what tflab put in the place of something that TensorFlow had
    exit_status: int  # negative: the signal that ended it
    fates: Mapping[str, int]  # nodes of the graph of the largest group, by fate
    costliest: tuple[str, int] | None  # where most time outside of runs was spent: place, ns
    stopped: bool  # by --steps
    notes: tuple[str, ...]  # what was not watched, and why
    # The graph of the largest group; None where it was not kept
    graph: Recorded | None = field(default=None, repr=False, metadata={"json": None})
