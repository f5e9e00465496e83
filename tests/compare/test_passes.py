"""Passes that are raced: which changed the graph, and what is said of each."""

from dataclasses import replace

import pytest

from tests.examples.comparison import COMPARISON
from tests.examples.printed import approve_view
from tests.records_by_hand import a_pass, config_times, verdict
from tflab.compare import comparison, setting_of, view
from tflab.records.graph import Node
from tflab.records.measured import ChangingPass
from tflab.records.placed import FirstPart, FirstRun

pytestmark = pytest.mark.tensorflow


def node(name):
    return Node(name, "Op")


LOG = (
    a_pass("placer", None, 9, 9, definitions=(node("a"), node("b"))),
    a_pass("remapper", 0, 9, 8, removed=("a",), definitions=(node("b"),)),
    a_pass("layout", 0, 8, 8),
    a_pass("constant_folding", 0, 8, 9, definitions=(node("c"), node("d"), node("folded"))),
    a_pass("remapper", 1, 9, 8, removed=("b", "c")),
    a_pass("grappler", None, 8, 7, removed=("d",)),
    a_pass("feeds_and_fetches", None, 7, 9, definitions=(node("_arg"),)),
    a_pass("MklLayoutRewritePass", None, 9, 9, definitions=(node("e"),)),
    a_pass("graph_optimizer", None, 9, 8, removed=("folded",)),
)
FIRST = FirstRun(
    90,
    (
        FirstPart("remapper", 0, 20),
        FirstPart("layout", 0, 8),
        FirstPart("remapper", 1, 3),
        FirstPart("not broken down", None, 59),
    ),
)
CHANGING = (
    ChangingPass("remapper", 3, 23, has_switch=True),
    ChangingPass("constant_folding", 3, None, has_switch=True),
    ChangingPass("MklLayoutRewritePass", 1, None, has_switch=False),
)


def test_a_pass_changed_each_node_once_in_however_many_runs():
    assert comparison.changing(LOG, FIRST) == CHANGING


def test_a_pass_is_switched_off_as_without_does_it():
    setting = setting_of("without model_pruner")
    assert setting.options == {"without": ("model_pruner",)}
    assert not setting.environment


RACED = replace(
    COMPARISON,
    configs=(
        config_times("default", 4, 100_000),
        config_times("without remapper", 4, 99, 100_000, verdict(1.25, different=True)),
        config_times("without constant_folding", 4, 99, 200_000, verdict(1.5, different=True)),
        config_times("without remapper", 16, 99, 300_000, verdict(1.7, different=False)),
        config_times("xla", 4, 99, 400_000, verdict(0.75, different=True)),
    ),
    passes=CHANGING,
)


def test_the_pass_without_which_a_step_takes_longest_is_first_beside_what_it_did():
    variants = {
        "interrupted before an observation": replace(RACED, configs=()),
        "no pass changed the graph": replace(RACED, configs=(), passes=()),
        "one batch size": replace(RACED, batch_sizes=(4,)),
    }
    shown = {title: view.passes(variant) for title, variant in variants.items()}
    approve_view("compare-passes.txt", view.passes(RACED), shown)


def test_only_columns_that_are_shown_are_explained():
    only_passes = replace(RACED, configs=RACED.configs[:-1])
    told = [[row[0] for row in view.basis(each).__next__().rows] for each in (RACED, only_passes)]
    assert [{"default anew", "step"} <= {*names} for names in told] == [True, False]
    assert "default anew" not in told[1]


def test_passes_are_not_among_the_configurations_and_unasked_they_are_not_told():
    (table,) = view.configs(RACED)
    assert [row.key for row in table.rows] == ["xla"]
    assert list(view.passes(COMPARISON)) == []
