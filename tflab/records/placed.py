"""Placed: what the runtime does to a graph: passes, fates, devices, kernels, generated code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.records.graph import Node, Shape


@dataclass(frozen=True)
class Rewrite:
    """A node that kept its name, but changed its type."""

    name: str
    old: str = field(metadata={"json": "from"})
    new: str = field(metadata={"json": "to"})


@dataclass(frozen=True)
class Takeover:
    """What happened to a node that a pass removed, or left without work."""

    name: str
    fate: str  # folded, merged, fused, compiled or removed
    into: str | None  # the node that replaces it after that pass
    # Whether `into` has its value; otherwise the value went into what `into` computes
    has_value: bool = field(default=True, metadata={"json": None})
    # Whether the pass made `into` to do the work of this node and of no other
    replaced: bool = field(default=False, metadata={"json": None})


@dataclass(frozen=True)
class Pass:
    """What one pass of the runtime did to the graph, according to its dumps."""

    name: str
    iteration: int | None  # of Grappler, which runs its passes more than once
    before: int  # nodes
    after: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rewritten: tuple[Rewrite, ...]
    rewired: tuple[str, ...]  # inputs or control inputs changed
    moved: tuple[str, ...]  # the device changed
    taken: tuple[Takeover, ...]
    # The nodes that were sent to other tasks, by task
    sent: tuple[tuple[str, tuple[str, ...]], ...] = field(metadata={"json": None})
    # Each node that was added or changed, as it was after the pass
    definitions: tuple[Node, ...] = field(repr=False, metadata={"json": None})

    @property
    def changed(self) -> set[str]:
        """Return the nodes that it added, changed or removed."""
        return {*self.removed, *(node.name for node in self.definitions)}


@dataclass(frozen=True)
class Snapshot:
    """The graph at one moment between the passes of the runtime."""

    moment: str  # "before" or "after"
    group: str  # "grappler", or the phase of the runtime's own passes
    name: str | None  # of the pass; None at the start and the end of a group
    iteration: int | None  # of Grappler
    partition: str | None  # if there are several graphs, one for each device
    nodes: tuple[Node, ...]
    clusters: dict[str, str]  # node -> the XLA cluster that it is marked for


@dataclass(frozen=True)
class Fate:
    """What happened to a node of the user's graph: exactly one of `views.words.FATES`."""

    name: str
    fate: str
    by: str | None  # the pass responsible
    # The executed node that replaced it; of a merged node the equal one, also if that is gone
    into: str | None
    # Whether `into` has its value; otherwise the value went into what `into` computes
    has_value: bool = field(default=True, metadata={"json": None})
    # Whether a pass made `into` to do the work of this node and of no other
    replaced: bool = field(default=False, metadata={"json": None})

    @property
    def is_work_of_replacement(self) -> bool:
        """Return whether `into` does the work of this node."""
        return self.into is not None and (self.replaced or self.fate in ("fused", "compiled"))


@dataclass(frozen=True)
class Origin:
    """The origin of an executed node that the user did not write."""

    name: str
    origin: str  # feed, fetch, transfer, or the pass that made it


@dataclass(frozen=True)
class Kernel:
    """The implementation of a node on its device, from the runtime's registry of kernels."""

    name: str
    op: str  # the type that runs
    device: str
    # of the registration with the highest priority; "" if the executor needs no kernel
    constraints: str


@dataclass(frozen=True)
class CompiledKernel:
    """One step of a compiled cluster: a function that XLA generated, or a call of a library."""

    name: str  # of the HLO operation, and of the function
    opcodes: tuple[str, ...]  # of the HLO operations that were fused into it
    nodes: tuple[str, ...]  # of the graph, for which XLA made these operations
    bytes: int  # of machine code; 0 if it shares a function or the runtime does the work
    hlo: tuple[str, ...] = field(repr=False)
    llvm: tuple[str, ...] = field(repr=False)  # lines of LLVM IR, after optimisation
    machine: tuple[str, ...] = field(repr=False)  # address, bytes in hexadecimal, instruction


@dataclass(frozen=True)
class Generated:
    """The code that XLA generated for one cluster of nodes."""

    cluster: str
    fetches: tuple[str, ...]
    batch_size: int
    kernels: tuple[CompiledKernel, ...]
    # File name -> HLO, LLVM IR or machine code, to be written to files
    listings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Partition:
    """The part of the graph that one device runs."""

    device: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Transfer:
    """A tensor that is sent from one device to another, through a `_Send` and a `_Recv`."""

    tensor: str
    send: str  # the `_Send` node
    recv: str  # the `_Recv` node
    from_device: str = field(metadata={"json": "from"})
    to_device: str = field(metadata={"json": "to"})
    dtype: str
    shape: Shape
    bytes: int | None  # per step; None if the shape is unknown or does not determine it
    # Its name at both ends, and in the trace of several tasks: `edge_26_flatten/Reshape`
    edge: str = field(metadata={"json": None})


ON_FUNCTIONS = " on functions"  # after the name of a pass that rewrites what the graph calls


@dataclass(frozen=True)
class FirstPart:
    """A part of the first run of a step, by the runtime's log."""

    owner: str  # a pass of the runtime, or what else it did
    iteration: int | None  # of Grappler
    ns: int


@dataclass(frozen=True)
class FirstRun:
    """The first run of a step in a new session, neither traced nor dumped, measured once."""

    wall_ns: int
    parts: tuple[FirstPart, ...]  # add up to it

    def of_pass(self, name: str) -> int | None:
        """Return the time of all runs of a pass; None if the log has none."""
        names = (name, f"{name}{ON_FUNCTIONS}")
        times = [part.ns for part in self.parts if part.owner in names]
        return sum(times) if times else None
