"""The recorder: runs by group, traces within a budget, and nothing that grows with the steps."""

import ctypes
import signal
import sys
import threading
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tests import graph_notation as notation
from tflab.errors import TflabError
from tflab.records.graph import Node, Source
from tflab.run import Settings, groups, program_graph, recorder, sampler
from tflab.runtime import dumps, trace

GRAPH = SimpleNamespace(version=0, get_operations=list)
LOG = SimpleNamespace(quiet=lambda level: None, usual=lambda: None)
# Takes traces of one op, `y`, which took 10 ns; the clock goes on by `longer` meanwhile
TRACER = SimpleNamespace(
    metadata=lambda: "buffer",
    content=lambda options: options,
    taken={"buffer": b"trace"}.get,
    parsed=bytes,
)


@pytest.fixture
def lab(monkeypatch):
    """A recorder with a clock of the test's, and `run` that runs a step of so many ns."""
    clock, kept = SimpleNamespace(ns=0), []
    for module in (recorder, sampler):
        monkeypatch.setattr(module, "perf_counter_ns", lambda: clock.ns)
    monkeypatch.setattr(recorder.sessions, "tensor_name", str)
    monkeypatch.setattr(recorder.sessions, "copied_bytes", lambda fed: 8)
    monkeypatch.setattr(trace, "op_times", lambda *_: (["y"], [0], [10]))
    faults = []
    built = []
    monkeypatch.setattr(recorder.sessions, "build", lambda *step: built.append(step))
    given = {"FOLDER": "", "START": "0", "OVERHEAD": "5", "STEPS": "0"}
    seen = recorder.Recorder(Settings(given), sampler.Sampler(0), faults.append)
    seen.log, seen.tracer, seen.traces = LOG, TRACER, True
    seen.dumps = SimpleNamespace(
        may_begin=lambda group: True,
        begin=lambda: None,
        end=lambda group: kept.append(group.number),
        kept=kept,
    )
    seen.traced_options, seen.graphs_options = "traced", "graphs"
    session = SimpleNamespace(graph=GRAPH)

    def run(ns, rows=1, fetch="loss", longer=0, options=None, outer=True):
        call = seen.enter() if outer else None
        feeds = {"x:0": SimpleNamespace(shape=(rows,), nbytes=8 * rows)}
        step = seen.begin(session, options, feeds, [fetch], [])
        clock.ns += ns + (longer if step and step.trace and step.trace[0] == "traced" else 0)
        seen.end(step, session)
        seen.leave(call)
        return step

    lab = {"seen": seen, "run": run, "faults": faults, "clock": clock, "session": session}
    return SimpleNamespace(**lab, built=built)


def test_without_runs_the_end_imports_nothing(lab, monkeypatch):
    """The program may have been interrupted within its import of TensorFlow."""
    monkeypatch.setitem(sys.modules, "tflab.runtime.nodes", None)
    monkeypatch.delattr("tflab.runtime.nodes", raising=False)
    segment = lab.seen.segment(final=True)
    assert (segment["groups"], segment["graphs"], segment["fates"]) == ([], [], {})


def test_all_code_is_kept_that_leads_to_the_making_of_an_op(lab, monkeypatch):
    names = {}
    for name, source in (("inner", "def inner(keep): keep()"), ("outer", "inner(keep)")):
        names[name] = compile(source, f"/code/{name}.py", "exec")
    made = {}
    exec(names["inner"], made)
    scope = {**made, "keep": lab.seen.graphs.keep_stack}
    exec(names["outer"], scope)
    first = list(lab.seen.graphs.codes.values())[:2]
    assert first == [made["inner"].__code__, names["outer"]]
    assert sys._getframe().f_code in lab.seen.graphs.codes.values()
    assert names["inner"] not in lab.seen.graphs.codes.values()  # it ran, but had ended
    count = len(lab.seen.graphs.codes)
    exec(names["outer"], scope)
    assert len(lab.seen.graphs.codes) == count


