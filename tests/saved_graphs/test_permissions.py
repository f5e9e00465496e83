"""Permissions: no run reaches a file without leave, whatever in the graph leads to it."""

from contextlib import contextmanager
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format

from tests import graphs
from tflab import lifecycle
from tflab.__main__ import main
from tflab.cli import confinement
from tflab.errors import EffectsError
from tflab.records.options import Options, Saved
from tflab.runtime import session
from tflab.saved_graphs import graph_files, permissions, reach

pytestmark = pytest.mark.tensorflow


def walk(path, stop="placement", fetches=(), **saved):
    chosen = Options(steps=2, fetches=fetches, saved=Saved(**saved))
    return dict(zip(lifecycle.STAGES, lifecycle.walk(str(path), chosen, stop), strict=False))


def add_text(nodes, name, value):
    node = nodes.add(name=name, op="Const")
    node.attr["dtype"].type = tf.string.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(value)))


def write_file(graph_def, name, path):
    """Add a WriteFile of this name to a graph or function, where nothing leads to it."""
    nodes = graph_def if hasattr(graph_def, "add") else graph_def.node
    suffix = "" if nodes is getattr(graph_def, "node", None) else ":output:0"
    add_text(nodes, f"{name}/path", path)
    add_text(nodes, f"{name}/content", "harm")
    inputs = [f"{name}/path{suffix}", f"{name}/content{suffix}"]
    nodes.add(name=name, op="WriteFile", input=inputs)


def variable_graph():
    value = tf1.get_variable("v", [], use_resource=True).read_value()
    tf.identity(value * 2.0, name="out")


def behind_an_initialiser(folder, harm):
    graph = graphs.graph_def(variable_graph)
    write_file(graph, "write", harm)
    next(node for node in graph.node if node.name == "v/Assign").input.append("^write")
    return graphs.write(folder / "g.pb", graph)


@contextmanager
def changed(path):
    """The graph of a SavedModel, which is written again with what was changed."""
    saved = graph_files.private.saved_model()
    saved.ParseFromString(path.read_bytes())
    yield saved.meta_graphs[0]
    path.write_bytes(saved.SerializeToString())


def behind_a_main_op(folder, harm):
    path = Path(graphs.saved_model_v1(folder / "v1"), "saved_model.pb")
    with changed(path) as meta:
        write_file(meta.graph_def, "write", harm)
        meta.collection_def["saved_model_main_op"].node_list.value.append("write")
    return str(path.parent)


def behind_a_restore_op(folder, harm):
    path = Path(graphs.meta_graph(folder / "meta"))
    meta = tf1.MetaGraphDef.FromString(path.read_bytes())
    write_file(meta.graph_def, "write", harm)
    restore = meta.saver_def.restore_op_name
    next(node for node in meta.graph_def.node if node.name == restore).input.append("^write")
    path.write_bytes(meta.SerializeToString())
    return str(path)


def in_functions(folder, harm, rename=None):
    """Two functions deep, in a branch."""
    graph = graphs.graph_def(graphs.functions)
    name = next(f.signature.name for f in graph.library.function if "twice" in f.signature.name)
    function = next(f for f in graph.library.function if f.signature.name == name)
    write_file(function.node_def, "write", harm)
    function.control_ret["write"] = "write"
    function.signature.control_output.append("write")
    function.signature.is_stateful = True
    text = str(graph).replace(name, rename or name)
    return graphs.write(folder / "g.pb", text_format.Parse(text, tf1.GraphDef()))


def in_a_function_that_says_it_saves(folder, harm):
    return in_functions(folder, harm, rename="__inference__traced_save_12")


def in_a_dataset(folder, harm):
    def build():
        def element(number):
            with tf.control_dependencies([tf.io.write_file(str(harm), "harm")]):
                return tf.cast(number, tf.float32)

        dataset = tf1.data.Dataset.range(9).map(element).repeat()
        tf.identity(tf1.data.make_one_shot_iterator(dataset).get_next(), name="out")

    return graphs.write(folder / "g.pb", graphs.graph_def(build))


