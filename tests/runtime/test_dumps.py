"""Dumps: files become snapshots in their order, and what is not understood is said."""

import contextlib
import os
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf1

from tests.approval import approve, refused
from tests.commands import run_python
from tests.examples.corners import lost
from tflab.records.graph import Node
from tflab.records.options import Options
from tflab.records.placed import Snapshot
from tflab.runtime import dumps, session

pytestmark = pytest.mark.tensorflow


def test_a_folder_without_dumps_is_a_sentence(tmp_path):
    lost(lambda: dumps.read(tmp_path), "The graph dumps of the runtime")


# Files


def name_of(index):
    return f"unknown_graph.{index:04}.main.before_opt_group_post_placement.pb"


def write(folder, name, *node_names, time_ns=None):
    """A dump of constants."""
    nodes = [{"name": node, "op": "Const"} for node in node_names]
    (folder / name).write_bytes(tf1.GraphDef(node=nodes).SerializeToString())
    if time_ns is not None:
        os.utime(folder / name, ns=(time_ns, time_ns))


def first_nodes(folder):
    return [snapshot.nodes[0].name for snapshot in dumps.read(folder)]


def test_dumps_are_in_the_order_in_which_they_were_written(tmp_path):
    """Those of the same moment are in the order in which they were created."""
    for index, time_ns in {1: 3_000, 7: 1_000, 3: 1_000, 5: 1_000, 2: 2_000}.items():
        write(tmp_path, name_of(index), f"n{index}", time_ns=time_ns)
    assert first_nodes(tmp_path) == ["n7", "n3", "n5", "n2", "n1"]


def test_grapplers_dumps_of_function_bodies_are_left_out(tmp_path):
    """It optimises them after the graph, and only an address distinguishes them."""
    for of, label in ((140734550840736, "graph"), (140734550839280, "body")):
        write(tmp_path, f"before_{GRAPPLER}0_{of}.pb", label)
        write(tmp_path, f"after_{GRAPPLER}0_model_pruner_{of}.pb", label)
    for name in (f"before_{GRAPPLER}0_140734550840736_1", "after_MetaOptimizer_140734550840736"):
        write(tmp_path, f"{name}.pb", "graph")
    write(tmp_path, name_of(360), "graph")
    assert first_nodes(tmp_path) == ["graph"] * 5


def test_a_file_that_is_no_graph_is_a_sentence(tmp_path):
    (tmp_path / name_of(1)).write_bytes(b"no graph")
    said = refused(dumps.read, tmp_path)
    assert said.startswith(f"TflabError: The graph dump '{name_of(1)}' is not a GraphDef: ")


def test_a_dump_becomes_nodes_and_clusters_and_one_that_a_pass_left_alone_is_the_same_object():
    marked = {"_XlaCluster": tf1.AttrValue(s=b"cluster_0")}
    x = {"name": "x", "op": "Const", "device": "/device:CPU:1"}
    a = {"name": "a", "op": "Add", "input": ["x", "s:1", "^x", "^s"], "attr": marked}
    known = {}
    content = tf1.GraphDef(node=[x, a]).SerializeToString()
    first = (Node("x", "Const", device="/device:CPU:1"), Node("a", "Add", ("x", "s:1"), ("x", "s")))
    nodes, clusters = dumps.parse("file", content, known)
    assert (nodes, clusters) == (first, {"a": "cluster_0"})
    changed = tf1.GraphDef(node=[x, a | {"op": "Abs"}], library={"function": [{}]})
    again, _ = dumps.parse("b", changed.SerializeToString(), known)
    assert [node.op for node in again] == ["Const", "Abs"]
    assert again[0] is nodes[0]


# Names of files

CPU = "_partition__job:localhost_replica:0_task:0_device:CPU:0"
# The names that TensorFlow 2.21 gives: they differ in moment, group, pass, iteration and
# partition.
GRAPPLER, PHASE = "MetaOptimizer_iteration_", "unknown_graph.0336.graph_opt_pass.after_opt_group_"
NAMES = (
    f"before_{GRAPPLER}0_140728391191584.pb",
    f"after_{GRAPPLER}0_model_pruner_140728391191584.pb",
    f"after_{GRAPPLER}1_tfg_optimizer{{any(tfg-consolidate-attrs,tfg-toposort,"
    "tfg-shape-inference{graph-version=0},tfg-prepare-attrs-export)}_140725673955776.pb",
    f"after_{GRAPPLER}1_auto_mixed_precision_onednn_bfloat16_140728391191584.pb",
    f"after_{GRAPPLER}1_140728391191584_1.pb",
    f"after_{GRAPPLER}0_remapper_140728391191584_12.pb",
    "after_MetaOptimizer_140728391191584.pb",
    "unknown_graph.0330.main.before_opt_group_pre_placement.pb",
    f"{PHASE}pre_placement_phase_36_EncapsulateXlaComputationsPass.pb",
    "unknown_graph.0360.main.before_opt_group_post_rewrite_for_exec.pb",
    f"unknown_graph{CPU}.0052.main.before_opt_group_post_partitioning.pb",
    f"unknown_graph{CPU}.0076.graph_opt_pass.after_opt_group_post_partitioning_phase_1_"
    "MklLayoutRewritePass.pb",
)
OF_FUNCTIONS = (  # that a step calls: none of its graph
    "__inference_Dataset_flat_map_14.0000.main.initial.pb",
    "step_of.0031.graph_opt_pass.after_opt_group_pre_placement.pb",
)


