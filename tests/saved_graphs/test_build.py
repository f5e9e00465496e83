"""Graphs from files: each form goes through the stages, or gets one sentence that says why not."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.graph_debug_info_pb2 import GraphDebugInfo

from tests import graphs
from tflab import lifecycle
from tflab.errors import RefusedError, TflabError, UsageError
from tflab.records.graph import Call, Function, Source
from tflab.records.options import Options, Saved
from tflab.runtime import functions, nodes, refusals, session
from tflab.saved_graphs import debug_info, graph_files

pytestmark = pytest.mark.tensorflow


def walk(path, stop="placement", **saved):
    """The stages of a graph from a file, with the options that the commands give it."""
    fetches = saved.pop("fetches", ())
    chosen = Options(steps=2, saved=Saved(**saved), fetches=fetches, soft_placement=True)
    return dict(zip(lifecycle.STAGES, lifecycle.walk(str(path), chosen, stop), strict=False))


def closes(placement) -> bool:
    """Each node of the file has one fate, each executed one is the user's or has an origin."""
    fates = [fate.name for fate in placement.ledger]
    executed = {fate.name for fate in placement.ledger if fate.fate == "executed"}
    executed |= {origin.name for origin in placement.origins}
    return sorted(fates) == sorted(node.name for node in placement.user_nodes) and executed == {
        node.name for node in placement.nodes
    }


