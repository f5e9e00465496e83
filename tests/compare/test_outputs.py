"""Everything that is shown and written of one comparison, as approved."""

from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.comparison import COMPARISON, CONFIGS, DIAGNOSIS, STEPS
from tests.records_by_hand import op_at_size
from tflab.compare import findings, view
from tflab.exporters import csv, json, text
from tflab.records.blocks import Table
from tflab.records.measured import Compared

WHOLE = replace(COMPARISON, diagnosis=DIAGNOSIS)


@pytest.mark.parametrize("full", [False, True])
def test_what_a_terminal_shows(full):
    shown = text.as_text(view.blocks(WHOLE, 10, full))
    approve(f"compare-{'full' if full else 'short'}.txt", shown)


@pytest.mark.parametrize("by", ["layer", "line"])
def test_what_a_terminal_shows_of_groups_of_ops(by):
    approve(f"compare-by-{by}.txt", text.as_text(view.blocks(replace(COMPARISON, by=by), 2)))


def test_what_other_programs_read():
    approve("compare.csv", csv.comparison(WHOLE))
    approve("compare.json", json.comparison(WHOLE, {"cpus": 2}))


def test_one_batch_size_on_one_screen_is_its_most_expensive_rows():
    found = replace(COMPARISON, batch_sizes=(4,), tables={4: ()})
    titles = [b.title for b in view.blocks(found, 10, False) if isinstance(b, Table)]
    assert any("Batch 4" in title for title in titles)
    assert not any("at each batch size" in title for title in titles)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"interrupted": True}, "Partial: these are the measurements before the interruption."),
        ({"failure": "No."}, "Partial: these are the measurements before this error: No."),
    ],
)
def test_what_is_partial_says_so_and_how_many_images_it_was_to_be(change, sentence):
    blocks = [*view.blocks(replace(COMPARISON, **change), 10)]
    assert blocks[1] == sentence
    assert any("up to 600 images" in block for block in blocks if isinstance(block, str))


def test_every_finding_of_the_comparison():
    approve(
        "compare-findings.txt",
        "\n".join(findings.sentences(COMPARISON.rows, STEPS, "op", CONFIGS)),
    )


def test_of_layers_the_findings_compare_steps():
    unequal = {
        4: op_at_size(38, 380_000, 10_000, 1, 0.5, 0, None),
        16: op_at_size(30, 600_000, 20_000, 1, 0.5, 0, None),  # three times as many calls a step
    }
    row = Compared("conv1", ("Conv2D",), (), unequal, None)
    steps = {size: STEPS[size] for size in (4, 16)}
    of_layers = findings.sentences([row], steps, "layer")
    assert of_layers[0] == "conv1: from 4 to 16 a step takes 6.00 x as long for 4 x the images."
    of_ops = findings.sentences([row], steps, "op")
    assert of_ops[0] == "conv1: from 4 to 16 a call takes 2.00 x as long for 4 x the images."
