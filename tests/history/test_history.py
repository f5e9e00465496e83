"""History: the same thing over time, as lines, as text and as a command."""

import json
from dataclasses import replace
from math import inf

import pytest

from tests.measurements_by_hand import COMPARISON, US, changed, measurement
from tests.records_by_hand import BUSY, read
from tflab.errors import UsageError
from tflab.history import __main__ as history
from tflab.history import lines, view
from tflab.measurements import contrast, files
from tflab.records import Point

FIRST = measurement()
LAST = measurement((120.0, 121.2, 118.8), when="2026-03-09T07:05:00Z")
BETWEEN = measurement((150.0,), when="2026-03-05T09:00:00Z")
ALL = {"last": LAST, "first": FIRST, "between": BETWEEN}


def test_a_line_has_a_point_for_each_measurement_in_the_order_of_their_time():
    found = lines.over_time(ALL)
    assert found.contrast.measurements == ("first", "between", "last")
    assert [(line.name, line.batch_size) for line in found.lines] == [
        ("step, untraced", 4),
        ("Conv2D", 4),
        ("MaxPool", 4),
        ("step, untraced", 16),
        ("Conv2D", 16),
        ("MaxPool", 16),
    ]
    step, conv, *_ = found.lines
    assert [point.processes for point in step.points] == [5, 1, 3]
    assert [round(point.ns) for point in step.points] == [99_997, 150_000, 119_996]
    assert [round(point.ns) for point in conv.points] == [59_998, 90_000, 71_998]
    low, high = step.points[2].low_ns, step.points[2].high_ns
    assert low < 119_996 < high
    assert step.points[1] == Point(pytest.approx(150_000), 0, inf, 1)
    assert (step.verdict.word, round(step.verdict.ratio, 3)) == ("slower", 1.2)


def test_only_the_batch_sizes_and_as_many_ops_as_asked_for_have_lines():
    found = lines.over_time(ALL, [16, 16], 1)
    assert [(line.name, line.batch_size) for line in found.lines] == [
        ("step, untraced", 16),
        ("Conv2D", 16),
    ]
    with pytest.raises(UsageError) as error:
        lines.over_time(ALL, [16, 64])
    assert str(error.value) == (
        "Batch 64 was not measured in all files; they have 4, 16 in common."
    )


def test_an_op_that_did_not_run_has_no_point():
    without = tuple(
        replace(process, rows_ns={4: {"Conv2D": 5.0}, 16: {"Conv2D": 5.0}})
        for process in LAST.observed.processes
    )
    last = replace(LAST, observed=replace(LAST.observed, processes=without))
    found = lines.over_time({"a": FIRST, "b": last}, [4])
    (pool,) = (line for line in found.lines if line.name == "MaxPool")
    assert (pool.points[1], pool.verdict) == (None, None)


def test_what_is_printed_goes_down_in_time():
    found = lines.over_time(ALL, [4], 1)
    *_, table, basis = map(read, view.blocks(found))
    assert table == [
        "Batch 4: a step, over time",
        ("measurement", "step, untraced", "Conv2D"),
        ("first", "100 us [98.4 us, 102 us]", "60.0 us [59.0 us, 61.0 us]"),
        ("between", "150 us", "90.0 us"),
        ("last", "120 us [113 us, 127 us]", "72.0 us [68.0 us, 76.2 us]"),
        ("last / first", "1.20 x [1.13, 1.27]", "cannot tell [1.13, 1.27]"),
        "",
    ]
    assert basis.startswith("Each time is the mean of several processes")
    assert basis.endswith("by `python -m tflab.compare` of all these files, in this order.")


def test_the_last_is_held_against_the_first_as_compare_of_all_of_them_does():
    found = lines.over_time(ALL)
    compared = contrast.contrast({"first": FIRST, "between": BETWEEN, "last": LAST})
    verdicts = [row.verdict for row in compared.steps if row.config == "last"]
    assert [line.verdict for line in found.lines if line.name == lines.STEP] == verdicts


def test_of_one_measurement_nothing_is_said_of_others():
    found = lines.over_time({"a": changed(FIRST, quality=BUSY)})
    shown = [read(block) for block in view.blocks(found)]
    sentences = [block for block in shown if isinstance(block, str)]
    assert [sentence.partition(":")[0] for sentence in sentences] == [
        "lenet, inference",
        "The machine of 'a' was busy while it measured",
        "Each time is the mean of several processes, with the interval that holds the true one in "
        "99 of 100 measurements, as far as processes differ; of fewer than three processes there "
        "is none.",
    ]


def test_more_lines_than_fit_take_several_tables():
    shown = [read(block) for block in view.blocks(lines.over_time(ALL, [4]))]
    (headers,) = {table[1] for table in shown if table[0] == "Batch 4: a step, over time"}
    assert headers == ("measurement", "step, untraced", "Conv2D", "MaxPool")
    rows = tuple(replace(row, key=f"{row.key}{n}") for row in COMPARISON.rows for n in range(4))
    tables = {
        size: tuple(replace(row, key=f"{row.key}{n}") for row in table for n in range(4))
        for size, table in COMPARISON.tables.items()
    }
    many = {"a": changed(FIRST, rows=rows, tables=tables)}
    shown = [read(block) for block in view.blocks(lines.over_time(many, [4], 8))]
    assert [len(table[1]) for table in shown if table[0].startswith("Batch 4")] == [4, 4, 4]


def test_on_a_busy_machine_nothing_is_concluded():
    found = lines.over_time({"a": FIRST, "b": changed(LAST, quality=BUSY)})
    assert {line.verdict.word for line in found.lines} == {"withheld"}


# The command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kept in ALL.items():
        files.write(tmp_path / f"{name}.json.gz", kept)
    return tmp_path


LINE = "last.json.gz first.json.gz between.json.gz"


def test_the_command_prints_and_draws(folder, capsys):
    assert history.main(f"{LINE} --plot over.svg".split()) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.endswith("\nThe picture is in over.svg\n")
    assert max(map(len, out.splitlines())) <= 100
    assert (folder / "over.svg").read_text().startswith("<svg ")
    assert history.main(f"{LINE} --plot over.svg".split()) == 2
    assert capsys.readouterr().err == (
        "tflab: The picture 'over.svg' exists already; remove it or give another path.\n"
    )


def test_json_has_lines_with_points(folder, capsys):
    assert history.main(f"{LINE} --format json --batch-sizes 4".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contrast"]["measurements"] == ["first", "between", "last"]
    assert found["lines"][0]["points"][1] == {
        "ns": pytest.approx(150_000),
        "low_ns": 0,
        "high_ns": None,
        "processes": 1,
    }


def test_markdown_has_the_same_tables(folder, capsys):
    assert history.main(f"{LINE} --format markdown".split()) == 0
    page = capsys.readouterr().out
    assert page.startswith("# lenet over time\n")
    assert "Batch 16: a step, over time" in page


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("none.json.gz", "There is no file 'none.json.gz'."),
        (f"{LINE} --plot over.gif", "The picture 'over.gif' has to end in .png or .svg."),
        (f"{LINE} --batch-sizes 64", "Batch 64 was not measured in all files"),
        ("", "The following arguments are required: FILE."),
    ],
)
def test_a_wrong_argument_is_a_sentence(folder, capsys, line, sentence):
    assert history.main(line.split()) == 2
    assert sentence in capsys.readouterr().err


def test_a_single_measurement_has_points_and_no_verdict():
    found = lines.over_time({"a": measurement(US)})
    assert {len(line.points) for line in found.lines} == {1}
    assert {line.verdict for line in found.lines} == {None}
