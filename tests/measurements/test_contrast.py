"""Contrast: what differs between measurements, and what can be told from them."""

from dataclasses import replace

import pytest

from tests.measurements_by_hand import (
    COMPARISON,
    HERE,
    MODEL,
    US,
    changed,
    measurement,
    of_graph,
)
from tests.records_by_hand import BUSY, read
from tflab.errors import UsageError
from tflab.measurements import comparable, contrast, view
from tflab.records.measured import ObservedProcess
from tflab.records.measurements import Difference, Gate
from tflab.units import time

OTHER = measurement(
    factor=1.2,
    when="2026-04-02T08:30:00Z",
    environment={**HERE, "GPUs": "1 x Some GPU", "TF_ENABLE_ONEDNN_OPTS": "0"},
)


def held(other=OTHER, usual=None, **options):
    return contrast.contrast({"a": usual or measurement(), "b": other}, **options)


def words(found) -> list[str]:
    return [row.verdict.word for row in found.steps if row.verdict]


# Observations


def test_an_observation_is_the_median_of_the_medians_of_a_process_turns():
    processes = measurement().observed.processes
    assert contrast.observations(processes, 4) == [1_000 * us for us in US]
    assert contrast.observations(processes, 16) == [2_000 * us for us in US]
    conv = contrast.row_observations(processes, 16, "Conv2D")
    assert conv == pytest.approx([1_200 * us for us in US])
    assert contrast.row_observations(processes, 16, "Relu") == []


def test_a_turn_that_was_disturbed_does_not_decide():
    turns = ((1, 2, 9), (3, 4, 5), (40, 50, 60))
    process = ObservedProcess({4: turns}, {4: turns}, {4: {}})
    assert contrast.observations([process], 4) == [4]


def test_each_step_and_row_is_held_against_that_of_the_first():
    found = held()
    steps = [(row.config, row.batch_size, row.untraced_ns.median) for row in found.steps]
    assert steps == [("a", 4, 1e5), ("b", 4, 1.2e5), ("a", 16, 2e5), ("b", 16, 2.4e5)]
    # 4 images in 100 us are 40,000 a second, 16 in 200 us are 80,000.
    rates = [row.median_images_per_second for row in found.steps]
    assert rates == pytest.approx([40_000, 40_000 / 1.2, 80_000, 80_000 / 1.2])
    assert words(found) == ["slower", "slower"]
    ratios = {round(row.verdict.ratio, 9) for row in (*found.steps, *found.rows) if row.verdict}
    assert ratios == {1.2}
    rows = [
        (row.key, row.batch_size, row.measurement, row.step_ns, row.share) for row in found.rows
    ]
    assert rows[:4] == [
        ("Conv2D", 4, "a", 60_000, 0.75),
        ("Conv2D", 4, "b", 72_000, 0.75),
        ("MaxPool", 4, "a", 20_000, 0.25),
        ("MaxPool", 4, "b", 24_000, 0.25),
    ]
    assert len(rows) == 8


def test_the_same_is_alike():
    assert words(held(measurement())) == ["alike", "alike"]


def test_of_a_busy_machine_no_winner_is_told():
    found = held(changed(OTHER, quality=BUSY))
    assert words(found) == ["withheld", "withheld"]
    assert {row.verdict.word for row in found.rows if row.verdict} == {"withheld"}
    assert found.notes == (
        "The machine of 'b' was busy during the measurement: one thing was wrong; another too.",
        "Verdicts are withheld. Measure again on a quiet machine.",
    )


def test_of_too_few_processes_it_says_that_there_is_not_enough_to_tell():
    found = held(measurement(US[:2], 1.2))
    assert words(found) == ["cannot tell", "cannot tell"]
    assert found.notes == (
        "Not enough data to tell: 'b' was measured in 2 processes, but a verdict requires 3. "
        "Measure again with --save.",
    )


# Differences


def test_only_what_differs_is_told_machine_first():
    assert held().differences == (
        Difference("GPUs", ("none", "1 x Some GPU")),
        Difference("TF_ENABLE_ONEDNN_OPTS", ("not set", "0")),
    )
    other = of_graph(changed(measurement(US[:3]), images=160), data="abc", weights="def")
    assert held(other).differences == (
        Difference("Weights", ("random in each run", "def")),
        Difference("Data", ("MNIST (fedcba9876543210)", "MNIST (abc)")),
        Difference("Rows", ("80", "160")),
    )


def refused(other, usual=None) -> str:
    with pytest.raises(UsageError) as error:
        held(other, usual)
    return str(error.value)


LARGER = of_graph(measurement(), graph="2", ops={"Conv2D": 2, "MaxPool": 1, "Relu": 1})
DIFFERS = "0 Placeholder instead of 1, 1 Relu instead of 0, 2 Conv2D instead of 1"


