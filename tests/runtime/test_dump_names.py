"""Dump names: they say which moment a dump shows, and what is not understood is said."""

import pytest

from tests.examples.corners import BEGINS, WORKS
from tflab.cli import environment
from tflab.errors import TflabError
from tflab.runtime import dumps

CPU = "_partition__job:localhost_replica:0_task:0_device:CPU:0"
# The names that TensorFlow 2.21 gives: they differ in moment, group, pass, iteration and
# partition.
GRAPPLER, PHASE = "MetaOptimizer_iteration_", "unknown_graph.0336.graph_opt_pass.after_opt_group_"
NAMES = {
    f"before_{GRAPPLER}0_140728391191584.pb": "before grappler None 0 None",
    f"after_{GRAPPLER}0_model_pruner_140728391191584.pb": "after grappler model_pruner 0 None",
    f"after_{GRAPPLER}1_tfg_optimizer{{any(tfg-consolidate-attrs,tfg-toposort,"
    "tfg-shape-inference{graph-version=0},tfg-prepare-attrs-export)}_140725673955776.pb": (
        "after grappler tfg_optimizer 1 None"
    ),
    f"after_{GRAPPLER}1_auto_mixed_precision_onednn_bfloat16_140728391191584.pb": (
        "after grappler auto_mixed_precision_onednn_bfloat16 1 None"
    ),
    f"after_{GRAPPLER}1_140728391191584_1.pb": "after grappler None 1 None",
    f"after_{GRAPPLER}0_remapper_140728391191584_12.pb": "after grappler remapper 0 None",
    "after_MetaOptimizer_140728391191584.pb": "after grappler None None None",
    "unknown_graph.0330.main.before_opt_group_pre_placement.pb": (
        "before pre_placement None None None"
    ),
    f"{PHASE}pre_placement_phase_36_EncapsulateXlaComputationsPass.pb": (
        "after pre_placement EncapsulateXlaComputationsPass None None"
    ),
    "unknown_graph.0360.main.before_opt_group_post_rewrite_for_exec.pb": (
        "before post_rewrite_for_exec None None None"
    ),
    f"unknown_graph{CPU}.0052.main.before_opt_group_post_partitioning.pb": (
        f"before post_partitioning None None {CPU}"
    ),
    f"unknown_graph{CPU}.0076.graph_opt_pass.after_opt_group_post_partitioning_phase_1_"
    "MklLayoutRewritePass.pb": f"after post_partitioning MklLayoutRewritePass None {CPU}",
}


@pytest.mark.parametrize("file", NAMES)
def test_the_name_of_a_file_says_which_moment_it_shows(file):
    name = dumps.dump_name(file)
    said = (name.moment, name.group, name.name, name.iteration, name.partition)
    assert " ".join(map(str, said)) == NAMES[file]
    if name.group == "grappler":  # the address of its graph
        assert name.address in ("140728391191584", "140725673955776")


@pytest.mark.parametrize(
    "file",
    [
        "after_MetaOptimizer_iteration_0_model_pruner.pb",
        "unknown_graph.0330.main.before_opt_group_pre_placement.pbtxt",
        "unknown_graph.0330.main.before_placer.pb",
        "",
    ],
)
def test_another_name_is_a_sentence(file):
    with pytest.raises(TflabError) as error:
        dumps.dump_name(file)
    assert f": a dump is called '{file}'. " in str(error.value)


def test_another_name_and_no_dumps_at_all_are_sentences(monkeypatch):
    monkeypatch.setattr(environment, "version", lambda package: "2.22.0")
    where = "(tensorflow/core/util/debug_data_dumper.cc)"
    works = f"This is TensorFlow 2.22.0. Placement works without the pass log. {WORKS}"
    with pytest.raises(TflabError) as error:
        dumps.dump_name("placer_input.pbtxt")
    assert str(error.value) == (
        f"{BEGINS.format('The moment of a graph dump')} {where}: a dump is called "
        f"'placer_input.pbtxt'. {works}"
    )
    assert str(dumps.no_dumps()) == (
        f"{BEGINS.format('The graph dumps of the runtime')} {where}: it wrote none. {works}"
    )


@pytest.mark.parametrize(
    ("file", "skipped"),
    [
        ("__inference_Dataset_flat_map_read_14.0000.main.initial.pb", True),
        ("step_of_a_function.0031.graph_opt_pass.after_opt_group_pre_placement.pb", True),
        ("unknown_graph.0027.main.before_opt_group_post_rewrite_for_exec.pb", False),
        (f"unknown_graph{CPU}.0076.main.before_opt_group_post_partitioning.pb", False),
        ("after_MetaOptimizer_iteration_0_94312345678.pb", False),
    ],
)
def test_dumps_of_functions_that_a_step_calls_are_none_of_its_graph(file, skipped):
    assert bool(dumps.OF_FUNCTION.fullmatch(file)) is skipped
