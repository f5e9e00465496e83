"""Sampler: every nanosecond of the main thread is attributed to exactly one owner.

The time within `session.run` is measured. All other time is sampled: a thread checks every few
milliseconds where the main thread is, and attributes the time outside of runs to that place. So the
owners add up exactly. This imports only built-in modules, because the program's own files may have
the names of others.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
from itertools import dropwhile
from time import perf_counter_ns

TYPE_CHECKING = False  # as in `typing`, which is not imported
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from types import FrameType

    Spent = dict[tuple[str, "Line | None"], list[int]]
    Lines = dict["Line", tuple[int, int]]
    Stack = Iterable[FrameType]  # the innermost frame first

INTERVAL_S = 0.011  # between samples, on average
LONG = 10  # intervals without a sample
SELDOM_S = 3 * INTERVAL_S  # for a thread that interrupts a main thread about which enough is known
# Threads of Python take turns every so often. Without ticks and with the usual 5 ms, the sampler
# would get its turn only where the program waits, and not see a loop's Python between two steps.
TURN_S = 0.0001

START = "start of Python"
IMPORT_TENSORFLOW = "import of TensorFlow"
IMPORTS = "other imports"
GRAPHS = "building graphs"
EAGER = "eager ops and functions"
FRAMEWORK = "Python of TensorFlow and Keras"
DATA = "waiting for data"
BEFORE = "Python before the first step"
BETWEEN = "Python between steps"
AFTER = "Python after the last step"

# The time of a line in the main thread: its own Python, and what it calls of TensorFlow and Keras.
# Then all its time in other threads; the part of that in functions that TensorFlow called; the
# part of its own Python that waits for child processes; and its runs, in proportion.
LINES, CALLS = "lines", "called"
ELSEWHERE, IN_DATA, FOR_CHILDREN, IN_RUNS = "elsewhere", "in_data", "for_children", "in_runs"
KINDS = ELSEWHERE, IN_DATA, FOR_CHILDREN, IN_RUNS

PROGRAM, LIBRARY, IMPORTLIB, TENSORFLOW = range(4)  # kinds of files
PACKAGES = ("site-packages", "dist-packages")
AUTOGRAPH = "__autograph_generated_file"  # prefix of the files with generated code
OF_TENSORFLOW = ("tensorflow", "keras", "tf_keras")
# Within TensorFlow, by the end of the name of the innermost file
OWNERS = {
    ("eager/execute.py", "eager/context.py"): EAGER,
    ("ops/iterator_ops.py",): DATA,
    ("client/session.py", "training/saver.py", "checkpoint/checkpoint.py"): FRAMEWORK,
    ("summary/writer/writer.py", "event_file_writer.py", "file_io.py", "tf_record.py"): FRAMEWORK,
}
# Where Python begins a function, it looks for signals. Before Python 3.11 no instruction does that.
RESUME = (lambda: None).__code__.co_code[0] if sys.version_info >= (3, 11) else -1
# In which TensorFlow calls Python, as it does from the threads of tf.data
CALLED = "ops/script_ops.py"
# Files of the library in which a thread waits for another one, or for data
WAITING = ("threading.py", "queue.py", "selectors.py", "socket.py", "subprocess.py", "thread.py")
Line = tuple[str, int, str]  # file, line, function
MODULE = "<module>"  # the function of a module's own code
MOST_CODE = 200  # characters of a source line


class Sampler:
    """The time of the main thread by owner, and its time in Python by line."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.main = _thread.get_ident()
        # Of the main thread: ns in finished runs, the start of the current run (0: none), and the
        # number of finished runs. One object, so that other threads see complete changes only.
        self.inside: tuple[int, int, int] = (0, 0, 0)
        self.assigned_ns = perf_counter_ns() - start_ns  # time outside of runs with an owner
        self.before_ns = self.assigned_ns  # before the first sample
        # Of owners and lines, and of KINDS: ns and number of samples
        self.spent: Spent = {}
        # The last sample: number of finished runs (-1: in a run), and its time
        self.looked = (0, perf_counter_ns())
        self.mixed_ns = 0  # time outside of runs without an owner yet
        self.weights: Spent = {}  # the time between samples, for the owners of that time
        self.tail: tuple[int, int] = (0, 0)  # number of finished runs, ns of Python since the last
        # Whether the main thread builds a graph, once TensorFlow is imported
        self.builds: Callable[[], bool] = lambda: False
        self.in_calls: Container[int] = ()  # threads in a run
        self.looking = _thread.allocate_lock()
        self.importing = False  # where the last sample was
        self.kinds: dict[str, int] = {}
        self.library = os.path.dirname(os.__file__) + os.sep
        self.own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

    def enter(self, now_ns: int) -> None:
        """Note that the main thread begins a run."""
        ended_ns, _, runs = self.inside
        self.inside = (ended_ns, now_ns, runs)

    def leave(self, took_ns: int) -> None:
        """Note that the main thread's run has ended. A call that ran nothing took 0 ns."""
        ended_ns, _, runs = self.inside
        self.inside = (ended_ns + took_ns, 0, runs + (took_ns > 0))

    def skip(self, wait: Callable[[], object]) -> int:
        """Call a function that waits between two runs. Return its ns, which no owner gets here."""
        with self.looking:
            began_ns = perf_counter_ns()
            wait()
            took_ns = perf_counter_ns() - began_ns
            ended_ns, _, runs = self.inside
            self.inside = (ended_ns + took_ns, 0, runs)
            self.looked = (self.looked[0], self.looked[1] + took_ns)
        return took_ns

    def sample(self, frame: FrameType | None = None) -> None:
        """Attribute the time since the last sample. The main thread itself passes its frame."""
        if self.looking.acquire(blocking=False):  # otherwise another thread does it
            try:
                self.account(frame)
            finally:
                self.looking.release()

    def sample_import(self) -> None:
        """Sample while a module is imported, in the main thread, which then is not interrupted."""
        due_ns = self.looked[1] + interval_ns()
        if perf_counter_ns() > due_ns and _thread.get_ident() == self.main:
            self.sample(sys._getframe())

    def account(self, frame: FrameType | None) -> None:
        """Attribute the time since the last sample.

        If runs began or ended meanwhile, only the sum of the time between them is known. At the end
        it is distributed over the places of all samples of this kind.
        """
        state = self.inside
        now_ns = perf_counter_ns()
        stacks = stacks_of_threads()
        # Where a function begins, the time is its caller's; where the program begins, nobody's
        stack = [*dropwhile(begins, outwards(frame) if frame else stacks.get(self.main, ()))]
        ended_ns, began_ns, runs = state
        owner, line = ("", self.line_of(stack)) if began_ns else self.owner_of(stack)
        if self.inside is not state:
            return  # the main thread has moved on meanwhile
        self.importing = owner in (IMPORT_TENSORFLOW, IMPORTS)
        outside_ns = (began_ns or now_ns) - self.start_ns - ended_ns
        spent_ns, self.assigned_ns = outside_ns - self.assigned_ns, outside_ns
        passed_ns = now_ns - self.looked[1]
        # C code that does not release Python lets a thread look at its end, where all time passed
        intervals = passed_ns // int(INTERVAL_S * 1e9)
        samples = intervals if intervals > LONG else 1
        if not owner or self.looked[0] != runs:
            self.mixed_ns += spent_ns
            if owner:
                add(self.weights, owner, line, passed_ns, samples)
            else:
                add(self.spent, IN_RUNS, line, passed_ns, 1)
        elif owner != BETWEEN:
            add(self.spent, owner, line, spent_ns, samples)
        else:
            add(self.spent, BETWEEN if runs else BEFORE, line, spent_ns, samples)
            if self.waits_for_children(stack):
                add(self.spent, FOR_CHILDREN, line, spent_ns, samples)
            self.tail = (runs, spent_ns + (self.tail[1] if self.tail[0] == runs else 0))
        for thread, other in stacks.items():
            waits = other[0].f_code.co_filename.endswith(WAITING)
            idle = thread == self.main or thread in self.in_calls or waits
            if not idle and (line := self.line_of(other)) is not None:
                add(self.spent, ELSEWHERE, line, passed_ns, 1)
                if any(frame.f_code.co_filename.endswith(CALLED) for frame in other):
                    add(self.spent, IN_DATA, line, passed_ns, 1)
        self.looked = (-1 if began_ns else runs, now_ns)

    def waits_for_children(self, stack: Stack) -> bool:
        """Return whether the library waits for processes that the program made."""
        for frame in stack:
            file = frame.f_code.co_filename
            if self.kind_of(file) == PROGRAM:
                break
            if file.endswith("subprocess.py"):
                return True
            if "/multiprocessing/" in file or file.endswith("futures/process.py"):
                module = sys.modules.get("multiprocessing.process")
                return bool(getattr(module, "_children", ()))
        return False

    def main_line(self) -> Line | None:
        """Return the innermost line of the program in the main thread, at this moment."""
        return self.line_of(stacks_of_threads().get(self.main, ()))

    def owner_of(self, stack: Stack) -> tuple[str, Line | None]:
        """Return the owner of the time in this stack, and the program's innermost line in it."""
        importing = tensorflow = False
        owner = line = None
        for frame in stack:
            file = frame.f_code.co_filename
            kind = self.kind_of(file)
            if kind == PROGRAM:
                line = line_at(frame)
                break
            if kind == IMPORTLIB:
                importing = True
            elif kind == TENSORFLOW:
                owner = owner if tensorflow else special_owner(file, frame.f_code.co_name)
                tensorflow = True
            if importing and tensorflow:
                return IMPORT_TENSORFLOW, None  # the other frames are many
        if importing:
            return IMPORTS, None
        if not tensorflow:
            return BETWEEN, line
        builds = owner != FRAMEWORK and self.builds()
        return GRAPHS if builds else owner or FRAMEWORK, line

    def line_of(self, stack: Stack) -> Line | None:
        """Return the innermost line of the program."""
        of_program = (each for each in stack if self.kind_of(each.f_code.co_filename) == PROGRAM)
        return line_at(frame) if (frame := next(of_program, None)) else None

    def kind_of(self, file: str) -> int:
        kind = self.kinds.get(file)
        if kind is None:
            kind = self.kinds[file] = self.new_kind(file)
        return kind

    def new_kind(self, file: str) -> int:
        if file.startswith("<frozen importlib"):
            return IMPORTLIB
        package = installed_package(file)
        if package is not None:
            if package[-1] in OF_TENSORFLOW:
                return TENSORFLOW
            # The program itself may be installed
            main = getattr(sys.modules.get("__main__"), "__file__", None)
            return PROGRAM if main and installed_package(main) == package else LIBRARY
        if os.path.basename(file).startswith(AUTOGRAPH):
            return LIBRARY
        # Code without a file, such as that of `exec`, counts for the line that runs it.
        library = file.startswith((self.library, self.own, "<"))
        return LIBRARY if library else PROGRAM

    def segment(self) -> dict[str, object]:
        """Return the results so far, without owners of 0 ns."""
        (_, began_ns, runs), (ended, tail_ns) = self.inside, self.tail  # which is a part of `spent`
        spent, weights, left_ns = copied(self.spent), copied(self.weights), self.mixed_ns
        whole = sum(weight for weight, _ in weights.values())
        for (owner, line), (weight, samples) in weights.items():
            share_ns = self.mixed_ns * weight // whole
            left_ns -= share_ns
            add(spent, owner, line, share_ns, samples)
        add(spent, BETWEEN, None, left_ns, 0)
        of_kinds: dict[str, Lines] = {LINES: {}, CALLS: {}, **{kind: {} for kind in KINDS}}
        owners = {START: self.before_ns}
        for (owner, line), (ns, samples) in spent.items():
            if owner not in KINDS:
                owners[owner] = owners.get(owner, 0) + ns
            if line is not None:
                own = owner in (BEFORE, BETWEEN)
                kind = owner if owner in KINDS else LINES if own else CALLS
                before_ns, before = of_kinds[kind].get(line, (0, 0))
                of_kinds[kind][line] = before_ns + ns, before + samples
        if runs and ended == runs and not began_ns:
            owners[BETWEEN] -= tail_ns
            owners[AFTER] = tail_ns
        return {
            "owners": {owner: ns for owner, ns in owners.items() if ns},
            **of_kinds,
            "runs": runs,
            "in_run_ns": perf_counter_ns() - began_ns if began_ns else 0,
            "in_run_at": self.main_line() if began_ns else None,
        }