def test_at_its_first_op_the_main_thread_asks_whether_it_builds_a_graph(lab):
    asked = []
    lab.seen.sampler.builds = lambda: asked.append(threading.get_ident())
    other = threading.Thread(target=lab.seen.keep_stack)
    other.start()
    other.join()
    for _ in range(2):
        lab.seen.keep_stack()
    assert asked == [threading.get_ident()]


def test_a_group_is_what_is_fetched_and_the_shapes_that_are_fed(lab):
    for ns, rows, fetch in ((90, 1, "loss"), (10, 1, "loss"), (70, 2, "loss"), (5, 1, "other")):
        lab.run(ns, rows, fetch)
    groups = lab.seen.groups.values()
    assert [(g.fetches, g.feeds, g.calls, g.cold_ns, g.total_ns, g.times) for g in groups] == [
        (("loss",), {"x:0": "(1,)"}, 2, 90, 10, [10]),
        (("loss",), {"x:0": "(2,)"}, 1, 70, 0, []),
        (("other",), {"x:0": "(1,)"}, 1, 5, 0, []),
    ]
    assert lab.seen.dumps.kept == [1, 2, 3]
    assert [group.executed for group in groups] == [b"trace"] * 3


def test_the_time_of_the_main_thread_is_in_its_ledger_and_that_of_others_is_not(lab):
    lab.run(90)
    lab.run(10)
    thread = threading.Thread(target=lab.run, args=(500,))
    thread.start()
    thread.join()
    (group,) = lab.seen.groups.values()
    assert (group.calls, group.total_ns, group.main_ns) == (3, 510, [90, 10])
    assert lab.seen.sampler.inside == (100, 0, 2)


def test_a_run_that_raises_is_not_counted_and_one_in_a_handler_is(lab):
    lab.run(90)
    try:
        raise KeyError
    except KeyError:
        lab.run(10)
    step = lab.run(20, longer=5)
    failing = lab.seen.begin(lab.session, "own", {}, ["loss"], [])
    (group, other) = lab.seen.groups.values()
    failing.group, failing.first = group, False
    with pytest.raises(ValueError):
        try:
            raise ValueError
        finally:
            lab.seen.end(failing, lab.session)
    assert (step.group, group.calls, other.calls) == (group, 3, 0)


def test_a_first_run_whose_values_are_fetched_has_its_graphs(lab):
    lab.seen.values = SimpleNamespace(begin=lambda run, *_: setattr(run, "timed", False))
    lab.run(90)
    (group,) = lab.seen.groups.values()
    assert (group.executed, lab.seen.waiting) == (b"trace", groups.deque())


def test_the_tracings_of_one_function_have_one_number(lab, monkeypatch):
    monkeypatch.setattr(recorder.watched_functions, "arguments", lambda kind: {})
    monkeypatch.setattr(recorder.watched_functions, "results", lambda function: 0)
    function, numbers = SimpleNamespace(function_type=None), []
    for at, of in enumerate(("train", "test", "train", None, None)):
        graph = SimpleNamespace(version=0, get_operations=list, name="step", at=at)
        if of:
            graph.tflab_function = of
        numbers.append(lab.seen.new_function(("function", at), function, b"f", graph).number)
    assert numbers == [1, 2, 1, 3, 4]


def test_a_step_is_built_again_for_its_dumps_in_the_time_of_tflab(lab, monkeypatch):
    def slow(session, feeds, fetches):
        lab.clock.ns += 700
        assert (session, feeds, fetches) == (lab.session, ["x:0"], ("loss",))

    monkeypatch.setattr(recorder.sessions, "build", slow)
    lab.run(90)
    lab.run(10)
    (group,) = lab.seen.groups.values()
    assert (group.cold_ns, group.total_ns, lab.seen.own_ns) == (90, 10, 700)
    assert lab.seen.sampler.inside == (800, 0, 2)


