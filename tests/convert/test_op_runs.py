"""Op runs as columns: in the order of the trace, also if they are many."""

import numpy as np
import pytest
from pyarrow import parquet

from tflab.analysis.columns import OpRuns
from tflab.convert import op_runs
from tflab.convert.reading import Recording

MANY = 200_000  # more than a group of rows


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
