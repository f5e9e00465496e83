"""Table: columns make cells of rows; numbers get the unit that suits them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tflab import units
from tflab.records import blocks
from tflab.records.blocks import Column, Fact, Frame, Strip, Table

COLUMNS = (Column("name", str), Column("twice", lambda row: str(2 * row), right=True))


def test_a_cell_is_its_columns_function_of_the_row():
    table = Table("numbers", COLUMNS, (1, 20))
    assert list(table.cells()) == [("1", "2"), ("20", "40")]


def test_what_was_left_out_is_counted_with_the_option_that_shows_more():
    assert Table("t", COLUMNS, (1,)).rest() == ""
    assert Table("t", COLUMNS, (1,), more=1_234).rest() == "... and 1,234 more"
    shorter = Table("t", COLUMNS, (1,), more=1, option="--most")
    assert shorter.rest() == "... and 1 more (--most shows more)"
    folded = Table("t", COLUMNS, (1,), option="--full", everything=lambda: (1, 2))
    assert folded.rest() == "(--full shows every row)"


@pytest.mark.parametrize(
    ("most", "rows", "more"), [(2, (1, 2), 1), (3, (1, 2, 3), 0), (4, (1, 2, 3), 0)]
)
def test_a_shortened_table_remembers_how_many_rows_there_were(most, rows, more):
    assert blocks.shortened("t", COLUMNS, [1, 2, 3], most) == Table("t", COLUMNS, rows, more=more)


def test_only_a_table_that_can_show_more_offers_the_option_that_does():
    short = Table("t", COLUMNS, (1,))
    long = Table("t", COLUMNS, (1,), more=1, everything=lambda: (1, 2))
    assert blocks.offered(short, "--full") is short
    assert blocks.offered("A sentence.", "--full") == "A sentence."
    assert blocks.offered(long, "--full").option == "--full"
    assert blocks.in_full(blocks.offered(long, "--full")) == Table("t", COLUMNS, (1, 2))


def test_a_frame_in_full_has_every_line():
    short, long = Frame("a", "", ("1",)), Frame("b", "", ("2", "..."), everything=("2", "3"))
    strip = Strip("t", (short, long))
    assert blocks.in_full(strip) == Strip("t", (short, Frame("b", "", ("2", "3"))))


def test_a_fact_is_its_label_its_value_and_what_the_value_is():
    facts = Fact("step", "2 ms", "median"), Fact("nodes", "3")
    cells = [("step", "2 ms, median"), ("nodes", "3")]
    assert list(blocks.fact_table(facts).cells()) == cells


@pytest.mark.parametrize(
    "ns, text",
    [
        (0, "0 ns"),
        (0.4, "0 ns"),
        (812, "812 ns"),
        (999.5, "1.00 us"),  # what rounds up to the next unit is written there
        (1e6 * units.ROUNDS_UP, "1.00 ms"),
        (1e9 * units.ROUNDS_UP, "1.00 s"),
        (1_000, "1.00 us"),
        (18_340, "18.3 us"),
        (2_404_000, "2.40 ms"),
        (240_000_000, "240 ms"),
        (1_250_000_000, "1.25 s"),
        (3_600e9, "3600 s"),
        (-18_340, "-18.3 us"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_suits_it(ns, text):
    assert units.time(ns) == text


@pytest.mark.parametrize(
    "count, text",
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024 * units.ROUNDS_UP, "1.00 KiB"),
        (1024, "1.00 KiB"),
        (75_264, "73.5 KiB"),
        (1_258_291, "1.20 MiB"),
        (3 * 2**30, "3.00 GiB"),
    ],
)
def test_a_size_is_in_powers_of_1024(count, text):
    assert units.size(count) == text


@pytest.mark.parametrize(
    "value, text", [(9.994, "9.99"), (9.995, "10.0"), (99.94, "99.9"), (99.96, "100")]
)
def test_three_digits_stay_three_where_rounding_adds_one(value, text):
    assert units.three_digits(value) == text


@settings(max_examples=30)
@given(st.floats(0, 1e12))
def test_a_time_is_written_to_half_a_percent(ns):
    number, unit = units.time(ns).split()
    ns_again = float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    assert ns_again == pytest.approx(ns, rel=0.0051, abs=0.5)


def test_a_share_is_written_in_percent():
    assert [units.percent(share) for share in (0, 0.1234, 1)] == ["0.0 %", "12.3 %", "100.0 %"]


def test_one_is_singular_and_thousands_are_set_apart():
    assert [units.plural(count, "node") for count in (0, 1, 2, 1234)] == [
        "0 nodes",
        "1 node",
        "2 nodes",
        "1,234 nodes",
    ]


@pytest.mark.parametrize(
    "device, short",
    [
        ("/job:localhost/replica:0/task:0/device:CPU:1", "CPU:1"),
        ("/device:GPU:0/stream:13", "GPU:0/stream:13"),
        ("/job:my-device:1/device:CPU:2", "my-device:1 CPU:2"),
        ("/job:client/replica:0/task:0/device:CPU:0", "client CPU:0"),
        ("/job:worker/replica:0/task:0/device:CPU:0", "task 0 CPU:0"),
        ("/job:worker/replica:0/task:1/device:CPU:0", "task 1 CPU:0"),
        ("/job:worker/replica:2/task:1/device:CPU:0", "replica 2 task 1 CPU:0"),
        ("/job:worker/device:CPU:0", "worker CPU:0"),
        ("/job:ps/replica:0/task:0/device:CPU:0", "ps task 0 CPU:0"),
        ("/job:ps/task:1/device:CPU:0", "ps task 1 CPU:0"),
        ("/job:localhost/replica:0/task:1/device:CPU:0", "localhost task 1 CPU:0"),
        ("/job:ps/task:1", "/job:ps/task:1"),
        ("wire from task 0 to task 1", "wire from task 0 to task 1"),
    ],
)
def test_a_device_has_a_short_name_of_its_own(device, short):
    assert units.short_device(device) == short
