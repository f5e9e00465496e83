"""Watched: the results of watching a program, and the file that keeps them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tflab.errors import UsageError
from tflab.records import codec
from tflab.records.graph import Node
from tflab.records.measured import Load
from tflab.records.placed import Fate, Kernel, Origin, Pass
from tflab.records.timed import Owner
from tflab.records.values import NotFinite, Value


@dataclass(frozen=True)
class Group:
    """Runs of a session with the same graph, fetches and fed shapes, or calls of a function."""

    # `graph 1`, `function step`, `other graphs` that are not kept, or `all later runs`, after the
    # first groups, without fetches and feeds
    graph: str
    fetches: tuple[str, ...]  # tensors, and nodes that only had to run
    feeds: Mapping[str, str]  # tensor -> fed shape
    calls: int
    # of a random sample of the untraced runs except the first; None if there are none
    median_ns: float | None
    cold_ns: int  # the first run; in a later group several first runs
    total_ns: int  # all other runs
    traced: int
    in_other_threads: int  # runs, also the first, that were not in the main thread
    # Fetched tensor -> the first run in which it had NaN or Inf, counted over all functions of this
    # name if it is a result of one; None: no value was checked
    not_finite: Mapping[str, int] | None
    first_runs: int  # several in a later group, and one of each tracing of a function
    waited_ns: tuple[int, int]  # for data: the estimate, and the most that it can be


@dataclass(frozen=True)
class WatchedLine:
    """A line of the program: the time of the nodes that it made, and its own time outside of runs.

    The times of nodes are those of the traced runs, scaled to all runs but the first; this assumes
    that traced runs are like the others. The other times are sampled.
    """

    file: str
    line: int
    code: str
    nodes: tuple[str, ...]
    forward_ns: int
    backward_ns: int
    update_ns: int
    waiting_ns: int  # in which its nodes waited for data; not part of forward_ns
    traced: int  # the fewest traced runs of a group in which its nodes ran; 0 if they ran in none
    python_ns: int
    python_samples: int
    tensorflow_ns: int  # what it called of TensorFlow and Keras
    tensorflow_samples: int
    elsewhere_ns: int  # both, in other threads
    elsewhere_samples: int

    @property
    def total_ns(self) -> int:
        nodes_ns = self.forward_ns + self.backward_ns + self.update_ns + self.waiting_ns
        return nodes_ns + self.python_ns + self.tensorflow_ns + self.elsewhere_ns


@dataclass(frozen=True)
class SampledLine:
    """A line, and how long it ran by the samples that saw it."""

    place: str  # `train.py:88 in next_batch`
    ns: int
    samples: int


@dataclass(frozen=True)
class WatchedOp:
    """The ops of a type in all runs but the first ones, estimated from the traced runs."""

    op: str  # the type that ran
    ns: int
    share: float  # of the time of all ops


@dataclass(frozen=True)
class InputPipeline:
    """How runs waited for the data of tf.data or of a queue."""

    group: int  # whose runs waited, with others of its name; 0: the program, between the steps
    runs: int  # that waited; 0 if there are none, or several functions
    waited_ns: int
    stage: str  # of tf.data, that took most of its time in the profiled calls; "" if unknown
    line: SampledLine | None  # of Python that tf.data calls, if no other line took as long


@dataclass(frozen=True)
class GrownGraph:
    """A graph that got more nodes again and again between its runs."""

    graph: int  # from 1
    first: int  # nodes at the first run
    last: int
    runs: int
    rises: int  # runs before which it grew
    made: Mapping[str, int]  # line -> the nodes that it made at the first of these, the most first


@dataclass(frozen=True)
class KeptResults:
    """Results of a function that the program keeps. Up to four tensors of each call are counted."""

    function: str
    calls: int  # when they were last counted
    tensors: int  # that were alive then
    place: str  # of that call; "" if it is not known


@dataclass(frozen=True)
class GrownMemory:
    """Resident memory that grew steadily in the later time of a program."""

    first_bytes: int
    last_bytes: int
    place: str  # where it rose; "" if it is not known


@dataclass(frozen=True)
class OpenRun:
    """A run of the main thread that had not ended when the process was last seen."""

    group: int  # its place among the groups, from 1
    ns: int
    place: str


@dataclass(frozen=True)
class OpTimes:
    """All runs of one op in the traced steps of a group."""

    runs: int
    ns: int


@dataclass(frozen=True)
class TracedFunction:
    """The tf.functions of one Python function and their tracings, each of which makes a graph."""

    name: str
    made: str  # the first line of its Python: `train.py:9`; "" if it has none
    functions: int  # that the program made of it
    tracings: int
    ns: int
    first_ns: int  # of the first tracing
    # Of the last tracing: the line of the program that caused it, and the arguments that differ
    # from the most similar earlier tracing (name, before, now)
    place: str
    changed: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Compiled:
    """What XLA compiled for one function or cluster, in the calls of one line."""

    name: str
    place: str  # of the calls: `train.py:17 in main`
    compilations: int
    shapes: tuple[str, ...]  # different ones of the inputs: `f32[8,4], f32[4]`
    ns: int  # from the first to the last file of each dump


@dataclass(frozen=True)
class Recorded:
    """The graph of the largest group, from the nodes of the program to the graph that ran."""

    nodes: tuple[Node, ...]  # of the program
    derived: Mapping[str, str]  # node of a gradient -> the node that it is derived from
    variables: int  # trained variables
    fetches: tuple[str, ...]
    executed: tuple[Node, ...]
    passes: tuple[Pass, ...]
    ledger: tuple[Fate, ...]
    origins: tuple[Origin, ...]
    kernels: tuple[Kernel, ...]
    traced: int  # runs of the group
    ops: Mapping[str, OpTimes]  # by node of the graph that ran


@dataclass(frozen=True)
class RecordedValues:
    """The values of one run of the largest group, fetched beside the program's own fetches."""

    group: int  # its place among the groups, from 1; 0 for a function that ran op by op
    function: str  # its name; "" for a session
    run: int  # its number in the group, or of the call, from 1
    ns: int  # time of the run with these fetches
    values: tuple[Value, ...]
    origins: tuple[NotFinite, ...]  # the nodes that made NaN or Inf of finite values
    not_finite: tuple[str, ...]  # fetched tensors with NaN or Inf


