"""Watched runs, compared: all cells worked out by hand."""

import shutil
from dataclasses import replace

import pytest

from tests.run.test_summary import GROUPS, WATCHED
from tflab.compare import __main__ as compare
from tflab.compare import saved_runs
from tflab.follow import __main__ as follow
from tflab.measurements import run_files
from tflab.records.timed import Owner
from tflab.records.watched import Process

SLOWER = replace(
    WATCHED,
    groups=(replace(GROUPS[1], median_ns=1_350.0),),
    process=Process(20_000, (Owner("first runs", 2_100), Owner("rest", 17_900))),
)


def test_groups_that_do_the_same_stand_in_a_row():
    groups, owners, sentence = saved_runs.blocks({"before": WATCHED, "after": SLOWER})
    assert list(groups.cells()) == [
        ("init", "", "", ""),
        ("loss:0, train", "x:0 (8, 4)", "900 ns", "1.35 us (1.50 x)"),
    ]
    assert [column.header for column in groups.columns] == ["fetches", "fed", "before", "after"]
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
    assert sentence == saved_runs.NO_VERDICT


@pytest.fixture
def kept(tmp_path):
    (tmp_path / "kept.json").write_text(run_files.text(WATCHED))
    return str(tmp_path / "kept.json")


def test_the_command_reads_kept_runs(kept, capsys):
    again = kept.replace("kept.json", "again.json")
    shutil.copy(kept, again)
    assert compare.main([kept, again]) == 0
    assert "900 ns (1.00 x)" in capsys.readouterr().out
    assert compare.main([kept, "--top", "3"]) == 2
    assert "--top does not apply to watched runs; leave it out." in capsys.readouterr().err


def test_a_run_without_a_graph_has_no_node_to_follow(kept, capsys):
    assert follow.main(["y", "--run", kept]) == 2
    assert "keeps no graph" in capsys.readouterr().err