def test_a_first_run_waits_for_the_dumps_of_another_step(lab, monkeypatch):
    """The runtime reads without a lock what it is to dump."""
    events = []

    def other():
        events.append("began")
        lab.run(500, fetch="other")
        events.append("ended")

    def disturbed(*step):
        if not events:
            threads[0].start()
            threads[0].join(0.2)
            events.append("dumped")

    threads = [threading.Thread(target=other)]
    monkeypatch.setattr(recorder.sessions, "build", disturbed)
    lab.run(90)
    threads[0].join()
    assert (events, lab.seen.dumps.kept) == (["began", "dumped", "ended"], [1, 2])


@pytest.mark.tensorflow
def test_executed_nodes_in_a_branch_that_no_traced_run_took_are_counted():
    """`y` takes the output of the Switch that was dead; `gone` is no executed node."""
    group = groups.RunGroup(2, None, ("m",), {})
    group.ops = dict.fromkeys("xm", (2, 30, 2, 20))
    largest = program_graph.Largest(group, ())
    largest.executed = notation.graph("x=Switch(six,p); y=_Fused(x:1); gone(y); m=Merge(x,gone)")
    largest.ledger = notation.fates("x executed, y executed, m executed, gone fused, six folded")
    taken = {"executed": 2, "in a branch that no traced run took": 1}
    for group.traced, executed in ((2, taken), (0, {"executed": 3})):
        assert largest.segment()["counts"] == {**executed, "fused": 1, "folded": 1}
    largest.built = 4  # `six` was made after the first run
    assert largest.segment()["counts"] == {"executed": 3, "fused": 1, "made later": 1}


@pytest.mark.tensorflow
@pytest.mark.parametrize(("fails", "known"), [("explain", {}), ("save", {"counts": {}})])
def test_what_fails_takes_nothing_else_of_the_largest_group_along(lab, monkeypatch, fails, known):
    wrote = []
    instead = {
        "write_profile": lambda _, logdir: wrote.append(logdir),
        "explain": lambda largest, dumped, built: setattr(largest, "ledger", dumped),
        "notes": lambda _: (),
        "segment": lambda _: {"counts": {}},
        fails: lambda *_: 1 / 0,
    }
    for name, method in instead.items():
        monkeypatch.setattr(program_graph.Largest, name, method)
    lab.run(90)
    lab.seen.settings = SimpleNamespace(logdir="logs", folder="", keeps=True)
    lab.seen.dumps = SimpleNamespace(of=lambda group: ("dumps", 1))
    lab.seen.tracer = SimpleNamespace(parsed=lambda _: SimpleNamespace(partition_graphs=[]))
    assert lab.seen.write_largest([*lab.seen.groups.values()]) == known
    assert wrote == ["logs"]
    assert "ZeroDivisionError" in str(lab.seen.notes)


def test_later_steps_are_built_again_as_the_budget_allows(lab, monkeypatch):
    """Four are free; each takes 100 ns, and 5 percent of the time may be for them."""

    def slow(*step):
        lab.clock.ns += 100

    monkeypatch.setattr(recorder.sessions, "build", slow)
    for rows in range(7):
        lab.run(100, rows)
    assert lab.seen.dumps.kept == [1, 2, 3, 4]
    lab.clock.ns = 9_899
    lab.run(100, 5)  # 4 * 100 were spent, and the first run of this group took 100
    assert lab.seen.dumps.kept[4:] == []
    lab.run(1, 5)
    assert lab.seen.dumps.kept[4:] == [6]


def test_without_overhead_nothing_is_asked_of_the_runtime(lab):
    lab.seen.share = 0.0
    assert [lab.run(100).trace for _ in range(100)] == [None] * 100
    assert (lab.built, lab.seen.dumps.kept) == ([], [])


def test_a_step_is_not_dumped_while_another_thread_prepares_one(lab):
    feeds = {"x:0": SimpleNamespace(shape=(1,), nbytes=8)}
    call = lab.seen.enter()
    step = lab.seen.begin(lab.session, None, feeds, ["one"], [])
    thread = threading.Thread(target=lab.run, args=(500,), kwargs={"fetch": "other"})
    thread.start()
    thread.join()
    lab.seen.end(step, lab.session)
    lab.seen.leave(call)
    lab.run(10, fetch="other")
    assert lab.seen.dumps.kept == [1, 2]