@dataclass(frozen=True)
class Process:
    wall_ns: int
    owners: tuple[Owner, ...]  # add up to it


@dataclass(frozen=True)
class Watched:
    """A program from its start to its end."""

    program: tuple[str, ...]  # as it was given
    groups: tuple[Group, ...]
    process: Process
    lines: tuple[WatchedLine, ...]  # the most expensive first
    exit_status: int  # negative: the signal that ended it
    stopped: bool  # by --steps
    fates: Mapping[str, int]  # nodes of the graph of the largest group, by fate
    costliest: SampledLine | None  # if the samples show that no other line took as long
    with_runs: SampledLine | None  # the same line with the runs that it began
    elsewhere: SampledLine | None  # likewise in other threads
    open_run: OpenRun | None
    for_children: SampledLine | None  # the time in which it waited for its child processes
    ops: tuple[WatchedOp, ...]  # the most time first
    findings: tuple[str, ...]  # why the runs of the largest group are slow
    input_pipeline: InputPipeline | None
    grown_graphs: tuple[GrownGraph, ...]
    kept_results: tuple[KeptResults, ...]
    grown_memory: GrownMemory | None
    notes: tuple[str, ...]  # what was not watched, and why; data and names that are missing
    functions: tuple[TracedFunction, ...]
    compiled: tuple[Compiled, ...]  # by XLA, what took longest first
    values: RecordedValues | None  # if they were requested
    load: Load | None  # of the machine
    # The graph of the largest group; None if it was not saved
    graph: Recorded | None = field(repr=False, metadata={"json": None})


# The file of a watched program

KIND = "tflab run"
FORMAT = 8  # a file that older versions would misread gets the next number
FILE = "run.json"  # in a logdir
GIVE = "give a file that `python -m tflab.run --save FILE` wrote"


def as_text(seen: Watched) -> str:
    """Return a watched program as the JSON text of its file."""
    content = {"kind": KIND, "format": FORMAT, **codec.encoded(seen)}
    return json.dumps(content, indent=1, allow_nan=False)


def read(path: str) -> Watched:
    """Return the watched program in a file or in a logdir. Raises UsageError if none is there."""
    content = codec.read_object(os.path.join(path, FILE) if os.path.isdir(path) else path, GIVE)
    if (content.get("kind"), content.get("format")) != (KIND, FORMAT):
        raise UsageError(f"'{path}' is not a watched run of this version of tflab; {GIVE}.")
    return codec.decode_file(Watched, content, path)
