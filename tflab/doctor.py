"""Find out what does not work here, and what to do about it.

    python -m tflab.doctor

One table has what was checked: the versions of the packages that tflab needs and of those of its
extras, TensorFlow's devices, MNIST, and TensorBoard's Profile plugin.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflab.cli import command, environment
from tflab.errors import TflabError
from tflab.records.blocks import Block, Column, Frame, Strip, Table
from tflab.units import plural

SECONDS = 90  # time limit; an import takes 2 to 5, much more on a busy machine
NVIDIA = Path("/dev/nvidiactl")  # exists where a driver of NVIDIA's is loaded
PROVIDER = "xprof"  # the package of the Profile plugin
PUT = "Put its four files into a folder and set TFLAB_DATA_DIR to it."
INSTALL = "python -m pip install -r requirements.txt"
ABSENT = "not installed"  # and needed only by some commands
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

    checks = (*packages(), devices(), mnist(), profile_plugin())
    text.show_blocks(blocks(checks))
    return 0 if all(check.works for check in checks) else 1


def blocks(checks: tuple[Check, ...]) -> Iterator[Block]:
    """Yield the table, and below it what to do, because commands must not be shortened."""
    yield Table(
        "What was checked",
        (
            Column("", lambda check: check.what),
            Column("", status),
            Column("checked", lambda check: check.checked),
            Column("found", lambda check: check.found, elastic=True),
        ),
        checks,
    )
    advised: dict[str, list[str]] = {}
    for check in checks:
        if check.remedy:
            advised.setdefault(check.remedy, []).append(f"{check.what}: {check.found}")
    if advised:
        frames = (Frame("; ".join(found), "", (what,)) for what, found in advised.items())
        yield Strip("What to do", tuple(frames))
    if wrong := sum(not check.works for check in checks):
        yield f"{plural(wrong, 'thing')} {'is' if wrong == 1 else 'are'} wrong."
    else:
        yield "Everything that tflab needs works."


def status(check: Check) -> str:
    if not check.works:
        return "wrong"
    return "" if check.found == ABSENT else "ok"


def packages() -> Iterator[Check]:
    """Yield each package that tflab or one of its extras requires, with its version."""
    from packaging.requirements import Requirement

    for line in declared():
        requirement = Requirement(line)
        extra = next((name for name in EXTRAS if is_of(name, requirement.marker)), "")
        if requirement.marker and not extra:
            continue  # of tests and development
        what = f"{requirement.name} [{extra}]" if extra else requirement.name
        versions = line.partition(";")[0].strip().removeprefix(requirement.name)
        checked = f"version {versions}"
        installed = environment.version(requirement.name)
        if installed and requirement.specifier.contains(installed, prereleases=True):
            yield Check(what, installed, checked, True)
        elif extra and not installed:
            remedy = f"For {EXTRAS[extra]}: {environment.installing(extra)}"
            yield Check(what, ABSENT, checked, True, remedy)
        else:
            remedy = f'python -m pip install "{requirement.name}{versions}"'
            yield Check(what, installed or "missing", checked, False, remedy)


def is_of(extra: str, marker: Any) -> bool:
    return marker is not None and marker.evaluate({"extra": extra})


def declared() -> list[str]:
    """Return what tflab and its extras require, such as `numpy<3,>=2.0`."""
    from importlib import metadata  # `--help` does not need it

    return metadata.distribution("tflab").requires or []


def devices() -> Check:
    """Import TensorFlow, and list its devices."""
    answer, checked = answer_of("imported"), "TensorFlow loads"
    if error := answer.get("error"):
        return Check("devices", error, checked, False, INSTALL)
    found = answer["devices"]
    unseen = NVIDIA.exists() and not any("GPU" in name for name in found)
    remedy = 'To use the GPU: python -m pip install "tensorflow[and-cuda]"' if unseen else ""
    return Check("devices", ", ".join(found), checked, True, remedy)


def mnist() -> Check:
    """Look for MNIST where tflab looks for it. Nothing is downloaded."""
    from tflab.datasets import files
    from tflab.datasets import mnist as published

    checked = "its files, byte for byte"
    try:
        folder = files.given_folder(None, "the four files of MNIST") or files.cache_folder("mnist")
        for split in published.PUBLISHED:
            published.read_split(folder, split)
    except TflabError as error:
        if os.environ.get("TFLAB_DATA_DIR"):
            return Check("MNIST", str(error), checked, False, f"{PUT} Or unset the variable.")
        absent = "not here: the first use downloads it, or other images replace it"
        return Check("MNIST", absent, checked, True, PUT)
    return Check("MNIST", str(folder), checked, True)


def profile_plugin() -> Check:
    """Load TensorBoard's Profile plugin, which only one package may provide."""
    from importlib import metadata

    entries = metadata.entry_points(group="tensorboard_plugins", name="profile")
    provided = {entry.dist.name: entry.dist.version for entry in entries if entry.dist}
    found = " and ".join(f"{name} {provided[name]}" for name in sorted(provided))
    checked = f"loads, from {PROVIDER} alone"
    if not provided:  # which the row of its package says
        return Check("Profile plugin", ABSENT, checked, True)
    if others := sorted(provided.keys() - {PROVIDER}):
        remedy = (
            f"python -m pip uninstall {' '.join(others)} && "
            f"python -m pip install --force-reinstall {PROVIDER}"
        )
        return Check("Profile plugin", found, checked, False, remedy)
    error = answer_of("loaded").get("error")
    remedy = INSTALL if error else ""
    return Check("Profile plugin", error or found, checked, not error, remedy)


# What loads is tried in a process of its own with a time limit: a crash or a hang is a finding.


def answer_of(function: str) -> dict[str, Any]:
    from tflab.runtime import processes

    try:
        return processes.call(f"tflab.doctor:{function}", seconds=SECONDS)
    except TflabError as error:
        return {"error": str(error)}


def imported() -> dict[str, Any]:
    try:
        import tensorflow as tf

        names = (device.name for device in tf.config.list_physical_devices())
        return {"devices": [name.removeprefix("/physical_device:") for name in names]}
    except Exception as error:  # an import may raise anything
        return {"error": described(error)}


def loaded() -> dict[str, Any]:
    """Load the plugins as TensorBoard does, and the compiled library of the Profile plugin."""
    try:
        from tensorboard import default
        from xprof.convert import raw_to_tool_data  # noqa: F401

        default.get_dynamic_plugins()  # raises where a plugin would keep TensorBoard from starting
    except Exception as error:  # an import may raise anything
        return {"error": described(error)}
    return {}


def described(error: Exception) -> str:
    """Return the kind of an error and the first line of its message."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
