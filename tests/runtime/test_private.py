"""Private: each corner of TensorFlow is there, and says what is wrong where it is not."""

import importlib
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tensorflow.python.ops import gradients_util

from tests.approval import approve
from tests.examples.corners import lost
from tflab.runtime import private

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
        with tf.device("/job:localhost"):  # noqa: SIM117  (each on a line of its own)
            with tf.device("/device:CPU:0"):
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
    f"{PYTHON}.framework.op_def_registry.get": lambda graph: private.op_def("Mul"),
    f"{PYTHON}.framework.kernels.get_registered_kernels_for_op": (
        lambda graph: private.registered_kernels("Mul")
    ),
    f"{PYTHON}.framework.ops.get_gradient_function": (
        lambda graph: private.gradient_function(op(graph, "square"))
    ),
    f"{PYTHON}.ops.gradients_util._LogOpGradients": (
        lambda graph: next(private.gradient_calls().gen)
    ),
}
OF_OBJECTS = (
    lambda: private.original_op(NOTHING),
    lambda: private.making(SimpleNamespace(graph=None, traceback=[NOTHING]), lambda file: False),
    lambda: private.device_requests(NOTHING),
    lambda: private.set_device(NOTHING, "/cpu:1"),
    lambda: private.traced_graphs(NOTHING),
    lambda: private.traced_graphs(SimpleNamespace(_functions={"double": NOTHING})),
    lambda: private.compiled_step(NOTHING, (), (), (), None),
    lambda: private.shared_step(NOTHING, (), (), ()),
)


def test_a_corner_that_is_gone_is_a_sentence(graph, monkeypatch):
    said = []
    for gone, call in IMPORTED.items():
        module, _, name = gone.rpartition(".")
        with monkeypatch.context() as patch:
            patch.delattr(importlib.import_module(module), name)
            said.append(lost(lambda call=call: call(graph)))
    approve("corners.txt", "\n".join([*said, *map(lost, OF_OBJECTS)]))


def test_op_types_have_arguments_kernels_and_gradient_functions(graph):
    assert [arg.name for arg in private.op_def("Mul").input_arg] == ["x", "y"]
    assert private.op_def("NoSuchOp") is None
    assert {kernel.device_type for kernel in private.registered_kernels("StringJoin")} == {"CPU"}
    assert private.registered_kernels("NoSuchOp") == ()
    assert private.gradient_function(op(graph, "square")).__name__ == "_MulGrad"


def test_a_gradient_op_knows_its_forward_op_and_the_calls_of_gradient_functions_are_noted(graph):
    square = op(graph, "square")
    of_square = "gradients/square_grad/"
    derived = {
        private.original_op(node)
        for node in graph.get_operations()
        if node.name.startswith(of_square)
    }
    assert (derived, private.original_op(square)) == ({square}, None)
    folder = Path(tf.__file__).parent / "python" / "ops"
    file = str(folder / "math_grad.py")
    known, line, function, code = private.frame_within(op(graph, f"{of_square}Mul"), file)
    assert (known, function, code) == (file, "_MulGrad", code_at(file, line))
    assert private.frame_within(square, file) is None
    assert private.gradients_file() == str(folder / "gradients_util.py")
    log = gradients_util._LogOpGradients
    with graph.as_default(), private.gradient_calls() as calls:
        (gradient,) = tf.gradients(square.outputs[0], op(graph, "x").outputs[0])
    assert gradients_util._LogOpGradients is log
    ((differentiated, given, returned),) = calls
    assert (differentiated, len(given), len(returned)) == (square, 1, 2)
    assert list(gradient.op.inputs) == list(returned)  # by x, twice


def test_an_op_knows_the_line_that_made_it_and_those_that_asked_for_its_device(graph, imported):
    folder = str(Path(tf.__file__).parent)

    def libraries(file):
        return file.startswith(folder)

    (file, line, function, code), phase = private.making(op(graph, "square"), libraries)
    assert (phase, file, function) == ("forward", __file__, "graph")
    assert code == 'square = tf.multiply(x, x, name="square")' == code_at(file, line)
    assert private.making(op(imported, "square"), libraries) == (None, "forward")
    inner, outer = private.device_requests(op(graph, "square"))
    assert code_at(*inner) == 'with tf.device("/device:CPU:0"):'
    assert code_at(*outer).startswith('with tf.device("/job:localhost"):')
    assert private.device_requests(op(graph, "x")) == []
    private.set_device(op(graph, "x"), "/device:CPU:1")
    assert op(graph, "x").device == "/device:CPU:1"


def test_a_function_has_the_graph_that_it_was_traced_in_unless_it_was_imported(graph, imported):
    ((name, traced),) = private.traced_graphs(graph).items()
    assert "double" in name
    assert "Mul" in [node.type for node in traced.get_operations()]
    assert private.traced_graphs(imported) == {name: None}


def test_ctrl_c_while_a_step_fails_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), private.ctrl_c_kept():
        raise RuntimeError("ORIGINAL UnavailableError REPLACED BY KeyboardInterrupt: <EMPTY>")
    with pytest.raises(RuntimeError, match="another"), private.ctrl_c_kept():
        raise RuntimeError("another")


def test_a_list_that_becomes_a_tuple_is_another_argument():
    """So it has a reason that a function was traced again for the same tensors."""
    step, one = tf.function(lambda data: 1), tf.constant(1.0)
    listed, paired = (
        private.arguments(step.get_concrete_function(data).function_type)["data['by']"]
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
    rows = [f"{name}: {part}" for name, part in private.arguments(types).items()]
    rows.append(private.arguments(nan)["name"])
    approve("arguments-of-functions.txt", "\n".join(rows))