FORMS = {
    "binary": lambda folder: graphs.write(folder / "g.txt", graphs.graph_def(graphs.dense)),
    "text": lambda folder: graphs.write(folder / "g.pb", graphs.graph_def(graphs.dense), text=True),
    "v1": lambda folder: graphs.saved_model_v1(folder / "v1"),
    "v2": lambda folder: graphs.saved_model_v2(folder / "v2"),
    "meta": lambda folder: graphs.meta_graph(folder / "meta"),
    "keras": lambda folder: graphs.keras_file(folder / "model.keras"),
    "reference variables": lambda folder: graphs.write(
        folder / "g.pb", graphs.graph_def(graphs.reference_variables)
    ),
    "old loop": lambda folder: graphs.write(folder / "g.pb", graphs.graph_def(graphs.old_loop)),
    "functions": lambda folder: graphs.write(folder / "g.pb", graphs.graph_def(graphs.functions)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_goes_through_all_stages_and_its_account_closes(form, tmp_path):
    stages = walk(FORMS[form](tmp_path), stop="execution")
    assert list(stages) == list(lifecycle.STAGES)
    assert closes(stages["placement"])
    assert stages["execution"].steps == 2
    assert "made-up values" in stages["execution"].data


def test_a_loop_body_has_a_run_for_every_iteration(tmp_path):
    stages = walk(FORMS["old loop"](tmp_path), stop="execution")
    calls = {row.key: row.calls for row in stages["execution"].top_ops}
    assert calls["loop/body"] == 5 * stages["execution"].steps


def test_what_a_function_held_comes_from_the_call(tmp_path):
    placement = walk(FORMS["functions"](tmp_path))["placement"]
    origins = {origin.origin for origin in placement.origins}
    assert "LowerFunctionalOpsPass, from cond" in origins


def test_a_checkpoint_beside_a_meta_graph_gives_the_values(tmp_path):
    path = graphs.meta_graph(tmp_path / "meta")
    stage = walk(path, "frontend", signature=None)["frontend"]
    assert any("Variables have the values of" in note for note in stage.notes)
    reader = tf.train.load_checkpoint(path.removesuffix(".meta"))
    program = stage.program
    with session.fresh(program.graph, Options()) as live:
        session.begin(live, session.start_of(program))
        assert np.array_equal(live.run("w/Read/ReadVariableOp:0"), reader.get_tensor("w"))


def test_a_train_op_in_the_file_is_run_with_its_loss(tmp_path):
    stages = walk(graphs.meta_graph(tmp_path / "meta"))
    assert stages["placement"].fetches == ("loss:0", "Adam")
    backward = stages["backward"]
    assert backward.inferred
    made = {gradient.forward: gradient.nodes for gradient in backward.gradients}
    assert "gradients/MatMul_grad/MatMul_1" in made["MatMul"]
    assert made.keys() == {"loss", "y", "MatMul"}


def test_a_chosen_loss_is_derived_by_the_variables_behind_it(tmp_path):
    def forward():
        tf.reduce_mean(graphs.dense()[1], name="loss")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(forward))
    stages = walk(path, loss="loss")
    made = {gradient.forward: gradient for gradient in stages["backward"].gradients}
    assert made["y"].function.startswith("_ReluGrad")
    assert made["y"].nodes == ("gradients/y_grad/ReluGrad",)
    assert stages["placement"].fetches[0] == "loss:0"
    assert "ReluGrad" in {node.op for node in stages["placement"].nodes}
    assert closes(stages["placement"])


def test_given_arrays_are_fed_and_said_to_be(tmp_path):
    np.save(tmp_path / "x.npy", np.ones([20, 4], np.float32))
    path = FORMS["v2"](tmp_path)
    stages = walk(path, feeds=(("serving_default_x", str(tmp_path / "x.npy")),))
    assert stages["placement"].data == "the arrays that were given"
    program = stages["frontend"].program
    (batch,) = next(session.feed_batches(program, 16))
    assert np.array_equal(batch, np.ones([16, 4]))


def test_an_array_of_another_shape_is_refused_with_both_shapes(tmp_path):
    np.save(tmp_path / "x.npy", np.ones([20, 5], np.float32))
    with pytest.raises(UsageError) as error:
        walk(
            graphs.saved_model_v2(tmp_path / "v2"),
            "frontend",
            feeds=(("serving_default_x", str(tmp_path / "x.npy")),),
        )
    assert str(error.value) == (
        f"'{tmp_path / 'x.npy'}' has the shape [20, 5], but 'serving_default_x:0' takes [any, 4]. "
        "Feed it an array of that shape."
    )


def test_a_placeholder_of_a_fixed_shape_is_fed_whole(tmp_path):
    def build():
        _, y = graphs.dense()
        keep = tf.compat.v1.placeholder(tf.float32, [], name="keep")
        tf.identity(y * keep, name="out")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(build))
    stages = walk(path, stop="execution")
    assert any("keep float32 []" in note for note in stages["frontend"].notes)
    keep, x = next(session.feed_batches(stages["frontend"].program, 16))
    assert (keep.shape, x.shape) == ((), (16, 4))


def test_an_open_dimension_is_the_users_to_choose(tmp_path):
    def build():
        tf.nn.relu(tf.compat.v1.placeholder(tf.float32, [None, None, 3], name="x"), name="y")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(build))
    (x,) = next(session.feed_batches(walk(path, "frontend")["frontend"].program, 2))
    assert x.shape == (2, 1, 3)
    chosen = walk(path, "frontend", shapes=(("x", (1, 5, 3)),))["frontend"].program
    (x,) = next(session.feed_batches(chosen, 2))
    assert x.shape == (2, 5, 3)
    with pytest.raises(UsageError, match="'x' has the shape"):
        walk(path, "frontend", shapes=(("x", (1, 5, 4)),))


def test_variables_without_any_value_get_one_from_a_seed(tmp_path):
    graph = graphs.graph_def(graphs.dense)
    names = [node.name for node in graph.node]
    for name in ("w/Assign", "w/Initializer/random_uniform"):
        del graph.node[names.index(name)]
        names.remove(name)
    stages = walk(graphs.write(tmp_path / "g.pb", graph))
    assert any("1 has values made up with a seed" in note for note in stages["frontend"].notes)
    assert closes(stages["placement"])


