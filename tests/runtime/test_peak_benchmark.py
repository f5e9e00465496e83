"""Peak benchmark: the best of many short runs, of products, of memory and of each level."""

import math

import numpy as np
import pytest

from tflab.records.measured import Level
from tflab.runtime import machine


def test_the_benchmark_measures_both_peaks_and_every_level(monkeypatch):
    monkeypatch.setattr(machine, "BENCHMARK_SECONDS", 0.01)
    monkeypatch.setattr(machine, "LEVEL_SECONDS", 0.001)
    monkeypatch.setattr(machine, "MATRIX_SIDES", (32, 64))
    monkeypatch.setattr(machine, "ARRAY_BYTES", 2**20)
    monkeypatch.setattr(machine, "WORKING_SETS", (2**12, 2**14))
    monkeypatch.setattr(machine, "SWEPT_BYTES", 2**16)
    peaks = machine.benchmark()
    assert 0 < peaks.gflops < math.inf
    assert 0 < peaks.gigabytes_per_s < math.inf
    assert [level.working_set_bytes for level in peaks.levels] == [2**12, 2**14]
    for level in peaks.levels:
        assert 0 < level.one_thread_gb_s < math.inf
        assert 0 < level.all_threads_gb_s < math.inf


def test_the_working_sets_reach_from_the_first_cache_to_memory():
    kib, mib = 2**10, 2**20
    expected = (16 * kib, 64 * kib, 256 * kib, mib, 4 * mib, 16 * mib, 128 * mib)
    assert expected == machine.WORKING_SETS


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("way", ["add_in_one_call", "add_in_turns"])
def test_a_level_is_what_all_threads_read_and_write_in_the_quicker_way(monkeypatch, threads, way):
    """A working set of 1 KiB, swept 8 times in 1 us or, in the slower way, in 10 us."""
    monkeypatch.setattr(machine, "SWEPT_BYTES", 8 * 2**10)
    seen, last = [], []

    def noted(name):
        def work(turns, a, total):
            seen.append((name, turns, a.nbytes + total.nbytes))
            last[:] = [name]

        return work

    def quickest(work, seconds):
        work()
        return 1e-6 if last == [way] else 10e-6

    for name in ("add_in_one_call", "add_in_turns"):
        monkeypatch.setattr(machine, name, noted(name))
    monkeypatch.setattr(machine, "quickest", quickest)
    rate = machine.sweeping_gb_s(2**10, threads)
    assert sorted(seen) == [
        (name, 8, 1024 // threads)
        for name in ("add_in_one_call", "add_in_turns")
        for _ in range(threads)
    ]
    # Of three arrays of 512 bytes a turn; one call copies in its first turn, and reads one less.
    expected = {"add_in_one_call": 8 * 1536 - 512, "add_in_turns": 8 * 1536}
    assert rate == pytest.approx(expected[way] / 1e-6 / 1e9)


def test_both_ways_add_as_often_as_they_say():
    a = np.full(5, 2.0, np.float32)
    within, between = np.full(5, 99.0, np.float32), np.zeros(5, np.float32)
    machine.add_in_one_call(7, a, within)
    machine.add_in_turns(7, a, between)
    assert within.tolist() == between.tolist() == [14.0] * 5


def test_a_level_is_measured_with_one_thread_and_with_all(monkeypatch):
    monkeypatch.setattr(machine, "sweeping_gb_s", lambda size, threads: size + threads / 10)
    assert machine.level(64, 8) == Level(64, 64.1, 64.8)


def test_more_threads_than_numbers_have_one_each(monkeypatch):
    monkeypatch.setattr(machine, "LEVEL_SECONDS", 0.001)
    monkeypatch.setattr(machine, "SWEPT_BYTES", 2**10)
    assert machine.sweeping_gb_s(16, 5) > 0


class Clock:
    """Time that passes only when work is done."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(machine.time, "perf_counter", lambda: self.now)

    def working(self, *durations):
        remaining = iter(durations)

        def work():
            self.now += next(remaining)

        return work


def test_the_quickest_run_counts_and_the_first_never(monkeypatch):
    clock = Clock(monkeypatch)
    assert machine.quickest(clock.working(1, 5, 3, 4, 2), 11) == 3


def test_there_is_one_run_even_when_the_time_is_over(monkeypatch):
    clock = Clock(monkeypatch)
    assert machine.quickest(clock.working(9, 7), 1) == 7


def test_a_slow_machine_multiplies_no_larger_matrices(monkeypatch):
    clock, sides = Clock(monkeypatch), []

    def slow(a, b, out):
        sides.append(len(a))
        clock.now += 2 * len(a) ** 3 / 1e3  # 1000 operations a second

    monkeypatch.setattr(machine.np, "matmul", slow)
    assert machine.best_gflops((4, 8, 16)) == pytest.approx(1e-6)
    assert set(sides) == {4}
