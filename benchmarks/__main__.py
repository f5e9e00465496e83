"""Run all benchmarks and write their results to benchmarks/RESULTS.md.

    python -m benchmarks

Nothing else should run meanwhile. With --quick everything is small and runs in parallel; that shows
only that the benchmarks work, and its numbers are meaningless.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import datetime
from functools import partial
from io import StringIO
from pathlib import Path

from benchmarks import placement, report
from tflab.cli import environment
from tflab.errors import TflabError
from tflab.exporters import markdown, text
from tflab.records.blocks import Block, Column, Table

BENCHMARKS = ("startup", "run", "capture", "peers", "exports", "torch_peer", "epochs", "explore")
RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small, and all at once")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"default: {RESULTS}; with --quick none",
    )
    args = parser.parse_args()
    output = args.output or (None if args.quick else RESULTS)
    out = text.console()
    results = []
    for block in blocks(args.quick):
        text.show_block(out, block)
        results.append(block)
    if output:
        write(output, markdown.page("Benchmarks", environment.describe(), results))


def blocks(quick: bool) -> Iterator[Block]:
    yield (
        f"Measured on {datetime.now():%Y-%m-%d at %H:%M} by: python -m benchmarks"
        f"{' --quick, whose numbers mean nothing' if quick else ''}. To repeat it: make bench, on "
        "a machine that does nothing else. What is compared was run in turn; numbers are the "
        "median of all rounds, with the least and the most, and ratios were taken round by round."
    )
    works = [*(partial(blocks_of, name, quick) for name in BENCHMARKS), partial(growth, quick)]
    with ThreadPoolExecutor(len(works) if quick else 1) as pool:
        for results in pool.map(lambda work: work(), works):
            yield from results


def blocks_of(name: str, quick: bool) -> list[Block]:
    """The blocks of a benchmark; a sentence if it fails, so that the others still run."""
    try:
        return list(report.blocks(name, quick))
    except TflabError as error:
        return [f"The benchmark {name} failed: {error}"]


def growth(quick: bool) -> list[Block]:
    """The output of `benchmarks.placement`."""
    if quick:
        placement.SIZES = (200,)
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            placement.main()
    except subprocess.CalledProcessError as error:
        return [f"The benchmark placement failed: {error}"]
    heading, *lines = printed.getvalue().splitlines()
    title = "The stages before the execution on growing graphs, once each"
    return [Table(title, (Column(heading, str),), tuple(lines), drawing=True)]


def write(file: Path, page: str) -> None:
    """Write a page under a temporary name first, so that no reader sees half of it."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    unfinished.write_text(page)
    unfinished.replace(file)


if __name__ == "__main__":
    main()
