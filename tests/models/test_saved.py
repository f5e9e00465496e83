"""Graphs from files: each form goes through the stages, or gets one sentence that says why not."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.framework.function_pb2 import FunctionDef

from tests import graphs
from tests.approval import approve, refused
from tests.examples import accounts
from tests.examples.models import opened
from tflab import lifecycle
from tflab.cli import confined
from tflab.errors import RefusedError, TflabError
from tflab.lifecycle.backward import CAME, NO_LOSS
from tflab.models import graph_file, saved
from tflab.records.graph import Call, Function
from tflab.records.options import Options, Saved
from tflab.runtime import functions, nodes, session

pytestmark = pytest.mark.tensorflow


def walk(path, stop="placement", **saved):
    """The stages of a graph from a file, with the options that the commands give it."""
    fetches = saved.pop("fetches", ())
    chosen = Options(steps=2, saved=Saved(**saved), fetches=fetches, soft_placement=True)
    return dict(zip(lifecycle.STAGES, lifecycle.walk(str(path), chosen, stop), strict=False))


def written(folder, build, name="g.pb", **options):
    return graphs.write(folder / name, graphs.graph_def(build), **options)


FORMS = {
    "binary": lambda folder: written(folder, graphs.dense, "g.txt"),
    "text": lambda folder: written(folder, graphs.dense, text=True),
    "v1": lambda folder: graphs.saved_model_v1(folder / "v1"),
    "v2": lambda folder: graphs.saved_model_v2(folder / "v2"),
    "meta": lambda folder: graphs.meta_graph(folder / "meta"),
    "keras": lambda folder: graphs.keras_file(folder / "model.keras"),
    "reference variables": lambda folder: written(folder, graphs.reference_variables),
    "old loop": lambda folder: written(folder, graphs.old_loop),
    "functions": lambda folder: written(folder, graphs.functions),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_goes_through_all_stages_and_its_account_closes(form, tmp_path):
    stages = walk(FORMS[form](tmp_path), stop="execution")
    assert list(stages) == list(lifecycle.STAGES)
    accounts.check(stages["placement"])
    assert stages["execution"].steps == 2
    assert "seeded values" in stages["execution"].data
    if form == "old loop":
        calls = {row.key: row.calls for row in stages["execution"].top_ops}
        assert calls["loop/body"] == 5 * stages["execution"].steps
    if form == "functions":  # what a function held comes from the call
        origins = {origin.origin for origin in stages["placement"].origins}
        assert "LowerFunctionalOpsPass, from cond" in origins


def test_a_chosen_loss_is_derived_by_the_variables_behind_it(tmp_path):
    def forward():
        tf.reduce_mean(graphs.dense()[1], name="loss")

    path = written(tmp_path, forward)
    stages = walk(path, loss="loss")
    (check,) = stages["backward"].gradient_checks
    assert (check.tensor, check.precision) == ("w", "float64")
    assert check.max_relative_error < 1e-4
    made = {gradient.forward: gradient for gradient in stages["backward"].gradients}
    assert made["y"].function.startswith("_ReluGrad")
    assert made["y"].nodes == ("gradients/y_grad/ReluGrad",)
    assert stages["placement"].fetches[0] == "loss:0"
    assert "ReluGrad" in {node.op for node in stages["placement"].nodes}
    accounts.check(stages["placement"])


def test_given_arrays_are_fed_and_said_to_be(tmp_path):
    np.save(tmp_path / "x.npy", np.ones([20, 4], np.float32))
    path = FORMS["v2"](tmp_path)
    stages = walk(path, feeds=(("serving_default_x", str(tmp_path / "x.npy")),))
    assert stages["placement"].data == "the arrays that were given"
    program = stages["frontend"].program
    (batch,) = next(session.feed_batches(program, 16))
    assert np.array_equal(batch, np.ones([16, 4]))


def test_a_step_that_waits_for_ever_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "TIME_LIMIT_S", 1)
    path = written(tmp_path, graphs.endless_queue)
    with pytest.raises(RefusedError, match="did not end within 1 s"):
        walk(path)


def test_what_is_asked_for_has_to_be_there_and_to_fit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graphs.saved_model_v2(Path("v2"))
    written(Path(), graphs.dense)
    said = []
    for options in (
        *({"signature": "no"}, {"loss": "no"}, {"loss": "serving_default_y"}),
        *({"feeds": (("no", "x.npy"),)}, {"feeds": (("serving_default_x", "no.npy"),)}),
    ):
        said.append(refused(lambda options=options: walk("v2", "frontend", **options)))
    np.save("x.npy", np.ones([20, 4], np.float32))
    feeds, fetches = (("x", "x.npy"),), ("w/Read/ReadVariableOp",)
    said.append(refused(lambda: walk("g.pb", "frontend", fetches=fetches, feeds=feeds)))
    said.append(refused(lambda: walk("g.pb", "frontend", shapes=(("x", (16, 5)),))))
    np.save("x.npy", np.array([Path()], object), allow_pickle=True)
    said.append(refused(saved.load, "x", "x.npy"))
    with open("x.npy", "wb") as file:  # which declares more than it has
        declared = {"descr": "<f4", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(file, declared)
    said.append(refused(saved.load, "x", "x.npy"))
    approve("graph-files-refused.txt", "\n".join(said))


def test_a_function_that_returns_a_keras_model_is_a_model():
    accounts.check(walk("tests.graphs:lstm", stop="execution")["placement"])


# What runs, what is fed, and the first values of variables


def model_of(build, meta=None):
    """The model of a graph, perhaps with what a MetaGraphDef says about it."""
    meta = meta or tf1.MetaGraphDef()
    meta.graph_def.CopyFrom(graphs.graph_def(build))
    with tf.Graph().as_default():
        return saved.build(graph_file.GraphFile("MetaGraphDef", Path("g"), "g", meta), Saved())


def two_ends():
    _, y = graphs.dense()
    tf.identity(y, name="first")
    tf.add(y, 1.0, name="second")
    tf.constant(1.0, name="unused")


def with_saver():
    graphs.reference_variables()
    tf1.train.Saver()


def test_fetched_are_the_train_op_that_is_collected_otherwise_what_no_other_node_uses():
    """Nodes that save or keep a variable do not count."""
    assert model_of(two_ends).fetches == ("first:0", "second:0")
    assert model_of(with_saver).fetches == ("out:0",)
    meta = tf1.MetaGraphDef()
    meta.collection_def["train_op"].node_list.value.append("Adam")
    trained = model_of(graphs.trained, meta)
    assert (trained.fetches, trained.output.dtype) == (("Adam",), tf.float32)


def test_a_graph_with_nothing_to_run_is_shown_and_says_so(tmp_path):
    def variables():
        tf1.get_variable("v", [2], use_resource=True)

    path = written(tmp_path, variables)
    stages = lifecycle.walk(path, Options())
    assert {node.name for node in next(stages).nodes} >= {"v"}
    with pytest.raises(TflabError, match=r"has nothing to run by default: .* Give --fetch NAME\."):
        list(stages)


def test_an_open_first_dimension_is_the_batch_and_any_other_is_one():
    for static, chosen, fed in (
        ([None, 4], None, (None, 4)),
        ([None, None, 3], None, (None, 1, 3)),
        ([], None, ()),
        (None, None, (None,)),
        (None, (3, 5), (3, 5)),
        ([None, None], (9, 5), (None, 5)),
    ):
        with tf.Graph().as_default():
            assert saved.feed_shape(tf1.placeholder(tf.float32, static), chosen) == fed


def test_seeded_values_follow_from_dtype_and_shape_and_floats_are_normally_distributed():
    for dtype, shape, values in (
        (tf.float32, (), 0.5),
        (tf.bool, (), False),
        (tf.string, (2,), [b"", b""]),
        (tf.int64, (3,), [0, 1, 1]),
        (tf.bool, (3,), [False, True, True]),
    ):
        array = saved.seeded(dtype, shape)
        assert (array.dtype, array.tolist()) == (np.dtype(dtype.as_numpy_dtype), values)
    array = saved.seeded(tf.float16, (1000, 3))
    assert np.array_equal(array, saved.seeded(tf.float16, (1000, 3)))
    assert (abs(array.mean()) < 0.1, abs(array.std() - 1) < 0.1) == (True, True)


def test_what_is_fed_is_said_and_a_shape_can_be_given(tmp_path):
    def product():
        x = tf1.placeholder(tf.float32, None, name="x")
        tf.matmul(x, tf.ones([4, 2]), name="out")

    path = written(tmp_path, product)
    assert walk(path, "frontend")["frontend"].notes == (
        f"The graph is from '{path}', a GraphDef. It runs out:0 (no other node uses it).",
        "Fed are seeded values: x float32 [batch].",
    )
    assert refused(walk, path).endswith("; --shape NAME=SIZES gives them another shape.")
    assert walk(path, shapes=(("x", (16, 4)),))["placement"].nodes


@pytest.mark.parametrize("restored", [True, False])
def test_variables_get_the_values_of_the_checkpoint_else_of_their_initialisers(restored, tmp_path):
    path = written(tmp_path, graphs.dense)
    if restored:
        with tf.Graph().as_default(), tf1.Session() as live:
            graphs.dense()
            saver = tf1.train.Saver()
            tf1.global_variables()[0].load(np.full([4, 3], 7, np.float32), live)
            path = f"{saver.save(live, str(tmp_path / 'model'))}.meta"
    stages = walk(path)
    source = f"of the checkpoint of '{path}'" if restored else "of their initialisers"
    assert f"Variables have the values {source}." in stages["frontend"].notes
    accounts.check(stages["placement"])
    program = stages["frontend"].program
    with session.fresh(program.graph, Options()) as live:
        session.begin(live, session.start_of(program))
        values = live.run("w/Read/ReadVariableOp:0")
    assert (values == 7).all() == restored
    assert values.std() > 0 or restored


def test_a_device_of_another_machine_is_replaced_by_one_that_is_here(tmp_path):
    def on_a_cluster():
        with tf1.device("/job:worker/replica:0/task:3/device:GPU:1"):
            tf.tanh(tf1.placeholder(tf.float32, [None, 4], name="x"), name="out")

    placement = walk(written(tmp_path, on_a_cluster))["placement"]
    assert {node.device.rpartition("/")[2] for node in placement.nodes} == {"device:CPU:0"}


def test_a_graph_with_gradients_says_so_and_names_none(tmp_path):
    stage = walk(graphs.meta_graph(tmp_path / "meta"), "backward")["backward"]
    assert (stage.unchecked, stage.gradients, stage.added_nodes) == (CAME, (), ())
    stage = walk(FORMS["v1"](tmp_path), "backward")["backward"]
    assert stage.unchecked == NO_LOSS


def test_a_graph_that_nothing_confines_is_shown_and_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(confined, "ENABLED", True)
    path = written(tmp_path, graphs.dense)
    stages = lifecycle.walk(path, Options())
    assert {node.name for node in next(stages).nodes} >= {"x", "w", "y"}
    with pytest.raises(TflabError, match="is shown but cannot be run: `train` confines no process"):
        next(stages)
    assert walk(path, "placement", trust=True)["placement"].nodes


def test_a_table_is_read_from_the_file_that_is_saved_with_the_model_and_no_other_place(tmp_path):
    class Words(tf.Module):
        def __init__(self):
            super().__init__()
            lines = tf.lookup.TextFileInitializer(
                *(str(tmp_path / "words.txt"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
                *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            )
            self.table = tf.lookup.StaticHashTable(lines, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def number(self, words):
            return {"numbers": self.table.lookup(words)}

    (tmp_path / "words.txt").write_text("a\nb\n")
    words = Words()
    tf.saved_model.save(words, str(tmp_path / "model"), words.number)
    (tmp_path / "words.txt").unlink()
    with graphs.changed(path := tmp_path / "model" / "saved_model.pb") as meta:
        meta.asset_file_def.add(filename="../../secret").tensor_info.name = "secret:0"
    assert "secret" not in graph_file.assets(graph_file.read(path))
    program = walk(tmp_path / "model", "placement")["frontend"].program
    with opened(program.graph, session.start_of(program)) as live:
        (tensor,) = program.model.feeds
        assert [*live.run(program.model.output, {tensor: ["b", "c", "a"]})] == [1, -1, 0]


def test_a_file_whose_graph_lacks_what_restores_it_is_one_sentence(tmp_path):
    path = Path(graphs.saved_model_v1(tmp_path / "v1"), "saved_model.pb")
    with graphs.changed(path) as meta:
        meta.saver_def.restore_op_name = "gone"
    with pytest.raises(TflabError, match=r"^The variables cannot be initialised: .*gone"):
        walk(path.parent)


# Functions in the library of a graph


def test_the_functions_of_a_file_are_read_with_who_calls_them_with_and_without_an_import(tmp_path):
    path = FORMS["functions"](tmp_path)
    then, other, twice = walk(path, "frontend")["frontend"].functions
    assert then.called_by == (Call("cond", "then_branch"),)
    assert other.called_by == (Call("cond", "else_branch"),)
    assert twice.called_by == (Call("PartitionedCall", "f", then.name),)
    assert [node.op for node in twice.nodes] == ["_Arg", "Const", "Mul", "Tanh", "Identity"]
    assert twice.nodes[2].inputs == (twice.nodes[0].name, "mul/y")
    assert twice.returns == ("Identity",)
    unimported = functions.of_graph_def(graph_file.read(Path(path)).graph_def)
    assert unimported == (then, other, twice)


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
    assert "cannot be run" in stage.blocked
    strange, gone = stage.functions
    assert strange.nodes[1].inputs == ("x", "strange:output:1", "call:output:no")
    assert strange.nodes[1].control_inputs == ("x",)
    assert gone == Function("gone", (Call("call", "f", "a"),))


def test_an_output_of_a_function_is_counted_through_all_outputs_of_its_node():
    graph = graphs.bare(("start", "NoOp", ()))
    of_split = ("split:output:1", "split:output:0", "split:output")
    inputs = (*of_split, "top:indices:0", "parse:sparse_values:0")
    function = called("a", "a", inputs=inputs)
    function.node_def.add(name="top", op="TopKV2", input=["x", "x"])
    parse = function.node_def.add(name="parse", op="ParseExample")
    parse.attr["Nsparse"].i = 2  # two outputs of indices, then the values
    split = function.node_def.add(name="split", op="Split", input=["x", "x"])
    split.attr["num_split"].i = 2**62  # no graph has so many, but a file may say so
    graph.library.function.append(function)
    (read,) = functions.of_graph_def(graph)
    assert read.nodes[1].inputs == ("split:1", "split", "split", "top:1", "parse:2")
    assert len(read.nodes[4].outputs) == nodes.MOST_OUTPUTS


def test_gradients_of_a_loss_that_is_no_number_say_why(tmp_path):
    def not_a_number():
        tf.reduce_mean(tf.math.log(-1 - graphs.dense()[1]), name="loss")

    stage = walk(written(tmp_path, not_a_number), "backward", loss="loss")["backward"]
    assert (stage.gradient_checks, "the loss is nan" in stage.unchecked) == ((), True)
