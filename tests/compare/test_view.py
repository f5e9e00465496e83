"""Everything that is shown and written of one comparison, as approved, and its special cases."""

from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.comparison import COMPARISON, CONFIGS, CONV_AT_4, DIAGNOSIS, STEPS
from tests.examples.printed import approve_view
from tests.records_by_hand import op_at_size
from tflab.compare import view
from tflab.exporters import csv, json, markdown, text
from tflab.records.blocks import Table
from tflab.records.measured import Compared, Load

WHOLE = replace(COMPARISON, diagnosis=DIAGNOSIS)
MORE = replace(CONFIGS[1], verdict=replace(CONFIGS[1].verdict, observations=9))

# Title -> what is different
VARIANTS = {
    "by layer": {"by": "layer"},
    "by line": {"by": "line"},
    "one batch size": {"batch_sizes": (4,), "tables": {4: ()}},
    "only the last batch size is uneven": {"images": 640 - 32},
    "a busy machine": {"load": Load(2, 0.6)},
    "interrupted": {"interrupted": True},
    "a failure": {"failure": "No."},
    "two configurations, one of more observations": {"configs": (MORE, CONFIGS[2])},
}


@pytest.mark.parametrize("full", [False, True])
def test_what_a_terminal_shows(full):
    def blocks(**different):
        return view.blocks(replace(WHOLE, **different), 3, full)  # of four rows

    variants = {title: blocks(**different) for title, different in VARIANTS.items()}
    approve_view(f"compare-{'full' if full else 'short'}.txt", blocks(), variants)


def test_what_markdown_has_in_every_column():
    approve("compare.md", "\n\n".join(map(markdown.rendered, view.blocks(WHOLE, 10))))


def test_what_other_programs_read():
    approve("compare.csv", csv.comparison(WHOLE))
    approve("compare.json", json.document(environment={"cpus": 2}, **json.plain(WHOLE)))


def test_rows_that_stand_out_are_the_dearest_and_those_with_a_verdict():
    blocks = view.blocks(COMPARISON, 10)
    found = {block.title: block for block in blocks if isinstance(block, Table)}
    raced = found["The untraced step under other configurations, each in turn with the default"]
    tones = [raced.tone(row) for row in raced.rows]
    assert tones == ["faster", "slower", "", "", "slower", "slower"]
    brief = view.blocks(COMPARISON, 10, full=False)
    found |= {block.title: block for block in brief if isinstance(block, Table)}
    calls = found["Traced steps at each batch size: mean time of a call, % of the time of all ops"]
    assert {row.key for row in calls.rows if calls.tone(row) == "dearest"} == {"MaxPool"}
    each = found["Batch 4: times, the most expensive first"]
    assert [each.tone(row) for row in each.rows] == ["dearest", "", ""]


def test_the_headline_says_of_which_batch_sizes_a_gain_is_not_certain():
    sure = view.headline(COMPARISON)
    assert "5.25 x [5.25, 5.25] as many as batch size 4." in sure and "certain" not in sure
    for rates, why in (((9_000, 60_000, 14_000), "1.75 x ["), ((), "too few rounds.")):
        steps = STEPS | {16: replace(STEPS[16], round_rates=rates)}
        said = view.headline(replace(COMPARISON, steps=steps))
        assert f". It is not certain to be more than at batch size 16: {why}" in said


def test_three_batch_sizes_fit_into_100_columns_with_no_number_cut():
    slow = op_at_size(10_000, 10**12, 123_456_789, 123_456_789, 1, 2**30, 1234.5)
    means = {1: 2e8, 16: 1.1e9, 64: 1.61e10}
    by_size = {size: replace(slow, mean_ns=mean) for size, mean in means.items()}
    steps = dict.fromkeys(means, replace(STEPS[4], untraced_steps=10_000, steps=1_000))
    row = Compared("x" * 68, ("Op",), (), by_size)
    said = {"share": 1.0, "fused_from": ("conv1/Conv2D", "conv1/BiasAdd")}
    whole = replace(CONV_AT_4, key="x" * 68, calls=1_000_000, gflops=123.4, **said)
    each = dict.fromkeys(means, (whole,))
    found = replace(COMPARISON, batch_sizes=(1, 16, 64), rows=(row,), steps=steps, tables=each)
    lines = text.as_text(view.blocks(found, 10)).splitlines()
    assert not any("…" in line for line in lines)
    assert any(line.endswith("16.1 s  100.0") for line in lines)
    coded = {size: replace(cell, code="y" * 60) for size, cell in by_size.items()}
    of_line = replace(found, by="line", rows=(replace(row, key="program.py:46", cells=coded),))
    shown = " ".join(text.as_text(view.blocks(of_line, 10, full=False)).split())
    assert "yyy… 100 s 100.0 100 s 100.0 100 s 100.0" in shown
