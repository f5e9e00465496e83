"""Rows: what a trace has in columns is what it has row by row, read by Google's parser."""

from hypothesis import given
from hypothesis import strategies as st

from tflab.convert import decoded, protos, rows

NUMBERS = st.one_of(
    st.integers(0, 2**40), st.sampled_from((0, 1, 128, -1, 2**48)), st.integers(-(2**63), 2**63 - 1)
)
NAMES = st.binary(max_size=4)
RECORDS = st.builds(dict, alloc_micros=NUMBERS, alloc_bytes=NUMBERS)
MEMORY = st.builds(
    dict,
    allocator_name=st.sampled_from((b"cpu", b"gpu", b"\xff")),
    total_bytes=NUMBERS,
    allocation_records=st.lists(RECORDS, max_size=3),
)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "node_name": NAMES,
        "timeline_label": NAMES,
        "all_start_micros": NUMBERS,
        "all_end_rel_micros": NUMBERS,
        "op_end_rel_micros": NUMBERS,
        "all_start_nanos": NUMBERS,
        "all_end_rel_nanos": NUMBERS,
        "memory": st.lists(MEMORY, max_size=3),
    },
)


def stats(*described):
    return protos.message("DeviceStepStats")(node_stats=described)


def op_runs(*messages):
    words, tables = decoded.Vocabulary(), rows.Tables()
    pieces = [protos.rows(message.SerializeToString()) for message in messages]
    return rows.op_runs(7, "/cpu:0", pieces, words, tables)


def in_nanoseconds(row):
    if row.all_start_nanos:
        return row.all_start_nanos, row.all_end_rel_nanos
    times = row.all_start_micros, row.all_end_rel_micros or row.op_end_rel_micros
    return tuple(1000 * max(-rows.MOST_US, min(us, rows.MOST_US)) for us in times)


def requested(row):
    def limited(size):
        return max(-rows.MOST_BYTES, min(size, rows.MOST_BYTES))

    total = 0
    for used in row.memory:
        records = used.allocation_records
        if not records:
            total += limited(used.total_bytes)
        total += sum(limited(max(0, record.alloc_bytes)) for record in records)
    return total


@given(st.lists(ROWS, max_size=5), st.lists(ROWS, max_size=2))
def test_columns_have_what_the_rows_have(first, second):
    messages = stats(*first), stats(*second)
    runs = op_runs(*messages)
    found = [row for message in messages for row in message.node_stats]
    assert [(run.step, run.device) for run in runs] == [(7, "/cpu:0")] * len(found)
    for run, row in zip(runs, found, strict=True):
        assert run.name.partition(" (")[0] == row.node_name.decode(errors="replace")
        assert (run.start_ns, run.duration_ns) == in_nanoseconds(row)
        assert run.requested_bytes == requested(row)
        named = [(us, size, name.partition(" (")[0]) for us, size, name in run.allocations]
        assert named == [
            (record.alloc_micros, record.alloc_bytes, used.allocator_name.decode(errors="replace"))
            for used in row.memory
            for record in used.allocation_records
        ]


def test_a_row_has_the_type_in_its_own_label():
    labels = ("a = MatMul(b)", "a = Add(b)", "", "a = MatMul(b)")
    runs = op_runs(stats(*({"node_name": b"a", "timeline_label": one.encode()} for one in labels)))
    assert [run.op for run in runs] == ["MatMul", "Add", "unknown", "MatMul"]


def test_a_device_without_rows_has_no_op_runs():
    assert list(op_runs(stats())) == list(op_runs()) == []
