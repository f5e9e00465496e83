"""Doctor: what works here, and what to do about what does not.

    python -m tflab.doctor
    python -m tflab.doctor --logdir runs

looks at versions and whether they go together, TensorFlow and its devices, the Profile plugin, data
sets, folders, and with --logdir at what TensorBoard will find in it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Sequence

from tflab.cli import command
from tflab.doctor import checks
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding
from tflab.errors import UsageError
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.units import plural

FORMATS = ("text", "json")
Part = tuple[Finding, ...]  # the findings of one check
MARKS = {FINE: "fine", NOTE: "note", WRONG: "WRONG"}


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("doctor", __doc__)
    parser.add_argument(
        "--logdir",
        type=command.folder("logdir"),
        metavar="DIR",
        help="look also at what TensorBoard will find in it",
    )
    parser.add_argument(
        "--format",
        default="text",
        choices=FORMATS,
        type=command.one_of("format", FORMATS),
        help="default: text",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    if args.logdir and not os.path.isdir(args.logdir):
        about = "is no folder" if os.path.exists(args.logdir) else "is not there"
        raise UsageError(
            f"The logdir '{args.logdir}' {about}; give --logdir the folder of a run, or of several."
        )
    chosen = checks.checks(args.logdir)
    parts = with_progress(checks.findings(chosen), len(chosen))
    findings = [finding for part in parts for finding in part]
    works = all(finding.verdict != WRONG for finding in findings)
    if args.format == "json":
        from tflab.exporters import json

        print(json.document(works=works, findings=findings))
    else:
        show(blocks(findings))
    return 0 if works else 1


def with_progress(parts: Iterable[Part], total: int) -> Iterable[Part]:
    """The findings as they come, with a progress bar."""
    if not has_rich():
        return parts
    from tflab.cli import progress

    return progress.track("looking", parts, total)


def show(blocks: Iterable[Block]) -> None:
    """Print as text; where rich is missing, as Markdown, which needs nothing."""
    if has_rich():
        from tflab.exporters import text

        out = text.console()
        for block in blocks:
            text.show_block(out, block)
    else:
        from tflab.exporters import markdown

        print("\n\n".join(map(markdown.rendered, blocks)))


def has_rich() -> bool:
    return importlib.util.find_spec("rich") is not None


def blocks(findings: Sequence[Finding]) -> Iterator[Block]:
    subjects = [None, *(finding.subject for finding in findings)]
    rows = tuple(zip(findings, subjects, strict=False))
    yield Table(
        "What was looked at",
        (
            Column("", lambda row: MARKS[row[0].verdict]),
            Column("subject", lambda row: "" if row[0].subject == row[1] else row[0].subject),
            Column("what", lambda row: row[0].looked_at, elastic=True, least=24, name=True),
            Column("found", lambda row: row[0].found),
        ),
        rows,
    )
    for verdict, title in ((WRONG, "What is wrong, and what to do"), (NOTE, "Notes")):
        frames = tuple(
            Frame(f"{finding.subject}: {finding.looked_at}", "", (finding.found, finding.advice))
            for finding in findings
            if finding.verdict == verdict
        )
        if frames:
            yield Strip(title, frames)
    yield summary([finding.verdict for finding in findings])


def summary(verdicts: Sequence[str]) -> str:
    wrong, notes = verdicts.count(WRONG), verdicts.count(NOTE)
    if wrong:
        verb = "is" if wrong == 1 else "are"
        return f"{plural(wrong, 'thing')} {verb} wrong: see above what to do."
    return "All that tflab needs works" + (f", with {plural(notes, 'note')}." if notes else ".")


if __name__ == "__main__":
    sys.exit(main())