def in_a_gradient_function(folder, harm):
    """Nothing calls it but the gradient of a function that the graph calls."""
    graph = graphs.graph_def(graphs.functions)
    called = next(f.signature.name for f in graph.library.function if "twice" in f.signature.name)
    function = graph.library.function.add()
    function.signature.name = "backwards"
    write_file(function.node_def, "write", harm)
    graph.library.gradient.add(function_name=called, gradient_func="backwards")
    return graphs.write(folder / "g.pb", graph)


def in_another_implementation(folder, harm):
    """A pass of the runtime may choose it in place of one that the graph calls."""
    graph = graphs.graph_def(graphs.functions)
    called = next(f for f in graph.library.function if "twice" in f.signature.name)
    called.attr["api_implements"].s = b"twice"
    function = graph.library.function.add()
    function.signature.name = "other"
    function.attr["api_implements"].s = b"twice"
    write_file(function.node_def, "write", harm)
    return graphs.write(folder / "g.pb", graph)


WAYS = (
    behind_an_initialiser,
    behind_a_main_op,
    behind_a_restore_op,
    in_functions,
    in_a_function_that_says_it_saves,
    in_a_dataset,
    in_a_gradient_function,
    in_another_implementation,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_way_leads_round_the_gate(way, tmp_path):
    harm = tmp_path / "harm"
    path = way(tmp_path, harm)
    assert walk(path, "frontend")["frontend"].nodes
    with pytest.raises(EffectsError, match=r"write \(WriteFile\) writes files|WriteFile \(Write"):
        walk(path)
    assert not harm.exists()


def test_with_leave_it_runs(tmp_path):
    harm = tmp_path / "harm"
    assert walk(behind_an_initialiser(tmp_path, harm), side_effects=True)["placement"].nodes
    assert harm.read_text() == "harm"


def test_the_refusal_is_one_sentence_on_the_command_line(tmp_path, capsys):
    path = behind_an_initialiser(tmp_path, tmp_path / "harm")
    option = "--allow-write FOLDER" if confinement.is_available() else "--allow-side-effects"
    said = (
        f"tflab: Running '{path}' may affect more than tensors: write (WriteFile) writes files. "
        f"Give {option} if you trust it."
        f"\n"
    )
    for command in ("lifecycle", "compare", "follow out"):
        assert main([*command.split(), "--model", path]) == 2
        assert capsys.readouterr().err.endswith(said)
    assert main(["lifecycle", "--model", path, "--stage", "frontend"]) == 0
    assert not (tmp_path / "harm").exists()


def test_what_nothing_leads_to_does_not_count(tmp_path):
    graph = graphs.graph_def(graphs.dense)
    write_file(graph, "write", tmp_path / "harm")
    function = graph.library.function.add()
    function.signature.name = "lonely"
    write_file(function.node_def, "write", tmp_path / "harm")
    assert walk(graphs.write(tmp_path / "g.pb", graph))["placement"].nodes
    with pytest.raises(EffectsError):
        walk(tmp_path / "g.pb", fetches=("write",))


def test_what_lies_behind_a_feed_does_not_count():
    graph = graphs.bare(("read", "ReadFile", ("path",)), ("x", "Identity", ("read",)))
    graph.node.add(name="y", op="Identity", input=["x:0"])
    assert [node.name for node in reach.nodes_reached(graph, ["y:0"], fed=["x:0"])] == ["y"]
    assert [node.name for node in reach.nodes_reached(graph, ["y"], fed=["y:0"])] == []
    assert [node.name for node in reach.nodes_reached(graph, ["^y"])] == ["read", "x", "y"]


@pytest.mark.parametrize("make", [graphs.saved_model_v1, graphs.saved_model_v2, graphs.meta_graph])
def test_the_checkpoint_beside_a_graph_is_restored_without_leave(make, tmp_path):
    stage = walk(make(tmp_path / "graph"), "frontend")["frontend"]
    assert any("Variables have the values of" in note for note in stage.notes)
    session.start_of(stage.program)  # is let through


def test_a_restore_of_another_file_than_the_checkpoint_needs_leave(tmp_path):
    path = Path(graphs.meta_graph(tmp_path / "meta"))
    meta = tf1.MetaGraphDef.FromString(path.read_bytes())
    restore = next(node for node in meta.graph_def.node if node.op == "RestoreV2")
    restore.input[0] = "elsewhere"
    add_text(meta.graph_def.node, "elsewhere", "/somewhere/else")
    path.write_bytes(meta.SerializeToString())
    with pytest.raises(EffectsError, match=r"\(RestoreV2\) reads files"):
        walk(path)


class Words(tf.Module):
    """A table that is read from a file among the assets."""

    def __init__(self, path):
        self.words = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                *(str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE),
                *(tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            ),
            1,
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, x):
        return self.words.lookup(x)


