"""Signals at moments spread over a run: what was measured until then is kept, and whole.

    python -m tests.signals [--moments 40] [--commands lifecycle compare ...] [--formats json text]

Each command runs once to its end, to know how much time of processors that takes, and then once
for each moment, with SIGINT, SIGTERM and SIGHUP in turn. Prints a line for each of these runs.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
OF_TOY = ("--model", "toy")
GRAPH, TRACE, PROGRAM = "graph.pb", "trace.pb", "program.py"  # what `prepare` writes
ENDLESS = """
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
session = tf.Session()
doubled = tf.constant([1.0, 2.0]) * 2
for step in range(20_000):
    session.run(doubled)
"""
COMMANDS = {
    "lifecycle": ("lifecycle", *OF_TOY, "--steps", "400"),
    "file": ("lifecycle", "--model", GRAPH, "--steps", "400"),
    "tasks": ("lifecycle", *OF_TOY, "--cluster", "2", "--steps", "100"),
    "compare": ("compare", *OF_TOY, "--batch-sizes", "16", "--experiments", "8"),
    "save": ("compare", *OF_TOY, "--batch-sizes", "16", "--save", "kept.json.gz"),
    "compare over tasks": ("compare", *OF_TOY, "--cluster", "2", "--steps", "100"),
    "follow": ("follow", "mul", *OF_TOY),
    "convert": ("convert", TRACE),
    "chrome": ("convert", TRACE, "--to", "chrome", "--out", "trace.json"),
    "xspace": ("convert", TRACE, "--to", "xspace", "--out", "logdir"),
    "report": ("report", *OF_TOY, "--chapters", "toy", "devices", "training", "batch-sizes"),
    "train": ("train", "--model", "lenet", "--epochs", "1"),
    "doctor": ("doctor",),
    "run": ("run", "--logdir", "logs", PROGRAM),
}
WITHOUT_FORMAT = ("chrome", "xspace", "report", "train")
ALL_OR_NOTHING = ("convert", "chrome", "xspace", "doctor", "follow", "train", "report")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
START_S = 0.25  # in which Python itself starts, and nobody handles a signal
LONGEST_S = 400.0
POLL_S = 0.05
KEPT_LATER = 0.25  # of the run: so much later no less is kept, however the machine's speed varies
NOT_SEEN_NS = 1e9  # of a program that a signal ended
OP_RUNS = 100_000  # of the trace that is converted


@dataclass(frozen=True)
class Ended:
    """A run that was sent a signal."""

    moment: float  # the share of the run that was over
    number: signal.Signals
    status: int
    kept: int  # stages or rows on standard output, or lines where it is text
    files: int  # that it wrote
    wrong: str = ""


@dataclass(frozen=True)
class Run:
    """What a command left."""

    status: int
    out: str
    err: str
    files: dict[str, bytes]  # in its folder, by path
    temporary: tuple[str, ...]  # what is left of its temporary files
    seconds: float  # of processors that it took, as far as that was seen


def ends(command: str, form: str, moments: int) -> Iterator[Ended]:
    """The ends of runs of a command, one for each moment."""
    for number in SIGNALS:  # what a shell lets its background jobs ignore, their children do too
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    with TemporaryDirectory(prefix="tflab-signals-") as given:
        prepare(command, Path(given))
        whole = run(command, form, Path(given), None, signal.SIGINT)
        if whole.status:
            raise RuntimeError(f"{command} ended with status {whole.status}: {whole.err}")
        seen: list[Ended] = []
        for place in range(moments):
            moment = (place + 0.5) / moments
            number = SIGNALS[place % len(SIGNALS)]
            at = START_S + moment * (whole.seconds - START_S)
            ended = run(command, form, Path(given), at, number)
            earlier = [one.kept for one in seen if moment - one.moment >= KEPT_LATER]
            seen.append(judged(command, form, ended, moment, number, max(earlier, default=0)))
            yield seen[-1]


def judged(
    command: str, form: str, ended: Run, moment: float, number: signal.Signals, earlier: int
) -> Ended:
    """What a run came to; `earlier` is what a signal well before this one's moment had kept."""
    wrong = []
    # A signal after the command's end finds the system's own handlers
    usual = (0, 128 + number, *((-number,) if ended.out or command == "run" else ()))
    if ended.status not in usual:
        wrong.append(f"it ended with status {ended.status}: {ended.err[-300:]!r}")
    if command == "run":
        wrong += wrong_of_program(ended, form)
    elif "Traceback" in ended.err:
        wrong.append(f"there is a traceback: {ended.err[-1500:]}")
    kept = 0
    try:
        kept = kept_in(ended.out, form)
        for name, content in ended.files.items():
            if name.endswith(".json"):
                json.loads(content)
    except ValueError:
        wrong.append("what it wrote is no JSON")
    half = [*(name for name in ended.files if "tflab-unfinished" in name), *ended.temporary]
    if half:
        wrong.append(f"left behind: {half[:3]}")
    page = next((text for name, text in ended.files.items() if name.endswith("report.html")), None)
    if page is not None and not page.rstrip().endswith(b"</html>"):
        wrong.append("the page is not whole")
    if kept < min(1, earlier) and command not in ALL_OR_NOTHING:
        wrong.append("nothing was kept, and of an earlier run there was")
    if kept and command in ("lifecycle", "file", "tasks") and form == "json":
        stages = [stage["stage"] for stage in json.loads(ended.out)["stages"]]
        if not any("tfevents" in name for name in ended.files):
            wrong.append(f"there is no logdir, of {stages}")
    return Ended(moment, number, ended.status, kept, len(ended.files), "; ".join(wrong))


