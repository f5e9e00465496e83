"""Find out what does not work here, and what to do about it.

    python -m tflab.doctor
    python -m tflab.doctor --logdir runs

The command checks versions and their compatibility, TensorFlow, the Profile plugin, data sets and
folders. With --logdir, it also checks whether TensorBoard will find what is in the logdir. It
prints only what has a remedy.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence

from tflab.cli import arguments, command
from tflab.doctor import checks
from tflab.doctor.checks import NOTE, WRONG, Finding
from tflab.errors import UsageError
from tflab.records.blocks import Block, Frame, Strip
from tflab.units import plural

FORMATS = ("text", "json")


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("doctor", __doc__)
    parser.add_argument(
        "--logdir",
        type=command.folder("logdir"),
        metavar="DIR",
        help="also check whether TensorBoard will find its contents",
    )
    arguments.output_format(parser, FORMATS)
    return parser


def run(args: argparse.Namespace) -> int:
    if args.logdir and not os.path.isdir(args.logdir):
        about = "is not a folder" if os.path.exists(args.logdir) else "does not exist"
        raise UsageError(
            f"The logdir '{args.logdir}' {about}; give --logdir a folder with one or several runs."
        )
    findings = [one for part in checks.findings(checks.checks(args.logdir)) for one in part]
    works = all(finding.verdict != WRONG for finding in findings)
    if args.format == "json":
        from tflab.exporters import json

        print(json.document(works=works, findings=findings))
    else:
        show(findings)
    return 0 if works else 1


def show(findings: Sequence[Finding]) -> None:
    """Print as text; where rich is missing, as Markdown, which needs nothing."""
    if importlib.util.find_spec("rich") is not None:
        from tflab.exporters import text

        text.show_blocks(blocks(findings))
    else:
        from tflab.exporters import markdown

        print("\n\n".join(map(markdown.rendered, blocks(findings))))


def blocks(findings: Sequence[Finding]) -> Iterator[Block]:
    for verdict, title in ((WRONG, "Problems, and what to do about them"), (NOTE, "Notes")):
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
        return f"{plural(wrong, 'thing')} {verb} wrong; the lines above say what to do."
    return "Everything that tflab needs works" + (
        f", with {plural(notes, 'note')}." if notes else (".")
    )


if __name__ == "__main__":
    sys.exit(main())