def test_the_group_of_a_function_has_each_argument_once(lab, monkeypatch):
    parts = {"pair": "a list", "pair[0]": "float32 ()", "at": "a point", "at.x": "1"}
    whole = {"pairs": "a list with many parts", "name": "a text"}
    monkeypatch.setattr(recorder.watched_functions, "arguments", lambda kind: {**parts, **whole})
    monkeypatch.setattr(recorder.watched_functions, "results", lambda function: 0)
    group = lab.seen.new_function("f", SimpleNamespace(function_type=None), b"f", GRAPH)
    assert group.feeds == {"pair[0]": "float32 ()", "at.x": "1", **whole}


def test_a_call_within_a_call_counts_once_and_a_step_of_a_callable_is_one(lab):
    call = lab.seen.enter()
    lab.run(10)
    lab.clock.ns += 5
    lab.seen.leave(call)
    lab.run(7, outer=False)
    outer = lab.seen.begin(lab.session, None, {"x:0": np.ones(1)}, ["loss"], [])
    assert lab.run(3, fetch="inner", outer=False) is None
    lab.seen.end(outer, lab.session)
    (group,) = lab.seen.groups.values()
    assert (group.calls, group.cold_ns, group.total_ns) == (3, 15, 7 + 3)
    assert lab.seen.calls == {}


def test_traces_take_their_share_of_the_time_one_at_a_time(lab):
    """A traced step takes 40 ns longer; a sixth of 5 percent of the time is for that."""
    traced = []
    for step in range(10_000):
        if lab.run(100, longer=40).trace:
            traced.append(step)
        if step % 7 == 0:  # so several runs pass until a trace is read
            lab.seen.read_traces()
    (group,) = lab.seen.groups.values()
    assert traced[0] == 0  # which asks what runs, and traces nothing
    assert group.traced == len(traced) - 1
    assert {*group.costs} == {40}
    assert 0.0080 < 40 * group.traced / group.total_ns <= 0.05 / 6
    # The first trace is thought to cost 50 ns, and the second as well, because that of the first
    # includes imports; then the next one is after 40 ns / 5 percent * 6
    apart = [later - step for step, later in pairwise(traced)]
    assert apart[:3] == [61, 60, 48]
    assert set(apart[2:]) == {48}
    assert group.ops == {"y": (group.traced, 10 * group.traced, group.traced, 10)}
    # Times of traced steps are not among those of the median
    assert ({*group.times}, len(group.times)) == ({100}, groups.KEPT_TIMES)
    assert group.total_ns == 9_999 * 100 + 40 * group.traced


def test_a_note_whose_number_changes_is_said_once(lab):
    for size in (3, 1_000, 27):
        lab.seen.note(f"It has {size:,} MiB.")
    lab.seen.note("It has no MiB.")
    assert [*lab.seen.notes.values()] == ["It has 27 MiB.", "It has no MiB."]


def test_a_run_that_has_not_ended_names_its_group(lab):
    call = lab.seen.enter()
    assert lab.seen.segment(final=False)["in_run_of"] == 0
    lab.seen.begin(lab.session, None, {}, ["loss"], [])
    assert lab.seen.segment(final=False)["in_run_of"] == 1
    lab.seen.leave(call)
    assert lab.seen.segment(final=False)["in_run_of"] == 0