def test_a_graph_that_reads_files_needs_leave_to(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.file_reader))
    with pytest.raises(UsageError, match=r"ReadFile \(ReadFile\) reads files. Give --allow-"):
        walk(path)
    assert walk(path, "frontend", side_effects=True)["frontend"].nodes


def test_a_step_that_waits_for_ever_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(refusals, "TIME_LIMIT_S", 1)
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.endless_queue))
    with pytest.raises(RefusedError, match="did not end within 1 s"):
        walk(path)


def test_a_device_that_is_not_here_is_replaced_and_named(tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(graphs.on_a_gpu))
    placement = walk(path)["placement"]
    (out,) = [assignment for assignment in placement.assignments if assignment.name == "out"]
    assert out.device.endswith("CPU:0")
    assert "GPU:0" in out.reason


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([("a", "Addons>Foo", ())], "type 'Addons>Foo', which TensorFlow .* belongs to Addons"),
        ([("a", "Identity", ("b",)), ("b", "Identity", ("a",))], "cycle"),
        ([("a", "NoOp", ()), ("a", "NoOp", ())], "not unique"),
        ([("a", "Identity", ("gone",))], "Unknown input node 'gone'"),
    ],
)
def test_a_graph_that_cannot_be_imported_is_shown_all_the_same(nodes, reason, tmp_path):
    stages = lifecycle.walk(graphs.write(tmp_path / "g.pb", graphs.bare(*nodes)))
    frontend = next(stages)
    assert [node.name for node in frontend.nodes] == [name for name, _, _ in nodes]
    with pytest.raises(TflabError, match=f"cannot be imported: .*{reason}"):
        next(stages)


