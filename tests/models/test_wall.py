"""The wall: the kernel keeps a graph from all that it was not given, whatever is in the graph."""

import json
from pathlib import Path

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from google.protobuf import text_format

from tests import graphs, needs
from tests.commands import run_python
from tflab import models
from tflab.errors import UsageError
from tflab.records.options import Saved

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, needs.LANDLOCK]

# What it prints of each graph: how it ended, and the values of its step
CONFINED = """
import json, os, sys
from tflab.cli import confined, landlock
if sys.argv[1] == "confined":
    readable = (*confined.SYSTEM, *confined.installed(), "/proc/self/cmdline", os.getcwd())
    landlock.confine(readable, [os.environ["TMPDIR"], "/dev/null"])
from tflab.runtime import dumps, tf_import
dumps.prepare()  # else each placement would need another process
tf_import.load()
import tensorflow as tf
from tflab import lifecycle
from tflab.errors import TflabError
from tflab.lifecycle import placement
from tflab.records import Options, Saved
placement.SMALL = 0  # the code of small graphs, which XLA makes in another process, is not wanted
options = Options(steps=2, saved=Saved(trust=True))
for path in sys.argv[2:]:
    ended = "ran"
    try:
        *_, last = lifecycle.walk(path, options)
        ended = "ran " + " ".join(str(value.values) for value in last.values)
    except TflabError as error:
        ended = f"sentence {error}"
    except Exception as error:
        ended = f"traceback {error!r}"
    print(json.dumps([path, ended]), flush=True)
"""
SECRET = "16111213"  # exact in float32, and too long to stand in other values by chance


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with attacks in one folder, and what they want in another."""
    place = tmp_path_factory.mktemp("wall")
    for name in ("work", "outside"):
        (place / name).mkdir()
    (place / "outside" / "secret").write_text(f"{SECRET}\n")
    return place


# Attacks


def write_file(nodes, harm, output=""):
    """Add a node `write`, to which nothing leads."""
    for name, value in (("path", harm), ("content", "harm")):
        node = nodes.add(name=name, op="Const")
        node.attr["dtype"].type = tf.string.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(value)))
    nodes.add(name="write", op="WriteFile", input=[f"path{output}", f"content{output}"])


def behind_an_initialiser(folder, harm):
    graph = graphs.graph_def(graphs.dense)
    write_file(graph.node, harm)
    next(node for node in graph.node if node.name == "w/Assign").input.append("^write")
    return graphs.write(folder / "g.pb", graph)


def behind_a_main_op(folder, harm):
    path = Path(graphs.saved_model_v1(folder / "v1"), "saved_model.pb")
    with graphs.changed(path) as meta:
        write_file(meta.graph_def.node, harm)
        meta.collection_def["saved_model_main_op"].node_list.value.append("write")
    return str(path.parent)


def in_functions(folder, harm):
    """Two functions deep, in a branch."""
    graph = graphs.graph_def(graphs.functions)
    function = next(f for f in graph.library.function if "twice" in f.signature.name)
    write_file(function.node_def, harm, ":output:0")
    function.control_ret["write"] = "write"
    function.signature.control_output.append("write")
    function.signature.is_stateful = True
    return graphs.write(folder / "g.pb", graph)


def behind_a_restore_op(folder, harm):
    path = Path(graphs.meta_graph(folder / "meta"))
    meta = tf1.MetaGraphDef.FromString(path.read_bytes())
    write_file(meta.graph_def.node, harm)
    restore = meta.saver_def.restore_op_name
    next(node for node in meta.graph_def.node if node.name == restore).input.append("^write")
    path.write_bytes(meta.SerializeToString())
    return str(path)


def in_a_function_that_says_it_saves(folder, harm):
    path = Path(in_functions(folder, harm))
    graph = tf1.GraphDef.FromString(path.read_bytes())
    name = next(f.signature.name for f in graph.library.function if "twice" in f.signature.name)
    renamed = str(graph).replace(name, "__inference__traced_save_12")
    return graphs.write(path, text_format.Parse(renamed, tf1.GraphDef()))


def in_a_dataset(folder, harm):
    def element(number):
        with tf.control_dependencies([tf.io.write_file(str(harm), "harm")]):
            return tf.cast(number, tf.float32)

    def build():
        dataset = tf1.data.Dataset.range(9).map(element).repeat()
        tf.identity(tf1.data.make_one_shot_iterator(dataset).get_next(), name="out")

    return graphs.write(folder / "g.pb", graphs.graph_def(build))


def in_a_gradient_function(folder, harm, implements=b""):
    """Nothing calls the function, but the runtime may put it in the place of one that the graph
    calls."""
    graph = graphs.graph_def(graphs.functions)
    called = next(f for f in graph.library.function if "twice" in f.signature.name)
    function = graph.library.function.add()
    function.signature.name = "other"
    write_file(function.node_def, harm, ":output:0")
    if implements:
        called.attr["api_implements"].s = function.attr["api_implements"].s = implements
    else:
        graph.library.gradient.add(function_name=called.signature.name, gradient_func="other")
    return graphs.write(folder / "g.pb", graph)


def in_another_implementation(folder, harm):
    return in_a_gradient_function(folder, harm, b"twice")


SUCCEED = (behind_an_initialiser, behind_a_main_op, in_functions, in_a_dataset)  # without the wall
WAYS = (
    *SUCCEED,
    behind_a_restore_op,
    in_a_function_that_says_it_saves,
    in_a_gradient_function,
    in_another_implementation,
)


def text(secret):
    tf.strings.to_number(tf.io.read_file(str(secret)), name="out")


def dataset(secret):
    lines = tf1.data.TextLineDataset(str(secret)).repeat()
    tf.strings.to_number(tf1.data.make_one_shot_iterator(lines).get_next(), name="out")


def matching(secret):
    tf.size(tf.io.matching_files(f"{secret}*"), name="out")


def shape(secret):
    number = tf.strings.to_number(tf.io.read_file(str(secret)), tf.int32)
    tf.reshape(tf1.placeholder(tf.float32, [None]), tf.stack([number, -1]), name="out")


@pytest.fixture(scope="module")
def attempts(place):
    """The paths of graphs that write or read what is outside."""
    paths = []
    for way in WAYS:
        (place / "work" / way.__name__).mkdir()
        paths.append(way(place / "work" / way.__name__, place / "outside" / f"by_{way.__name__}"))
    for way in (matching, shape, text, dataset):
        graph = graphs.graph_def(lambda way=way: way(place / "outside" / "secret"))
        paths.append(graphs.write(place / "work" / f"{way.__name__}.pb", graph))
    return paths


def ends(place, attempts, way):
    work = str(place / "work")
    done = run_python(place / "work", "-c", CONFINED, way, *attempts, TMPDIR=work, HOME=work)
    return dict(map(json.loads, done.stdout.splitlines())), done.stdout + done.stderr


def test_no_attack_reaches_anything_outside(place, attempts):
    ended, said = ends(place, attempts, "confined")
    assert [*ended] == attempts, said
    assert [end for end in ended.values() if end.startswith("traceback")] == []
    assert SECRET not in said
    assert [path.name for path in (place / "outside").iterdir()] == ["secret"]


def test_without_the_kernel_the_same_attacks_succeed(place, attempts):
    ended, _ = ends(place, attempts, "free")
    written = {path.name for path in (place / "outside").iterdir()} - {"secret"}
    assert {f"by_{way.__name__}" for way in SUCCEED} <= written
    assert {*attempts[-2:]} <= {path for path, end in ended.items() if SECRET in end}, ended


# The whole command, with a model in a folder of downloads


def run(folder, *arguments):
    done = run_python(folder, "-m", "tflab.lifecycle", "--steps", "2", *arguments)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_a_read_that_the_kernel_refuses_says_what_would_be_right(tmp_path):
    (tmp_path / "secret.txt").write_text(SECRET)
    model = graphs.write(tmp_path / "s.pb", graphs.graph_def(lambda: text(tmp_path / "secret.txt")))
    status, said = run(tmp_path, "--model", model)
    assert (status, SECRET in said) == (1, False)
    assert "denied (in node 'ReadFile'). The graph runs confined; --trust runs it unconf" in said


def test_a_checkpoint_that_is_a_link_is_refused_before_anything_is_opened(tmp_path):
    """By the process that starts the confined one, and where the user trusts the graph."""
    model = Path(graphs.meta_graph(tmp_path / "downloads"))
    (data,) = model.parent.glob("*.data-*")
    data.rename(tmp_path / "outside")
    data.symlink_to(tmp_path / "outside")
    why = "is a link to another place, and tflab does not follow it"
    status, said = run(tmp_path, "--model", str(model))
    assert (status, why in said) == (2, True), said
    with pytest.raises(UsageError, match=why):
        models.find(str(model), Saved(trust=True))()


FLOAT = tf.float32.as_datatype_enum


def call(nodes, name, callee, taken):
    """Add a call of a function; return its result."""
    node = nodes.add(name=name, op="PartitionedCall", input=[taken])
    node.attr["f"].func.name = callee
    for ends in ("Tin", "Tout"):
        node.attr[ends].list.type.append(FLOAT)
    return f"{name}:output:0"


def calling(functions):
    """A graph that calls `f0`, and functions that hand their number on through calls of others."""
    graph = graphs.bare(("x", "Placeholder", ()))
    graph.node[0].attr["dtype"].type = FLOAT
    graph.versions.producer = 1882
    call(graph.node, "call", "f0", "x")
    for name, callees in functions.items():
        function = graph.library.function.add()
        function.signature.name, taken = name, "a"
        function.signature.input_arg.add(name="a", type=FLOAT)
        function.signature.output_arg.add(name="b", type=FLOAT)
        for place, callee in enumerate(callees):
            taken = call(function.node_def, f"call{place}", callee, taken)
        function.ret["b"] = taken
    return graph


def endless():
    return calling({"f0": ["f1"], "f1": ["f0"]})


def many():
    """100,000 functions in some 6 MB, which TensorFlow takes much more memory for."""
    graph = calling({"f0": []})
    for number in range(100_000):
        graph.library.function.add().signature.name = f"a_function_with_a_longer_name_{number}"
    return graph


@pytest.mark.parametrize("made", [endless, many], ids=lambda made: made.__name__)
def test_a_graph_that_asks_for_too_much_is_one_sentence_or_shown(made, tmp_path):
    """TensorFlow crashes, or refuses the graph, which is then only parsed."""
    model = graphs.write(tmp_path / "g.pb", made())
    status, said = run(tmp_path, "--model", model, "--stage", "frontend")
    words = "ended the process that ran it, with SIG", "Frontend: Python calls become nodes"
    assert (any(word in said for word in words), "Traceback" in said) == (True, False), said
    assert status == (1 if words[0] in said else 0)
