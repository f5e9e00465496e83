"""Versions: the constraints are within the ranges, and `make lab` takes what can be installed."""

import os
import re
import subprocess
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


def required():
    """The package's requirements and those of both extras."""
    lists = re.findall(
        r"^(dependencies|test|dev) = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert [name for name, _ in lists] == ["dependencies", "test", "dev"]
    return [range_ for _, lines in lists for range_ in re.findall(r'^ *"(.+?)",', lines, re.M)]


def constraints():
    content = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in content if line and line[0] != "#"]
    return {canonicalize_name(pin.name): pin for pin in map(Requirement, pins)}


def test_constraints_are_versions_of_all_that_tflab_requires_within_the_ranges():
    pins = constraints()
    assert [str(pin) for pin in pins.values() if pin.url] == []
    for requirement in map(Requirement, required()):
        pin = pins[canonicalize_name(requirement.name)]
        (exact,) = pin.specifier
        assert exact.operator == "==" and exact.version in requirement.specifier, requirement.name


PYTHON = """#!/bin/sh
# Notes what it is asked for; what is in BROKEN it cannot install.
echo "$*" >> "$NOTES"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  $BROKEN) exit 1 ;;
esac
"""
NEWEST = "-m pip install --quiet -e .[profile,report,code]"
PATTERN = NEWEST.replace("[", "\\[")  # the same for the shell


def test_where_the_newest_cannot_be_installed_those_that_worked_are_taken_and_that_is_said(
    tmp_path,
):
    python, notes = tmp_path / "python", tmp_path / "notes"
    python.write_text(PYTHON)
    python.chmod(0o755)
    done = subprocess.run(
        ["make", "lab", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
        cwd=ROOT,
        env={**os.environ, "MAKEFLAGS": "", "NOTES": str(notes), "BROKEN": PATTERN},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        0,
        "The newest packages cannot be installed together: taking those of constraints.txt.\n",
    )
    asked = notes.read_text().splitlines()[3:]
    assert asked[:2] == [NEWEST, f"{NEWEST} -c constraints.txt"]
    assert asked[-1] == "-m tflab.report --model lenet"