def test_the_name_of_a_file_says_which_moment_it_shows():
    said = []
    for file in NAMES:
        name, address = dumps.dump_name(file)
        parts = (name.moment, name.group, name.name, name.iteration, name.partition, address)
        said += [file, f"  {' '.join(map(str, parts))}"]
    approve("dump-names.txt", "\n".join(said))
    of_functions = [file for file in (*NAMES, *OF_FUNCTIONS) if dumps.OF_FUNCTION.fullmatch(file)]
    assert of_functions == [*OF_FUNCTIONS]


def test_another_name_is_a_sentence():
    whole = "unknown_graph.0330.main.before_opt_group_pre_placement.pb"
    grappler = "after_MetaOptimizer_iteration_0_model_pruner.pb"
    for file in (grappler, f"{whole}txt", whole.replace("opt_group_pre_placement", "placer"), ""):
        lost(lambda file=file: dumps.dump_name(file), "The moment of a graph dump")


def test_a_snapshot_has_what_the_name_of_its_file_says(tmp_path):
    last = f"unknown_graph{CPU}.0076.graph_opt_pass.after_opt_group_post_partitioning_phase_1_M.pb"
    write(tmp_path, f"after_{GRAPPLER}1_remapper_140728391191584.pb", "x")
    write(tmp_path, last, "x")
    nodes = (Node("x", "Const"),)
    assert dumps.read(tmp_path) == [
        Snapshot("after", "grappler", "remapper", 1, None, nodes, {}),
        Snapshot("after", "post_partitioning", "M", None, CPU, nodes, {}),
    ]


# The environment


@pytest.mark.parametrize("fails", [False, True])
def test_dumps_go_to_a_folder_only_while_it_is_open(fails, tmp_path):
    with contextlib.suppress(ZeroDivisionError), dumps.dump_into(tmp_path):
        assert os.environ[dumps.DUMP_FOLDER] == str(tmp_path)
        assert 1 / (not fails)
    assert dumps.DUMP_FOLDER not in os.environ


PREPARING = """
import importlib, os, sys
from tflab.runtime import dumps
print(dumps.prepare())
dumps.prepare().lstat()
print(os.environ["XLA_FLAGS"])
print(os.environ["TF_XLA_FLAGS"])
sys.modules["tensorflow"] = sys
print(importlib.reload(dumps).prepare())
"""


@pytest.mark.slow
def test_a_process_is_prepared_before_tensorflow_is_loaded_and_keeps_the_flags_of_its_user():
    """The folder for generated code goes with it, and no flag is repeated."""
    flag = "--tf_xla_cpu_global_jit"
    own = {"XLA_FLAGS": "--xla_my_own", "TF_XLA_FLAGS": flag}
    done = run_python(Path.cwd(), "-c", PREPARING, **own)
    folder, xla, of_tensorflow, late = done.stdout.splitlines()
    assert folder.startswith("/") and not Path(folder).exists()
    assert xla.startswith("--xla_my_own --xla_dump_to=")
    assert (of_tensorflow, late) == (flag, "None")


def test_the_runtime_makes_graphs_to_dump_only_while_a_folder_is_open(tmp_path, monkeypatch):
    """It would make them without a folder too, which takes longer than to prepare the step."""

    def dumped_by_a_step():
        with tf1.Graph().as_default() as graph:
            tf1.placeholder_with_default(1.0, [], name="x")
        with session.fresh(graph, Options()) as live:
            live.run("x:0")
        return sum(name.startswith("unknown_graph") for name in os.listdir(tmp_path))

    with dumps.dump_into(tmp_path):
        count = dumped_by_a_step()
    assert count > 10
    monkeypatch.setenv(dumps.DUMP_FOLDER, str(tmp_path))
    assert dumped_by_a_step() == count
