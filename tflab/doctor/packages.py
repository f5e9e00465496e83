"""Packages: what is installed, against what tflab asks for and what packages ask of one another.

The ranges are read from where they are declared: the project's pyproject.toml, or where tflab is
installed, its metadata. So they cannot differ from those that an installation uses.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import tflab
from tflab.cli.environment import version
from tflab.doctor.checks import FINE, NOTE, WRONG, Finding

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROJECT = Path(tflab.__file__).parents[1]
PROFILE = "profile"  # the name of the plugin, whoever brings it


@dataclass(frozen=True)
class Declared:
    """What tflab asks for, as written there: `>=3.10,<3.14`, `numpy>=2.0,<3`."""

    python: str
    needed: tuple[str, ...]
    others: tuple[str, ...]  # for tests and checks only


def declared() -> Declared:
    try:
        text = (PROJECT / "pyproject.toml").read_text()
    except OSError:
        own = metadata.distribution("tflab")
        asked = tuple(line for line in own.requires or () if "extra ==" not in line)
        return Declared(own.metadata["Requires-Python"], asked, ())
    # Python 3.10 has no parser for it, and of our own file the form is known.
    python = re.findall(r'^requires-python = "(.+)"', text, re.M)
    block = re.findall(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)
    needed = tuple(re.findall(r'"(.+?)"', block[0]))
    return Declared(python[0], needed, tuple(line for line in listed() if line not in needed))


def listed() -> Iterator[str]:
    """The lines of requirements.txt, which adds what tests and checks need."""
    try:
        lines = (PROJECT / "requirements.txt").read_text().splitlines()
    except OSError:
        return
    yield from (line.strip() for line in lines if line.strip() and line[0] != "#")


# The checks


def python() -> Iterator[Finding]:
    from packaging.specifiers import SpecifierSet

    asked, here = declared().python, platform.python_version()
    fits = SpecifierSet(asked).contains(here, prereleases=True)
    yield Finding(
        "Python",
        "version",
        f"{here} at {sys.executable} (asked for: {asked})",
        FINE if fits else WRONG,
        "" if fits else f"Use a Python that is {asked}: make PYTHON=python3.12 lab",
    )


def needed() -> Iterator[Finding]:
    return (held_against(line, WRONG) for line in declared().needed)


def others() -> Iterator[Finding]:
    """For `make test` and `make check`; without them everything else works."""
    return (held_against(line, NOTE) for line in declared().others)


def held_against(line: str, verdict: str) -> Finding:
    """A package against the range that is asked for; `verdict` is for one that does not fit."""
    from packaging.requirements import Requirement

    asked = Requirement(line)
    here, range_ = version(asked.name), f"(asked for: {line.removeprefix(asked.name)})"
    if fits(asked):
        return Finding("Packages", asked.name, f"{here} {range_}")
    found = f"{here} {range_}" if here else f"missing {range_}"
    return Finding("Packages", asked.name, found, verdict, f'python -m pip install "{line}"')


def fits(asked: Requirement) -> bool:
    """Whether what is installed satisfies a requirement."""
    from packaging.version import InvalidVersion

    here = version(asked.name)
    try:
        return here is not None and asked.specifier.contains(here, prereleases=True)
    except InvalidVersion:
        return False


def agreement() -> Iterator[Finding]:
    """What the packages ask of others, as `pip check` does it, and minor versions that differ."""
    from packaging.requirements import Requirement

    met = 0
    for line in declared().needed:
        name = Requirement(line).name
        for asked in map(Requirement, requires(name)):
            if asked.marker and not asked.marker.evaluate({"extra": ""}):
                continue
            if fits(asked):
                met += 1
                continue
            here = version(asked.name) or "missing"
            yield Finding(
                "Packages",
                f"{name} with {asked.name}",
                f"{asked.name} is {here}; {name} {version(name)} asks for {asked.specifier}",
                WRONG,
                f'python -m pip install "{asked.name}{asked.specifier}"',
            )
    yield Finding("Packages", "their agreement", f"{met} requirements of one another are met")
    yield from minor_versions("tensorflow", "tensorboard")


def requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def minor_versions(one: str, other: str) -> Iterator[Finding]:
    """Two packages that are released together."""
    first, second = version(one), version(other)
    if first and second and first.split(".")[:2] != second.split(".")[:2]:
        minor = ".".join(first.split(".")[:2])
        yield Finding(
            "Packages",
            f"{one} with {other}",
            f"{one} {first} and {other} {second} are of different minor versions",
            NOTE,
            f"Mostly that works. If {other} shows nothing: "
            f'python -m pip install "{other}=={minor}.*"',
        )


def profile_plugins() -> Iterator[Finding]:
    """Who brings TensorBoard's Profile plugin: one package, or they get in each other's way."""
    brought = metadata.entry_points(group="tensorboard_plugins", name=PROFILE)
    packages = sorted({(entry.dist.name, entry.dist.version) for entry in brought if entry.dist})
    named = " and ".join(f"{name} {number}" for name, number in packages)
    if len(packages) == 1:
        yield Finding("Packages", "Profile plugin", f"brought by {named}")
    elif packages:
        extra = " ".join(name for name, _ in packages if name != "xprof")
        yield Finding(
            "Packages",
            "Profile plugin",
            f"brought by {named}: TensorBoard takes one of them, and they do not mix",
            WRONG,
            f"python -m pip uninstall {extra} && python -m pip install --force-reinstall xprof",
        )
    else:
        yield Finding(
            "Packages",
            "Profile plugin",
            "brought by no package: TensorBoard has no Profile tab",
            WRONG,
            "python -m pip install --force-reinstall xprof",
        )
