"""Rows: rows that line up are read by column, and as they are when read one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflab.convert import decoded, protos, rows

NOW_US = 1_700_000_000_000_000
SIZES = st.one_of(
    st.integers(-(2**40), 2**40),
    st.sampled_from((0, 1, 128, -1, 2**48)),
    st.integers(-(2**63), 2**63 - 1),
)
TIMES = st.integers(2**49, 2**56 - 1)
NAMES = st.one_of(
    st.binary(min_size=1, max_size=4), st.sampled_from((b"cpu", b"2\x04\n\x02", b"2"))
)
MEMORY = st.lists(st.tuples(NAMES, st.lists(st.tuples(TIMES, SIZES), min_size=1, max_size=3)))
ROWS = st.lists(st.tuples(NAMES, NAMES, TIMES, st.integers(1, 2**62), MEMORY), max_size=5)


def piece(stats, unknown: bytes = b"") -> protos.Piece:
    """A DeviceStepStats of rows: name, label, start in us, duration in ns, and memory."""
    message = protos.message("DeviceStepStats")()
    for name, label, start_us, duration_ns, memory in stats:
        row = message.node_stats.add(
            node_name=name,
            timeline_label=label,
            all_start_micros=start_us,
            all_end_rel_micros=3,
            all_start_nanos=start_us * 1000 % 2**62 + 1,
            all_end_rel_nanos=duration_ns,
        )
        for allocator, records in memory:
            used = row.memory.add(allocator_name=allocator, total_bytes=7)
            for us, size in records:
                used.allocation_records.add(alloc_micros=us, alloc_bytes=size)
    return protos.piece(message.SerializeToString() + unknown)


def both(data, merged):
    """The op runs by column, and one by one."""
    words, tables = decoded.Vocabulary(), rows.Tables()
    kinds = rows.KindsOfRows("/cpu:0", words, tables)
    return (
        rows.by_column(0, merged.rows, kinds, words, tables),
        rows.one_by_one(0, protos.rows(data), kinds, words, tables),
    )


@given(ROWS)
def test_columns_are_what_the_rows_are(stats):
    by_column, one_by_one = both(*piece(stats))
    possible = all(
        abs(size) < 2**48 for *_, used in stats for _, records in used for _, size in records
    )
    text = all(name.isascii() for *_, used in stats for name, _ in used)
    if possible and text:
        assert by_column == one_by_one
    elif by_column is not None:  # sizes that no allocator has
        assert len(by_column) == len(one_by_one)


def test_releases_stand_beside_allocations():
    events = [(NOW_US + number, size) for number, size in enumerate((5, -5, 2**40, -(2**40), 300))]
    row = (b"a", b"a = Op()", NOW_US, 9, [(b"cpu", events)])
    by_column, _ = both(*piece([row, row]))
    assert [run.allocations for run in by_column] == 2 * [
        tuple((us, size, "cpu") for us, size in events)
    ]


@pytest.mark.parametrize(
    "unlike",
    [
        {"all_start_micros": 1},  # before 1987
        {"all_end_rel_nanos": 0},
        {"timeline_label": b""},
        {"memory": [{"allocator_name": b"cpu", "total_bytes": 7}]},  # no single allocations
    ],
)
def test_rows_that_do_not_line_up_are_read_one_by_one(unlike):
    message = protos.message("DeviceStepStats")()
    row = message.node_stats.add(
        node_name=b"a", timeline_label=b"a = Op()", all_start_micros=NOW_US,
        all_start_nanos=1_000 * NOW_US, all_end_rel_nanos=2,
    )  # fmt: skip
    assert both(*protos.piece(message.SerializeToString()))[0] is not None
    for name, value in unlike.items():
        row.ClearField(name)
        row.MergeFrom(type(row)(**{name: value}))
    assert both(*protos.piece(message.SerializeToString()))[0] is None
