"""Find out what does not work here, and what to do about it.

    python -m tflab.doctor

One table has what was checked: the packages that tflab and its extras need, with their versions,
TensorFlow's devices, MNIST, and TensorBoard's Profile plugin.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tflab.cli import command, environment
from tflab.errors import TflabError
from tflab.records.blocks import Block, Column, sentences, table
from tflab.units import plural

PUT = "Set TFLAB_DATA_DIR to a folder with its four files"
INSTALL = "python -m pip install -r requirements.txt"
ABSENT = "not installed"  # and needed only by some commands
NOT_HERE = "not on this machine"  # and not needed
EXTRAS = {  # what needs each
    "profile": "TensorBoard's page Profile",
    "report": "plots, drawings, and the digits that replace MNIST",
    "code": "listings of machine instructions",
}


@dataclass(frozen=True)
class Check:
    what: str
    found: str
    checked: str
    works: bool
    remedy: str = ""  # also a hint about something that works


def main(argv: Sequence[str] | None = None) -> int:
    return command.run(lambda: run(parser().parse_args(argv)))


def parser() -> argparse.ArgumentParser:
    return command.parser("doctor", __doc__)


def run(args: argparse.Namespace) -> int:
    from tflab.exporters import text

    checks = [*packages(), loads("devices", "imported"), mnist()]
    if environment.version("xprof"):
        checks.append(loads("Profile plugin", "plugins"))
    text.show_blocks(blocks(checks))
    return 0 if all(check.works for check in checks) else 1


def blocks(checks: Sequence[Check]) -> Iterator[Block]:
    """Yield the result, the table, and below it what to do, where no command is shortened."""
    wrong = sum(not check.works for check in checks)
    yield f"Wrong: {plural(wrong, 'thing')}." if wrong else "Everything that tflab needs works."
    yield table(
        "What was checked (in brackets: the extra that brings the package)",
        checks,
        Column("", lambda check: check.what),
        Column("", status),
        Column("checked", lambda check: check.checked),
        Column("found", lambda check: check.found, elastic=True),
    )
    advised: dict[str, list[str]] = {}
    for check in checks:
        if check.remedy:
            advised.setdefault(check.remedy, []).append(f"{check.what}: {check.found.rstrip('.')}")
    if advised:
        said = (f"{'; '.join(found)}. {what}" for what, found in advised.items())
        yield sentences("What to do", said)


def status(check: Check) -> str:
    absent = check.found.startswith((ABSENT, NOT_HERE))
    return "wrong" if not check.works else "" if absent else "ok"


def packages() -> Iterator[Check]:
    """Yield each package that tflab or one of its extras requires, with its version."""
    from importlib import metadata  # `--help` needs neither

    from packaging.requirements import Requirement

    for line in metadata.requires("tflab") or ():
        needed = Requirement(line)
        of = [name for name in EXTRAS if needed.marker and needed.marker.evaluate({"extra": name})]
        if needed.marker and not of:
            continue  # of tests and development
        what = f"{needed.name} [{of[0]}]" if of else needed.name
        versions = line.partition(";")[0].strip().removeprefix(needed.name)
        checked = f"version {versions}"
        installed = environment.version(needed.name)
        if of and not installed:
            remedy = f"For {EXTRAS[of[0]]}: {environment.INSTALL.format(of[0])}"
            yield Check(what, ABSENT, checked, True, remedy)
            continue
        fits = installed and needed.specifier.contains(installed, prereleases=True)
        remedy = "" if fits else f'python -m pip install "{needed.name}{versions}"'
        yield Check(what, installed or "missing", checked, bool(fits), remedy)


def loads(what: str, function: str) -> Check:
    """Call a function of this module in a process of its own, so that a crash is a finding."""
    from tflab.runtime import processes

    try:
        found = ", ".join(processes.call(f"tflab.doctor:{function}"))
        return Check(what, found, "loads", True)
    except TflabError as error:
        return Check(what, str(error), "loads", False, INSTALL)


def mnist() -> Check:
    """Look for MNIST where tflab looks for it. Nothing is downloaded."""
    from tflab.datasets import files
    from tflab.datasets import mnist as published

    checked = "its files, byte for byte"
    try:
        folder = files.given_folder(None, "MNIST") or files.cache_folder("mnist")
        for split in published.PUBLISHED:
            published.read_split(folder, split)
    except TflabError as error:
        if os.environ.get("TFLAB_DATA_DIR"):
            return Check("MNIST", str(error), checked, False, f"{PUT}, or unset it.")
        remedy = f"{PUT}. Or let the first use download it; if that fails, other images replace it."
        return Check("MNIST", NOT_HERE, checked, True, remedy)
    return Check("MNIST", str(folder), checked, True)


def imported() -> list[str]:
    import tensorflow as tf

    names = (device.name for device in tf.config.list_physical_devices())
    return [name.removeprefix("/physical_device:") for name in names]


def plugins() -> list[str]:
    """Load the plugins as TensorBoard does, and the library of Profile; return its version."""
    from tensorboard import default
    from xprof.convert import raw_to_tool_data  # noqa: F401

    default.get_dynamic_plugins()  # raises where a plugin would keep TensorBoard from starting
    return [f"xprof {environment.version('xprof')}"]


if __name__ == "__main__":
    sys.exit(main())