def test_constants_are_counted_as_large_as_they_are_written(tmp_path):
    def constant(elements, written):
        value = SimpleNamespace(
            shape=SimpleNamespace(num_elements=lambda: elements), dtype=SimpleNamespace(size=4)
        )
        content = SimpleNamespace(ByteSize=lambda: written)
        return SimpleNamespace(type="Const", outputs=[value], node_def=content)

    ops = [constant(100, 0), constant(None, 0), SimpleNamespace(type="MatMul")]
    graph = SimpleNamespace(get_operations=lambda: ops)
    dumps = program_graph.Dumps(str(tmp_path), None)
    group = groups.RunGroup(1, graph, ("y",), {})
    assert dumps.may_begin(group)
    assert program_graph.size_of_constants(graph) == 400
    ops.append(constant(2**20, 17))  # which repeats one number
    assert program_graph.size_of_constants(graph) == 417
    ops.append(constant(2**20, 3 * 2**20))
    assert not dumps.may_begin(group)
    assert dumps.of(group) == (None, None)


def test_a_run_with_too_many_op_runs_for_a_trace_is_not_traced_again(lab, monkeypatch):
    def refused(*args):
        raise TflabError("incomplete")

    monkeypatch.setattr(trace, "op_times", refused)
    traces = 0
    for _ in range(2_000):
        traces += bool(lab.run(100, longer=40).trace)
        lab.seen.read_traces()
    (group,) = lab.seen.groups.values()
    assert traces == 2  # the first one returns the graphs
    assert (group.traced, group.ops) == (0, {})
    assert [*lab.seen.notes.values()] == [recorder.LONG]
    assert f"{trace.MOST_OP_RUNS:,} op runs" in recorder.LONG


def test_a_step_with_wishes_of_its_own_is_left_alone(lab):
    lab.seen.share = 0.0
    lab.run(90)
    lab.run(10)
    assert lab.run(1_000, options=b"those of the program").trace is None
    (group,) = lab.seen.groups.values()
    assert (group.calls, group.times, group.total_ns) == (3, [10], 1_010)
    lab.run(30, options=b"")  # they ask for nothing
    assert (group.calls, group.times, group.total_ns) == (4, [10, 30], 1_040)


def test_traces_that_nobody_reads_are_not_heaped_up(lab):
    for _ in range(10_000):
        lab.run(100)
    assert len(lab.seen.waiting) == 1


def test_groups_have_an_end(lab):
    for rows in range(500):
        lab.run(10, rows)
    later = lab.seen.groups[recorder.LATER]
    assert len(lab.seen.groups) == later.number == recorder.MOST_GROUPS + 1
    assert later.calls == 400
    assert sum(group.calls for group in lab.seen.groups.values()) == 500
    lab.run(10, 499)
    assert (later.calls, later.first_runs, later.cold_ns) == (401, 400, 4_000)
    assert (later.total_ns, later.main_ns) == (10, [4_000, 10])
    assert lab.seen.add_group("key", GRAPH, ("step",), {}, function="step") is later


def test_steps_interrupt_the_program_again_and_again(lab, monkeypatch):
    interrupted = []
    monkeypatch.setattr(recorder, "interrupt_main", lambda: interrupted.append(lab.calls))
    monkeypatch.setattr(recorder.sys, "excepthook", recorder.sys.excepthook)
    lab.seen.settings.steps = lab.seen.next_stop = 3
    for lab.calls in range(1, 8):
        lab.run(10)
    assert interrupted == [3, 6]
    assert lab.seen.stopped_by_steps


def test_results_that_the_program_keeps_are_told_and_a_function_may_return_nothing(lab):
    step = lab.run(10)
    kept = []
    for _ in range(groups.LEAST_KEPT_CALLS):
        kept.append(groups.Results())  # anything that a weak reference can be made to
        assert lab.seen.returned(step, kept[-1:]) == kept[-1:]
    assert lab.seen.returned(step, None) is None
    assert lab.seen.returned(None, kept) is kept
    (told,) = lab.seen.segment(False)["kept"]
    assert (told["function"], told["calls"], told["tensors"]) == ("", 128, 128)
    lab.seen.returned(step, [3])  # no weak reference can be made to it
    assert "weak reference" in str(lab.faults)


