"""Access: the nodes that read and write a variable, a queue or a table, and those without order."""

from __future__ import annotations

from dataclasses import dataclass

from tflab.records.graph import Source


@dataclass(frozen=True)
class Access:
    """A node that reads or changes what a variable, a queue or a table holds."""

    node: str
    does: str  # reads, writes, takes or puts; the last two of a queue
    source: Source | None  # its line


@dataclass(frozen=True)
class Unordered:
    """Two accesses, at least one of which changes what the other one finds, without a path of
    tensors and control dependencies between them: the runtime may run either first."""

    resource: str  # the node of the variable, queue or table
    first: Access
    second: Access  # one that changes it
    fetches: tuple[str, ...]  # that are computed from what the first one reads or takes


@dataclass(frozen=True)
class BranchInput:
    """A node outside of a branch that only this branch uses, and that runs in every step."""

    node: str
    op: str
    source: Source | None
    branch: str  # `then_branch of cond`
