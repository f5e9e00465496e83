"""Load: what the system says of its processors, and what is made of it where it says nothing."""

import os
import time

import pytest

from tflab.records.verdicts import Load
from tflab.runtime import load
from tflab.runtime.load import Beginning, ProcessorTime

STAT = "cpu  100 20 30 7000 900 4 5 60 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_ticks_are_those_of_all_processors_without_idle_and_waiting_ones(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    assert load.ticks(tmp_path / "stat") == ProcessorTime(used=100 + 20 + 30 + 4 + 5, stolen=60)


@pytest.mark.parametrize(
    "text", ["", "cpu 1 2 3\n", "cpu a b c d e f g h\n", STAT[47:], "intr 1 2"]
)
def test_ticks_are_not_known_where_the_line_is_another(tmp_path, text):
    (tmp_path / "stat").write_text(text)
    assert load.ticks(tmp_path / "stat") is None


def test_ticks_are_not_known_where_there_is_no_such_file(tmp_path):
    assert load.ticks(tmp_path / "stat") is None


@pytest.mark.parametrize(
    "start, end, share",
    [
        (ProcessorTime(1_000, 10), ProcessorTime(1_060, 30), 0.25),
        (ProcessorTime(1_000, 10), ProcessorTime(1_050, 10), 0.0),
        (ProcessorTime(1_000, 10), ProcessorTime(1_040, 19), None),  # 49 ticks are too few
        (None, ProcessorTime(1_050, 10), None),
        (ProcessorTime(1_000, 10), None, None),
    ],
)
def test_the_stolen_share_is_of_the_time_in_which_something_wanted_to_run(start, end, share):
    assert load.stolen_share(start, end) == share


def test_a_load_has_the_average_from_before_and_the_time_stolen_since(monkeypatch):
    monkeypatch.setattr(load, "ticks", lambda: ProcessorTime(1_075, 35))
    monkeypatch.setattr(load, "load_average", lambda: 9.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert load.since(Beginning(1.5, ProcessorTime(1_000, 10))) == Load(6, 1.5, 0.25)


def test_a_beginning_reads_the_average_unless_it_was_read_before(monkeypatch):
    monkeypatch.setattr(load, "ticks", lambda: ProcessorTime(1, 2))
    monkeypatch.setattr(load, "load_average", lambda: 9.0)
    assert load.beginning() == Beginning(9.0, ProcessorTime(1, 2))
    assert load.beginning(0.0) == Beginning(0.0, ProcessorTime(1, 2))


def test_the_average_is_that_of_the_last_minute(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 5.0, 15.0))
    assert load.load_average() == 1.0


@pytest.mark.parametrize(
    "used, average",
    [
        (99, 1.98),  # of the 200 ticks that 4 cores have in half a second: just below half
        (100, 4.5),
        (None, 4.5),  # nobody says what runs now
    ],
)
def test_an_average_from_before_does_not_count_where_most_cores_are_idle_now(
    monkeypatch, used, average
):
    reads = iter(
        [ProcessorTime(1_000, 0), None if used is None else ProcessorTime(1_000 + used, 0)]
    )
    monkeypatch.setattr(os, "getloadavg", lambda: (4.5, 5.0, 15.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(load, "ticks", lambda: next(reads))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(load, "LOOK_S", 0.5)
    assert load.load_average() == average


def test_without_a_load_average_there_is_none(monkeypatch):
    def refused():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", refused)
    assert load.load_average() is None
    monkeypatch.delattr(os, "getloadavg")
    assert load.load_average() is None
