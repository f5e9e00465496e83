"""Table: columns make cells of rows; numbers get the unit that suits them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab import units
from tflab.records import blocks
from tflab.records.blocks import Column, Fact, Table

COLUMNS = (Column("name", str), Column("twice", lambda row: str(2 * row), right=True))


def test_a_cell_is_its_columns_function_of_the_row():
    table = Table("numbers", COLUMNS, (1, 20))
    assert list(table.cells()) == [("1", "2"), ("20", "40")]


def test_what_was_left_out_is_counted_with_the_option_that_shows_more():
    assert Table("t", COLUMNS, (1,)).rest() == ""
    assert Table("t", COLUMNS, (1,), more=1_234).rest() == "... and 1,234 more"
    shorter = Table("t", COLUMNS, (1,), more=1, option="--most shows more")
    assert shorter.rest() == "... and 1 more (--most shows more)"
    folded = Table("t", COLUMNS, (1,), option="--full shows all", everything=lambda: (1, 2))
    assert folded.rest() == "(--full shows all)"


@pytest.mark.parametrize(
    ("most", "rows", "more"), [(2, (1, 2), 1), (3, (1, 2, 3), 0), (4, (1, 2, 3), 0)]
)
def test_a_shortened_table_remembers_how_many_rows_there_were(most, rows, more):
    assert blocks.table("t", [1, 2, 3], *COLUMNS, most=most) == Table("t", COLUMNS, rows, more=more)


def test_only_a_table_that_can_show_more_offers_the_option_that_does():
    short = Table("t", COLUMNS, (1,))
    long = Table("t", COLUMNS, (1,), more=1, everything=lambda: (1, 2))
    assert blocks.offered(short, "--full") is short
    assert blocks.offered("A sentence.", "--full") == "A sentence."
    assert blocks.offered(long, "--full").option == "--full"
    assert blocks.in_full(blocks.offered(long, "--full")) == Table("t", COLUMNS, (1, 2))


def test_of_a_long_part_of_a_listing_the_first_lines_are_shown():
    listed = blocks.listing("t", (("a", ["1"]), ("b", ["2", "3", "4"])), most=1)
    assert listed.rows == (("a", "1"), ("b", "2"), ("", "... and 2 more"))


def test_a_fact_is_its_label_its_value_and_what_the_value_is():
    facts = Fact("step", "2 ms", "median"), Fact("nodes", "3")
    cells = [("step", "2 ms, median"), ("nodes", "3")]
    assert list(blocks.fact_table(facts).cells()) == cells


TIMES = {
    0: "0 ns",
    0.4: "0 ns",
    812: "812 ns",
    1_000: "1.00 us",
    18_340: "18.3 us",
    2_404_000: "2.40 ms",
    240_000_000: "240 ms",
    1_250_000_000: "1.25 s",
    3_600e9: "3600 s",
    -18_340: "-18.3 us",
    999.5: "1.00 us",  # what rounds up to the next unit is written there
    1e6 * units.ROUNDS_UP: "1.00 ms",
    1e9 * units.ROUNDS_UP: "1.00 s",
}
SIZES = {
    0: "0 B",
    512: "512 B",
    1024 * units.ROUNDS_UP: "1.00 KiB",
    1024: "1.00 KiB",
    75_264: "73.5 KiB",
    1_258_291: "1.20 MiB",
    3 * 2**30: "3.00 GiB",
}
DIGITS = {9.994: "9.99", 9.995: "10.0", 99.94: "99.9", 99.96: "100"}
COUNTS = {0: "0 nodes", 1: "1 node", 2: "2 nodes", 1234: "1,234 nodes"}
DEVICES = {
    "/job:localhost/replica:0/task:0/device:CPU:1": "CPU:1",
    "/device:GPU:0/stream:13": "GPU:0/stream:13",
    "/job:my-device:1/device:CPU:2": "my-device:1 CPU:2",
    "/job:client/replica:0/task:0/device:CPU:0": "client CPU:0",
    "/job:worker/replica:0/task:1/device:CPU:0": "task 1 CPU:0",
    "/job:worker/device:CPU:0": "worker CPU:0",
    "/job:ps/replica:0/task:0/device:CPU:0": "ps task 0 CPU:0",
    "/job:ps/task:1/device:CPU:0": "ps task 1 CPU:0",
    "/job:localhost/replica:0/task:1/device:CPU:0": "localhost task 1 CPU:0",
    "/job:ps/task:1": "/job:ps/task:1",
    "wire from task 0 to task 1": "wire from task 0 to task 1",
}


def test_numbers_have_three_digits_and_the_unit_that_suits_them_and_devices_short_names():
    assert {ns: units.time(ns) for ns in TIMES} == TIMES
    assert {size: units.size(size) for size in SIZES} == SIZES
    assert {value: units.three_digits(value) for value in DIGITS} == DIGITS
    assert {count: units.plural(count, "node") for count in COUNTS} == COUNTS
    assert [units.percent(share) for share in (0, 0.1234, 1)] == ["0.0 %", "12.3 %", "100.0 %"]
    assert {device: units.short_device(device) for device in DEVICES} == DEVICES


@settings(max_examples=30)
@given(st.floats(0, 1e12))
def test_a_time_is_written_to_half_a_percent(ns):
    number, unit = units.time(ns).split()
    assert float(number) * units.TIMES[unit] == pytest.approx(ns, rel=0.0051, abs=0.5)
