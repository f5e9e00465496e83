"""Op runs as columns: in the order of the trace, also if they are many."""

import numpy as np
import pytest

from tflab.analysis.columns import OpRuns
from tflab.convert import op_runs
from tflab.convert.reading import Recording
from tflab.exporters import parquet

MANY = 200_000  # more than DuckDB handles at once


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
    with parquet.connect(tmp_path) as database:
        found = database.execute(f"FROM read_parquet('{file}')").fetchnumpy()
    written = (found[name] for name in ("step", "start_ns", "duration_ns", "requested_bytes"))
    for column, expected in zip(written, (step, *times), strict=True):
        assert np.array_equal(column, expected)
    assert found["node"].tolist() == [kinds[number][0] for number in kind.tolist()]