def test_a_process_stops_itself_at_the_end_of_a_step_when_its_turn_is_over(lab, monkeypatch):
    stopped_ns = []

    def killpg(group, number):
        assert (group, number) == (0, signal.SIGSTOP)
        stopped_ns.append(lab.clock.ns)
        lab.clock.ns += 1_000

    monkeypatch.setattr(recorder.os, "killpg", killpg)
    for _ in range(3):
        lab.run(40)
    assert stopped_ns == []  # by default there are no turns
    lab.seen.settings.turn_ns, lab.seen.turn_until_ns = 100, 170
    for _ in range(5):
        lab.run(40)
    assert stopped_ns == [200, 200 + 1_000 + 120]
    assert lab.seen.own_ns == 2_000
    (group,) = lab.seen.groups.values()
    assert group.main_ns == [40, 7 * 40]
    assert lab.seen.sampler.inside == (2_000 + 8 * 40, 0, 8)


def test_steps_interrupt_a_program_that_ignores_ctrl_c(lab, monkeypatch):
    """As one in the background of a shell script does."""
    monkeypatch.setattr(recorder, "getsignal", lambda number: recorder.SIG_IGN)
    # That of Python does nothing then
    monkeypatch.setattr(recorder, "interrupt_main", lambda: None)
    monkeypatch.setattr(recorder.sys, "excepthook", recorder.sys.excepthook)
    lab.seen.settings.steps = lab.seen.next_stop = 2
    lab.run(10)
    with pytest.raises(KeyboardInterrupt):
        lab.run(10)
        assert [*range(1_000)]  # it comes within a few instructions
    assert lab.seen.stopped_by_steps


