"""The sampler: each nanosecond has one owner, whatever the moments at which it looks."""

import gc
import os
import sys
from itertools import dropwhile
from types import FrameType, SimpleNamespace

import pytest

from tests.approval import approve
from tflab.run import sampler

LOOP = ("train.py", 7, "loop")
BATCH = ("train.py", 3, "next_batch")


@pytest.fixture
def clock(monkeypatch):
    """A sampler that began at 0, was there at 100, and sees what the test says."""
    now = SimpleNamespace(ns=100, place=(sampler.BETWEEN, LOOP))
    monkeypatch.setattr(sampler, "perf_counter_ns", lambda: now.ns)
    seen = sampler.Sampler(0)
    monkeypatch.setattr(seen, "owner_of", lambda frame: now.place)

    def look(ns, owner=sampler.BETWEEN, line=LOOP):
        now.ns, now.place = ns, (owner, line)
        seen.sample()

    seen.look = look
    return seen


def test_what_passes_without_runs_belongs_to_what_is_seen(clock):
    clock.look(130, sampler.IMPORTS, None)
    clock.look(150)
    clock.look(160, line=BATCH)
    clock.look(165, sampler.EAGER, BATCH)
    assert clock.segment() == {
        "owners": {sampler.START: 100, sampler.IMPORTS: 30, sampler.BEFORE: 30, sampler.EAGER: 5},
        "lines": {LOOP: (20, 1), BATCH: (10, 1)},
        "called": {BATCH: (5, 1)},
        "elsewhere": {},
        "in_data": {},
        "for_children": {},
        "in_runs": {},
        "runs": 0,
        "in_run_ns": 0,
        "in_run_at": None,
    }


def test_time_that_is_skipped_is_nobodys_and_nothing_looks_meanwhile(clock):
    clock.look(130)
    clock.inside = (0, 0, 1)

    def wait():
        clock.look(400)
        clock.look(630)

    assert clock.skip(wait) == 500
    clock.look(650, line=BATCH)
    assert clock.inside == (500, 0, 1)
    assert clock.looked == (1, 650)
    assert sum(clock.segment()["owners"].values()) == 650 - 500


def test_an_import_is_looked_at_by_the_main_thread_itself_once_that_is_due(clock, monkeypatch):
    looked = []
    monkeypatch.setattr(clock, "sample", looked.append)
    interval_ns = int(sampler.INTERVAL_S * 1e9)
    monkeypatch.setattr(sampler, "interval_ns", lambda: interval_ns)
    now = sampler.perf_counter_ns
    monkeypatch.setattr(sampler, "perf_counter_ns", lambda: 100 + interval_ns)
    clock.sample_import()
    assert looked == []
    monkeypatch.setattr(sampler, "perf_counter_ns", lambda: 101 + interval_ns)
    clock.sample_import()
    clock.main += 1  # another thread imports
    clock.sample_import()
    (frame,) = looked
    assert isinstance(frame, FrameType)
    assert now() == 100


def test_between_runs_time_is_shared_out_by_what_was_seen_there(clock, monkeypatch):
    monkeypatch.setattr(clock, "line_of", lambda stack: LOOP)
    clock.look(110)
    for start in (120, 220, 320, 420):  # each lasts 60, and 40 pass before the next
        clock.enter(start)
        clock.look(start + 30)
        clock.leave(60)
        clock.look(start + 70, line=BATCH if start == 120 else LOOP)
    clock.look(500, sampler.GRAPHS, BATCH)
    # Seen as a whole: the first 10 and the last 10. Of the other 140, a quarter was at BATCH.
    segment = clock.segment()
    assert segment["lines"] == {LOOP: (10 + 105, 1 + 3), BATCH: (35, 1)}
    assert segment["called"] == {BATCH: (10, 1)}
    assert segment["in_runs"] == {LOOP: (40 + 3 * 60, 4)}  # since the look before
    assert segment["owners"] == {
        sampler.START: 100,
        sampler.BEFORE: 10,
        sampler.BETWEEN: 140,
        sampler.GRAPHS: 10,
    }
    assert sum(segment["owners"].values()) == 500 - 4 * 60


def test_python_after_the_last_run_is_told_from_that_between_runs(clock):
    for start in (200, 300):
        clock.enter(start)
        clock.leave(10)
        clock.look(start + 20)  # 10 after it, which was not seen as a whole
        clock.look(start + 50)
        clock.look(start + 60)
    assert clock.segment()["owners"] == {
        sampler.START: 100,
        sampler.BETWEEN: (100 + 10) + 40 + (40 + 10),
        sampler.AFTER: 40,
    }


def test_a_look_while_results_are_made_takes_no_time_from_others(clock, monkeypatch):
    clock.enter(110)
    clock.leave(10)
    clock.look(120)
    copied = sampler.copied

    def interrupted(spent):
        sums = copied(spent)
        clock.look(500)
        return sums

    monkeypatch.setattr(sampler, "copied", interrupted)
    assert min(clock.segment()["owners"].values()) > 0


