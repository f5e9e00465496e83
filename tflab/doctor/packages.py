"""Packages: installed versions against those that tflab and the packages themselves require.

The ranges are read from where they are declared: the project's pyproject.toml, or the metadata of
an installed tflab. So they cannot differ from those that an installation uses.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import tflab
from tflab.cli.environment import version
from tflab.doctor.checks import INSTALL, Finding

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROJECT = Path(tflab.__file__).parents[1]


def declared() -> tuple[str, ...]:
    """What tflab requires, such as `numpy>=2.0,<3`."""
    try:
        text = (PROJECT / "pyproject.toml").read_text("utf-8")
    except OSError:
        own = metadata.distribution("tflab")
        return tuple(line for line in own.requires or () if "extra ==" not in line)
    # Python 3.10 has no parser for TOML, and the form of our own file is known.
    block = re.findall(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)
    return tuple(re.findall(r'"(.+?)"', block[0]))


def needed() -> Iterator[Finding]:
    """Packages that are missing or out of their range."""
    from packaging.requirements import Requirement

    for line in declared():
        requirement = Requirement(line)
        if not fits(requirement):
            installed = version(requirement.name) or "missing"
            state = f"{installed} (required: {line.removeprefix(requirement.name)})"
            yield Finding("Packages", requirement.name, state, f'python -m pip install "{line}"')


def fits(requirement: Requirement) -> bool:
    """Whether what is installed satisfies a requirement."""
    from packaging.version import InvalidVersion

    installed = version(requirement.name)
    try:
        return installed is not None and requirement.specifier.contains(installed, prereleases=True)
    except InvalidVersion:
        return False


def agreement() -> Iterator[Finding]:
    """What packages that tflab requires miss of others, by `pip check`."""
    names = {re.split("[<>=]", line)[0].lower() for line in declared()}
    check = [sys.executable, "-m", "pip", "check", "--disable-pip-version-check"]
    for line in subprocess.run(check, capture_output=True, text=True).stdout.splitlines():
        if line.partition(" ")[0].lower() in names:
            yield Finding("Packages", "compatibility", line, INSTALL)


def profile_plugins() -> Iterator[Finding]:
    """Several packages that provide TensorBoard's Profile plugin: it takes one of them."""
    entries = metadata.entry_points(group="tensorboard_plugins", name="profile")
    packages = {entry.dist.name: entry.dist.version for entry in entries if entry.dist}
    if len(packages) > 1:
        named = " and ".join(f"{name} {packages[name]}" for name in sorted(packages))
        extra = " ".join(sorted(packages.keys() - {"xprof"}))
        advice = f"python -m pip uninstall {extra} && python -m pip install --force-reinstall xprof"
        yield Finding(
            "Packages",
            "Profile plugin",
            f"{named} provide it and cannot be installed together",
            advice,
        )
