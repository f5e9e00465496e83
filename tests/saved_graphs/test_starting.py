"""First values of variables and tables: from checkpoints and assets in the ways of TensorFlow 1."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests import graphs
from tflab import lifecycle
from tflab.errors import TflabError
from tflab.records.options import Options, Saved
from tflab.runtime import session
from tflab.saved_graphs import graph_files

pytestmark = pytest.mark.tensorflow


def started(path, tensor, values=()):
    """The value of a tensor once the graph of a file has its first values, and what it says."""
    stage = next(lifecycle.walk(str(path), Options(saved=Saved(side_effects=True)), "frontend"))
    program = stage.program
    with session.fresh(program.graph, Options()) as live:
        session.begin(live, session.start_of(program))
        return live.run(tensor, dict(values)), stage.notes


def old_checkpoint(folder, sharded=False):
    """A `.meta` beside a checkpoint of the format before 2016, and the value of its variable."""
    with tf.Graph().as_default(), tf1.Session() as live:
        graphs.reference_variables()
        live.run(tf1.global_variables_initializer())
        saver = tf1.train.Saver(write_version=tf1.train.SaverDef.V1, sharded=sharded)
        saver.save(live, str(folder / "model.ckpt"))
        return folder / "model.ckpt.meta", live.run("w:0")


@pytest.mark.parametrize("sharded", [False, True])
def test_a_checkpoint_of_the_first_format_gives_the_values(sharded, tmp_path):
    path, values = old_checkpoint(tmp_path, sharded)
    assert not list(tmp_path.glob("*.index"))
    read, notes = started(path, "w:0")
    assert np.array_equal(read, values)
    shards = "-?????-of-00001" if sharded else ""
    assert f"Variables have the values of '{tmp_path / 'model.ckpt'}{shards}'." in notes


def test_another_file_of_that_name_is_no_checkpoint(tmp_path):
    path, _ = old_checkpoint(tmp_path)
    (tmp_path / "model.ckpt").write_bytes(b"a log of the training\n" * 100)
    assert graph_files.read(path).checkpoint is None
    _, notes = started(path, "w:0")
    assert "1 variable has the values of the initialisers." in notes


def test_a_checkpoint_that_nothing_restores_is_said_not_to_be_read(tmp_path):
    path = graphs.meta_graph(tmp_path / "meta")
    bare = graphs.write(tmp_path / "meta" / "g.pb", graph_files.read(Path(path)).graph_def)
    _, notes = started(bare, "w/Read/ReadVariableOp:0")
    assert notes[-2] == (
        "5 variables have the values of the initialisers. The checkpoint "
        f"'{tmp_path / 'meta' / 'model'}' beside it was not read, because the file "
        "does not name an op that restores it, as a MetaGraphDef does."
    )


def vocabulary(folder):
    """A SavedModel of TensorFlow 1 that looks words up in a file of its assets."""
    words = folder / "words.txt"
    words.write_text("a\nb\n")
    with tf.Graph().as_default(), tf1.Session() as live:
        file = tf.constant(str(words))
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, file)
        index = tf.lookup.TextFileIndex
        lines = tf.lookup.TextFileInitializer(
            file, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )
        x = tf1.placeholder(tf.string, [None], name="words")
        y = tf.identity(tf.lookup.StaticHashTable(lines, -1).lookup(x), name="numbers")
        builder = tf1.saved_model.Builder(str(folder / "saved"))
        builder.add_meta_graph_and_variables(
            live,
            ["serve"],
            {"serving_default": tf1.saved_model.predict_signature_def({"x": x}, {"y": y})},
            assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
            main_op=tf1.tables_initializer(),
        )
        builder.save()
    words.unlink()
    return folder / "saved"


def test_assets_in_the_collection_of_tensorflow_1_are_found_where_the_model_is_now(tmp_path):
    folder = shutil.move(vocabulary(tmp_path), tmp_path / "moved")
    assert not graph_files.read(folder).meta.asset_file_def  # they are in the collection alone
    numbers, _ = started(folder, "numbers:0", {"words:0": ["b", "c", "a"]})
    assert list(numbers) == [1, -1, 0]


def with_saver_of(folder, **fields) -> str:
    """A MetaGraph whose saver says something else of its graph."""
    path = Path(graphs.meta_graph(folder / "meta"))
    meta = tf1.MetaGraphDef.FromString(path.read_bytes())
    for name, value in fields.items():
        setattr(meta.saver_def, name, value)
    pair = meta.graph_def.node.add(name="pair", op="Placeholder")
    pair.attr["dtype"].type = tf.string.as_datatype_enum
    pair.attr["shape"].shape.dim.add(size=2)
    path.write_bytes(meta.SerializeToString())
    return str(path)


@pytest.mark.parametrize(
    "tensor, wrong",
    [
        ("x:0", "which is float32"),
        ("pair:0", "which has the shape (2,)"),
        ("save/Const:1", "which is not in its graph"),
        ("gone:0", "which is not in its graph"),
        ("save/Const", "which is not in its graph"),
    ],
)
def test_a_saver_that_takes_its_path_from_no_string_is_shown_and_said(tensor, wrong, tmp_path):
    path = with_saver_of(tmp_path, filename_tensor_name=tensor)
    stages = lifecycle.walk(path)
    assert next(stages).nodes
    next(stages)
    with pytest.raises(TflabError) as error:
        next(stages)
    assert str(error.value) == (
        f"'{path}' says that '{tensor}' takes the path of its files, {wrong}; it must be one "
        "string. Save it again, or show only its graph with --stage frontend."
    )


def test_a_saver_whose_restoring_node_is_not_there_is_said(tmp_path):
    path = with_saver_of(tmp_path, restore_op_name="gone")
    with pytest.raises(TflabError, match=r"says that 'gone' restores or initialises it, but its"):
        list(lifecycle.walk(path))