@pytest.fixture
def words(tmp_path):
    """A SavedModel with such a table."""
    (tmp_path / "words.txt").write_text("one\ntwo\n")
    model = Words(tmp_path / "words.txt")
    tf.saved_model.save(model, str(tmp_path / "saved"), model.__call__.get_concrete_function())
    (tmp_path / "words.txt").unlink()
    return tmp_path / "saved"


def test_an_asset_of_a_saved_model_is_read_without_leave(words):
    program = walk(words)["placement"].program
    start = session.start_of(program)
    with session.opened(program.graph, Options(), start) as live:
        fed = {"serving_default_x:0": ["two", "one"]}
        assert live.run(program.model.output, fed).tolist() == [1, 0]


def test_an_asset_that_is_a_link_out_of_the_folder_needs_leave(words, tmp_path):
    (words / "assets").rename(tmp_path / "elsewhere")
    (words / "assets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EffectsError, match=r"FromTextFileV2\) reads files"):
        walk(words)


def through_a_variable(*more, alias=None):
    graph = graphs.bare(
        *(("path", "Placeholder", ()), ("v", "VarHandleOp", ())),
        *(
            ("assign", "AssignVariableOp", ("v", "path")),
            ("get", "ReadVariableOp", ("v", "^assign")),
        ),
        *(("read", "InitializeTableFromTextFileV2", ("table", "get")), *more),
    )
    graph.node.extend([alias] if alias else [])
    nodes = reach.nodes_reached(graph, ["read"], ["path:0"], ["path:0"])
    return [effect.what for effect in permissions.effects(nodes)]


def test_a_path_goes_through_a_variable_that_holds_nothing_else():
    assert through_a_variable() == []
    assert through_a_variable(("look", "VarIsInitializedOp", ("v",))) == []
    for more in (
        ("again", "AssignVariableOp", ("v", "other")),
        ("call", "StatefulPartitionedCall", ("v",)),
    ):
        assert through_a_variable(more) == ["reads files"]


def handle(name, op="VarHandleOp", shared=None):
    node = tf1.NodeDef(name=name, op=op)
    if shared is not None and op == "VarHandleOp":
        node.attr["shared_name"].s = shared
    elif shared is not None:
        node.attr["shared_names"].list.s.append(shared)
    return node


@pytest.mark.parametrize(
    ("alias", "variable"),
    [
        (handle("alias", shared=b"v"), handle("v", shared=b"v")),
        (handle("alias", "_VarHandlesOp", b"v"), handle("v", shared=b"v")),
        (handle("alias"), handle("v")),  # all without a shared name are one
        (handle("alias", shared=b""), handle("v")),
        (handle("v"), handle("other", shared=b"v")),
    ],
)
def test_another_handle_of_a_variable_is_seen(alias, variable):
    assert reach.may_be_same(alias, variable)
    assert reach.may_be_same(variable, alias)
    assert not reach.may_be_same(alias, handle("w", shared=b"w"))
    if variable.name == "v" and not variable.attr:
        assert through_a_variable(alias=alias) == ["reads files"]


