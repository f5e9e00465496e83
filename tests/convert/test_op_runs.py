"""Op runs as columns: in the order of the trace, also if they are many."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from tflab.analysis.columns import OpRuns
from tflab.convert import op_runs
from tflab.convert.reading import Recording

MANY = 200_000  # more than a group of rows


def of_one_run():
    none = np.zeros(0, np.int64)
    one = np.ones(1, np.int64)
    runs = OpRuns(
        [("node", "Op", "/cpu:0")], [], np.zeros(1, np.int32), one, one, one, one,
        np.zeros(2, np.int64), none, none, none.astype(np.int32),
    )  # fmt: skip
    return Recording(("a",), ("a",), (), runs)


def test_a_path_with_a_colon_is_no_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("s3:", "rows")
    file.parent.mkdir()
    op_runs.write_parquet(file, of_one_run())
    with file.open("rb") as stream:
        assert parquet.read_table(stream)["node"].to_pylist() == ["node"]


def test_a_full_disk_has_its_own_words():
    with pytest.raises(OSError) as raised:
        op_runs.write_parquet(Path("/dev/full"), of_one_run())
    assert raised.value.strerror == os.strerror(errno.ENOSPC)


@pytest.mark.slow
def test_the_rows_of_a_parquet_file_are_in_the_order_of_the_op_runs(tmp_path):
    kinds = [(f"node {number}", "Op", "/cpu:0") for number in range(50)]
    numbers, none = np.arange(MANY), np.zeros(0, np.int64)
    step, kind = numbers // 1000, (numbers * 7 % 50).astype(np.int32)
    first = np.zeros(MANY + 1, np.int64)
    times = (numbers, 2 * numbers, 3 * numbers)
    runs = OpRuns(kinds, [], kind, step, *times, first, none, none, none.astype(np.int32))
    file = tmp_path / "columns"
    op_runs.write_parquet(file, Recording(("a",), ("a",), (), runs))
    table = parquet.read_table(file)
    found = {name: table[name].to_numpy() for name in table.column_names}
    written = (found[name] for name in ("step", "start_ns", "duration_ns", "requested_bytes"))
    for column, expected in zip(written, (step, *times), strict=True):
        assert np.array_equal(column, expected)
    assert found["node"].tolist() == [kinds[number][0] for number in kind.tolist()]
