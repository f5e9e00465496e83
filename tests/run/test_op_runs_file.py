"""Op runs as a file of columns: rows worked out by hand, and the questions of the documentation."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from tflab.run import __main__ as command
from tflab.run import op_runs_file

PAGE = Path(__file__).parents[2] / "docs" / "run.md"
SEGMENT = {
    "groups": [{"graph": 0}, {"graph": 1}],
    "graphs": [
        [
            ("y", "forward", ("/my code/train.py", 3, 'y = f("a, b")'), "MatMul"),
            ("g", "backward", None, "Mul"),
        ]
    ],
}
MADE = ("MatMul", "forward", "/my code/train.py", 3, 'y = f("a, b")')
ROWS = [  # of two runs: y and g one after the other, then at once
    (2, 7, "y", *MADE, 1_000, 200),
    (2, 7, "g", "Mul", "backward", None, None, None, 1_200, 100),
    (2, 1_007, "y", *MADE, 5_000, 400),
    (2, 1_007, 'odd",\n', None, None, None, None, None, 5_000, 200),
]


@pytest.mark.parametrize(
    ("traced", "why"),
    [((0, 0), "no run was traced"), ((1, 0), "the traces of 1 run have none")],
)
def test_without_op_runs_no_file_is_written_and_the_reason_is_said(traced, why, tmp_path, capsys):
    written = tmp_path / "ops.parquet"
    command.write_op_runs(written, tmp_path, {"groups": [{"traced": runs} for runs in traced]})
    assert capsys.readouterr().err == f"There are no op runs: {why}.\n"
    assert not written.exists()


CHILD = """
import json, sys
from pathlib import Path
import duckdb
from tflab.run import op_runs_file
folder, segment, questions = json.load(sys.stdin)
file = op_runs_file.to_parquet(Path(folder), segment)
with duckdb.connect() as database:
    asked = [question.replace("ops.parquet", str(file)) for question in questions]
    json.dump([database.execute(question).fetchall() for question in asked], sys.stdout)
"""
COLUMNS = "group_number, run, node, op, phase, file, line, code, start_ns, duration_ns"


def answers(folder, questions):
    """What DuckDB answers, in a process of its own: it complains when one of pytest ends."""
    asked = json.dumps((str(folder), SEGMENT, questions))
    command = [sys.executable, "-c", CHILD]
    done = subprocess.run(command, input=asked, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return [[tuple(row) for row in rows] for rows in json.loads(done.stdout)]


@pytest.mark.slow
def test_each_op_run_is_a_row_and_the_questions_of_the_documentation_have_answers(tmp_path):
    seen = op_runs_file.OpRunsFile(str(tmp_path), pytest.fail)
    seen.add(2, 7, ["y", "g"], [1_000, 1_200], [200, 100])
    seen.flush()
    seen.add(2, 1_007, ["y", 'odd",\n'], [5_000, 5_000], [400, 200])
    seen.flush()
    (text,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S)
    questions = [question for question in text.split(";") if question.strip()]
    rows = f"SELECT {COLUMNS} FROM 'ops.parquet' ORDER BY run, node DESC"
    all_of, count, *found = answers(tmp_path, [rows, "DESCRIBE FROM 'ops.parquet'", *questions])
    assert all_of == ROWS
    assert len(count) == len(COLUMNS.split(","))
    assert found == [
        [("MatMul", 2, 0.0006), (None, 1, 0.0002), ("Mul", 1, 0.0001)],
        [
            (3, "forward", 'y = f("a, b")', 0.0006),
            (None, None, None, 0.0002),
            (None, "backward", None, 0.0001),
        ],
        [("y", 300.0, 400), *found[2][1:]],
        [(0, 0.0003), (1, 0.0006)],
        [(7, 1.0), (1_007, 1.5)],
    ]


def test_rows_are_written_many_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(op_runs_file, "ROWS", 3)
    seen = op_runs_file.OpRunsFile(str(tmp_path), pytest.fail)
    seen.add(1, 1, ["a", "b"], [1, 2], [3, 4])
    assert not (tmp_path / op_runs_file.NAME).exists()
    seen.add(1, 2, ["a"], [5], [6])
    assert (tmp_path / op_runs_file.NAME).read_text() == '1,1,"a",1,3\n1,1,"b",2,4\n1,2,"a",5,6\n'


def test_a_full_disk_leaves_whole_rows_and_a_note(tmp_path, monkeypatch):
    notes, write = [], os.write
    seen = op_runs_file.OpRunsFile(str(tmp_path), notes.append)
    seen.add(1, 1, ["a", "b"], [1, 2], [3, 4])
    monkeypatch.setattr(op_runs_file.os, "write", lambda file, content: write(file, content[:15]))
    seen.flush()
    seen.add(1, 2, ["a"], [5], [6])
    seen.flush()
    assert (tmp_path / op_runs_file.NAME).read_text() == '1,1,"a",1,3\n'
    assert notes == [
        f"The op runs end before the program does: {os.strerror(errno.ENOSPC)}.",
    ]


def test_groups_of_one_graph_and_unknown_groups(tmp_path):
    """An empty text is none; a group without a graph, and one that is not there, know no node."""
    seen = op_runs_file.OpRunsFile(str(tmp_path), pytest.fail)
    for group in (1, 2, 3, 9):
        seen.add(group, 0, ["y", ""], [10 * group] * 2, [1, 2])
    seen.flush()
    graph = [("y", "forward", ("train.py", 3, ""), "Mul")]
    segment = {"groups": [{"graph": 1}, {"graph": 0}, {"graph": 1}], "graphs": [graph]}
    table = parquet.read_table(op_runs_file.to_parquet(tmp_path, segment)).to_pylist()
    known, unknown = ("Mul", "forward", "train.py", 3, None), (None,) * 5
    assert [tuple(row.values()) for row in table] == [
        (group, 0, node, *(of_y if node else unknown), 10 * group, 1 if node else 2)
        for group, of_y in ((1, known), (2, unknown), (3, known), (9, unknown))
        for node in ("y", "")
    ]


def test_without_traced_runs_there_is_no_file(tmp_path):
    assert op_runs_file.to_parquet(tmp_path, {}) is None