def test_a_variable_without_a_shared_name_has_other_handles_in_functions():
    graph = graphs.bare(
        *(("path", "Placeholder", ()), ("v", "VarHandleOp", ())),
        *(("assign", "AssignVariableOp", ("v", "path")), ("get", "ReadVariableOp", ("v",))),
        ("read", "ReadFile", ("get",)),
    )

    def effects():
        nodes = reach.nodes_reached(graph, ["read"], ["path:0"], ["path:0"])
        return [effect.what for effect in permissions.effects(nodes)]

    assert effects() == []
    function = graph.library.function.add()
    function.signature.name = "f"
    function.node_def.append(handle("mine"))
    assert effects() == ["reads files"]


def test_a_path_is_followed_through_thousands_of_nodes_and_calls():
    graph = graphs.bare(("path", "Placeholder", ()))
    for number in range(4_000):
        before = f"same{number - 1}" if number else "path"
        graph.node.add(name=f"same{number}", op="Identity", input=[before])
    graph.node.add(name="call", op="PartitionedCall", input=["same3999"])
    graph.node[-1].attr["f"].func.name = "f0"
    for number in range(3_000):
        function = graph.library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="path", type=tf.string.as_datatype_enum)
        if number == 2_999:
            function.node_def.add(name="read", op="ReadFile", input=["path"])
            break
        call = function.node_def.add(name="call", op="PartitionedCall", input=["path"])
        call.attr["f"].func.name = f"f{number + 1}"

    def effects(given):
        return [
            e.node
            for e in permissions.effects(reach.nodes_reached(graph, ["call"], ["path:0"], given))
        ]

    assert effects(["path:0"]) == []
    assert effects([]) == ["f2999/read"]


def test_an_argument_of_several_tensors_does_not_pass_a_path_to_its_neighbour():
    """With N = 2 the function's `path` is the third tensor, which is not tflab's."""
    graph = graphs.bare(
        *(("own", "Placeholder", ()), ("evil", "Const", ())),
        ("call", "PartitionedCall", ("evil", "own", "evil")),
    )
    graph.node[2].attr["f"].func.name = "f"
    function = graph.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="some", type=7, number_attr="N")
    function.signature.input_arg.add(name="path", type=7)
    function.node_def.add(name="read", op="ReadFile", input=["path"])

    def effects():
        nodes = reach.nodes_reached(graph, ["call"], ["own:0"], ["own:0"])
        return [effect.node for effect in permissions.effects(nodes)]

    assert effects() == ["f/read"]
    function.signature.input_arg[0].number_attr = ""
    assert effects() == []


def asset_model(folder, asset, text=b"7\n"):
    """A SavedModel of which the number of rows is in an asset; the graph names another file."""
    path = Path(graphs.saved_model_v1(folder / "v1"), "saved_model.pb")
    with changed(path) as meta:
        add_text(meta.graph_def.node, "asset", folder / "secret")
        meta.graph_def.node.add(name="read", op="ReadFile", input=["asset"])
        meta.asset_file_def.add(filename=asset).tensor_info.name = "asset:0"
    (path.parent / "assets").mkdir()
    (path.parent / "assets" / "rows").write_bytes(text)
    (folder / "secret").write_text("open sesame")
    return path.parent


def test_an_asset_is_read_as_a_file_without_leave_and_no_other_file_is(tmp_path):
    stages = walk(asset_model(tmp_path, "rows"), "placement", fetches=("read:0",))
    program = stages["placement"].program
    with session.opened(program.graph, Options(), session.start_of(program)) as live:
        assert live.run("read:0") == b"7\n"


def test_an_asset_outside_of_its_folder_is_not_read(tmp_path):
    with pytest.raises(EffectsError, match=r"read \(ReadFile\) reads files"):
        walk(asset_model(tmp_path, "../../secret"), "placement", fetches=("read:0",))


# What TensorFlow evaluates before anything is run


def shape_from_a_file(path):
    number = tf.strings.to_number(tf.io.read_file(str(path)), tf.int32)
    x = tf1.placeholder(tf.float32, [None], name="x")
    tf.reshape(x, tf.stack([number, -1]), name="out")


