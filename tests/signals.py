"""Signals at moments spread over a run: what was measured until then is kept.

    python -m tests.signals [--moments 40] [--commands lifecycle compare ...] [--formats json text]

Each command runs once to its end, to know how long that takes, and then once for each moment, with
SIGINT, SIGTERM and SIGHUP in turn. Prints what each of these runs came to.
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
COMMANDS = {
    "lifecycle": ("lifecycle", "--model", "toy", "--steps", "400"),
    "compare": ("compare", "--model", "toy", "--batch-sizes", "16", "--experiments", "8"),
    "follow": ("follow", "mul", "--model", "toy"),
    "report": ("report", "--model", "toy", "--chapters", "lifecycle", "measured"),
    "train": ("train", "--model", "lenet", "--epochs", "1"),
}
WITHOUT_FORMAT = ("report", "train")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
START_S = 0.25  # in which Python itself starts, and nobody handles a signal
LONGEST_S = 300.0
KEPT_LATER = 0.25  # of the run: so much later no less is kept, however the machine's speed varies


@dataclass(frozen=True)
class Ended:
    """A run that was sent a signal."""

    moment: float  # the share of the run that was over
    number: signal.Signals
    status: int
    kept: int  # stages or rows on standard output, or lines where it is text
    wrong: str = ""


def ends(command: str, form: str, moments: int) -> Iterator[Ended]:
    """The ends of runs of a command, one for each moment."""
    began = time.monotonic()
    run(command, form, None, signal.SIGINT)
    whole = time.monotonic() - began
    seen: list[Ended] = []
    for place in range(moments):
        moment = (place + 0.5) / moments
        number = SIGNALS[place % len(SIGNALS)]
        status, out, err = run(command, form, START_S + moment * (whole - START_S), number)
        # A signal after the command's end finds the system's own handlers
        usual = (0, 128 + number, *((-number,) if out else ()))
        wrong = "" if status in usual else f"it ended with status {status}"
        wrong = "there is a traceback" if "Traceback" in err else wrong
        kept = 0
        try:
            kept = kept_in(out, form)
        except ValueError:
            wrong = "what it printed is no JSON"
        earlier = [one.kept for one in seen if moment - one.moment >= KEPT_LATER]
        if kept < min(1, max(earlier, default=0)):
            wrong = "nothing was kept, and of an earlier run there was"
        seen.append(Ended(moment, number, status, kept, wrong))
        yield seen[-1]


def run(
    command: str, form: str, seconds: float | None, number: signal.Signals
) -> tuple[int, str, str]:
    """(exit status, standard output, standard error) of a command that is sent a signal then."""
    line = [sys.executable, "-m", "tflab", *COMMANDS[command]]
    line += [] if command in WITHOUT_FORMAT else ["--format", form]
    with TemporaryDirectory(prefix="tflab-signals-") as folder:
        process = subprocess.Popen(
            line,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = process.communicate(timeout=LONGEST_S if seconds is None else seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            try:
                out, err = process.communicate(timeout=LONGEST_S)
            finally:
                process.kill()
        return process.returncode, out, err


def kept_in(out: str, form: str) -> int:
    """How much of a measurement was printed. Raises ValueError for what is no JSON."""
    if form == "text" or not out:
        return len(out.splitlines())
    document = json.loads(out)
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
                about = f"{one.moment:4.0%} {one.number.name:8} status {one.status:4}"
                print(f"{command} {form} {about} kept {one.kept:5}  {one.wrong}", flush=True)
    print(f"{failures} of the runs lost something or said it badly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