def stacks_of_threads() -> dict[int, list[FrameType]]:
    """Return the frames of each thread, the innermost first.

    Nothing is collected here. Before Python 3.12, making the object of a frame may begin a garbage
    collection, whose finalizers let other threads run: these may leave a frame into which Python is
    writing, or wait for ever for a lock (CPython's issue 106883).
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return {thread: [*outwards(frame)] for thread, frame in sys._current_frames().items()}
    finally:
        if collects:
            gc.enable()


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers. Only `stacks_of_threads` may pass another thread's frame."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def interval_ns(seldom: bool = False) -> int:
    """Return the ns until the next sample. It varies, so that samples do not follow a loop."""
    interval_s = SELDOM_S if seldom else INTERVAL_S
    return int(interval_s * 1e9 * (0.5 + os.urandom(1)[0] / 255))


def add(spent: Spent, owner: str, line: Line | None, ns: int, samples: int) -> None:
    sum_of = spent.setdefault((owner, line), [0, 0])
    sum_of[0] += ns
    sum_of[1] += samples


def copied(spent: Spent) -> Spent:
    """Return a copy of sums while another thread may add to them."""
    return {key: [*sum_of] for key, sum_of in [*spent.items()]}


def installed_package(file: str) -> list[str] | None:
    """Return the path, in parts, of the installed package that this file belongs to."""
    parts = file.split(os.sep)
    place = next((at for at, part in enumerate(parts) if part in PACKAGES), None)
    return None if place is None else parts[: place + 2]


def begins(frame: FrameType) -> bool:
    return frame.f_lasti < 0 or frame.f_code.co_code[frame.f_lasti] == RESUME


def line_at(frame: FrameType) -> Line | None:
    """Return the line of a frame. Some instructions of Python have none, or 0."""
    number, code = frame.f_lineno, frame.f_code
    return (code.co_filename, number, code.co_name) if number else None


def place(file: str, line: int, function: str) -> str:
    """Return `train.py:88 in next_batch`; a module's own code has no function."""
    name = "" if function.startswith("<") else f" in {function}"
    return f"{os.path.basename(file)}:{line}{name}"


def special_owner(file: str, function: str) -> str | None:
    name = file.rsplit(os.sep, 1)[1]
    if name == "gen_dataset_ops.py" and function.startswith("iterator_get_next"):
        return DATA
    if name.startswith("gen_") and name.endswith("_ops.py"):
        return EAGER  # it calls the runtime directly, unless it builds a graph
    return next((owner for ends, owner in OWNERS.items() if file.endswith(ends)), None)
