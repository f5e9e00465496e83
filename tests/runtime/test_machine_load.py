"""Load: what the system says of its processors, and what is made of it where it says nothing."""

import os
import time

import pytest

from tflab.records.verdicts import Load
from tflab.runtime import machine_load
from tflab.runtime.machine_load import Beginning

STAT = "cpu  100 20 30 7000 900 4 5 60 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_used_is_the_time_of_all_processors_and_of_the_host_without_idle_and_waiting(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    (tmp_path / "stat").write_text(STAT)
    assert machine_load.used_s(tmp_path / "stat") == (100 + 20 + 30 + 4 + 5 + 60) / 100


@pytest.mark.parametrize(
    "text", [None, "", "cpu 1 2 3\n", "cpu a b c d e f g h\n", STAT[47:], "intr 1 2"]
)
def test_used_is_not_known_where_the_line_is_another_or_there_is_no_file(tmp_path, text):
    if text is not None:
        (tmp_path / "stat").write_text(text)
    assert machine_load.used_s(tmp_path / "stat") is None


@pytest.mark.parametrize(
    "start_s, used_s, own_s, during",
    [
        (100.0, 130.0, 7.0, 1.25),  # 30 s in 20 s, of which 5 are this process's
        (100.0, 104.0, 7.0, 0.0),  # this process's time is read a little later
        (None, 130.0, 7.0, None),
        (100.0, None, 7.0, None),
    ],
)
def test_the_load_during_a_measurement_is_that_of_others(
    monkeypatch, start_s, used_s, own_s, during
):
    monkeypatch.setattr(machine_load, "used_s", lambda: used_s)
    monkeypatch.setattr(machine_load, "own_s", lambda: own_s)
    monkeypatch.setattr(time, "monotonic", lambda: 70.0)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert machine_load.since(Beginning(1.5, start_s, 2.0, 50.0)) == Load(6, 1.5, during)


def test_a_beginning_reads_the_average_unless_it_was_read_before(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 1.0, 1.0), raising=False)
    assert machine_load.beginning().average == 9.0
    assert machine_load.beginning(0.0).average == 0.0


def test_without_an_average_it_is_unknown(monkeypatch):
    def missing():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", missing, raising=False)
    assert machine_load.average() is None


def test_time_of_ended_children_is_this_processes_own(monkeypatch):
    monkeypatch.setattr(os, "times", lambda: os.times_result((1, 2, 4, 8, 99)))
    assert machine_load.own_s() == 15