def wrong_of_program(ended: Run, form: str) -> Iterator[str]:
    """What is wrong with a run of `run`, whose program may well end with a traceback."""
    if form == "text":
        if "tflab: " not in ended.err:
            yield f"nothing was said: {ended.err[-300:]!r}"
        return
    if not ended.out:
        if "tflab: interrupted" not in ended.err:  # as it is before the program begins
            yield f"nothing was printed: {ended.err[-300:]!r}"
        return
    owners = {owner["owner"]: owner["ns"] for owner in json.loads(ended.out)["process"]["owners"]}
    if owners.get("not seen", 0) > NOT_SEEN_NS:
        yield f"{owners['not seen'] / 1e9:.1f} s were not seen"


def prepare(command: str, folder: Path) -> None:
    """Write the graph, the trace or the program that a command reads."""
    (folder / PROGRAM).write_text(ENDLESS)
    if GRAPH in COMMANDS[command]:
        from tests import graphs

        graphs.write(folder / GRAPH, graphs.graph_def(graphs.dense))
    if TRACE in COMMANDS[command]:
        import tensorflow.compat.v1 as tf1

        metadata = tf1.RunMetadata()
        device = metadata.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/cpu:0")
        for number in range(OP_RUNS):
            device.node_stats.add(
                node_name=f"n{number % 500}",
                timeline_label=f"n{number % 500} = MatMul(a, b)",
                all_start_micros=1_700_000_000_000_000 + number,
                all_start_nanos=1_700_000_000_000_000_000 + 1_000 * number,
                op_end_rel_nanos=900,
                all_end_rel_nanos=900,
            )
        (folder / TRACE).write_bytes(metadata.SerializeToString())


def run(command: str, form: str, given: Path, seconds: float | None, number: signal.Signals) -> Run:
    """A run of a command that is sent a signal once it has taken so many seconds of processors."""
    words = [
        str(given / word) if word in (GRAPH, TRACE, PROGRAM) else word for word in COMMANDS[command]
    ]
    if command not in WITHOUT_FORMAT:
        words[1:1] = ["--to" if command == "convert" else "--format", form]
    line = [sys.executable, "-m", "tflab", *words]
    with TemporaryDirectory(prefix="tflab-signals-") as folder:
        work, temporary = Path(folder, "work"), Path(folder, "tmp")
        work.mkdir()
        temporary.mkdir()
        process = subprocess.Popen(
            line,
            cwd=work,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        taken, out, err, end = 0.0, "", "", time.monotonic() + LONGEST_S
        try:
            while True:
                try:
                    out, err = process.communicate(timeout=POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    taken = max(taken, processor_seconds(process.pid))
                if time.monotonic() > end:
                    raise RuntimeError(f"{line} did not end within {LONGEST_S:.0f} s")
                if seconds is not None and taken >= seconds:
                    process.send_signal(number)
                    seconds = None
        finally:
            process.kill()
        files = {
            str(path.relative_to(work)): path.read_bytes()
            for path in work.rglob("*")
            if path.is_file()
        }
        left = tuple(path.name for path in temporary.iterdir() if path.name.startswith("tflab"))
        return Run(process.returncode, out, err, files, left, taken)


def processor_seconds(process: int) -> float:
    """The time of processors that a process and its descendants have taken (proc(5)); unlike the
    time of day it is the same on a busy machine."""
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        number = int(path.parent.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {process}
    while more := {one for one, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks.get(one, 0) for one in family) / os.sysconf("SC_CLK_TCK")


def kept_in(out: str, form: str) -> int:
    """How much of a measurement was printed. Raises ValueError for what is no JSON."""
    if form == "text" or not out:
        return len(out.splitlines())
    document = json.loads(out)
    if "groups" in document:
        return sum(group["calls"] for group in document["groups"])
    return len(document.get("stages", document.get("rows", document)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.signals", description=__doc__)
    parser.add_argument("--moments", type=int, default=40)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=[*COMMANDS])
    parser.add_argument("--formats", nargs="+", choices=("json", "text"), default=["json", "text"])
    args = parser.parse_args(argv)
    failures = 0
    for command in args.commands:
        for form in ["text"] if command in WITHOUT_FORMAT else args.formats:
            for one in ends(command, form, args.moments):
                failures += bool(one.wrong)
                about = f"{one.moment:6.1%} {one.number.name:8} status {one.status:4}"
                left = f"kept {one.kept:5} files {one.files:3}"
                print(f"{command} {form} {about} {left}  {one.wrong}", flush=True)
    print(f"{failures} of the runs lost something or said it badly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
