"""Recorder: the runs of sessions, in groups of runs that do the same.

A group is a graph, its fetches, and the shapes of its feeds. Every run is timed. The first run of a
group is kept separately, because the runtime builds the step in it. Some of the others are traced,
as many as the budget allows, spread over the whole time of the program. The memory needed does not
grow with the number of runs.
"""

from __future__ import annotations

import ctypes
import sys
from _thread import allocate_lock, get_ident, interrupt_main
from collections import deque
from collections.abc import Callable
from glob import glob
from signal import SIG_DFL, SIG_IGN, SIGINT, getsignal
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tflab.errors import TflabError
from tflab.records.graph import Node
from tflab.run.function_calls import Functions
from tflab.run.groups import PythonCall, RunGroup, WatchedRun
from tflab.run.program_graphs import MOST_CONSTANTS, Dumps, Lines, line_of
from tflab.runtime import private

if TYPE_CHECKING:
    from tflab.run.values import Values

MOST_GROUPS = 100  # later ones form one group of functions and one of sessions
MOST_GRAPHS = 16  # graphs that are kept until the end
MOST_NODES = 50_000  # limit for a graph whose ops are recorded
WAITING = 4  # traces waiting to be read
# The share of the budget for the measured cost of traces. Sampling and timing take the rest, and
# what a trace costs beside that, which is about as much again on LeNet.
FOR_TRACES = 1 / 6
LONG = "The ops of some runs have no times: TensorFlow records at most 1,048,576 op runs of a run."
WARNING, ERROR = 1, 2  # log levels: dumps log below the first, traces below the second
SOFTWARE_TRACE, FULL_TRACE = 1, 3  # of RunOptions.TraceLevel


