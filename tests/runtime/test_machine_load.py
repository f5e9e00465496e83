"""Load: what the system says of its processors, and what is made of it where it says nothing."""

import os
import time

from tflab.records.measured import Load
from tflab.runtime import machine_load

STAT = "cpu  100 20 30 7000 900 4 5 60 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


def test_others_use_all_time_of_processors_and_host_but_idle_waiting_and_ones_own(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "sysconf", lambda name: 10)
    monkeypatch.setattr(os, "times", lambda: os.times_result((1, 2, 4, 8, 99)))
    stat = tmp_path / "stat"
    assert machine_load.others_s(stat) is None
    for text in ("", "cpu 1 2 3\n", "cpu a b c d e f g h\n"):
        stat.write_text(text)
        assert machine_load.others_s(stat) is None
    stat.write_text(STAT)
    assert machine_load.others_s(stat) == (100 + 20 + 30 + 4 + 5 + 60) / 10 - 15


def test_the_load_during_a_measurement_is_that_of_others(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    for start_s, now_s, during in (
        (100.0, 125.0, 1.25),  # 25 s in 20 s
        (100.0, 99.0, 0.0),  # this process's time is read a little later
        (None, 130.0, None),
        (100.0, None, None),
    ):
        used, clock = iter([start_s, now_s]), iter([50.0, 70.0])
        monkeypatch.setattr(machine_load, "others_s", lambda used=used: next(used))
        monkeypatch.setattr(time, "monotonic", lambda clock=clock: next(clock))
        assert machine_load.begin()() == Load(6, during)
