"""Sessions tell a watcher of their runs, and nobody else notices."""

import contextlib
import sys
import threading
import traceback
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.client import session as tf_session
from tensorflow.python.eager import context

from tests import versions
from tests.examples.corners import lost
from tflab.runtime import private
from tflab.runtime.private import sessions

pytestmark = pytest.mark.tensorflow


class Divider:
    def divide(self, above, below):
        """Divide two numbers."""
        return [
            above
            / below,
        ]  # fmt: skip


@pytest.mark.parametrize("changes_results", [False, True])
def test_told_functions_keep_their_lines_and_columns(changes_results, monkeypatch):
    told = []
    watcher = SimpleNamespace(
        first=told.append, last=told.append, results=lambda noted, values: [*values, noted]
    )
    monkeypatch.setitem(globals(), sessions.WATCHER, watcher)
    plain = Divider.divide.__code__
    first, last = (f"{sessions.WATCHER}.{moment}('{moment}')" for moment in ("first", "last"))
    results = [f"{sessions.WATCHER}.results('noted', None)"] * changes_results
    code = sessions.instrumented(Divider.divide, first, last, *results)

    def failure():
        with pytest.raises(ZeroDivisionError) as error:
            Divider().divide(1, 0)
        return traceback.format_exception(error.value)[-4:]

    before = failure()
    monkeypatch.setattr(Divider.divide, "__code__", code)
    assert failure() == before
    assert Divider().divide(6, 3) == [2, *["noted"] * changes_results]
    assert told == ["first", "last"] * 2
    assert (code.co_filename, code.co_firstlineno) == (plain.co_filename, plain.co_firstlineno)
    assert Divider.divide.__doc__ == "Divide two numbers."


def test_any_thread_finds_out_whether_another_builds_a_graph():
    builds = private.Building(threading.get_ident())

    def seen_elsewhere():
        answers = []
        thread = threading.Thread(target=lambda: answers.append(builds()))
        thread.start()
        thread.join()
        return answers[0]

    seen = {}

    @tf.function
    def traced(x):
        seen["traced"] = builds(), seen_elsewhere()
        with tf.init_scope():
            seen["out of it"] = builds(), seen_elsewhere()
        return x + 1

    with tf.Graph().as_default():
        assert not seen_elsewhere()  # the thread itself has not asked yet
        assert (builds(), seen_elsewhere()) == (True, True)
    assert (builds(), seen_elsewhere()) == (False, False)
    traced(tf.constant(1))
    assert seen == {"traced": (True, True), "out of it": (False, False)}


def test_without_eager_execution_a_graph_is_always_built():
    for by_default, switches, builds in (
        (False, (), True),
        (False, ("eager",), True),  # the program switched eager execution off after that
        (False, ("eager", "graph"), True),
        (False, ("graph", "eager"), False),
        (True, (), False),
        (True, ("eager",), False),
        (True, ("eager", "graph"), True),
    ):
        seen = private.Building(threading.get_ident())
        seen.eager = "eager"
        stack = [SimpleNamespace(enter_context_fn=switch) for switch in switches]
        context = SimpleNamespace(context_switches=SimpleNamespace(stack=stack))
        seen.context = SimpleNamespace(
            default_execution_mode=int(by_default), GRAPH_MODE=0, _context=context
        )
        assert seen() == builds


class Noting:
    """A watcher that notes what it is told."""

    def __init__(self):
        self.noted = []
        self.trace = self.fetches = None

    def enter(self):
        self.noted.append("enter")
        return "call"

    def leave(self, call):
        self.noted.append(("leave", call))

    def begin(self, session, options, feeds, fetches, targets):
        names = [private.tensor_name(output) for output in (*feeds, *fetches, *targets)]
        self.noted.append(("begin", names, options))
        return self

    def broke(self, error):
        self.noted.append(repr(error))

    def begin_compiled(self, session):
        self.noted.append("begin compiled")

    def results(self, step, session, values):
        return values

    def end(self, step, session=None):
        self.noted.append(("end", step is self))

    def keep_stack(self):
        self.noted.append(sys._getframe(1).f_code.co_name)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [2], name="x")
        tf.multiply(x, 3.0, name="y")
        yield session


@contextlib.contextmanager
def watched(watcher):
    stop = private.watch(watcher)
    try:
        yield watcher
    finally:
        stop()


def test_a_watcher_is_told_of_each_run_and_compiled_step_until_it_is_stopped(session):
    step = private.compiled_step(session, ["x:0"], ["y:0"], [], None)
    with watched(Noting()) as watcher:
        assert session.run("y:0", {"x:0": [1, 2]}).tolist() == [3, 6]
        step(np.float32([1, 2]))
    session.run("y:0", {"x:0": [1, 2]})
    run = ["enter", ("begin", ["x:0", "y:0"], None), ("end", True), ("leave", "call")]
    assert watcher.noted == [*run, "begin compiled", ("end", False)]


def test_errors_of_a_watcher_are_told_to_it_and_the_run_goes_on(session):
    class Failing(Noting):
        def enter(self):
            raise ValueError("first")

        def end(self, step, session=None):
            raise ValueError("last")

    with watched(Failing()) as watcher:
        assert session.run("y:0", {"x:0": [1, 2]}).tolist() == [3, 6]
        with pytest.raises(TypeError):
            session.run(3)
    told = ["ValueError('first')", ("leave", None)]
    begun = ("begin", ["x:0", "y:0"], None)
    assert watcher.noted == [told[0], begun, "ValueError('last')", told[1], *told]


def test_a_watcher_is_told_of_each_op_while_its_stack_is_recorded(session):
    y = session.graph.get_operation_by_name("y")
    before = y.traceback[-1]
    with watched(Noting()) as watcher, session.graph.as_default():
        twice = session.graph.get_tensor_by_name("y:0") * 2
    assert watcher.noted == ["extract_stack"] * 2  # of the product and its constant
    assert twice.op.traceback[-1].name == before.name  # the same frames are left out


def test_a_watcher_can_ask_for_a_trace(session):
    tracing, watcher = private.TraceBuffers(), Noting()
    metadata = tracing.metadata()
    watcher.trace = tracing.options(trace_level=1, output_partition_graphs=True), metadata
    with watched(watcher):
        session.run("y:0", {"x:0": [1, 2]})
    seen = tracing.parsed(tracing.taken(metadata))
    assert "y" in {
        row.node_name for device in seen.step_stats.dev_stats for row in device.node_stats
    }
    assert "y" in {node.name for graph in seen.partition_graphs for node in graph.node}


@versions.since(2, 20, "its log is Abseil's")
def test_the_log_is_as_before_once_all_who_wanted_it_quiet_are_done():
    log = private.Log()
    before = log._level()
    log.quiet(1)
    log.quiet(2)
    assert log._level() == 2
    log.usual()
    log.usual()
    assert log._level() == before


def test_a_corner_that_is_gone_is_a_sentence(monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(private.Log, "SPACES", ("_ZN4absl12lts_20990101",))
        lost(private.Log, "The level of the runtime's log")
    with monkeypatch.context() as other:
        other.delattr(context.Context, "context_switches")
        lost(lambda: private.Building(0), "The building of a graph")
    monkeypatch.delattr(pywrap_tf_session, "TF_NewBufferFromString")
    lost(private.TraceBuffers, "The traces of a session")
    run = tf_session.BaseSession.run.__code__
    monkeypatch.delattr(tf_session.BaseSession, "_call_tf_sessionrun")
    lost(lambda: private.watch(Noting()), "The runs of a session")
    assert tf_session.BaseSession.run.__code__ is run