@pytest.mark.parametrize(
    ("saved_options", "message"),
    [
        ({"signature": "no"}, "no signature 'no'; its signatures are: other, serving_default"),
        ({"loss": "no"}, "no tensor 'no'"),
        (
            {"loss": "serving_default_y"},
            "'serving_default_y' .* Did you mean 'serving_default_x:0'",
        ),
        (
            {"feeds": (("no", "x.npy"),)},
            "no tensor 'no' to feed; .* are: .*serving_default_x",
        ),
        ({"feeds": (("serving_default_x", "no.npy"),)}, "'no.npy' cannot be fed"),
    ],
)
def test_what_is_asked_for_has_to_be_there(saved_options, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        walk(graphs.saved_model_v2(tmp_path / "v2"), "frontend", **saved_options)


def test_a_keras_file_is_told_of_under_its_own_name(tmp_path):
    path = FORMS["keras"](tmp_path)
    notes = walk(path, "frontend")["frontend"].notes
    assert notes[0].startswith(f"The graph is from '{path}', exported as a SavedModel. It runs ")
    assert notes[1] == f"Variables have the values of '{path}'."


def test_another_signature_can_be_chosen(tmp_path):
    stages = walk(graphs.saved_model_v2(tmp_path / "v2"), "frontend", signature="other")
    assert stages["frontend"].program.model.feeds


def test_a_function_that_returns_a_keras_model_is_a_model():
    stages = walk("tests.graphs:lstm", stop="execution")
    assert closes(stages["placement"])
    assert stages["frontend"].notes[0] == (
        "'tests.graphs:lstm' is a Keras model. It is called in this graph, with its own values."
    )
    assert set(stages["frontend"].program.layers.values()) >= {"embedding", "lstm"}


def test_nodes_of_a_keras_file_come_from_the_functions_that_keras_exports(tmp_path):
    path = str(tmp_path / "lstm.keras")
    graphs.lstm().save(path)
    stages = walk(path, stop="placement")
    assert closes(stages["placement"])
    origins = {origin.origin for origin in stages["placement"].origins}
    assert any(origin.startswith("function_optimizer, from Stateful") for origin in origins)


# Functions in the library of a graph


def test_the_functions_of_a_file_are_read_with_who_calls_them(tmp_path):
    stage = walk(FORMS["functions"](tmp_path), "frontend")["frontend"]
    then, other, twice = stage.functions
    assert then.called_by == (Call("cond", "then_branch"),)
    assert other.called_by == (Call("cond", "else_branch"),)
    assert twice.called_by == (Call("PartitionedCall", "f", then.name),)
    assert [node.op for node in twice.nodes] == ["_Arg", "Const", "Mul", "Tanh", "Identity"]
    assert twice.nodes[2].inputs == (twice.nodes[0].name, "mul/y")
    assert twice.returns == ("Identity",)


def test_a_saved_function_is_read_alike_before_and_after_the_import(tmp_path):
    file = graph_files.read(Path(graphs.saved_model_v2(tmp_path / "v2")))
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(file.graph_def, name="")
    read = functions.of_graph(graph)
    assert any("Relu" in {node.op for node in function.nodes} for function in read)
    assert {function.name: function for function in read} == {
        function.name: function for function in functions.of_graph_def(file.graph_def)
    }


def called(name: str, calls: str, op: str = "PartitionedCall", inputs=("x",)) -> FunctionDef:
    """A function of `x` with a node `call` that calls another."""
    function = FunctionDef()
    function.signature.name = name
    function.signature.input_arg.add(name="x", type=tf.float32.as_datatype_enum)
    node = function.node_def.add(name="call", op=op, input=inputs)
    node.attr["f"].func.name = calls
    return function


def test_functions_that_call_each_other_in_a_circle_are_shown_once():
    graph = graphs.bare(("start", "PartitionedCall", ()))
    graph.node[0].attr["f"].func.name = "a"
    graph.library.function.extend([called("b", "a"), called("a", "b"), called("alone", "alone")])
    assert [(function.name, function.called_by) for function in functions.of_graph_def(graph)] == [
        ("a", (Call("start", "f"), Call("call", "f", "b"))),
        ("b", (Call("call", "f", "a"),)),
        ("alone", (Call("call", "f", "alone"),)),
    ]


def test_an_unimportable_graph_shows_its_functions_and_those_that_it_lacks(tmp_path):
    graph = graphs.bare(("start", "Addons>Foo", ()))
    graph.node[0].attr["f"].func.name = "a"
    inputs = ("x", "strange:output:1", "call:output:no", "^x")
    graph.library.function.append(called("a", "gone", "Addons>Bar", inputs))
    stage = next(lifecycle.walk(graphs.write(tmp_path / "g.pb", graph)))
    assert "cannot be imported" in stage.blocked
    strange, gone = stage.functions
    assert strange.nodes[1].inputs == ("x", "strange:output:1", "call:output:no")
    assert strange.nodes[1].control_inputs == ("x",)
    assert gone == Function("gone", (Call("call", "f", "a"),))


def test_an_output_of_a_function_is_counted_through_all_outputs_of_its_node():
    graph = graphs.bare(("start", "NoOp", ()))
    function = called("a", "a", inputs=("split:output:1", "split:output:0", "split:output"))
    split = function.node_def.add(name="split", op="Split", input=["x", "x"])
    split.attr["num_split"].i = 2**62  # no graph has so many, but a file may say so
    graph.library.function.append(function)
    (read,) = functions.of_graph_def(graph)
    assert read.nodes[1].inputs == ("split:1", "split", "split")
    assert len(read.nodes[2].outputs) == nodes.MOST_OUTPUTS


# Lines of programs that saved them


class Doubler(tf.Module):
    def __init__(self):
        self.weight = tf.Variable(np.ones([4, 2], np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def __call__(self, x):
        product = tf.matmul(x, self.weight)
        return tf.nn.relu(product)


@pytest.fixture(scope="module")
def with_lines(tmp_path_factory):
    """A SavedModel with the lines of its nodes."""
    folder = tmp_path_factory.mktemp("lines") / "saved"
    model = Doubler()
    options = tf.saved_model.SaveOptions(save_debug_info=True)
    tf.saved_model.save(model, str(folder), model.__call__, options)
    return folder


def test_nodes_of_a_file_have_the_lines_that_are_saved_with_it(with_lines):
    stages = walk(with_lines, "placement")
    first = Doubler.__call__.python_function.__code__.co_firstlineno
    inside = [node for function in stages["frontend"].functions for node in function.nodes]
    for group in (inside, stages["placement"].nodes):
        made_at = {node.op.removeprefix("_Mkl"): node.source for node in group}
        assert {
            op: (source.file, source.line - first)
            for op, source in made_at.items()
            if op in ("MatMul", "Relu")
        } == {"MatMul": (__file__, 2), "Relu": (__file__, 3)}


def test_damaged_lines_are_told_with_what_goes_without_them(with_lines, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(with_lines, folder)
    (folder / debug_info.BESIDE).write_bytes(b"\xff")
    with pytest.raises(TflabError, match=r"lines of the nodes .* To show the graph without lines"):
        walk(folder, "frontend")
    (folder / debug_info.BESIDE).unlink()
    assert not [node for node in walk(folder, "frontend")["frontend"].nodes if node.source]


def test_lines_within_a_graph_are_read_as_any_version_wrote_them():
    info = GraphDebugInfo(files=["user.py", "site-packages/tensorflow/python/ops/math_ops.py"])
    info.frames_by_id[7].CopyFrom(GraphDebugInfo.FileLineCol(file_index=0, line=3, func="f"))
    info.frames_by_id[8].CopyFrom(GraphDebugInfo.FileLineCol(file_index=1, line=99))
    info.traces_by_id[1].frame_id.extend([7, 8, 1234])  # of which the last is not there
    info.name_to_trace_id["mul"] = 1
    info.name_to_trace_id["add@function"] = 1
    info.name_to_trace_id["lost"] = 2
    old = info.traces["sub"].file_line_cols
    old.add(file_index=0, line=5, code=" y = x - 1 ")
    old.add(file_index=44, line=6)
    assert debug_info.lines(info) == {
        (None, "mul"): Source("user.py", 3, "f", ""),
        ("function", "add"): Source("user.py", 3, "f", ""),
        (None, "sub"): Source("user.py", 5, "", "y = x - 1"),
    }


# Gradients of files against finite differences


def loss_of(build):
    def function():
        tf.reduce_mean(tf.square(build()), name="loss")

    return function


def lookup():
    table = tf.compat.v1.get_variable("table", [20, 4], use_resource=True)
    return tf.nn.embedding_lookup(table, tf.compat.v1.placeholder(tf.int32, [None], name="ids"))


def branches():
    graphs.functions()
    return tf.compat.v1.get_default_graph().get_tensor_by_name("out:0")


def random_in_a_function():
    return tf.function(lambda x: x * tf.random.uniform([]))(graphs.dense()[1])


@pytest.mark.parametrize(
    ("build", "parameter"),
    [(lambda: graphs.dense()[1], "w"), (lookup, "table"), (branches, "x")],
    ids=["variable", "rows of a variable", "what is fed to functions"],
)
def test_gradients_of_a_file_agree_with_finite_differences(build, parameter, tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(loss_of(build)))
    stage = walk(path, "backward", loss="loss")["backward"]
    (check,) = stage.gradient_checks
    assert (check.tensor, check.precision) == (parameter, "float64")
    assert check.max_relative_error < 1e-4


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (random_in_a_function, "the loss is random"),
        (lambda: tf.math.log(-1 - graphs.dense()[1]), "the loss is nan"),
        (lambda: tf.cast(graphs.dense()[1], tf.float16), "type float16 is too imprecise"),
    ],
)
def test_gradients_that_cannot_be_checked_say_why(build, reason, tmp_path):
    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(loss_of(build)))
    stage = walk(path, "backward", loss="loss")["backward"]
    assert stage.gradient_checks == ()
    assert reason in stage.unchecked
