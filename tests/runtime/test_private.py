"""Private: each corner of TensorFlow is there, and says what is wrong where it is not."""

import contextlib
import pkgutil
import sys
import threading
import traceback
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.client import session as tf_session
from tensorflow.python.ops import gradients_util

from tests import needs
from tests.approval import approve
from tests.examples.corners import lost
from tflab.runtime.private import graphs, sessions, source_lines, watched_functions

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def graph():
    """x, square = x * x, doubled (a call of a tf.function), and the gradient of the square."""

    @tf.function
    def double(value):
        return 2 * value

    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3], name="x")
        square = tf.multiply(x, x, name="square")
        double(x)
        tf.gradients(square, x)
    return graph


@pytest.fixture
def imported(graph):
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph.as_graph_def(), name="")
    return imported


def op(graph, name):
    return graph.get_operation_by_name(name)


def code_at(file, line):
    return Path(file).read_text().splitlines()[line - 1].strip()


NOTHING = SimpleNamespace()
PYTHON = "tensorflow.python"


IMPORTED = {  # what of TensorFlow is imported -> what uses it
    f"{PYTHON}.framework.op_def_registry.get": lambda graph: graphs.op_def("Mul"),
    f"{PYTHON}.framework.kernels.get_registered_kernels_for_op": (
        lambda graph: graphs.registered_kernels("Mul")
    ),
    f"{PYTHON}.framework.ops.get_gradient_function": (
        lambda graph: graphs.gradient_function(op(graph, "square"))
    ),
    f"{PYTHON}.ops.gradients_util._LogOpGradients": (lambda graph: next(graphs.derivations().gen)),
    f"{PYTHON}.eager.context.Context.context_switches": lambda graph: sessions.Building(0),
    f"{PYTHON}.client.pywrap_tf_session.TF_NewBufferFromString": (
        lambda graph: sessions.TraceBuffers()
    ),
    f"{PYTHON}.client.session.BaseSession._call_tf_sessionrun": (
        lambda graph: sessions.watch(Noting())
    ),
}
OF_OBJECTS = (
    lambda: graphs.original_op(NOTHING),
    lambda: source_lines.making(SimpleNamespace(graph=None, traceback=[NOTHING])),
    lambda: graphs.set_device(NOTHING, "/cpu:1"),
    lambda: graphs.traced_graphs(NOTHING),
    lambda: graphs.traced_graphs(SimpleNamespace(_functions={"double": NOTHING})),
    lambda: sessions.compiled_step(NOTHING, (), (), (), None),
    lambda: sessions.shared_step(NOTHING, (), (), ()),
    sessions.Log,  # whose names are of another version
)


def test_a_corner_that_is_gone_is_a_sentence(graph, monkeypatch):
    said, run = [], tf_session.BaseSession.run.__code__
    for gone, call in IMPORTED.items():
        owner, _, name = gone.rpartition(".")
        with monkeypatch.context() as patch:
            patch.delattr(pkgutil.resolve_name(owner), name)
            said.append(lost(lambda call=call: call(graph)))
    monkeypatch.setattr(sessions.Log, "SPACES", ("_ZN4absl12lts_20990101",))
    approve("corners.txt", "\n".join([*said, *map(lost, OF_OBJECTS)]))
    assert tf_session.BaseSession.run.__code__ is run


def test_op_types_have_arguments_kernels_and_gradient_functions(graph):
    assert [arg.name for arg in graphs.op_def("Mul").input_arg] == ["x", "y"]
    assert graphs.op_def("NoSuchOp") is None
    assert {kernel.device_type for kernel in graphs.registered_kernels("StringJoin")} == {"CPU"}
    assert graphs.registered_kernels("NoSuchOp") == ()
    assert graphs.gradient_function(op(graph, "square")).__name__ == "_MulGrad"


def test_a_gradient_op_knows_its_forward_op_and_the_calls_of_gradient_functions_are_noted(graph):
    square = op(graph, "square")
    of_square = "gradients/square_grad/"
    derived = {
        graphs.original_op(node)
        for node in graph.get_operations()
        if node.name.startswith(of_square)
    }
    assert (derived, graphs.original_op(square)) == ({square}, None)
    folder = Path(tf.__file__).parent / "python" / "ops"
    file = str(folder / "math_grad.py")
    assert graphs.is_made_in(op(graph, f"{of_square}Mul"), file)
    assert not graphs.is_made_in(square, file)
    assert graphs.gradients_file() == str(folder / "gradients_util.py")
    log = gradients_util._LogOpGradients
    calls = []
    with graph.as_default(), graphs.derivations(lambda *call: calls.append(call)):
        (gradient,) = tf.gradients(square.outputs[0], op(graph, "x").outputs[0])
    assert gradients_util._LogOpGradients is log
    ((differentiated, given, returned),) = calls
    assert (differentiated, len(given), len(returned)) == (square, 1, 2)
    assert list(gradient.op.inputs) == list(returned)  # by x, twice