class Recorder:
    """What `private.watch` reports about runs. None of its methods raises an exception."""

    def __init__(self, watcher: Any) -> None:
        self.watcher, self.sampler = watcher, watcher.sampler
        self.main = watcher.sampler.main
        self.groups: dict[Any, RunGroup] = {}
        self.first_runs = 0
        self.graphs: list[Any] = []
        self.calls: dict[int, PythonCall] = {}  # by thread
        # With the number of the run, its time, and that without start and end of the profiler
        self.waiting: deque[tuple[RunGroup, bytes, int, int]] = deque()
        self.tracing = allocate_lock()  # held by the first run whose graphs are dumped
        self.share = FOR_TRACES * watcher.overhead / 100
        self.next_stop = watcher.steps or sys.maxsize
        self.stopped_by_steps = False
        self.notes: list[str] = []
        self.lines = Lines(self.note)
        self.keep_stack = self.keep_first_stack  # called when an op is made
        self.unwatch: Callable[[], None] = lambda: None
        self.functions = Functions(self)
        self.most_waiting = WAITING
        self.has_read = False  # a trace; the first costs more, because modules are imported
        self.log: private.Log | None = None
        self.own_ns = 0  # of the main thread: the time in which values were fetched
        self.values: Values | None = None
        if watcher.values is not None:
            from tflab.run import values  # few programs need it

            self.values = values.Values(self)

    def begin_watching(self) -> Recorder:
        try:
            self.sampler.builds = private.Building(self.main)
            self.log = private.Log()
            self.tracer = private.TraceBuffers()
            level = FULL_TRACE if glob("/dev/nvidia[0-9]*") else SOFTWARE_TRACE
            self.traced_options = self.tracer.options(trace_level=level)
            self.graphs_options = self.tracer.options(output_partition_graphs=True)
            self.dumps = Dumps(self.watcher.folder, self.log)
        except TflabError as error:
            self.log = None
            self.notes.append(str(error))
        self.unwatch = private.watch(self)
        return self

    def keep_first_stack(self) -> None:
        if get_ident() == self.main:
            self.sampler.builds()  # from now on other threads can find that out
            self.keep_stack = self.lines.keep_stack
        self.lines.keep_stack()

    def stop(self) -> None:
        self.unwatch()
        self.functions.stop()

    def enter(self) -> PythonCall | None:
        """A call begins; None if it is part of another call of its thread."""
        thread = get_ident()
        if thread in self.calls:
            return None
        now_ns = perf_counter_ns()
        if thread == self.main:
            self.sampler.enter(now_ns)
        call = self.calls[thread] = PythonCall(now_ns)
        return call

    def leave(self, call: PythonCall | None) -> None:
        if call is None:
            return
        took_ns = perf_counter_ns() - call.start_ns
        thread = get_ident()
        self.calls.pop(thread, None)
        step = call.step
        if thread == self.main:
            self.sampler.leave(took_ns if step else 0)
        if step:
            usual_ns = min(took_ns, int(step.group.usual_ns())) if step.values else took_ns
            step.group.add(usual_ns, step, thread == self.main)
            self.own_ns += (took_ns - usual_ns) * (thread == self.main)
            if step.group.calls >= self.next_stop:
                self.next_stop += self.watcher.steps
                self.interrupt()

    def interrupt(self) -> None:
        """Interrupt the program, which ends without a traceback unless it handles the exception."""
        hook = sys.excepthook

        def quiet(kind: type[BaseException], *error: Any) -> None:
            if not issubclass(kind, KeyboardInterrupt):
                hook(kind, *error)

        if not self.stopped_by_steps:
            self.stopped_by_steps = True
            sys.excepthook = quiet
        if getsignal(SIGINT) in (SIG_IGN, SIG_DFL):  # ignored in the background of a shell script
            main = ctypes.c_ulong(self.main)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(KeyboardInterrupt))
        else:
            interrupt_main()

    def begin(
        self, session: Any, options: Any, feeds: Any, fetches: Any, targets: Any, metadata: Any
    ) -> WatchedRun | None:
        """A step begins, in a call or as one of its own."""
        try:
            shapes = [(tensor, value.shape) for tensor, value in feeds.items()]
            key = (tuple(fetches), tuple(targets), tuple(shapes))
            group = self.groups.get(key) or self.new_group(key, session)
            step = self.new_step(group, key)
            # MonitoredSession gives each run empty options
            own = options is not None and not (self.log and self.tracer.content(options) == b"")
            step.timed = not own
            if self.log and group.graph is not None:
                if step.first and self.may_be_written(group):
                    self.begin_first(step)
                if not own:
                    self.trace(step)
            if self.values and group.graph is not None:
                self.values.begin(step, session, feeds, fetches)
            return step
        except Exception as error:
            self.watcher.broke(error)
            return None

    def begin_part(self, session: Any, fetches: Any) -> WatchedRun | None:
        return self.begin_timed(session, tuple(fetches), ("a part of a run", *fetches))

    def begin_compiled(self, session: Any) -> WatchedRun | None:
        return self.begin_timed(session, (), ("compiled", id(session.graph)))

    def begin_timed(self, session: Any, fetches: Any, key: Any) -> WatchedRun | None:
        """A step begins that cannot be traced."""
        try:
            group = self.groups.get(key) or self.new_group((fetches, (), ()), session, key)
            return self.new_step(group, key)
        except Exception as error:
            self.watcher.broke(error)
            return None

    def results(self, step: WatchedRun | None, session: Any, fetched: Any) -> Any:
        """Look at the fetched values of a step, and return those that the program asked for."""
        if not (self.values and step):
            return fetched
        own = fetched[: step.values.own] if step.values else fetched
        try:
            self.values.look(step, own)
            if step.values:
                self.values.take(step, session, fetched)
        except Exception as error:
            self.watcher.broke(error)
        return own

    def end(self, step: WatchedRun | None) -> None:
        if step is None:
            return
        if step.trace or step.dumps is not None:
            try:
                self.take(step)
            except Exception as error:
                self.watcher.broke(error)
        if step.owned:
            self.leave(step.call)

    def new_step(self, group: RunGroup, key: Any) -> WatchedRun:
        thread = get_ident()
        owned = thread not in self.calls
        call = self.enter() if owned else self.calls[thread]
        assert call is not None
        step = call.step = WatchedRun(group, call, group.begin(key), owned)
        return step

    def new_group(self, names: Any, session: Any, key: Any = None) -> RunGroup:
        fetches, targets, shapes = names
        feeds = {private.tensor_name(tensor): str(shape) for tensor, shape in shapes}
        fetched = tuple(map(private.tensor_name, (*fetches, *targets)))
        return self.add_group(names if key is None else key, session.graph, fetched, feeds)

    def add_group(
        self, key: Any, graph: Any, fetches: tuple[str, ...], feeds: Any, function: str = ""
    ) -> RunGroup:
        if len(self.groups) >= MOST_GROUPS:
            others = RunGroup(len(self.groups) + 1, None, (), {}, function, later=True)
            return self.groups.setdefault("other functions" if function else "others", others)
        if graph not in self.graphs:
            small = len(graph.get_operations()) <= MOST_NODES
            if len(self.graphs) < MOST_GRAPHS and small:
                self.graphs.append(graph)
            else:
                graph = None
        group = RunGroup(len(self.groups) + 1, graph, fetches, feeds, function)
        self.groups[key] = group
        return group

    def may_be_written(self, group: RunGroup) -> bool:
        """Whether the runtime may dump a group's graph; that of a large one takes long."""
        size = self.dumps.size_of_constants(group.graph)
        if size <= MOST_CONSTANTS:
            return True
        group.executed = b""
        self.note(
            f"The fates of the nodes of a graph are not recorded: it has {size >> 20:,} MiB of "
            "constants, which TensorFlow would write into a file at each pass."
        )
        return False

    def begin_first(self, step: WatchedRun) -> None:
        """Let the runtime dump the graphs of its passes, unless another step does so now."""
        assert self.log
        self.first_runs += 1
        step.dumps = self.first_runs if self.tracing.acquire(False) else 0
        self.log.quiet(WARNING)
        if step.dumps:
            self.dumps.begin()

    def trace(self, step: WatchedRun) -> None:
        """Let the step be traced if the budget of its group allows it; its first run returns the
        graphs."""
        group = step.group
        if group.executed is None:
            group.executed = b""
            step.trace = self.graphs_options, self.tracer.metadata()
        elif not step.first and group.affords(self.share) and len(self.waiting) < WAITING:
            assert self.log
            self.log.quiet(ERROR)
            step.trace = self.traced_options, self.tracer.metadata()
            step.timed = False

    def take(self, step: WatchedRun) -> None:
        """Read the results of a step that has ended or failed."""
        assert self.log
        group = step.group
        if step.trace:
            took_ns = perf_counter_ns() - step.call.start_ns
            content = self.tracer.taken(step.trace[1])
            if step.timed:
                group.executed = content
            else:
                self.log.usual()
                if content:
                    if self.watcher.logdir:
                        group.sample(took_ns, content)
                    self.waiting.append((group, content, took_ns, took_ns))
        if step.dumps is not None:
            if step.dumps:
                self.dumps.end(group.number, keep=step.dumps == self.first_runs)
                self.tracing.release()
            self.log.usual()

    def read_traces(self) -> None:
        """Add up the waiting traces, in another thread than those that run steps."""
        while self.waiting:
            group, content, took_ns, called_ns = self.waiting.popleft()
            began_ns = perf_counter_ns()
            try:
                rows = group.op_times(content, self.tracer)
            except TflabError:
                group.drop_traces()
                self.note(LONG)
                continue
            group.add_trace(took_ns, called_ns, *rows)
            longer_ns = max(0, took_ns - group.usual_ns())
            if self.has_read:
                group.add_cost(longer_ns + perf_counter_ns() - began_ns)
            self.has_read = True

    def segment(self, final: bool) -> dict[str, object]:
        """The groups of runs, the nodes of their graphs, and their fates in the largest."""
        self.read_traces()
        graphs = [self.nodes_of(graph, final) for graph in self.graphs]
        return {
            "stopped": self.stopped_by_steps,
            "groups": [group.segment(self.graphs) for group in list(self.groups.values())],
            "graphs": [[line_of(node) for node in nodes] for nodes in graphs],
            "fates": self.fates() if final else {},
            "notes": self.notes,
            "values_ns": self.own_ns,
            **self.functions.segment(),
        }

    def fates(self) -> dict[str, Any]:
        if not self.groups:
            return {}
        from tflab.run import largest  # not before the end: it takes a while to import

        try:
            return largest.fates(self)
        except Exception as error:  # all else is written nevertheless
            what = f"{type(error).__name__}: {error}"
            self.note(f"The largest group is not shown because of an error of tflab: {what}")
            return {}

    def nodes_of(self, graph: Any, final: bool) -> tuple[Node, ...]:
        """The nodes of a graph, and those nodes of called functions, branches and loops that ran as
        parts of it."""
        groups = [group for group in list(self.groups.values()) if group.graph is graph]
        return self.lines.with_inlined(graph, final, {name for g in groups for name in list(g.ops)})

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)


def begin(watcher: Any) -> Recorder:
    """Record the runs of this process from now on. TensorFlow's session is there already."""
    return Recorder(watcher).begin_watching()
