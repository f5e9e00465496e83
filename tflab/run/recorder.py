"""Recorder: the runs of sessions and the calls of functions, in groups of runs that do the same.

A group is a graph, its fetches, and the shapes of its feeds, or a concrete function. Every run is
timed. The first run of a group is kept separately, because the runtime builds the step in it. Some
of the others are traced, as many as the budget allows, spread over the whole time of the program. A
call of a function has no option for a trace; TensorFlow's profiler runs during some calls.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
import sys
from _thread import RLock, get_ident, interrupt_main
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from glob import glob
from signal import SIG_DFL, SIG_IGN, SIGINT, SIGSTOP, getsignal
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from tflab.errors import TflabError
from tflab.run import Settings, program_graph
from tflab.run.groups import LEAST_NS, Compilations, Functions, Run, RunGroup
from tflab.run.memory import Memory
from tflab.run.sampler import Sampler, outwards
from tflab.runtime.private import graphs, sessions, watched_functions

if TYPE_CHECKING:
    from tflab.run.values import Values
    from tflab.runtime.session import tf, tf1

    # As the client of a session has them
    Feeds = Mapping[tf.Tensor, np.ndarray]
    Names = Sequence[tf.Tensor | tf.Operation]

MOST_GROUPS = 100  # later runs form one group
FREE_DUMPS = 4  # steps that are built again whatever that costs
LONG = "The ops of some runs have no times: TensorFlow records at most 1,048,576 op runs of a run."
WARNING, ERROR = 1, 2  # log levels: dumps log below the first, traces below the second
SOFTWARE_TRACE, FULL_TRACE = 1, 3  # of RunOptions.TraceLevel
MOST_LOOKED_AT = 4_096  # elements of a fetched tensor in which NaN is looked for
FOR_SHAPES, FOR_A_PROFILE = 1, 16  # traced runs of a group that are kept
# The share of the budget for the measured cost of traces. The rest is for sampling, timing, and the
# cost of a trace that is not measured: on LeNet about as much again.
FOR_TRACES = 1 / 6
LATER = "later"  # the key of the last group
NUMBER = re.compile(r"\d[\d,.]*")


class Recorder:
    """What watched sessions and functions call. `broke` gets the errors of its other methods."""

    # If `traces`
    log: sessions.Log
    tracer: sessions.TraceBuffers
    dumps: program_graph.Dumps

    def __init__(
        self, settings: Settings, sampler: Sampler, broke: Callable[[Exception], None]
    ) -> None:
        self.settings, self.sampler, self.broke = settings, sampler, broke
        self.main = sampler.main
        self.groups: dict[Hashable, RunGroup] = {}
        self.group_numbers: dict[Hashable, int] = {}
        self.graphs = program_graph.ProgramGraphs()
        self.functions = Functions(sampler, broke)
        self.compilations = Compilations(settings.folder, settings.overhead > 0)
        self.calls: dict[int, Run] = {}  # by thread
        sampler.in_calls = self.calls
        self.begun = 0  # calls of functions
        self.building = 0  # first runs of sessions
        self.preparing = RLock()  # held while such a run begins, and while a step is dumped
        self.dumped = self.dumped_ns = 0  # steps that were built again, and their time
        # The trace that is to be read, with the time of its run and what it cost beside it
        self.waiting: deque[tuple[RunGroup, bytes, int, int]] = deque()
        self.has_read = False  # a trace; the first costs more, because modules are imported
        self.profiled: Run | None = None  # the call that is profiled now
        self.share = FOR_TRACES * settings.overhead / 100
        self.next_stop = settings.steps or sys.maxsize
        self.stopped_by_steps = False
        self.turn_until_ns = settings.start_ns + settings.turn_ns
        self.notes: dict[str, str] = {}
        self.keep_stack = self.keep_first_stack  # called when an op is made
        self.watching = ExitStack()
        self.traces = False  # whether TensorFlow's traces and dumps can be used
        self.profiling: watched_functions.Profiling | None = None
        self.own_ns = 0  # the main thread's time in runs that is tflab's
        self.last_call: Run | None = None  # of a function
        self.numbers: Counter[str] = Counter()  # calls of functions, by name
        self.memory = Memory()
        self.values: Values | None = None
        if settings.values:
            from tflab.run import values  # few programs need it

            self.values = values.Values(
                settings.values, self.note, sampler.line_of, self.numbers, broke
            )

    def watch_sessions(self) -> None:
        try:
            self.sampler.builds = sessions.Building(self.main)
            self.log, self.tracer = sessions.Log(), sessions.TraceBuffers()
            level = FULL_TRACE if glob("/dev/nvidia[0-9]*") else SOFTWARE_TRACE
            self.traced_options = self.tracer.options(trace_level=level)
            self.graphs_options = self.tracer.options(output_partition_graphs=True)
            self.dumps = program_graph.Dumps(self.settings.folder, self.log)
            self.traces = True
        except TflabError as error:
            self.note(str(error))
        self.watching.callback(sessions.watch(self))

    def watch_functions(self) -> None:
        try:
            self.watching.enter_context(graphs.derivations(broke=self.broke))
            if self.traces:
                self.profiling = watched_functions.Profiling(self.settings.folder)
        except TflabError as error:
            self.note(str(error))
        if self.values:
            self.watching.callback(watched_functions.watch_ops(self.values.look))
        self.watching.callback(watched_functions.watch_functions(self, self.functions, self.values))

    def stop(self) -> None:
        self.watching.close()

    def keep_first_stack(self) -> None:
        if get_ident() == self.main:
            self.sampler.builds()  # from now on other threads can find that out
            self.keep_stack = self.graphs.keep_stack
        self.graphs.keep_stack()

    # Calls: `session.run`, which leads to a run of a graph, and all that is one by itself

    def enter(self, owned: bool = False) -> Run | None:
        """Begin a call; return None if it is part of another call of its thread."""
        thread = get_ident()
        if thread in self.calls:
            return None
        run = self.calls[thread] = Run(perf_counter_ns(), owned)
        if thread == self.main:
            self.sampler.enter(run.start_ns)
        return run

    def leave(self, run: Run | None) -> None:
        if run is None:
            return
        took_ns = perf_counter_ns() - run.start_ns
        thread = get_ident()
        self.calls.pop(thread, None)
        if took_ns > LEAST_NS:
            self.compilations.look(self.sampler.line_of(outwards(sys._getframe(1))))
        if thread == self.main:
            self.sampler.leave(took_ns if run.has_group else 0)
        if run.has_group:
            group, spent_ns = run.group, took_ns - run.own_ns
            if run.values and group.usual_ns():  # the run fetched more than it usually does
                spent_ns = min(spent_ns, group.usual_ns())
            group.add(spent_ns, run, thread == self.main)
            self.own_ns += (took_ns - spent_ns) * (thread == self.main)
            takes_turns = self.settings.turn_ns and thread == self.main
            if group.calls >= self.next_stop:
                self.next_stop += self.settings.steps
                self.interrupt()
            elif takes_turns and perf_counter_ns() > self.turn_until_ns:
                # Stop all processes of this program, until the command lets them go on
                self.own_ns += self.sampler.skip(lambda: os.killpg(0, SIGSTOP))
                self.turn_until_ns = perf_counter_ns() + self.settings.turn_ns

    def interrupt(self) -> None:
        """Interrupt the program, which ends without a traceback unless it handles the exception."""
        if not self.stopped_by_steps:
            self.stopped_by_steps, hook = True, sys.excepthook

            def quiet(kind: type[BaseException], *error: Any) -> None:
                if not issubclass(kind, KeyboardInterrupt):
                    hook(kind, *error)

            sys.excepthook = quiet
        if getsignal(SIGINT) in (SIG_IGN, SIG_DFL):  # ignored in the background of a shell script
            main = ctypes.c_ulong(self.main)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(KeyboardInterrupt))
        else:
            interrupt_main()

    # Runs

    def begin(
        self, session: tf1.Session, options: object, feeds: Feeds, fetches: Names, targets: Names
    ) -> Run | None:
        """Begin a run of a session; return None if it is a part of another run."""
        self.graphs.look(session.graph)
        run = self.next_run()
        if run is None:
            return None
        shapes = tuple((tensor, value.shape) for tensor, value in feeds.items())
        key = (tuple(fetches), tuple(targets), shapes)
        group = self.groups.get(key) or self.new_group(key, session, (*fetches, *targets), feeds)
        run.join(group, key)
        if self.traces and group.graph is not None:
            if run.first:
                with self.preparing:
                    self.building += 1
                    run.builds = True
            # MonitoredSession gives each run empty options
            if options is None or self.tracer.content(options) == b"":
                self.trace(run)
                if not run.timed:
                    group.copied.append(sessions.copied_bytes(feeds.values()))
            else:
                run.timed = False
        if self.values and group.graph is not None:
            self.values.begin(run, session, feeds, fetches)
        return run

    def begin_compiled(self, session: tf1.Session) -> Run | None:
        """Begin a run that was prepared before, and cannot be traced."""
        run = self.next_run()
        if run:
            key = ("compiled", id(session.graph))
            run.join(self.groups.get(key) or self.new_group(key, session, (), {}), key)
        return run

    def begin_function(self, function: Any) -> Run | None:
        """Begin a call of a concrete function, unless it becomes a node of another graph."""
        called = watched_functions.called(function)
        run = self.next_run() if called else None
        if called is None or run is None:
            return None
        self.begun += 1
        key = ("function", called[0])
        group = self.groups.get(key) or self.new_function(key, function, *called)
        run.join(group, key)
        self.numbers[group.function] += 1
        run.number = self.numbers[group.function]
        self.last_call = run
        if not run.first and run.owned and group.graph is not None:
            self.profile(run)
        return run

    def next_run(self) -> Run | None:
        """Return the run that begins; None if it is part of another one."""
        run = self.calls.get(get_ident()) or self.enter(owned=True)
        return None if run is None or run.has_group else run

    def end(self, run: Run | None, session: tf1.Session | None = None) -> None:
        """End a run, which may have failed."""
        if run is None:
            return
        began_ns = perf_counter_ns()
        run.failed = sys.exc_info()[1] is not run.handled
        run.timed &= not run.failed
        try:
            if run is self.profiled:
                self.take_profile(run)
            elif run.trace:
                self.take_trace(run, run.trace[1])
            self.building -= run.builds
            group = run.group
            if group.executed and not group.dumped:
                allowed_ns = self.settings.overhead / 100 * (began_ns - self.sampler.start_ns)
                if self.dumped < FREE_DUMPS or self.dumped_ns + group.cold_ns <= allowed_ns:
                    with self.preparing:
                        if not self.building:
                            self.dump(group, session)
        finally:
            run.own_ns += perf_counter_ns() - began_ns
            if run.owned:
                self.leave(run)

    def new_group(
        self, key: Hashable, session: tf1.Session, fetches: Names, feeds: Feeds
    ) -> RunGroup:
        shapes = {sessions.tensor_name(tensor): str(fed.shape) for tensor, fed in feeds.items()}
        names = tuple(map(sessions.tensor_name, fetches))
        group = self.add_group(key, session.graph, names, shapes)
        group.fed_bytes = sum(fed.nbytes for fed in feeds.values())
        return group

    def new_function(
        self, key: Hashable, function: Any, own_name: bytes, graph: tf.Graph | None
    ) -> RunGroup:
        shown = getattr(graph, "name", "") or own_name.decode()
        types = watched_functions.arguments(function.function_type)
        whole = {name[: end.start()] for name in types for end in re.finditer(r"[.\[]", name)}
        parts = {name: kind for name, kind in types.items() if name not in whole}
        traced = getattr(graph, "tflab_function", key)
        group = self.add_group(key, graph, (shown,), parts, shown, traced)
        if not group.later:
            group.results = [f"result {at}" for at in range(watched_functions.results(function))]
        return group

    def add_group(
        self,
        key: Hashable,
        graph: tf.Graph,
        fetches: tuple[str, ...],
        feeds: Mapping[str, str],
        function: str = "",
        traced: object = None,
    ) -> RunGroup:
        if later := len(self.groups) >= MOST_GROUPS:
            key = traced = LATER
        number = self.group_numbers.setdefault(traced or key, len(self.group_numbers) + 1)
        if later:
            return self.groups.setdefault(key, RunGroup(number, None, (), {}, later=True))
        kept = graph if self.graphs.add(graph) else None
        return self.groups.setdefault(key, RunGroup(number, kept, fetches, feeds, function))

    # Results of runs

    def results(self, run: Run | None, session: tf1.Session, fetched: Sequence[Any]) -> Any:
        """Look at the fetched values of a run, and return the values that the program asked for."""
        if run is None:
            return fetched
        own = fetched[: run.values.own] if run.values else fetched
        self.look(run, zip(run.group.fetches, own, strict=False))
        if self.values and run.values:
            self.values.take(run, session, fetched, self.graphs)
        return own

    def got(self, value: object) -> object:
        """Look at the value of an Optional, as the step of Keras returns it, and return it."""
        if self.last_call and isinstance(value, dict):
            self.look(self.last_call, watched_functions.numbers_of(value))
        return value

    def returned(
        self, run: Run | None, results: Sequence[tf.Tensor] | None
    ) -> Sequence[tf.Tensor] | None:
        """Look at the results of a function, and note how many of them the program keeps."""
        if run and results:  # a function may return nothing
            try:
                line = partial(self.sampler.line_of, outwards(sys._getframe(1)))
                run.group.kept.add(results, line)
                named = dict(zip(run.group.results, results, strict=False))
                self.look(run, watched_functions.numbers_of(named))
            except Exception as error:
                self.broke(error)
        return results

    def look(self, run: Run, values: Iterable[tuple[str, Any]]) -> None:
        """Note the first run in which a fetched tensor has NaN, or Inf.

        Infinite elements of an array are often intended; so is a number that has always been
        infinite. Only with `--values` are these noted, too.
        """
        group, thoroughly = run.group, self.values is not None
        try:
            for name, value in values:
                if getattr(getattr(value, "dtype", None), "kind", "") != "f":
                    continue
                single = value.ndim == 0
                if group.not_finite is None:
                    group.not_finite = {}
                if single and math.isfinite(value):
                    group.finite.add(name)
                elif name not in group.not_finite and (thoroughly or value.size <= MOST_LOOKED_AT):
                    bad = np.isnan(value).any() or (single and name in group.finite)
                    if bad or (thoroughly and not np.isfinite(value).all()):
                        group.not_finite[name] = run.number or group.calls + 1
        except Exception as error:
            self.broke(error)

    # Traces, and the graphs of the passes

    def trace(self, run: Run) -> None:
        """Let the first run of a group return its graphs; trace another if the budget allows it."""
        group = run.group
        if self.share and not group.asked:
            group.asked = True
            run.trace = self.graphs_options, self.tracer.metadata()
        elif not run.first and not self.waiting and group.affords(self.share):
            self.log.quiet(ERROR)
            group.traced_at_ns = group.total_ns
            run.trace = self.traced_options, self.tracer.metadata()
            run.timed = False

    def take_trace(self, run: Run, metadata: object) -> None:
        group = run.group
        took_ns = perf_counter_ns() - run.start_ns
        content = self.tracer.taken(metadata)
        if run.trace and run.trace[0] is self.graphs_options:
            group.executed = content
            return
        self.log.usual()
        if content:
            group.samples.append((group.calls, time_ns() - took_ns, took_ns, content))
            del group.samples[: -FOR_A_PROFILE if self.settings.logdir else -FOR_SHAPES]
            self.waiting.append((group, content, took_ns, 0))

    def profile(self, run: Run) -> None:
        """Start the profiler if the budget allows it and no other thread is in a call."""
        if self.profiling is None or len(self.calls) > 1 or self.waiting:
            return
        if run.group.affords(self.share):
            began_ns = perf_counter_ns()
            self.log.quiet(ERROR)
            if self.profiling.start():
                run.group.traced_at_ns = run.group.total_ns
                self.profiled, run.timed, run.begun = run, False, self.begun
            else:
                self.log.usual()
            run.began_ns = perf_counter_ns()
            run.own_ns += run.began_ns - began_ns

    def take_profile(self, run: Run) -> None:
        """Stop the profiler. Its trace counts only if no other call began in the meantime."""
        assert self.profiling
        self.profiled = None
        ended_ns = perf_counter_ns()
        content = self.profiling.stop()
        self.log.usual()
        if self.begun == run.begun:
            cost_ns = run.own_ns + perf_counter_ns() - ended_ns
            self.waiting.append((run.group, content, ended_ns - run.began_ns, cost_ns))

    def read_traces(self) -> None:
        """Add the waiting traces to their groups, in a thread that runs no steps."""
        while self.waiting:
            group, content, took_ns, cost_ns = self.waiting[0]
            began_ns = perf_counter_ns()
            from tflab.runtime import trace  # many programs end before the first trace

            try:
                if group.function:
                    profile = trace.profiled_durations(content)
                    group.types.update(profile.types)
                    group.stages.update(profile.stages)
                    columns = profile[:3]
                else:
                    columns = trace.op_times(content, 0, partial(self.tracer.parsed, content))
                group.add_trace(took_ns, *columns)
            except TflabError:
                group.drop_traces()
                self.note(LONG)
            else:
                longer_ns = max(0, took_ns - group.usual_ns())
                if self.has_read:
                    group.costs.append(cost_ns + longer_ns + perf_counter_ns() - began_ns)
                self.has_read = True
            self.waiting.popleft()

    def dump(self, group: RunGroup, session: tf1.Session) -> None:
        """Let the runtime build the step of a group once more, and dump the graphs of its passes.
        No other thread may build a step meanwhile: the runtime reads that without a lock."""
        began_ns, group.dumped = perf_counter_ns(), True
        if not self.dumps.may_begin(group):
            return
        self.log.quiet(WARNING)
        self.dumps.begin()
        try:
            sessions.build(session, [*group.feeds], group.fetches)
        except TflabError as error:
            self.note(str(error))
        finally:
            self.dumps.end(group)
            self.log.usual()
            self.dumped += 1
            self.dumped_ns += perf_counter_ns() - began_ns

    # Results

    def segment(self, final: bool) -> dict[str, object]:
        """Return the groups of runs, the nodes of their graphs, and their fates in the largest."""
        self.read_traces()
        groups = [*self.groups.values()]
        for group in groups:
            if group.executed and group.traced and not group.types:
                parts = self.tracer.parsed(group.executed).partition_graphs
                group.types = {node.name: node.op for part in parts for node in part.node}
        run = self.calls.get(self.main)
        kept = ((group.function, group.kept.found) for group in groups if not group.later)
        return {
            "stopped": self.stopped_by_steps,
            "in_run_of": run.group.number if run and run.has_group else 0,
            "groups": [group.segment(self.graphs.graphs) for group in groups],
            "graphs": self.graphs.segment(groups, final),
            "grown": self.graphs.grown_segment(),
            "kept": [{"function": name, **found} for name, found in kept if found],
            "fates": self.write_largest(groups) if final else {},
            "notes": [*self.notes.values()],
            "own_ns": self.own_ns,
            "memory": self.memory.segment(),
            "compiled": [*self.compilations.made.values()],
            "functions": self.functions.segment(),
        }

    def write_largest(self, groups: Sequence[RunGroup]) -> dict[str, object]:
        """Write what is known of the group that took longest; return what the command needs."""
        spent = Counter[int]()  # of all tracings of a function
        for of in groups:
            spent[of.number] += of.total_ns
        ranks = {of: (spent[of.number], of.total_ns, of.cold_ns) for of in groups}
        group = max(groups, key=ranks.__getitem__, default=None)
        settings, parts, traces = self.settings, (), []
        known: dict[str, object] = {}
        try:
            if self.values:
                self.values.write(group, settings.folder)
            if not group or group.graph is None or not (group.function or group.executed):
                return {}
            nodes = self.graphs.nodes_that_ran(group.graph, groups if group.function else ())
            if not group.function:
                parts = self.tracer.parsed(group.executed).partition_graphs
                traces = [(*times, self.tracer.parsed(trace)) for *times, trace in group.samples]
            largest = program_graph.Largest(group, nodes, parts, traces)
            if not group.function:
                if settings.logdir:
                    largest.write_profile(settings.logdir)
                largest.explain(*self.dumps.of(group))
            for sentence in largest.notes():
                self.note(sentence)
            known = largest.segment()
            if settings.keeps and not (group.function or largest.ledger):
                self.note(program_graph.NO_FATES)
            elif settings.keeps:
                largest.save(settings.folder)
        except TflabError as error:
            self.note(str(error))
        except Exception as error:  # all else is written nevertheless
            what = f"{type(error).__name__}: {error}"
            self.note(f"The largest group is not all shown because of an error of tflab: {what}")
        return known

    def note(self, sentence: str) -> None:
        """Keep a sentence for the end. It replaces one that differs only in its numbers."""
        self.notes[NUMBER.sub("", sentence)] = sentence
