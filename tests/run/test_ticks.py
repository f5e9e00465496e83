"""Ticks: lines are seen whatever they do with the GIL."""

import ctypes
import json
import os
import signal
import struct
import sys
import threading
import time

import pytest

from tests.commands import run_python
from tflab.run import ticks

PROGRAM = """
import _thread, collections, itertools, json, sys, time
import numpy as np
from tflab.run import sampler, ticks

# How often each of the four kinds of lines was seen
main, seen = _thread.get_ident(), collections.Counter()

def kind(stack):
    numbers = [frame.f_lineno for frame in stack if frame.f_code.co_filename == __file__]
    line = lines[numbers[0] - 1] if numbers else ""
    return line.partition("# ")[2].partition(",")[0] or "else"

def look(frame):
    seen[kind([*itertools.dropwhile(sampler.begins, sampler.outwards(frame))])] += 1

def look_here(frame):
    seen["by the main thread"] += 1
    look(frame)

def watch(ending, ended):
    watching.start()
    while not ending.locked():
        if watching.wait():
            look(sys._current_frames()[main])
    watching.stop()
    ended.release()

def look_at(product):
    return product

def work():
    random, square, numbers = np.random.RandomState(0), np.ones([250, 250]), list(range(250))
    until = time.process_time() + 1
    while time.process_time() < until:
        for _ in range(200):
            drawn = random.randint(-1, 2, size=2)  # calls that release the GIL
            for _ in range(2):  # bytecode
                for number in numbers:  # bytecode
                    number * number  # bytecode
        for _ in range(3):
            product = square @ square  # an operator that releases it
            look_at(product)  # an operator that releases it, where it was too short for a thread
        time.sleep(0.003)  # waiting

lines = open(__file__).read().split("\\n")
watching = ticks.prepared(look_here, sampler.Sampler(0))
ending, ended = _thread.allocate_lock(), _thread.allocate_lock()
ended.acquire()
_thread.start_new_thread(watch, (ending, ended))
work()
ending.acquire()
ended.acquire()
print(json.dumps(seen))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a timer of Linux")
def test_every_kind_of_line_is_seen(tmp_path):
    """Without ticks, bytecode is seen only where another process interrupts it."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = run_python(tmp_path, str(script), OPENBLAS_NUM_THREADS="1")
    seen = json.loads(done.stdout)
    kinds = ("bytecode", "calls that release the GIL", "an operator that releases it", "waiting")
    assert seen.pop("by the main thread") > 20
    assert all(seen.get(kind, 0) > 0.02 * sum(seen.values()) for kind in kinds), seen


def test_the_first_of_two_threads_looks_at_a_tick(monkeypatch):
    watching = ticks.Ticks(print, None, 61, 60)

    def looks(*threads):
        for thread in threads:
            monkeypatch.setattr(ticks._thread, "get_ident", lambda thread=thread: thread)
            yield watching.is_first()

    main, sampler = 1, 2
    assert [*looks(main, sampler, sampler, main)] == [True, False, True, False]
    # C code that lasts for three ticks, then the handler of the main thread, once
    assert [*looks(sampler, sampler, sampler, main)] == [True, True, True, False]
    assert [*looks(main, main, sampler)] == [True, True, False]


def test_both_timers_tick_at_the_same_moments_and_the_interval_changes(monkeypatch):
    watching, set_to = ticks.Ticks(print, None, 61, 60), []
    intervals = iter([16_000_000, 7_000_000])

    class Library:
        def timer_settime(self, timer, flags, spec, before):
            set_to.append((timer, flags, *struct.unpack("4l", spec)))

    watching.library, watching.timers = Library(), ["one", "other"]
    monkeypatch.setattr(ticks.time, "clock_gettime_ns", lambda clock: 2_990_000_000)
    monkeypatch.setattr(ticks, "interval_ns", lambda: next(intervals))
    monkeypatch.setattr(ticks._signal, "sigtimedwait", lambda *of: "a tick")
    for _ in range(2 * ticks.REGULAR):
        watching.wait()
    first, second = (0, 16_000_000, 3, 6_000_000), (0, 7_000_000, 2, 997_000_000)
    assert set_to == [
        (timer, ticks.ABSOLUTE, *to) for to in (first, second) for timer in ("one", "other")
    ]


def test_a_signal_that_the_program_handles_is_not_taken(monkeypatch):
    theirs = {}
    monkeypatch.setattr(ticks._signal, "getsignal", lambda number: theirs.get(number, 0))
    monkeypatch.setattr(ticks._signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(ticks._signal, "siginterrupt", lambda number, flag: None)
    assert ticks.prepared(print, None) or not sys.platform.startswith("linux")
    theirs[ticks._signal.SIGRTMAX - ticks.BEFORE_LAST[0]] = print
    assert ticks.prepared(print, None) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a signal of Linux")
def test_a_tick_does_not_interrupt_a_system_call_of_c_code():
    watching, (reading, writing) = ticks.prepared(print, None), os.pipe()

    def tick():
        time.sleep(0.1)
        signal.pthread_kill(main, watching.own)
        time.sleep(0.1)
        os.write(writing, b"x")

    main = threading.get_ident()
    threading.Thread(target=tick).start()
    assert ctypes.CDLL(None).read(reading, ctypes.create_string_buffer(1), 1) == 1
    signal.signal(watching.own, signal.SIG_DFL)


def test_a_program_that_observes_its_calls_does_not_see_ours(monkeypatch):
    looked = []
    watching = ticks.Ticks(looked.append, None, 61, 60)
    watching.timers = [ticks.ctypes.c_void_p(0)]
    monkeypatch.setattr(watching, "library", type("", (), {"timer_delete": id}))
    monkeypatch.setattr(ticks.sys, "getprofile", lambda: print)
    watching.handle(61, None)
    assert (looked, watching.ended, watching.timers) == ([], True, [])