def test_an_op_knows_the_line_that_made_it_and_gets_another_device(graph, imported):
    made, phase = source_lines.making(op(graph, "square"))
    assert (phase, made.file, made.function) == ("forward", __file__, "graph")
    assert made.code == 'square = tf.multiply(x, x, name="square")' == code_at(made.file, made.line)
    assert source_lines.making(op(imported, "square")) == (None, "forward")
    graphs.set_device(op(graph, "x"), "/device:CPU:1")
    assert op(graph, "x").device == "/device:CPU:1"


def test_a_function_has_the_graph_that_it_was_traced_in_unless_it_was_imported(graph, imported):
    ((name, traced),) = graphs.traced_graphs(graph).items()
    assert "double" in name
    assert "Mul" in [node.type for node in traced.get_operations()]
    assert graphs.traced_graphs(imported) == {name: None}


def test_ctrl_c_while_a_step_fails_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), sessions.ctrl_c_kept():
        raise RuntimeError("ORIGINAL UnavailableError REPLACED BY KeyboardInterrupt: <EMPTY>")
    with pytest.raises(RuntimeError, match="another"), sessions.ctrl_c_kept():
        raise RuntimeError("another")


def test_a_list_that_becomes_a_tuple_is_another_argument():
    """So it has a reason that a function was traced again for the same tensors."""
    step, one = tf.function(lambda data: 1), tf.constant(1.0)
    listed, paired = (
        watched_functions.arguments(step.get_concrete_function(data).function_type)["data['by']"]
        for data in ({"by": [one, one]}, {"by": (one, one)})
    )
    assert (listed, paired) == ("a list", "a tuple")


def test_the_parts_of_an_argument_are_told_one_by_one_and_no_text_is_cut_unmarked():
    class Config:
        pass

    Pair = namedtuple("Pair", "one other")

    @tf.function
    def step(data, batches, options, config, pair, many, name, rate=3):
        return 1

    batches = tf.data.Dataset.from_tensors((tf.ones([50, 28]), tf.ones([50], tf.int32)))
    given = (
        *([tf.ones([2, 3]), tf.ones([2], tf.int64)], iter(batches), {"by": (tf.ones([]), 5)}),
        *(Config(), Pair(tf.Variable(1.0), tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 1, 3]))),
        *([0] * 101, "n" * 81),
    )
    types = step.get_concrete_function(*given).function_type
    nan = step.get_concrete_function(*[0] * 6, float("nan")).function_type
    rows = [f"{name}: {part}" for name, part in watched_functions.arguments(types).items()]
    rows.append(watched_functions.arguments(nan)["name"])
    approve("arguments-of-functions.txt", "\n".join(rows))


# Sessions tell a watcher of their runs, and nobody else notices


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
    builds = sessions.Building(threading.get_ident())

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
        seen = sessions.Building(threading.get_ident())
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
        names = [sessions.tensor_name(output) for output in (*feeds, *fetches, *targets)]
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
    stop = sessions.watch(watcher)
    try:
        yield watcher
    finally:
        stop()


def test_a_watcher_is_told_of_each_run_and_compiled_step_until_it_is_stopped(session):
    step = sessions.compiled_step(session, ["x:0"], ["y:0"], [], None)
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
    tracing, watcher = sessions.TraceBuffers(), Noting()
    metadata = tracing.metadata()
    watcher.trace = tracing.options(trace_level=1, output_partition_graphs=True), metadata
    with watched(watcher):
        session.run("y:0", {"x:0": [1, 2]})
    seen = tracing.parsed(tracing.taken(metadata))
    assert "y" in {
        row.node_name for device in seen.step_stats.dev_stats for row in device.node_stats
    }
    assert "y" in {node.name for graph in seen.partition_graphs for node in graph.node}


@needs.since(2, 20, "its log is Abseil's")
def test_the_log_is_as_before_once_all_who_wanted_it_quiet_are_done():
    log = sessions.Log()
    before = log._level()
    log.quiet(1)
    log.quiet(2)
    assert log._level() == 2
    log.usual()
    log.usual()
    assert log._level() == before
