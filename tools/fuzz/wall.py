"""The wall, tried with graphs at random: what the kernel confines touches nothing.

    python -m tools.fuzz.wall [--graphs N | --seconds N] [--seed N] [--free]

Each graph has one op of any type that TensorFlow registers. It runs in a process whose system calls
strace writes down, in a folder with nothing but a bait. Nothing may be written, made, removed or
connected to, and nothing read but what a run reads anyway; a call that the kernel refuses touches
nothing. With --free nothing confines the process, which shows that there is something to be seen.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tflab.exporters import text
from tflab.records.blocks import Column, Table

ROOT = Path(__file__).parents[2]
NO_STRACE = "strace is missing, so nobody would see what graphs touch; get it: apt install strace"
MARK = "/watched-graph-"
OWN = ("graph.meta", "graph.index", "saved_model.pb")  # files of the graphs themselves
# Where the runtime, Python and the C library look things up by themselves
TENSORFLOW = Path(importlib.metadata.distribution("tensorflow").locate_file("tensorflow"))
PYTHON = (sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), str(ROOT), str(TENSORFLOW))
LOOKED_UP = (*PYTHON, "/usr", "/lib", "/etc/ld.so", "/proc", "/sys", "/dev")
THREAD = re.compile(r"/proc/self/task/\d+/comm")  # the name of a thread
CHUNK = 400  # graphs of one process
STUCK_S = 60  # without a word
START_S = 600  # until the first one, on a busy machine and under strace
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$")
UNFINISHED = "<unfinished ...>"
RESUMED = re.compile(r"^\d+\s+<\.\.\. \w+ resumed>(.*)$")
FAILED = re.compile(r"\) += -1 (E[A-Z]+) ")
PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
LOOKING = (  # without opening anything
    *("access", "faccessat", "faccessat2", "stat", "lstat", "newfstatat", "statx", "fstat"),
    *("readlink", "readlinkat", "getcwd", "statfs", "chdir", "socket", "socketpair"),
    *("getsockopt", "setsockopt", "shutdown", "getsockname", "getpeername"),
)
WRITING = r"O_(WRONLY|RDWR|CREAT|TRUNC)"
TALKING = ("connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg")


@dataclass(frozen=True)
class Tried:
    """One graph: what it was, how far it came, and what it touched on the way."""

    number: int
    op: str
    place: str
    outcome: str
    touched: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it ended in something else than a sentence of tflab's."""
        return self.outcome.startswith("ended in")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz.wall", description=__doc__)
    parser.add_argument("--graphs", type=int, default=0, help="how many, else as time allows")
    parser.add_argument("--seconds", type=int, default=60, help="default: 60")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--free", action="store_true", help="confine nothing")
    args = parser.parse_args()
    return 0 if run(args.seed, args.graphs, args.seconds, not args.free) else 1


def run(seed: int = 1, graphs: int = 0, seconds: float = 60, walled: bool = True) -> bool:
    """Try graphs and print what came of them; False where one touched something."""
    if not shutil.which("strace"):
        print(NO_STRACE)
        return False
    every = list(tried(seed, graphs, seconds, walled))
    text.show_block(text.console(), table(every, walled))
    for graph in every:
        if graph.touched or graph.failed:
            print(f"{graph.number} {graph.op} ({graph.place}), {graph.outcome}:")
            print("".join(f"    {what}\n" for what in dict.fromkeys(graph.touched)), end="")
    return bool(every) and not any(graph.touched or graph.failed for graph in every)


def table(graphs: list[Tried], walled: bool = True) -> Table:
    count = Counter(("a traceback" if graph.failed else graph.outcome) for graph in graphs)
    rows = [("built", str(len(graphs)), f"{len({graph.op for graph in graphs})} types of ops")]
    rows += [(outcome, str(number), "") for outcome, number in sorted(count.items())]
    rows += [("touched something", str(sum(bool(graph.touched) for graph in graphs)), "")]
    return Table(
        f"Graphs at random, watched from outside{'' if walled else ', not confined'}",
        (
            Column("graphs", lambda row: row[0]),
            Column("how many", lambda row: row[1], right=True),
            Column("of", lambda row: row[2], elastic=True),
        ),
        tuple(rows),
    )


def tried(seed: int, graphs: int, seconds: float, walled: bool = True) -> Iterator[Tried]:
    """Try so many graphs, or as many as there is time for."""
    end = time.monotonic() + seconds
    first = 0
    while first < graphs if graphs else time.monotonic() < end:
        last = min(first + CHUNK, graphs) if graphs else first + CHUNK
        chunk = process(seed, first, last, walled, None if graphs else end)
        if not chunk and not graphs and time.monotonic() > end:
            return
        if not chunk:
            raise RuntimeError(f"the process that tries graphs from {first} on said nothing")
        yield from chunk
        first = chunk[-1].number + 1


