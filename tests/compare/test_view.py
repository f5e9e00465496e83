"""Special cases of the view of a comparison; `test_outputs` has a usual one."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.examples.comparison import (
    COMPARISON,
    CONFIGS,
    CONST,
    CONV,
    CONV_AT_4,
    SOFTMAX,
    STEPS,
)
from tests.records_by_hand import op_at_size
from tflab.analysis import batch_fit
from tflab.compare import view
from tflab.exporters import text
from tflab.records.blocks import Table
from tflab.records.measured import Compared, Comparison
from tflab.views import op_table

PER_CALL = "Mean time of a call at each batch size (and its ratio to the size before)"


def shown(found: Comparison) -> list[str]:
    return text.as_text(view.blocks(found, 10)).splitlines()


def tables(found: Comparison) -> dict[str, Table]:
    """The tables of the story by their titles, which are `Steps` and `Cold` for short."""
    found = [block for block in view.blocks(found, 10) if isinstance(block, Table)]
    return {re.sub(r"^(Steps|Cold)\b.*", r"\1", table.title): table for table in found}


def test_where_no_row_has_a_fit_there_is_no_column_for_it():
    table = tables(replace(COMPARISON, rows=(SOFTMAX, CONST)))[PER_CALL]
    headers = [column.header for column in table.columns]
    assert headers == ["type that ran", "batch 4", "batch 16", "batch 64"]


@pytest.mark.parametrize(
    "flops, said",
    [
        (0, "0"),
        (999, "999"),
        (9_990, "9.99 k"),
        (999_700, "1.00 M"),  # not 1000 k
        (15.34e6, "15.3 M"),
        (1.2e12, "1200 G"),
    ],
)
def test_flops_have_three_digits(flops, said):
    assert op_table.flops_text(flops) == said


@pytest.mark.parametrize("by, header", op_table.NAMES.items())
def test_the_first_column_says_what_a_row_is(by, header):
    found = tables(replace(COMPARISON, by=by, configs=(), experiments={}))
    first = {title: table.columns[0].header for title, table in found.items()}
    assert first | {"Steps": header, "Cold": header} == dict.fromkeys(first, header)


def test_default_alone_has_no_table_of_configurations():
    none, default = (tables(replace(COMPARISON, configs=configs)) for configs in ((), CONFIGS[:1]))
    assert [*default] == [*none]


# On paper


def test_three_batch_sizes_fit_into_100_columns_with_no_number_cut():
    slow = op_at_size(10_000, 10**12, 123_456_789, 123_456_789, 1, 2**30, 1234.5)
    means = {1: 2e8, 16: 1.1e9, 64: 1.61e10}  # far from a straight line
    by_size = {size: replace(slow, mean_ns=mean) for size, mean in means.items()}
    steps = dict.fromkeys(means, replace(STEPS[4], untraced_steps=10_000, steps=1_000))
    row = Compared("x" * 60, ("Op",), (), by_size, batch_fit.fit(by_size, steps))
    whole = replace(
        CONV_AT_4,
        key="x" * 60,
        fused_from=("conv1/Conv2D", "conv1/BiasAdd"),
        calls=1_000_000,
        share=1.0,
        cumulative_share=1.0,
        gflops=123.4,
    )
    found = replace(
        COMPARISON,
        batch_sizes=(1, 16, 64),
        rows=(row,),
        steps=steps,
        tables=dict.fromkeys((1, 16, 64), (whole,)),
    )
    lines = shown(found)
    assert {line.count("…") for line in lines if "xxx" in line} == {1}  # that of the name
    assert not any("…" in line for line in lines if "xxx" not in line)
    assert any(line.endswith("16.1 s (14.6 x)  119 ms + 75.0 ms  69.5 %") for line in lines)


NAMES = st.text("abc_/.-0123456789", min_size=1, max_size=150)


@pytest.mark.slow
@settings(max_examples=25)
@given(NAMES, NAMES, st.integers(1, 8), st.sampled_from([*op_table.NAMES]))
def test_no_line_has_over_100_columns(name, sentence, count, by):
    sizes = tuple(10**power for power in range(count))
    row, other = (
        replace(row, key=key, cells=dict.fromkeys(sizes, row.cells[4]))
        for row, key in ((CONV, name), (CONST, "Const"))
    )
    found = replace(
        COMPARISON,
        model=name,
        by=by,
        batch_sizes=sizes,
        rows=(row, other),
        steps=dict.fromkeys(sizes, STEPS[4]),
        tables=dict.fromkeys(sizes, (replace(CONV_AT_4, key=name, fused_from=(sentence, name)),)),
        configs=(CONFIGS[0], replace(CONFIGS[3], config=name)),
        experiments={},
        findings=(sentence,),
        cold=(replace(COMPARISON.cold[0], key=name, ops=(sentence,)),),
        uncovered={name: 1, sentence: 1},
    )
    assert max(map(cell_len, shown(found))) <= 100