def test_another_graph_is_refused_with_what_differs_and_what_allows_it():
    assert refused(LARGER) == (
        f"'a' and 'b' are of different models: {DIFFERS}. To compare them, give --other-graph."
    )
    other = changed(of_graph(measurement(), graph="2"), model="convnet")
    assert "models: lenet and convnet; the same ops, but other edges" in refused(other)
    assert held(LARGER, other_graph=True).notes == (
        f"The graph of 'b' differs from the graph of 'a': {DIFFERS}.",
    )


def test_types_that_one_graph_alone_has_are_named_first_then_the_largest_differences():
    ops = {"Add": 3, "Const": 20, "Mul": 4, "Relu": 5, "Sub": 2, "Tanh": 1, "Wait": 7}
    new = {"Add": 4, "Const": 26, "Mul": 2, "Relu": 5, "Sub": 5, "TopKV2": 1, "Wait": 11}
    usual, other = (
        of_graph(measurement(), graph=graph, ops=of) for graph, of in (("1", ops), ("2", new))
    )
    assert next(comparable.of_models(usual, other)) == (
        "0 Tanh instead of 1, 1 TopKV2 instead of 0, 26 Const instead of 20, 11 Wait instead of 7, "
        "5 Sub instead of 2, and 2 other types"
    )


def test_the_same_fingerprint_of_other_ops_is_refused():
    other = of_graph(measurement(), ops={"Conv2D": 2, "Placeholder": 1})
    assert refused(other) == (
        "'a' and 'b' have the same graph fingerprint, 0123456789abcdef, but different ops: one of "
        "the files was edited. Measure it again."
    )


def test_the_same_model_in_another_tensorflow_is_said():
    other = replace(LARGER, environment={**HERE, "Framework": "tensorflow 2.20.0"})
    assert held(other).notes == (
        f"The graph of 'b', by another TensorFlow, differs from the graph of 'a': {DIFFERS}.",
    )
    renamed = changed(other, model="convnet")
    assert "lenet and convnet" in refused(renamed)


def test_data_of_another_shape_are_refused():
    other = of_graph(measurement(), feeds=("images:0 float32 [?, 28, 28, 1]",))
    assert "fed images:0 float32 [?, 28, 28, 1] instead of images:0 float32 [?, 32," in refused(
        other
    )


def test_another_phase_or_grouping_or_no_common_batch_size_is_refused():
    assert refused(changed(measurement(), phase="training")) == (
        "'a' and 'b' differ in their phase: inference and training. Measure one of them again "
        "with the options of the other."
    )
    assert "grouping of rows (--by): op and layer" in refused(changed(measurement(), by="layer"))
    only = changed(measurement(), batch_sizes=(64,))
    assert refused(only) == ("'a' and 'b' have no batch size in common: they have 4, 16 and 64.")


def test_a_batch_size_that_only_one_has_is_left_out_and_said():
    found = held(changed(OTHER, batch_sizes=(4,)))
    assert {row.batch_size for row in (*found.steps, *found.rows)} == {4}
    assert found.notes == ("Batch 16 of 'a' was not measured in every file, and is omitted.",)


def test_two_measurements_without_a_common_op_have_their_steps_compared():
    tables = {
        size: tuple(replace(row, key=f"_Mkl{row.key}") for row in table)
        for size, table in COMPARISON.tables.items()
    }
    rows = tuple(replace(row, key=f"_Mkl{row.key}") for row in COMPARISON.rows)
    processes = tuple(
        replace(
            process,
            rows_ns={
                size: {f"_Mkl{key}": ns for key, ns in of_size.items()}
                for size, of_size in process.rows_ns.items()
            },
        )
        for process in OTHER.observed.processes
    )
    other = replace(OTHER, observed=replace(OTHER.observed, processes=processes))
    found = held(changed(other, rows=rows, tables=tables))
    assert words(found) == ["slower", "slower"]
    assert not any(row.verdict for row in found.rows)
    assert found.notes == (
        "'a' and 'b' have no op in common: the first has Conv2D, for example, and the second "
        "_MklConv2D. Only their steps can be compared.",
    )


def test_what_is_partial_is_said():
    assert held(changed(OTHER, interrupted=True)).notes == (
        "'b' is partial: the measurement ended early.",
    )


# The gate


def judged(other, percent) -> Gate:
    both = {"a": measurement(), "b": other}
    return contrast.judge(both, contrast.contrast(both), percent)


def test_a_proven_slowdown_shuts_the_gate():
    found = judged(OTHER, 10)
    assert [words.partition(" x [")[0] for words in found.slower] == [
        "'b' at batch 4, 1.20",
        "'b' at batch 16, 1.20",
    ]
    assert found.slower[0].endswith(f"({time(1.2e5)} after {time(1e5)})")
    assert contrast.sentence(found, "a").startswith(
        "Proven to be slower than 'a' by more than 10 %: "
    )


