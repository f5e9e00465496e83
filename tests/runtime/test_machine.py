"""Machine: peaks are measured once for each machine, and what is kept only gets better."""

import fcntl
import json
import math
import subprocess
import sys
import time
from dataclasses import asdict

import numpy as np
import pytest

from tflab.records.measured import Level, Peaks
from tflab.runtime import machine

LEVELS = tuple(Level(size, 40.0, 60.0) for size in machine.WORKING_SETS)
MEASURED = Peaks(gflops=100.0, gigabytes_per_s=20.0, levels=LEVELS)


@pytest.fixture
def benchmark(monkeypatch):
    """A benchmark that only counts how often it ran."""
    calls = []
    monkeypatch.setattr(machine, "benchmark", lambda: calls.append(1) or MEASURED)
    return calls


def cache_file(folder):
    return folder / machine.file_name(machine.description())


def test_peaks_are_measured_once(tmp_path, benchmark):
    assert machine.peaks(tmp_path) == machine.peaks(tmp_path) == MEASURED
    assert len(benchmark) == 1


def test_the_cache_holds_the_machine_and_its_peaks_and_no_draft(tmp_path, benchmark):
    machine.peaks(tmp_path / "new" / "folder")
    (path,) = (tmp_path / "new" / "folder").iterdir()
    assert path == cache_file(tmp_path / "new" / "folder")
    assert json.loads(path.read_text()) == {
        "machine": machine.description(),
        "gflops": 100.0,
        "gigabytes_per_s": 20.0,
        "levels": [asdict(level) for level in LEVELS],
        "busy": False,
    }


def test_peaks_of_a_busy_machine_are_measured_again_and_the_best_of_a_quiet_one_is_kept(
    tmp_path, monkeypatch
):
    looks = iter([Peaks(60.0, 20.0, LEVELS, busy=True), Peaks(70.0, 10.0, LEVELS), None])
    monkeypatch.setattr(machine, "benchmark", lambda: next(looks))
    assert machine.peaks(tmp_path) == Peaks(60.0, 20.0, LEVELS, busy=True)
    assert machine.peaks(tmp_path) == Peaks(70.0, 20.0, LEVELS)
    assert machine.peaks(tmp_path) == Peaks(70.0, 20.0, LEVELS)  # as the cache has it


def whole(**changes):
    content = {
        "machine": machine.description(),
        "gflops": 50.0,
        "gigabytes_per_s": 5.0,
        "levels": [asdict(level) for level in LEVELS],
    }
    return json.dumps(content | changes)


def test_what_is_whole_is_believed(tmp_path, benchmark):
    cache_file(tmp_path).write_text(whole())
    assert machine.peaks(tmp_path) == Peaks(50.0, 5.0, LEVELS)
    assert not benchmark


def test_peaks_without_levels_are_measured_again_and_not_made_worse(tmp_path, benchmark):
    old = {"machine": machine.description(), "gflops": 300.0, "gigabytes_per_s": 5.0}
    cache_file(tmp_path).write_text(json.dumps(old))
    better = Peaks(300.0, 20.0, LEVELS)
    assert machine.peaks(tmp_path) == machine.peaks(tmp_path) == better
    assert len(benchmark) == 1


def test_a_level_that_is_missing_is_measured(tmp_path, benchmark):
    cache_file(tmp_path).write_text(whole(levels=[asdict(level) for level in LEVELS[1:]]))
    assert machine.peaks(tmp_path) == machine.peaks(tmp_path) == MEASURED
    assert len(benchmark) == 1


def test_each_number_of_each_level_is_the_better_one():
    first = Peaks(1.0, 2.0, (Level(16, 3.0, 8.0), Level(64, 1.0, 1.0)))
    second = Peaks(2.0, 1.0, (Level(16, 4.0, 7.0), Level(32, 5.0, 6.0)))
    both = (Level(16, 4.0, 8.0), Level(32, 5.0, 6.0), Level(64, 1.0, 1.0))
    assert machine.best(first, second) == machine.best(second, first) == Peaks(2.0, 2.0, both)


def test_another_look_raises_what_was_measured_too_low(tmp_path, benchmark):
    cache_file(tmp_path).write_text(whole(gigabytes_per_s=30.0))
    low = machine.peaks(tmp_path)
    assert low == Peaks(50.0, 30.0, LEVELS)
    best = Peaks(100.0, 30.0, LEVELS)
    assert machine.measure_again(low, tmp_path) == machine.peaks(tmp_path) == best
    assert len(benchmark) == 1


def test_what_was_not_measured_here_never_gets_into_the_cache(tmp_path, benchmark):
    made_up = Peaks(200.0, 30.0, (Level(2**14, 999.0, 999.0), *LEVELS[1:]))
    assert machine.measure_again(made_up, tmp_path) == made_up
    assert machine.peaks(tmp_path) == MEASURED
    assert len(benchmark) == 1


def test_kept_peaks_only_get_better(tmp_path, benchmark):
    path, key = cache_file(tmp_path), machine.description()
    assert machine.keep(path, key, Peaks(50.0, 30.0)) == Peaks(50.0, 30.0)
    assert machine.keep(path, key, MEASURED) == Peaks(100.0, 30.0, LEVELS)
    assert machine.keep(path, key, Peaks(1.0, 1.0)) == machine.peaks(tmp_path)
    assert machine.peaks(tmp_path) == Peaks(100.0, 30.0, LEVELS)
    assert not benchmark