def test_the_import_does_not_read_a_file_that_a_shape_depends_on(tmp_path):
    (tmp_path / "number").write_text("7")
    path = graphs.write(
        tmp_path / "g.pb", graphs.graph_def(lambda: shape_from_a_file(tmp_path / "number"))
    )
    (tmp_path / "number").write_text("4")

    def shape(**saved):
        listed = walk(path, "frontend", **saved)["frontend"].nodes
        return next(node for node in listed if node.name == "out").outputs[0].shape

    assert shape() == (None, None)
    assert shape(side_effects=True) == (4, None)
    with pytest.raises(EffectsError, match=r"ReadFile \(ReadFile\) reads files"):
        walk(path)


def test_a_reader_that_a_pass_may_evaluate_counts_although_nothing_leads_to_it(tmp_path):
    def build():
        graphs.dense()
        tf.io.read_file("somewhere", name="read")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(build))
    with pytest.raises(EffectsError, match=r"read \(ReadFile\) reads files"):
        walk(path, fetches=("y",))


def test_what_follows_from_constants_is_known():
    graph = graphs.bare(
        *(("c", "Const", ()), ("read", "ReadFile", ("c",)), ("x", "Placeholder", ())),
        *(("both", "Add", ("read", "x")), ("random", "RandomUniform", ("c",))),
        *(("a", "Identity", ("b",)), ("b", "Identity", ("a",))),
    )
    assert [node.name for node in permissions.evaluated_early(graph)] == ["c", "read"]


def test_a_function_that_a_constant_goes_into_is_locked_with_its_reader():
    graph = graphs.bare(("c", "Const", ()), ("call", "PartitionedCall", ("c",)))
    graph.node[1].attr["f"].func.name = "f"
    function = graph.library.function.add()
    function.signature.name = "f"
    function.signature.input_arg.add(name="path", type=tf.string.as_datatype_enum)
    function.node_def.add(name="read", op="ReadFile", input=["path"])
    before = graph.SerializeToString(deterministic=True)
    locked = permissions.locked(graph)
    assert permissions.LOCK in locked.library.function[0].node_def[0].attr
    assert graph.SerializeToString(deterministic=True) == before
    graph.node[1].input[0] = "x"
    assert permissions.locked(graph) is graph


def test_a_path_of_tflabs_own_is_followed_into_functions_but_not_through_other_ops():
    graph = graphs.bare(
        *(("path", "Placeholder", ()), ("same", "Identity", ("path",))),
        *(("call", "StatefulPartitionedCall", ("same",)), ("other", "StringJoin", ("path",))),
        ("again", "StatefulPartitionedCall", ("other",)),
    )
    for node in (graph.node[2], graph.node[4]):
        node.attr["f"].func.name = "restore"
    function = graph.library.function.add()
    function.signature.name = "restore"
    function.signature.input_arg.add(name="prefix", type=tf.string.as_datatype_enum)
    function.node_def.add(name="read", op="RestoreV2", input=["prefix", "n", "s"])

    def effects(target):
        nodes = reach.nodes_reached(graph, [target], ["path:0"], ["path:0"])
        return [effect.node for effect in permissions.effects(nodes)]

    assert effects("call") == []
    assert effects("again") == ["restore/read"]


def test_gradients_of_a_gated_loss_are_derived_but_not_checked(tmp_path):
    def build():
        variable = tf1.get_variable("v", [], use_resource=True)
        with tf.control_dependencies([tf.io.write_file(str(tmp_path / "harm"), "harm")]):
            tf.square(variable.read_value(), name="loss")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(build))
    stage = walk(path, "backward", loss="loss")["backward"]
    assert stage.gradients
    assert "nothing was run. Running" in stage.unchecked
    assert not (tmp_path / "harm").exists()


def test_no_message_has_what_is_in_a_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")

    def build():
        sampled = tf.random.fixed_unigram_candidate_sampler(
            tf.constant([[0]], tf.int64), 1, 1, True, 2, vocab_file=str(secret)
        )
        tf.identity(sampled[0], name="out")

    path = graphs.write(tmp_path / "g.pb", graphs.graph_def(build))
    assert walk(path, "backward")
    with pytest.raises(EffectsError) as error:
        walk(path)
    assert "FixedUnigramCandidateSampler" in str(error.value)
    assert "sesame" not in str(error.value)
