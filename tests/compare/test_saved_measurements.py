"""Kept measurements as a user compares them: without TensorFlow, from any folder."""

import csv
import gzip
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.measurements_by_hand import US, measurement
from tests.run.test_summary import GROUPS, WATCHED
from tflab.compare import __main__ as compare
from tflab.compare import saved_measurements
from tflab.exporters import plots
from tflab.follow import __main__ as follow
from tflab.measurements import files
from tflab.records.timed import Owner
from tflab.records.watched import Process

SLOWER = replace(
    WATCHED,
    groups=(replace(GROUPS[1], median_ns=1_350.0),),
    process=Process(20_000, (Owner("first runs", 2_100), Owner("rest", 17_900))),
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder to work in with measurements: usual, slower by a half, of few processes."""
    monkeypatch.chdir(tmp_path)
    for name, kept in (
        ("usual", measurement()),
        ("slower", measurement(factor=1.5)),
        ("few", measurement(US[:2], 1.5)),
    ):
        files.write(tmp_path / f"{name}.json.gz", kept)
    return tmp_path


def run(capsys, line: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    status = compare.main(line.split())
    out, err = capsys.readouterr()
    return status, out, err


def test_a_single_file_is_shown_as_if_it_had_just_been_measured(folder, capsys):
    status, out, err = run(capsys, "usual.json.gz")
    assert (status, err) == (0, "")
    assert "lenet, inference, 80 images of MNIST at each batch size" in out
    page = run(capsys, "usual.json.gz --format markdown")[1]
    assert "(v)CPUs: 2 (Some CPU); GPUs: none" in page
    content = json.loads(run(capsys, "usual.json.gz --format json")[1])
    assert (content["environment"]["GPUs"], content["batch_sizes"]) == ("none", [4, 16])
    assert "observed" not in content


def test_several_files_are_held_against_the_first(folder, capsys):
    status, out, err = run(capsys, "usual.json.gz slower.json.gz --top 1")
    assert (status, err) == (0, "")
    assert "      4  100 us  150 us (1.50 x [1.47, 1.53])\n" in out
    assert "... and 1 more (--top shows more)" in out
    assert max(map(len, out.splitlines())) <= 100
    page = run(capsys, "usual.json.gz slower.json.gz --format markdown")[1]
    assert page.startswith("# lenet: usual, slower\n")


@pytest.mark.slow
def test_plots_are_those_of_one_file(folder, capsys, monkeypatch):
    status, out, err = run(capsys, "usual.json.gz slower.json.gz --plots week")
    assert (status, out) == (2, "")
    assert err == "tflab: --plots draws one measurement; give one file, or omit --plots.\n"
    names = []
    monkeypatch.setattr(plots, "save", lambda figure, path: names.append(path.name))
    assert run(capsys, "usual.json.gz --plots one --format json")[2] == "\nThe plots are in one\n"
    assert names == ["batch-4-ops", "batch-16-ops", "batch_sizes"]


def test_json_has_steps_and_rows_with_their_verdicts(folder, capsys):
    _, out, _ = run(capsys, "usual.json.gz slower.json.gz --format json --fail-if-slower 90")
    content = json.loads(out)
    assert content["measurements"] == ["usual", "slower"]
    assert content["environments"]["slower"]["GPUs"] == "none"
    (step,) = (
        row for row in content["steps"] if row["config"] == "slower" and row["batch_size"] == 4
    )
    assert (step["untraced_ns"]["median"], step["verdict"]["word"]) == (150_000, "slower")
    assert content["rows"][0]["step_ns"] == 60_000
    assert content["gate"] == {"percent": 90, "slower": [], "undecided": []}


def test_csv_has_a_line_for_each_step_and_row_of_each_measurement(folder, capsys):
    lines = list(
        csv.DictReader(io.StringIO(run(capsys, "usual.json.gz few.json.gz --format csv")[1]))
    )
    assert len(lines) == 2 * 2 * 3
    assert {line["verdict"] for line in lines} == {"", "cannot tell"}
    (line,) = (
        line
        for line in lines
        if (line["measurement"], line["batch_size"], line["key"]) == ("few", "16", "Conv2D")
    )
    assert (line["observations"], line["low"], line["high"]) == ("2", "0.0", "")


def test_a_proven_slowdown_exits_with_1_and_says_what_is_slower(folder, capsys):
    status, out, err = run(capsys, "usual.json.gz slower.json.gz --fail-if-slower 10")
    assert status == 1
    assert "Proven to be slower than 'usual' by more than 10 %: 'slower' at batch 4, 1.50 x" in err
    assert "Proven to be slower" in out


def test_a_small_or_an_unproven_slowdown_exits_with_0_and_says_which_it_is(folder, capsys):
    status, out, _ = run(capsys, "usual.json.gz slower.json.gz --fail-if-slower 60")
    assert status == 0
    assert "Nothing is slower than 'usual' by more than 60 %." in out
    status, out, _ = run(capsys, "usual.json.gz few.json.gz --fail-if-slower 10")
    assert status == 0
    assert "Not enough data to tell: 'few' at batch 4, cannot tell" in " ".join(out.split())


def test_an_unproven_slowdown_exits_with_3_where_that_is_asked_for(folder, capsys):
    status, out, err = run(
        capsys, "usual.json.gz few.json.gz --fail-if-slower 10 --fail-if-undecided"
    )
    assert status == 3
    assert "Not enough data to tell: 'few' at batch 4, cannot tell" in " ".join(out.split())
    assert "Not enough data to tell: 'few' at batch 4, cannot tell" in err
    line = "usual.json.gz slower.json.gz --fail-if-undecided --fail-if-slower"
    assert [run(capsys, f"{line} {percent}")[0] for percent in (10, 60)] == [1, 0]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("lenet", "There is no file 'lenet'. Did you mean '--model lenet'?"),
        (
            "usual.json.gz --batch-sizes 4",
            "--batch-sizes applies to a new measurement, but 'usual.json.gz' is a saved one; give "
            "either files or measuring options.",
        ),
        (
            "usual.json.gz slower.json.gz --model lenet",  # the default, too
            "--model applies to a new measurement, but 'usual.json.gz' is a saved one; give "
            "either files or measuring options.",
        ),
        (
            "usual.json.gz --phase inference",
            "--phase applies to a new measurement, but 'usual.json.gz' is a saved one",
        ),
        (
            "usual.json.gz --soft",
            "--soft-placement applies to a new measurement, but 'usual.json.gz' is",
        ),
        (
            "usual.json.gz --other-graph",
            "--other-graph needs two or more measurements, the baseline first.",
        ),
        (
            "usual.json.gz slower.json.gz --fail-if-undecided",
            "--fail-if-undecided needs --fail-if-slower PERCENT; give both.",
        ),
        (
            "usual.json.gz --fail-if-slower 10",
            "--fail-if-slower needs two or more measurements, the baseline first.",
        ),
        (
            "--fail-if-slower 10",
            "--fail-if-slower compares saved measurements; give their files, the baseline first.",
        ),
        (
            "usual.json.gz slower.json.gz --fail-if-slower ten",
            "The slowdown is 'ten'; it has to be a percentage from 0 to 1000.",
        ),
        ("usual.json.gz usual.json.gz", "'usual.json.gz' is given twice; give each file once."),
        pytest.param(
            "--model toy --save usual.json.gz",
            "The measurement 'usual.json.gz' exists already; remove it or give another path.",
            marks=pytest.mark.tensorflow,
        ),
        pytest.param(
            "--model toy --save /dev/null/x",
            "'/dev/null/x' cannot be written: Not a directory.",
            marks=pytest.mark.tensorflow,
        ),
        ("--model toy --save new/", "The measurement's file is 'new/'; give the name of a file."),
    ],
)
def test_a_wrong_argument_is_a_sentence_and_exits_with_2(folder, capsys, line, sentence):
    status, out, err = run(capsys, line)
    assert (status, out) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize("option", ["", " --fail-if-slower 10"])
def test_a_damaged_file_exits_with_2(folder, capsys, option):
    (folder / "cut.json.gz").write_bytes((folder / "usual.json.gz").read_bytes()[:-100])
    status, out, err = run(capsys, f"usual.json.gz cut.json.gz{option}")
    assert (status, out) == (2, "")
    assert err == "tflab: 'cut.json.gz' is incomplete: it ends in the middle. Copy it again.\n"


def test_a_newer_file_exits_with_2(folder, capsys):
    content = {"kind": files.KIND, "format": 7}
    (folder / "new.json.gz").write_bytes(gzip.compress(json.dumps(content).encode()))
    status, _, err = run(capsys, "usual.json.gz new.json.gz")
    assert status == 2
    assert "'new.json.gz' was written by a newer tflab, in format 7" in err


def test_groups_that_do_the_same_stand_in_a_row():
    groups, owners, sentence = saved_measurements.blocks_of_runs(
        {"before": WATCHED, "after": SLOWER}
    )
    assert list(groups.cells()) == [
        ("1", "init", "", "", ""),
        ("2", "loss:0, train", "x:0 (8, 4)", "900 ns", "1.35 us (1.50 x)"),
    ]
    headers = [column.header for column in groups.columns]
    assert headers == ["group", "fetches", "fed", "before", "after"]
    assert list(owners.cells()) == [
        ("start of Python", "100 ns", ""),
        ("import of TensorFlow", "2.00 us", ""),
        ("first runs", "1.40 us", "2.10 us (1.50 x)"),
        ("steps of group 2", "3.00 us", ""),
        ("Python between steps", "300 ns", ""),
        ("tflab", "150 ns", ""),
        ("end of Python", "3.05 us", ""),
        ("rest", "", "17.9 us"),
        ("the whole process", "10.0 us", "20.0 us (2.00 x)"),
    ]
    assert sentence == saved_measurements.NO_VERDICT


def test_groups_keep_their_identity_where_their_numbers_differ():
    """A function of the same name is another group; the second file has one more group, first."""
    init, train = GROUPS
    test = replace(train, median_ns=400.0, calls=3)
    first = ("first runs", 50), ("steps of group 2", 3_000), ("steps of group 3", 70)
    second = (
        *(("steps of group 1", 11), ("steps of group 3", 6_000), ("steps of group 4", 35)),
        ("waiting for data in group 4", 5),
    )
    before, after = (
        replace(
            WATCHED, groups=of_file, process=Process(9_000, tuple(Owner(*item) for item in owned))
        )
        for of_file, owned in (
            ((init, train, test), first),
            ((replace(init, fetches=("zeros:0",)), init, train, test), second),
        )
    )
    groups, owners, _ = saved_measurements.blocks_of_runs({"before": before, "after": after})
    assert [(cells[0], cells[1], *cells[3:]) for cells in groups.cells()] == [
        ("1", "init", "", ""),
        ("2", "loss:0, train", "900 ns", "900 ns (1.00 x)"),
        ("3", "loss:0, train", "400 ns", "400 ns (1.00 x)"),
        ("4", "zeros:0", "", ""),
    ]
    assert list(owners.cells()) == [
        ("first runs", "50 ns", ""),
        ("steps of group 2", "3.00 us", "6.00 us (2.00 x)"),
        ("steps of group 3", "70 ns", "35 ns (0.50 x)"),
        ("steps of group 4", "", "11 ns"),
        ("waiting for data in group 3", "", "5 ns"),
        ("the whole process", "9.00 us", "9.00 us (1.00 x)"),
    ]


def test_a_number_of_a_group_that_the_file_lacks_is_kept():
    damaged = replace(WATCHED, process=Process(9, (Owner("steps of group 99", 9),)))
    _, owners, _ = saved_measurements.blocks_of_runs({"damaged": damaged, "again": damaged})
    assert next(iter(owners.cells())) == ("steps of group 99", "9 ns", "9 ns (1.00 x)")


@pytest.fixture
def kept(tmp_path):
    (tmp_path / "kept.json").write_text(files.run_text(WATCHED))
    return str(tmp_path / "kept.json")


def test_the_command_reads_kept_runs(kept, capsys):
    again = kept.replace("kept.json", "again.json")
    shutil.copy(kept, again)
    assert compare.main([kept, again]) == 0
    assert "900 ns (1.00 x)" in capsys.readouterr().out
    assert compare.main([kept, "--top", "3"]) == 2
    assert "--top does not apply to watched runs; omit it." in capsys.readouterr().err


def test_a_run_without_a_graph_has_no_node_to_follow(kept, capsys):
    assert follow.main(["y", "--run", kept]) == 2
    assert "keeps no graph" in capsys.readouterr().err
