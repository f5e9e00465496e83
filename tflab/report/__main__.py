"""The whole lab as one page: report.html, a self-contained file, and report.md.

    python -m tflab.report --model lenet

It follows the model through all stages, trains it briefly, and measures it at batch sizes 1, 16
and 64 and under other configurations. The report says how each number was obtained. With
--chapters, only what those chapters need is measured; --chapters lab is the report that the lab
asks for, step by step.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tflab import models
from tflab.cli import arguments, command, confined, environment, interrupts, output_paths, terminal
from tflab.errors import UsageError
from tflab.escaping import visible
from tflab.records.options import Saved
from tflab.report import contents
from tflab.runtime import dumps, tf_import

OUT = "report"
LANGUAGES = ("en", "zh")


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv), argv))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("report", __doc__)
    arguments.model(parser, models.MODELS)
    add = parser.add_argument
    add(
        "--out",
        metavar="DIR",
        help=f"a new folder for the report (default: {OUT}, or {OUT}-2 and so on if that is taken)",
    )
    add(
        "--chapters",
        nargs="+",
        default=[],
        type=command.one_of("chapter", contents.CHAPTERS),
        metavar="NAME",
        help=f"only these chapters: {', '.join(contents.CHAPTERS)}",
    )
    add(
        "--language",
        type=command.one_of("language", LANGUAGES),
        metavar="NAME",
        default=LANGUAGES[0],
        help="en, or zh for Chinese, which --chapters lab has",
    )
    arguments.add(parser, "--data-dir", "--trust")
    return parser


def run(args: argparse.Namespace, argv: Sequence[str] | None) -> int:
    environment.require("The report", "matplotlib", "igraph")
    given = Path(args.out) if args.out else output_paths.free_name(Path(OUT))
    if confined.is_wanted(models.is_file(args.model), args.trust):
        return confined.run("report", argv, args, {"--out": output_paths.place(given, "folder")})
    names = contents.chosen(args.chapters)
    if args.language != LANGUAGES[0] and names != ("lab",):
        raise UsageError("--language zh is for the report of the lab: add --chapters lab.")
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, Saved(trust=args.trust))
    with terminal.phase("report"), interrupts.held():
        with output_paths.new(given, "folder", "--out", folder=True) as run:
            with interrupts.released():
                tf_import.load()
                from tflab.exporters import text
                from tflab.exporters.plots import style
                from tflab.report import chapters, handout, html
                from tflab.report import lab as measuring
                from tflab.views import execution
            start = time.monotonic()

            def announce(part: str) -> None:
                terminal.say(f"{time.monotonic() - start:5.0f} s  {visible(part)}", sys.stderr)

            lab = measuring.measure(args.model, names, args.data_dir, args.trust, announce)
            chinese = args.language == "zh"
            words = contents.chinese if chinese else str
            with style.translated(words):
                report = chapters.report(lab, repeated(args), names)
            report = contents.in_chinese(report) if chinese else report
            handout.write_pictures(report, run.work / "report_files")
            (run.work / "report.md").write_text(handout.page(report), encoding="utf-8")
            (run.work / "report.html").write_text(html.page(report), encoding="utf-8")
        out = run.final
        load = execution.load_line(lab.compared.load if lab.compared else None)
        text.show_blocks([handout.numbers(report), *map(words, load)])
        terminal.say(f"{visible(str(out / 'report.html'))}\n{visible(str(out / 'report.md'))}")
    return command.INTERRUPTED if lab.interrupted else 0


def repeated(args: argparse.Namespace) -> str:
    """Return the command that repeats the report."""
    parts = ["python", "-m", "tflab.report", "--model", args.model]
    parts += ["--chapters", *args.chapters] if args.chapters else []
    parts += ["--language", args.language] if args.language != LANGUAGES[0] else []
    parts += ["--trust"] if args.trust else []
    return shlex.join(parts)


if __name__ == "__main__":
    sys.exit(main())