def test_what_is_no_better_is_not_written(tmp_path, monkeypatch):
    path, key = cache_file(tmp_path), machine.description()
    machine.keep(path, key, MEASURED)
    monkeypatch.setattr(machine, "write", None)
    assert machine.keep(path, key, Peaks(1.0, 20.0)) == MEASURED


WRITER = """
import sys, time
from pathlib import Path
from tflab.records.measured import Peaks
from tflab.runtime import machine

path, what = Path(sys.argv[1]), sys.argv[2]
if what == "slowly":
    reading = machine.read

    def read(*arguments):
        kept = reading(*arguments)
        (path.parent / "reading").touch()
        patience = time.monotonic() + 2
        while time.monotonic() < patience and not path.exists():
            time.sleep(0.01)
        return kept

    machine.read = read
    machine.keep(path, machine.description(), Peaks(70.0, 1.0))
else:
    for number in range(1, 101):
        peaks = Peaks(number, 1.0) if what == "gflops" else Peaks(1.0, number)
        machine.keep(path, machine.description(), peaks)
        kept = machine.read(path, machine.description())
        assert getattr(kept, what) >= number, kept
"""


def writer(path, what):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), what])


@pytest.mark.slow
def test_a_process_waits_until_another_has_written_what_it_read(tmp_path):
    path = cache_file(tmp_path)
    slow = writer(path, "slowly")
    try:
        while not (tmp_path / "reading").exists():
            assert slow.poll() is None
            time.sleep(0.01)
        both = machine.keep(path, machine.description(), Peaks(1.0, 9.0))
        assert slow.wait(60) == 0
    finally:
        slow.kill()
        slow.wait()
    assert both == machine.read(path, machine.description()) == Peaks(70.0, 9.0)


@pytest.mark.slow
def test_two_processes_that_write_at_once_lose_nothing(tmp_path):
    path = cache_file(tmp_path)
    writers = [writer(path, what) for what in ("gflops", "gigabytes_per_s")]
    assert [process.wait(120) for process in writers] == [0, 0]
    assert machine.read(path, machine.description()) == Peaks(100.0, 100.0)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [OSError, ImportError])
def test_without_locks_the_peaks_are_kept_all_the_same(tmp_path, monkeypatch, trouble):
    def fail(*_):
        raise trouble

    monkeypatch.setattr(fcntl, "flock", fail)
    machine.keep(cache_file(tmp_path), machine.description(), MEASURED)
    assert machine.peaks(tmp_path) == MEASURED


@pytest.mark.parametrize(
    "content",
    [
        "",
        whole()[:-9],
        "[" * 100_000,
        "[1, 2]",
        "null",
        "{}",
        whole(machine={}),
        whole(machine=machine.description() | {"cpus": 1024}),
        whole(gflops=0),
        whole(gflops=-1.0),
        whole(gflops=math.nan),
        whole(gigabytes_per_s=math.inf),
        whole(gigabytes_per_s="fast"),
        whole(gigabytes_per_s=None),
        whole(levels=7),
        whole(levels=[7]),
        whole(levels=[asdict(Level(2**14, math.nan, 1.0))]),
        whole(levels=[asdict(Level(2**14, 1.0, 0.0))]),
        whole(levels=[asdict(Level(2**14, 1.0, 1.0)) | {"working_set_bytes": math.inf}]),
        whole(levels=[{"working_set_bytes": 2**14}]),
        b"\xff\xfe\x00",
    ],
)
def test_a_damaged_or_foreign_file_is_measured_again_and_replaced(tmp_path, benchmark, content):
    path = cache_file(tmp_path)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert machine.peaks(tmp_path) == machine.peaks(tmp_path) == MEASURED
    assert len(benchmark) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_means_measuring_every_time(tmp_path, benchmark):
    (tmp_path / "file").write_text("in the way")
    assert machine.peaks(tmp_path / "file") == machine.peaks(tmp_path / "file") == MEASURED
    assert len(benchmark) == 2


def test_a_file_that_cannot_be_replaced_leaves_no_draft(tmp_path, benchmark):
    cache_file(tmp_path).mkdir()
    assert machine.peaks(tmp_path) == MEASURED
    assert list(tmp_path.iterdir()) == [cache_file(tmp_path)]


def test_the_cache_is_where_the_user_keeps_caches(tmp_path, benchmark, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine.peaks()
    assert cache_file(tmp_path / "tflab").is_file()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert machine.default_cache() == tmp_path / "home" / ".cache" / "tflab"


def test_a_relative_cache_is_not_used(benchmark, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert machine.peaks() == MEASURED
    assert list(tmp_path.iterdir()) == []


def test_another_number_of_threads_is_another_machine(monkeypatch):
    usual = machine.file_name(machine.description())
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "97")
    assert machine.file_name(machine.description()) != usual


def test_the_description_is_of_this_machine():
    description = machine.description()
    assert set(description) == {"processor", "cpus", "numpy", "threads"}
    assert description["numpy"] == np.__version__