def test_a_run_that_fails_to_be_traced_has_ended_nevertheless(lab, monkeypatch):
    monkeypatch.setattr(lab.seen, "take_trace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        lab.run(10, outer=False)
    assert (lab.seen.calls, lab.seen.sampler.inside) == ({}, (10, 0, 1))


@pytest.mark.parametrize("prepared", [False, True])
def test_dumps_serve_all_shapes_of_a_step_and_leave_the_environment_as_it_was(
    prepared, tmp_path, monkeypatch
):
    """Also that of a process that tflab prepared, as a notebook's kernel is. The runtime builds the
    step once, in the first run for the first of the shapes."""
    monkeypatch.setattr(program_graph.sessions, "read_dump_settings", lambda: True)
    for name in program_graph.OF_USERS:
        monkeypatch.delenv(name, raising=False)
    for name in program_graph.OF_USERS[1:] if prepared else ():
        monkeypatch.setenv(name, dumps.DUMP_ENVIRONMENT[name])
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    levels = []
    log = SimpleNamespace(detail=lambda file, level: levels.append(level) or 3)
    ours = program_graph.Dumps(str(tmp_path), log)
    rows = ((1, "loss", "(1,)"), (2, "loss", "(2,)"), (3, "other", "(1,)"), (4, "more", "(1,)"))
    first, again, other, more = (
        groups.RunGroup(number, GRAPH, (fetch,), {"x:0": shape}) for number, fetch, shape in rows
    )
    assert ours.may_begin(first)
    ours.begin()
    assert library.getenv(b"TF_DUMP_GRAPH_PREFIX").decode() == str(tmp_path / "dumps")
    (tmp_path / "dumps" / "graph.pb").touch()
    ours.end(first)
    assert library.getenv(b"TF_DUMP_GRAPH_PREFIX") is None
    assert library.getenv(b"TF_DUMP_GRAPH_NAME_FILTER") == (b"*" if prepared else None)
    assert levels == [4, 3]
    ours.begin()
    ours.end(more)
    known = (first, again, more)
    assert [ours.may_begin(group) for group in known] == [False] * 3
    kept = [ours.of(group) for group in (*known, other)]
    no_dumps = [(None, 0), (None, None)]
    assert kept == [(tmp_path / "dumps-1", 0)] * 2 + no_dumps
    assert [file.name for file in kept[0][0].iterdir()] == ["graph.pb"]
    monkeypatch.setenv("TF_DUMP_GRAPH_PREFIX", str(tmp_path))  # the program uses it itself
    theirs = program_graph.Dumps(str(kept[0][0]), None)
    assert not theirs.may_begin(other)
    assert theirs.of(other) == (None, None)


@pytest.mark.tensorflow
def test_what_ran_in_a_loop_or_its_gradient_has_the_line_of_the_body(lab, tmp_path):
    import tensorflow as tf

    lab.seen.settings.folder = str(tmp_path)
    lab.seen.watch_functions()
    with tf.Graph().as_default() as graph:
        start = tf.constant(1.0, name="start")
        (end,) = tf.while_loop(
            lambda x: x < 9,
            lambda x: (tf.square(x, name="squared"),),  # a line of its own
            [start],
        )
        tf.gradients(end, start)
    lab.seen.stop()
    backward = "gradients/while_grad/while_grad/body/_9/gradients/squared_grad/Mul"
    names = {"while/body/_1/squared_0", backward, "start", "_SOURCE"}
    ran = lab.seen.graphs.nodes_that_ran(graph, [SimpleNamespace(graph=graph, ops=names)])
    count = len(graph.get_operations())
    assert [node.name for node in ran[:count]] == [op.name for op in graph.get_operations()]
    assert {node.name: node.phase for node in ran[count:]} == {
        "while/body/_1/squared_0": "forward",
        backward: "backward",
    }
    assert {node.line.code for node in ran[count:]} == {
        'lambda x: (tf.square(x, name="squared"),),  # a line of its own'
    }
    assert lab.faults == []


@pytest.mark.parametrize(
    "runs, thorough, noted",
    [
        ([1.0, np.nan, np.nan], False, {"loss": 2}),
        ([1.0, np.inf], False, {"loss": 2}),  # a number gets infinite
        ([np.inf, np.inf, 1.0], False, {}),  # a number that begins so, such as the best loss
        ([[0, np.inf], [np.nan, 0]], False, {"loss": 2}),  # a mask
        ([[0, np.inf]], True, {"loss": 1}),
        ([[np.nan] * 4_097], False, {}),  # too many to look at
        ([[np.nan] * 4_097], True, {"loss": 1}),
        ([b"text"], False, None),
    ],
)
def test_the_first_run_that_fetches_nan_is_noted(lab, runs, thorough, noted):
    lab.seen.values = SimpleNamespace(begin=lambda *step: None) if thorough else None
    for value in runs:
        call = lab.seen.enter()
        step = lab.seen.begin(lab.session, None, {}, ["loss"], [])
        fetched = [value if isinstance(value, bytes) else np.asarray(value, np.float32)[()]]
        assert lab.seen.results(step, lab.session, fetched) is fetched
        lab.seen.end(step, lab.session)
        lab.seen.leave(call)
    assert lab.faults == []
    (group,) = lab.seen.groups.values()
    assert group.not_finite == noted


def test_a_graph_that_grows_again_and_again_is_told_with_its_lines(lab):
    """Nodes 3 and 4 are made before the second run, and so on; the first three before the first."""
    graphs, graph = lab.seen.graphs, SimpleNamespace(get_operations=list)
    assert graphs.add(graph)
    lines = [Source("/code/a.py", at, "main", "") for at in (1, 1, 1, 7, 8, 7, 8, 7, 8, 7, 8, 7, 8)]
    graphs.nodes[id(graph)] = tuple(
        Node(str(at), "Op", source=line) for at, line in enumerate(lines)
    )
    sizes = (3, 5, 5, 7, 9, 11, 13)
    grown = []
    for graph.version in sizes:
        graphs.look(graph)
        grown.append(graphs.grown_segment())
    assert grown[:-1] == [[]] * 6
    (told,) = grown[-1]
    assert told["made"] == {"a.py:7": 5, "a.py:8": 5}
    assert [told[name] for name in ("graph", "first", "last", "runs", "rises")] == [1, 3, 13, 7, 5]
    for _ in range(20):  # and no more
        graphs.look(graph)
    assert graphs.grown_segment() == []