def test_slower_is_reported_before_undecided():
    both = Gate(10, ("'b' at batch 4",), ("'b' at batch 16",))
    assert contrast.failure(both, "a", if_undecided=True).status == 1
    assert contrast.failure(Gate(10, (), ()), "a", if_undecided=True) is None


def test_a_smaller_or_no_slowdown_leaves_it_open():
    for found in (judged(OTHER, 30), judged(measurement(), 10), judged(measurement(US, 0.5), 0)):
        assert found.slower == found.undecided == ()
    assert (
        contrast.sentence(judged(OTHER, 30), "a") == "Nothing is slower than 'a' by more than 30 %."
    )


@pytest.mark.parametrize(
    "other", [measurement(US[:2], 2), changed(OTHER, quality=BUSY), measurement((90, 120, 150))]
)
def test_what_cannot_be_told_leaves_it_open_and_is_said(other):
    found = judged(other, 10)
    assert found.slower == ()
    assert len(found.undecided) == 2
    assert contrast.failure(found, "a", if_undecided=False) is None
    failure = contrast.failure(found, "a", if_undecided=True)
    assert failure.status == 3
    sentence = contrast.sentence(found, "a")
    assert str(failure) == sentence
    assert sentence.startswith(
        "Nothing is proven to be slower than 'a' by more than 10 %. Not enough data to tell: 'b' "
        "at batch 4, "
    )


# The view


def test_what_is_printed_of_two_measurements():
    found = replace(held(), gate=Gate(10, (), ()))
    ratio = "1.20 x [1.17, 1.23]"
    opening, *parts, basis, last = map(read, view.blocks(found))
    assert opening == "lenet, inference: measurements compared with the first, 'a'."
    assert parts == [
        [
            "When it was measured, and in how many processes",
            ("measurement", "when, in UTC", "processes"),
            ("a", "2026-03-01 12:00:00", "5"),
            ("b", "2026-04-02 08:30:00", "5"),
            "",
        ],
        [
            "Differences",
            ("", "a", "b"),
            ("GPUs", "none", "1 x Some GPU"),
            ("TF_ENABLE_ONEDNN_OPTS", "not set", "0"),
            "",
        ],
        [
            "The untraced step (times as long as in a)",
            ("batch", "a", "b"),
            ("4", "100 us", f"120 us ({ratio})"),
            ("16", "200 us", f"240 us ({ratio})"),
            "",
        ],
        [
            "Batch 4: the time of a traced step by op (times as long as in a)",
            ("type that ran", "a", "b"),
            ("Conv2D", "60.0 us (75.0 %)", f"72.0 us ({ratio})"),
            ("MaxPool", "20.0 us (25.0 %)", f"24.0 us ({ratio})"),
            "",
        ],
        [
            "Batch 16: the time of a traced step by op (times as long as in a)",
            ("type that ran", "a", "b"),
            ("Conv2D", "120 us (75.0 %)", f"144 us ({ratio})"),
            ("MaxPool", "40.0 us (25.0 %)", f"48.0 us ({ratio})"),
            "",
        ],
    ]
    assert basis.startswith("Each ratio compares two independent samples in which each process")
    assert last == "Nothing is slower than 'a' by more than 10 %."


def test_rows_beyond_the_top_are_counted_and_many_measurements_take_several_tables():
    both = {"a": measurement(), "b": OTHER, "c": measurement(), "d": measurement()}
    found = contrast.contrast(both)
    tables = [read(block) for block in view.blocks(found, 1) if not isinstance(block, str)]
    headers = [table[1] for table in tables if table[0].startswith("Batch 4")]
    assert headers == [("type that ran", "a", "b", "c"), ("type that ran", "a", "d")]
    assert tables[-1][-1] == "... and 1 more (--top shows more)"
    assert [table[1][1:] for table in tables if table[0] == "Differences"] == [
        ("a", "b", "c"),
        ("a", "d"),
    ]


def test_the_row_that_costs_most_anywhere_comes_first():
    pool = tuple(
        replace(process, rows_ns={4: {"MaxPool": 9e6}, 16: {"MaxPool": 9e6}})
        for process in OTHER.observed.processes
    )
    found = held(replace(OTHER, observed=replace(OTHER.observed, processes=pool)))
    tables = [read(block) for block in view.blocks(found) if not isinstance(block, str)]
    (table,) = (table for table in tables if table[0].startswith("Batch 4"))
    assert [row[0] for row in table[2:-1]] == ["MaxPool", "Conv2D"]


def test_where_nothing_differs_it_says_so():
    shown = list(view.blocks(held(measurement())))
    assert shown[2] == (
        "Machine, software, options, model and data are the same, as far as tflab checks."
    )


def test_the_fingerprint_is_no_line_of_its_own_where_graphs_agree():
    assert all(difference.what != "Graph" for difference in held().differences)
    assert MODEL.graph in held(LARGER, other_graph=True).differences[0].values
