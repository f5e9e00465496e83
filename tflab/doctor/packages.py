"""Packages: installed versions against those that tflab and the packages themselves require.

The ranges are read from where they are declared: the project's pyproject.toml, or the metadata of
an installed tflab. So they cannot differ from those that an installation uses.
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
PROFILE = "profile"  # the name of the plugin, whichever package provides it


@dataclass(frozen=True)
class Declared:
    """What tflab requires, as it is declared: `>=3.10,<3.14`, `numpy>=2.0,<3`."""

    python: str
    needed: tuple[str, ...]
    others: tuple[str, ...]  # for tests and checks only


def declared() -> Declared:
    try:
        text = (PROJECT / "pyproject.toml").read_text("utf-8")
    except OSError:
        own = metadata.distribution("tflab")
        requirements = tuple(line for line in own.requires or () if "extra ==" not in line)
        return Declared(own.metadata["Requires-Python"], requirements, ())
    # Python 3.10 has no parser for TOML, and the form of our own file is known.
    python = re.findall(r'^requires-python = "(.+)"', text, re.M)
    block = re.findall(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)
    needed = tuple(re.findall(r'"(.+?)"', block[0]))
    return Declared(
        python[0], needed, tuple(line for line in requirements_lines() if line not in needed)
    )


def requirements_lines() -> Iterator[str]:
    """The lines of requirements.txt, which also lists what tests and checks need."""
    try:
        lines = (PROJECT / "requirements.txt").read_text("utf-8").splitlines()
    except OSError:
        return
    yield from (line.strip() for line in lines if line.strip() and line[0] != "#")


# The checks


def python() -> Iterator[Finding]:
    from packaging.specifiers import SpecifierSet

    required, here = declared().python, platform.python_version()
    fits = SpecifierSet(required).contains(here, prereleases=True)
    yield Finding(
        "Python",
        "version",
        f"{here} at {sys.executable} (asked for: {required})",
        FINE if fits else WRONG,
        "" if fits else f"Use a Python that is {required}: make PYTHON=python3.12 lab",
    )


def needed() -> Iterator[Finding]:
    return (check_version(line, WRONG) for line in declared().needed)


def others() -> Iterator[Finding]:
    """The packages for `make test` and `make check`; everything else works without them."""
    return (check_version(line, NOTE) for line in declared().others)


def check_version(line: str, verdict: str) -> Finding:
    """Whether a package is in the required range; `verdict` is for one that is not."""
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    here, range_ = version(requirement.name), f"(asked for: {line.removeprefix(requirement.name)})"
    if fits(requirement):
        return Finding("Packages", requirement.name, f"{here} {range_}")
    state = f"{here} {range_}" if here else f"missing {range_}"
    return Finding("Packages", requirement.name, state, verdict, f'python -m pip install "{line}"')


def fits(requirement: Requirement) -> bool:
    """Whether what is installed satisfies a requirement."""
    from packaging.version import InvalidVersion

    here = version(requirement.name)
    try:
        return here is not None and requirement.specifier.contains(here, prereleases=True)
    except InvalidVersion:
        return False


def agreement() -> Iterator[Finding]:
    """What the packages require of others, as in `pip check`, and minor versions that differ."""
    from packaging.requirements import Requirement

    met = 0
    for line in declared().needed:
        name = Requirement(line).name
        for requirement in map(Requirement, requires(name)):
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            if fits(requirement):
                met += 1
                continue
            here = version(requirement.name) or "missing"
            yield Finding(
                "Packages",
                f"{name} with {requirement.name}",
                f"{requirement.name} is {here}; {name} {version(name)} asks for "
                f"{requirement.specifier}",
                WRONG,
                f'python -m pip install "{requirement.name}{requirement.specifier}"',
            )
    yield Finding("Packages", "their agreement", f"{met} requirements of one another are met")
    yield from minor_versions("tensorflow", "tensorboard")


def requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def minor_versions(one: str, other: str) -> Iterator[Finding]:
    """A finding where two packages that are released together differ in their minor version."""
    one_version, other_version = version(one), version(other)
    if one_version and other_version and one_version.split(".")[:2] != other_version.split(".")[:2]:
        minor = ".".join(one_version.split(".")[:2])
        yield Finding(
            "Packages",
            f"{one} with {other}",
            f"{one} {one_version} and {other} {other_version} are of different minor versions",
            NOTE,
            f"Mostly that works. If {other} shows nothing: "
            f'python -m pip install "{other}=={minor}.*"',
        )


def profile_plugins() -> Iterator[Finding]:
    """Which packages provide TensorBoard's Profile plugin: it has to be exactly one."""
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
