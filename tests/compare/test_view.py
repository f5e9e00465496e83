"""Everything that is shown and written of one comparison, as approved, and its special cases."""

import re
from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.comparison import COMPARISON, CONFIGS, CONV_AT_4, DIAGNOSIS, STEPS
from tests.records_by_hand import op_at_size
from tflab.compare import view
from tflab.exporters import csv, json, markdown, text
from tflab.records.blocks import Table
from tflab.records.measured import Compared, Comparison

WHOLE = replace(COMPARISON, diagnosis=DIAGNOSIS)


@pytest.mark.parametrize("full", [False, True])
def test_what_a_terminal_shows(full):
    shown = text.as_text(view.blocks(WHOLE, 10, full))
    approve(f"compare-{'full' if full else 'short'}.txt", shown)


def test_what_markdown_has_in_every_column():
    approve("compare.md", "\n\n".join(map(markdown.rendered, view.blocks(WHOLE, 10))))


@pytest.mark.parametrize("by", ["layer", "line"])
def test_what_a_terminal_shows_of_groups_of_ops(by):
    approve(f"compare-by-{by}.txt", text.as_text(view.blocks(replace(COMPARISON, by=by), 2)))


def test_what_other_programs_read():
    approve("compare.csv", csv.comparison(WHOLE))
    approve("compare.json", json.document(environment={"cpus": 2}, **json.plain(WHOLE)))


def tables(found: Comparison, full: bool = True) -> dict[str, Table]:
    """The tables by their titles, of which one is `Steps` for short."""
    blocks = [block for block in view.blocks(found, 10, full) if isinstance(block, Table)]
    return {re.sub(r"^(Steps)\b.*", r"\1", table.title): table for table in blocks}


def test_one_batch_size_on_one_screen_is_its_most_expensive_rows():
    found = tables(replace(COMPARISON, batch_sizes=(4,), tables={4: ()}), full=False)
    assert any("Batch 4" in title for title in found)
    assert not any("at each batch size" in title for title in found)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"interrupted": True}, "Partial: these are the measurements before the interruption."),
        ({"failure": "No."}, "Partial: this error prevented the rest: No."),
    ],
)
def test_what_is_partial_says_so_and_how_many_images_it_was_to_be(change, sentence):
    blocks = [*view.blocks(replace(COMPARISON, **change), 10)]
    assert blocks[1] == sentence
    assert any("up to 600 images" in block for block in blocks if isinstance(block, str))


def test_rows_that_stand_out_are_the_dearest_and_those_with_a_verdict():
    found = tables(COMPARISON)
    raced = found["The untraced step under other configurations, in turn with the default"]
    tones = [raced.tone(row) for row in raced.rows]
    assert tones == ["faster", "slower", "", "", "slower", "slower"]
    calls = found["Calls and times at each batch size"]
    assert {row.key for row in calls.rows if calls.tone(row) == "dearest"} == {"MaxPool"}
    each = found["Batch 4: times, the most expensive first"]
    assert [each.tone(row) for row in each.rows] == ["dearest", "", ""]


def test_the_least_number_of_observations_is_told():
    first, second = CONFIGS[1:3]
    more = replace(second, verdict=replace(second.verdict, observations=9))
    *_, basis = view.configs(replace(COMPARISON, configs=(more, first)))
    assert basis.startswith("Each ratio is the mean of 7 observations, each in new processes")


def shown(found: Comparison) -> list[str]:
    return text.as_text(view.blocks(found, 10)).splitlines()


def test_three_batch_sizes_fit_into_100_columns_with_no_number_cut():
    slow = op_at_size(10_000, 10**12, 123_456_789, 123_456_789, 1, 2**30, 1234.5)
    means = {1: 2e8, 16: 1.1e9, 64: 1.61e10}
    by_size = {size: replace(slow, mean_ns=mean) for size, mean in means.items()}
    steps = dict.fromkeys(means, replace(STEPS[4], untraced_steps=10_000, steps=1_000))
    row = Compared("x" * 60, ("Op",), (), by_size)
    said = {"share": 1.0, "cumulative_share": 1.0, "fused_from": ("conv1/Conv2D", "conv1/BiasAdd")}
    whole = replace(CONV_AT_4, key="x" * 60, calls=1_000_000, gflops=123.4, **said)
    each = dict.fromkeys(means, (whole,))
    found = replace(COMPARISON, batch_sizes=(1, 16, 64), rows=(row,), steps=steps, tables=each)
    lines = shown(found)
    assert {line.count("…") for line in lines if "xxx" in line} == {1}  # that of the name
    assert not any("…" in line for line in lines if "xxx" not in line)
    assert any(line.endswith("16.1 s (14.6 x)") for line in lines)
