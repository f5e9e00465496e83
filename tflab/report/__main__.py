"""The whole lab as one page: report.html, a self-contained file, and report.md.

    python -m tflab.report --model lenet

It follows x*y + z and the model through all stages, trains the model briefly, and measures it at
batch sizes 1, 16 and 64 and under other configurations. The report says how each number was
obtained. With --chapters, only what those chapters need is measured.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tflab import atomic, models
from tflab.cli import arguments, command, confined, interrupts, new_files, terminal
from tflab.compare.configurations import CONFIGURATIONS
from tflab.errors import UsageError
from tflab.escaping import visible
from tflab.records.options import Saved
from tflab.report import selection
from tflab.runtime import dumps

if TYPE_CHECKING:
    from tflab.report.contents import Lab

OUT = REPORT = "report"
FILES = ("report.html", "report.md", "report_files")


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv), argv))


def parser() -> argparse.ArgumentParser:
    parser = command.parser("report", __doc__)
    arguments.model(parser, models.MODELS)
    add = parser.add_argument
    add(
        "--out",
        type=command.folder("folder for the report"),
        metavar="DIR",
        help=f"where to write the report (default: {OUT}, or {OUT}-2 and so on if that has a "
        "report)",
    )
    add(
        "--chapters",
        nargs="+",
        default=[],
        type=command.one_of("chapter", selection.CHAPTERS),
        metavar="NAME",
        help=f"only these chapters: {', '.join(selection.CHAPTERS)}",
    )
    add(
        "--configs",
        nargs="+",
        default=[],
        type=command.one_of("configuration", tuple(CONFIGURATIONS)),
        metavar="C",
        help=f"configurations to compare with the default one: {', '.join(CONFIGURATIONS)} "
        f"(default: {' '.join(selection.CONFIGS)}, and gpu if there is one)",
    )
    arguments.data_dir(parser)
    arguments.trust(parser)
    return parser


def run(args: argparse.Namespace, argv: Sequence[str] | None) -> int:
    if confined.is_wanted(models.is_file(args.model), args.trust):
        out = Path(args.out) if args.out else free()
        place = new_files.folder_place(out, staging(out))
        return confined.run("report", argv, args, {"--out": place})
    names = selection.chosen(args.chapters, args.model)
    dumps.prepare()  # before the model imports TensorFlow
    models.find(args.model, Saved(trust=args.trust))
    granted = confined.output("--out")
    out = granted[1] if granted else Path(args.out) if args.out else free()
    with terminal.phase("report"), interrupts.held():
        with staging(out) as folder:
            lab = measured(args, names)
            write(lab, args, names, folder)
        terminal.say(f"{visible(str(out / 'report.html'))}\n{visible(str(out / 'report.md'))}")
    return command.INTERRUPTED if lab.interrupted else 0


def measured(args: argparse.Namespace, names: Sequence[str]) -> Lab:
    with interrupts.released():
        from tflab.compare import race
        from tflab.report import lab

    race.check(args.configs)
    wanted = lab.Wanted(
        args.model,
        tuple(names),
        args.data_dir,
        tuple(args.configs),
        args.trust,
    )
    return lab.measure(wanted, announced())


def write(lab: Lab, args: argparse.Namespace, names: Sequence[str], folder: Path) -> None:
    from tflab.report import chapters, handout, html

    report = chapters.report(lab, repeated(args), names)
    handout.write_pictures(report, folder / "report_files")
    (folder / "report.md").write_text(handout.page(report), encoding="utf-8")
    (folder / "report.html").write_text(html.page(report), encoding="utf-8")


def repeated(args: argparse.Namespace) -> str:
    parts = ["python", "-m", "tflab.report", "--model", args.model]
    parts += ["--chapters", *args.chapters] if args.chapters else []
    parts += ["--configs", *args.configs] if args.configs else []
    parts += ["--trust"] if args.trust else []
    return shlex.join(parts)


def announced() -> Callable[[str], None]:
    """A line on stderr for each part, with the seconds since the start."""
    start = time.monotonic()

    def announce(part: str) -> None:
        terminal.say(f"{time.monotonic() - start:5.0f} s  {visible(part)}", sys.stderr)

    return announce


def free() -> Path:
    """Return a new folder for the report, as for every run."""
    names = (Path(OUT if number == 1 else f"{OUT}-{number}") for number in count(1))
    return next(name for name in names if not (reported(name) or being_made(name)))


def being_made(out: Path) -> bool:
    """Whether a process that still runs is writing a report there."""
    work = atomic.temporary_name(out / REPORT)
    if not work.exists():
        return False
    with atomic.lock_if_free(work) as dead:
        return not dead


def reported(out: Path) -> list[str]:
    """The report files in a folder."""
    return [name for name in FILES if os.path.lexists(out / name)]


@contextmanager
def staging(out: Path) -> Iterator[Path]:
    """A folder to write to, whose files move to `out` once all are complete.

    Raises UsageError, before anything is computed, if there is already a report or nothing can be
    written. A later failure leaves `out` unchanged.
    """
    if granted := confined.output("--out"):
        yield granted[0]
        confined.finish("--out")
        return
    check_none_there(out)
    is_new = not out.exists()
    with ExitStack() as stack:
        try:
            out.mkdir(parents=True, exist_ok=True)
            stack.callback(remove_if_empty, out if is_new else None)
            work = stack.enter_context(atomic.new_folder_beside(out / REPORT))
        except atomic.TakenError as error:
            raise new_files.being_written(out, "--out") from error
        except OSError as error:
            raise UsageError(
                f"The report cannot be written to '{out}': {error.strerror}. "
                "Give --out a folder that you may write to."
            ) from error
        check_none_there(out)  # one may have been finished meanwhile
        try:
            yield work
            for name in FILES:
                os.replace(work / name, out / name)
        except OSError as error:
            if error.errno in command.NO_ROOM:
                raise new_files.disk_full(out, error) from error
            raise


def check_none_there(out: Path) -> None:
    if existing := reported(out):
        raise UsageError(
            f"'{out}' already has a report ({existing[0]}). Give another folder with --out."
        )


def remove_if_empty(folder: Path | None) -> None:
    with suppress(OSError):  # it is not empty
        if folder:
            folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())