def process(seed: int, first: int, last: int, walled: bool, end: float | None) -> list[Tried]:
    """Try graphs in one process, as many as it survives."""
    with TemporaryDirectory(prefix="tflab-gate-") as folder:
        here = Path(folder, "here")
        here.mkdir()
        (here / "bait").write_text("bait\n")
        trace = Path(folder, "trace")
        watch = ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "4096", "-o", str(trace)]
        work = Path(folder, "inside")
        work.mkdir()
        command = [sys.executable, "-m", "tools.fuzz.watched", str(seed), str(first), str(last)]
        command += ["--wall", str(work)] if walled else []
        temporary = str(work) if walled else folder
        own = {"PYTHONPATH": str(ROOT), "HOME": str(here), "TMPDIR": temporary}
        environment = {**os.environ, **own}
        out = Path(folder, "out")
        with out.open("w") as written:
            child = subprocess.Popen(
                [*watch, "-e", "trace=%file,%network", *command],
                cwd=here,
                env=environment,
                stdout=written,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            wait(child, out, end)
        touched = Touched(folder, walled=walled)
        touched.read(trace.read_text(errors="replace").splitlines())
        return list(graphs_of(out.read_text(), touched))


def wait(child: subprocess.Popen[bytes], out: Path, end: float | None) -> None:
    """Wait for the process; end it when it says nothing any more, or when the time is over."""
    said, since = 0, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        now = time.monotonic()
        if out.stat().st_size != said:
            said, since = out.stat().st_size, now
        if now - since > (STUCK_S if said else START_S) or (end and now > end):
            os.killpg(child.pid, 9)
            child.wait()


def graphs_of(said: str, touched: Touched) -> Iterator[Tried]:
    """What the process said of each graph; of the one that ended it, that it did so."""
    for line in said.splitlines():
        what, _, outcome = line.partition(" | ")
        number, op, place = what.split(" ", 2)
        outcome = outcome or "the process ended"
        yield Tried(int(number), op, place.rstrip(" |"), outcome, touched.by.get(int(number), ()))


def whole(lines: Iterable[str]) -> Iterator[str]:
    """The lines of strace, those calls put together that another thread came between."""
    begun: dict[str, str] = {}
    for line in lines:
        thread = line.partition(" ")[0]
        if line.endswith(UNFINISHED):
            begun[thread] = line.removesuffix(UNFINISHED)
        elif (rest := RESUMED.match(line)) and thread in begun:
            yield begun.pop(thread) + rest[1]
        else:
            yield line
    yield from begun.values()


def in_vain(name: str, line: str) -> bool:
    """Whether a call failed, and one to the network because the kernel refused it."""
    failed = FAILED.search(line)
    return failed is not None and (name not in TALKING or failed[1] in ("EACCES", "EPERM"))


class Touched:
    """What a process touched, by the number of the graph that was tried meanwhile."""

    def __init__(self, folder: str, walled: bool = False) -> None:
        self.folder = folder
        self.walled = walled  # then the folder for work may be written to
        self.by: dict[int, tuple[str, ...]] = {}

    def read(self, lines: Iterable[str]) -> None:
        number = None  # before the first graph, the process itself is loaded
        for line in whole(lines):
            call = CALL.match(line)
            if call is None or (self.walled and MARK not in line and in_vain(call[2], line)):
                continue
            paths = PATH.findall(call[3])
            if paths and paths[0].startswith(MARK):
                mark = paths[0].removeprefix(MARK)
                number = int(mark) if mark.isdecimal() else None
            elif number is not None and (what := self.effect(call[2], call[3], paths)):
                self.by[number] = (*self.by.get(number, ()), what)

    def effect(self, name: str, arguments: str, paths: list[str]) -> str | None:
        """What a system call does that a graph must not do; None where it may."""
        if name in LOOKING:
            return None
        if name in TALKING:
            return f"{name}({arguments.rpartition(')')[0]})"
        for_reading = name.startswith("open") and not re.search(WRITING, arguments)
        allowed = self.is_usual if for_reading else self.is_own
        outside = [path for path in paths if not allowed(path)]
        return f"{name} {' '.join(outside)}" if outside else None

    def is_usual(self, path: str) -> bool:
        return self.is_own(path) or path.startswith(LOOKED_UP) or path in ("", ".")

    def is_own(self, path: str) -> bool:
        if THREAD.fullmatch(path) or path == "/dev/null":
            return True
        if self.walled and f"{path}/".startswith(f"{self.folder}/inside/"):
            return True
        library = path.startswith(LOOKED_UP) and ".so" in path  # a process that dies says where
        return library or path.removeprefix(f"{self.folder}/here/") in OWN


if __name__ == "__main__":
    sys.exit(main())