def test_a_pause_is_between_runs_although_only_short_ones_follow(clock):
    for start in (120, 640, 660):
        clock.enter(start)
        clock.leave(10)
        clock.look(start + 15)
        if start == 120:
            clock.look(630)  # 495 after the look before
    # The 60 around the runs were seen where Python was, too
    owners = {sampler.START: 100, sampler.BETWEEN: 495 + 50}
    assert clock.segment()["owners"] == owners
    clock.look(700)
    assert clock.segment()["owners"] == {**owners, sampler.AFTER: 25}
    clock.enter(710)  # so it was not the last run
    assert clock.segment()["owners"] == {**owners, sampler.BETWEEN: 495 + 50 + 25}


def test_a_look_that_had_to_wait_stands_for_the_time_since_the_one_before(clock):
    """A library that does not let go of Python for long is seen once, at its end."""
    for start, waited, line in ((110, 70, LOOP), (200, 700, BATCH)):
        clock.enter(start)
        clock.look(start)
        clock.leave(10)
        clock.look(start + waited, line=line)
    # Around the runs: 10 + 60 + 20 + 690, by looks 70 and 700 after those before them
    assert clock.segment()["lines"] == {LOOP: (780 * 70 // 770, 1), BATCH: (780 * 700 // 770, 1)}


def test_between_runs_calls_of_tensorflow_are_shared_out_too(clock):
    for start, owner in ((120, sampler.DATA), (220, sampler.BETWEEN)):
        clock.enter(start)
        clock.look(start + 10)
        clock.leave(10)
        clock.look(start + 90, owner)
    # 20 before the first run, and 90 and 80 after them; each was seen for 80
    segment = clock.segment()
    assert (segment["lines"], segment["called"]) == ({LOOP: (95, 1)}, {LOOP: (95, 1)})
    assert segment["owners"][sampler.DATA] == 95


def test_a_call_that_runs_nothing_is_pythons_time(clock):
    clock.enter(110)
    clock.leave(0)
    clock.look(120)
    assert clock.segment()["owners"] == {sampler.START: 100, sampler.BEFORE: 20}


def test_a_long_run_is_nobodys_but_its_own(clock):
    clock.enter(110)
    clock.look(5_000)
    clock.look(10_000)
    segment = clock.segment()
    assert sum(segment["owners"].values()) == 110
    assert (segment["in_run_ns"], segment["in_run_at"][0]) == (9_890, __file__)  # it has not ended


def test_a_time_without_a_look_is_as_many_samples_as_looks_were_due(clock):
    interval_ns = int(sampler.INTERVAL_S * 1e9)
    for count, line in ((10, LOOP), (12 + 10, BATCH)):
        clock.look(100 + count * interval_ns, line=line)
    samples = {line: count for line, (_, count) in clock.segment()["lines"].items()}
    assert samples == {LOOP: 1, BATCH: 12}


def test_the_moments_of_samples_are_not_regular(monkeypatch):
    drawn = iter([*range(0, 256, 51), 255])
    monkeypatch.setattr(sampler.os, "urandom", lambda size: bytes([next(drawn)]))
    intervals = [sampler.interval_ns() for _ in range(6)]
    assert intervals == [int(sampler.INTERVAL_S * 1e9 * (0.5 + at / 5)) for at in range(6)]
    assert sampler.interval_ns(seldom=True) == pytest.approx(3 * intervals[-1], abs=3)


def test_other_threads_are_seen_unless_they_run_graphs_or_wait(clock, monkeypatch):
    stacks = {
        clock.main: frames("train.py"),
        2: frames(f"{TF}ops/script_ops.py", "data.py"),
        3: frames("queue.py", "reader.py"),
        4: frames(f"{TF}client/session.py", "steps.py"),
        5: frames(sampler.__file__),
    }
    monkeypatch.setattr(sampler.sys, "_current_frames", lambda: stacks)
    monkeypatch.setattr(sampler, "begins", lambda frame: False)
    clock.in_calls = {4: "a call"}
    clock.look(130)
    clock.look(150)
    segment = clock.segment()
    assert segment["elsewhere"] == {("data.py", 1, "f"): (30 + 20, 2)}
    assert segment["in_data"] == segment["elsewhere"]  # TensorFlow calls it


def test_nothing_is_collected_while_the_frames_of_threads_are_read(monkeypatch):
    during = []

    class Frame:
        @property
        def f_back(self):
            during.append(gc.isenabled())

    monkeypatch.setattr(sampler.sys, "_current_frames", lambda: {1: Frame()})
    for before in (gc.enable, gc.disable):
        before()
        sampler.stacks_of_threads()
        during.append(gc.isenabled())
    gc.enable()
    assert during == [False, True, False, False]


def code(file, name="f"):
    file, _, own = file.partition("@")
    name = own or name
    return SimpleNamespace(co_filename=file, co_name=name, co_firstlineno=90)


def frames(*files):
    """A stack, the innermost frame first."""
    frame = None
    for number, file in enumerate(reversed(files)):
        frame = SimpleNamespace(f_code=code(file), f_lineno=number + 1, f_back=frame)
    return frame


def stack_of(*files):
    return [*sampler.outwards(frames(*files))]


TF = "/lib/site-packages/tensorflow/python/"
LIBRARY = f"{os.path.dirname(os.__file__)}{os.sep}"


STACKS = (
    *("train.py", "/lib/site-packages/numpy/core.py, train.py", "<string>, train.py"),
    *("LIB/os.py, model.py, train.py", "model.py, <frozen importlib._bootstrap>, train.py"),
    *("<frozen importlib._bootstrap>, train.py", "<frozen importlib._bootstrap>, TF/__init__.py"),
    *("TF/framework/ops.py, train.py", "TF/client/session.py, train.py"),
    *("TF/framework/ops.py, TF/training/saver.py, train.py", "TF/training/saver.py, train.py"),
    "TF/ops/gen_math_ops.py, TF/ops/math_ops.py, a.py",
    "TF/eager/context.py, TF/ops/math_ops.py",
    "TF/ops/gen_dataset_ops.py@iterator_get_next, a.py",
    "TF/ops/gen_dataset_ops.py@range_dataset, a.py",
    *("TF/framework/op_def.py, TF/ops/math_ops.py", ""),
)


def sampling(builds):
    seen = sampler.Sampler(0)
    seen.builds = lambda: builds
    return seen


def test_a_stack_has_an_owner_and_a_line_also_while_a_graph_is_built():
    """What an eager program would run, a program that builds a graph adds to it."""
    said = []
    for stack in STACKS:
        whole = stack.replace("LIB/", LIBRARY).replace("TF/", TF)
        (owner, line), (while_built, same) = (
            sampling(builds).owner_of(stack_of(*whole.split(", ")) if stack else [])
            for builds in (False, True)
        )
        assert line == same
        place = f"{line[0]}:{line[1]} in {line[2]}" if line else "no line"
        owners = owner if owner == while_built else f"{owner}; while a graph is built {while_built}"
        said.append(f"{stack or 'nothing'}\n  {owners}, at {place}")
    approve("owners-of-stacks.txt", "\n".join(said))


@pytest.mark.parametrize("number", [None, 0])
def test_code_without_a_line_is_on_none(number):
    frame = SimpleNamespace(f_code=code("train.py"), f_lineno=number, f_back=None)
    assert sampler.Sampler(0).owner_of([frame]) == (sampler.BETWEEN, None)
    assert sampler.Sampler(0).line_of([frame]) is None


def test_the_time_before_the_program_begins_is_not_that_of_its_first_line(monkeypatch):
    """That line is the docstring."""
    seen, module = sampler.Sampler(0), compile("'What it does.'", "train.py", "exec")
    monkeypatch.setattr(sampler, "perf_counter_ns", lambda: seen.assigned_ns + 100)
    at = 0 if sys.version_info >= (3, 11) else -1
    begins = SimpleNamespace(f_code=module, f_lasti=at, f_lineno=1, f_back=None)
    seen.account(begins)
    assert (seen.spent, seen.mixed_ns) == ({(sampler.BEFORE, None): [100, 1]}, 0)


def test_the_time_before_a_function_begins_passed_in_its_caller():
    def entered_from(frame):
        return next(dropwhile(sampler.begins, sampler.outwards(frame)), None)

    def later(frame):
        return frame.f_lasti >= 0 and entered_from(frame) is frame

    def begun():
        return later(sys._getframe())

    assert begun()

    def at(lasti, back, first=sampler.RESUME):
        instructions = SimpleNamespace(co_code=bytes([first % 256, 0, 100, 0]))
        return SimpleNamespace(f_lasti=lasti, f_back=back, f_code=instructions)

    caller = at(2, None)
    assert entered_from(at(2, caller)).f_back is caller
    assert entered_from(at(-1, caller)) is caller
    # The handler of the signal has only begun as well
    begins = 0 if sys.version_info >= (3, 11) else -1
    assert entered_from(at(begins, at(begins, caller))) is caller
    assert entered_from(at(begins, None)) is None
    assert entered_from(None) is None


POOL = ("threading.py", "multiprocessing/pool.py", "/code/a.py")


@pytest.mark.parametrize(
    "files, children, waits",
    [
        (("selectors.py", "subprocess.py", "/code/a.py"), (), True),
        (POOL, ("child",), True),
        (POOL, (), False),  # a pool of threads
        (("concurrent/futures/process.py", "/code/a.py"), ("child",), True),
        (("threading.py", "/code/a.py"), ("child",), False),
        (("/code/a.py", "subprocess.py"), (), False),  # the program itself, called by the library
        ((), (), False),
    ],
)
def test_a_program_waits_for_children_in_what_makes_them(monkeypatch, files, children, waits):
    monkeypatch.setitem(sys.modules, "multiprocessing.process", SimpleNamespace(_children=children))
    stack = [file if file.startswith("/") else LIBRARY + file for file in files]
    assert sampler.Sampler(0).waits_for_children(stack_of(*stack)) is waits
