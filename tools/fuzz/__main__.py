"""Fuzz the readers of untrusted files: every input gives a result or one TflabError, and what
the kernel confines touches nothing.

    python -m tools.fuzz [--seconds 60]

Each target runs in a process of its own, guided by coverage, from real files as seeds. Prints how
many inputs were tried and how many failed; a failing input is kept, and its path printed. Then
graphs at random run confined, under the eyes of strace (`tools/fuzz/wall.py`), and what is printed
about the gradients of random programs is evaluated once more (`tools/fuzz/formulas.py`).
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tflab.exporters import text
from tflab.records.blocks import Column, Table
from tools.fuzz import wall

TARGETS = {
    "graphs": "GraphDef, MetaGraphDef and SavedModel, binary and text",
    "traces": "RunMetadata and StepStats, binary and text",
    "measurements": "comparisons that compare --save wrote",
}
KEPT = Path("fuzz-failures")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    args = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is missing; get it with: pip install -r tools/fuzz/requirements.txt")
        return 1
    rows = [(target, *fuzzed(target, args.seconds)) for target in TARGETS]
    table = Table(
        f"Fuzzing, {args.seconds} s each",
        (
            Column("what was read", lambda row: TARGETS[row[0]]),
            Column("inputs tried", lambda row: f"{row[1]:,}", right=True),
            Column("failures", lambda row: str(len(row[2])), right=True),
            Column("kept in", lambda row: " ".join(row[2]), elastic=True),
        ),
        tuple(rows),
    )
    text.show_block(text.console(), table)
    sound = wall.run(seconds=args.seconds)
    true = subprocess.run([sys.executable, "-m", "tools.fuzz.formulas"]).returncode == 0
    return 0 if sound and true and not any(failures for _, _, failures in rows) else 1


def fuzzed(target: str, seconds: int) -> tuple[int, list[str]]:
    """How many inputs were tried, and the files of those that failed."""
    with TemporaryDirectory(prefix="tflab-fuzz-") as folder:
        seeds = Path(folder, "seeds")
        seeds.mkdir()
        run = [sys.executable, "-m", f"tools.fuzz.{target}"]
        subprocess.run([*run, "--seeds", str(seeds)], check=True, capture_output=True)
        KEPT.mkdir(exist_ok=True)
        before = set(KEPT.iterdir())
        options = [f"-max_total_time={seconds}", "-rss_limit_mb=4096", "-timeout=20"]
        options += ["-max_len=65536", f"-artifact_prefix={KEPT}/{target}-"]
        done = subprocess.run([*run, *options, str(seeds)], capture_output=True, text=True)
        failures = sorted(str(path) for path in set(KEPT.iterdir()) - before)
        if not any(KEPT.iterdir()):
            KEPT.rmdir()
        tried = re.findall(r"^#(\d+)", done.stderr, re.MULTILINE)
        if done.returncode and not failures:
            sys.exit(f"The target {target} did not run:\n{done.stderr[-2000:]}")
        return max(map(int, tried), default=0), failures


if __name__ == "__main__":
    sys.exit(main())
