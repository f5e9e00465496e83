"""The range of versions: what `make test-versions` runs, and the versions that go together."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import on_versions

ROOT = Path(__file__).parents[2]


def required():
    """The package's requirements and those of both extras."""
    lists = re.findall(
        r"^(dependencies|test|dev) = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert [name for name, _ in lists] == ["dependencies", "test", "dev"]
    return [range_ for _, lines in lists for range_ in re.findall(r'^ *"(.+?)",', lines, re.M)]


def steps_of(*command):
    """What make would do, by itself: what a make that runs these tests was given is not its own."""
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    asked = [*command, "--dry-run", "--always-make"]
    return subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True).stdout


def test_the_oldest_and_the_newest_are_tested_on_each_python_that_is_there():
    found = on_versions.present("python3.13".__eq__)
    assert on_versions.pairs(found, (3, 11)) == [
        ("3.13", "python3.13", "2.20"),
        ("3.13", "python3.13", "2.21"),
    ]


@pytest.mark.parametrize("status", [0, 127])
def test_a_python_is_there_if_it_runs_and_not_if_it_is_only_a_shim(tmp_path, monkeypatch, status):
    python = tmp_path / "python3.10"
    python.write_text(f"#!/bin/sh\nexit {status}\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert on_versions.runs("python3.10") == (status == 0)
    assert not on_versions.runs("python3.13")


def test_where_none_of_them_is_there_it_is_the_python_that_asks():
    assert on_versions.pairs([], (3, 11)) == [
        ("3.11", sys.executable, "2.18"),
        ("3.11", sys.executable, "2.21"),
    ]
    assert [version for *_, version in on_versions.pairs([], (3, 13))] == ["2.20", "2.21"]


def test_the_versions_that_are_tested_are_the_ends_of_the_range():
    (tensorflow,) = (range_ for range_ in required() if range_.startswith("tensorflow"))
    assert tensorflow == "tensorflow>=2.18,<2.22"
    oldest, newest = on_versions.PAIRS["3.10"]
    within = Requirement(tensorflow).specifier
    assert oldest in within and newest in within
    assert "2.17" not in within and "2.22" not in within


def test_an_environment_is_made_by_the_makefile():
    command = on_versions.command("3.10", "python3.10", "2.18")
    printed = steps_of(*command)
    venv = ".venvs/python3.10-tensorflow2.18"
    assert f"python3.10 -m venv {venv}\n" in printed
    assert "-e '.' 'tensorflow==2.18.*'" in printed
    assert "-e '.[test,dev]' 'tensorflow==2.18.*'" in printed
    tests = re.findall(rf"^{re.escape(venv)}/bin/python -m pytest (.+)", printed, re.M)
    assert [words.split()[-1] for words in tests][1:] == ["tests/runtime"]
    assert len(tests) == 2


def constraints():
    content = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in content if line and line[0] != "#"]
    return {canonicalize_name(pin.name): pin for pin in map(Requirement, pins)}


def test_constraints_are_versions_of_all_that_tflab_requires_within_the_ranges():
    pins = constraints()
    for requirement in map(Requirement, required()):
        pin = pins[canonicalize_name(requirement.name)]
        (exact,) = pin.specifier
        assert exact.operator == "==" and exact.version in requirement.specifier, requirement.name


def test_no_constraint_is_a_path():
    assert [str(pin) for pin in constraints().values() if pin.url] == []


PYTHON = """#!/bin/sh
# Notes what it is asked for; what is in BROKEN it cannot install.
echo "$*" >> "$NOTES"
case "$*" in
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  $BROKEN) exit 1 ;;
esac
"""
NEWEST = "-m pip install --quiet -e ."


@pytest.fixture
def lab(tmp_path):
    """`lab(broken)`: what `make lab` says, and what it asks of a Python that installs nothing."""
    python, notes = tmp_path / "python", tmp_path / "notes"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def make(broken=""):
        given = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
        done = subprocess.run(
            ["make", "lab", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}"],
            cwd=ROOT,
            env={**given, "NOTES": str(notes), "BROKEN": broken},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stderr, notes.read_text().splitlines()[2:]

    return make


def test_the_newest_that_go_together_are_taken(lab):
    _, _, (upgrade, *asked) = lab()
    assert upgrade == "-m pip install --quiet --upgrade pip"
    assert asked == [NEWEST, "-m tflab.report --model lenet"]


def test_where_the_newest_cannot_be_installed_those_that_worked_are_taken_and_that_is_said(lab):
    status, said, (_, *asked) = lab(broken=NEWEST)
    assert status == 0
    assert said == (
        "The newest packages cannot be installed together: taking those of constraints.txt.\n"
    )
    assert asked[:2] == [NEWEST, f"{NEWEST} -c constraints.txt"]
    assert asked[-1] == "-m tflab.report --model lenet"


def test_where_neither_can_be_installed_nothing_is_run(lab):
    status, _, (_, *asked) = lab(broken=f"{NEWEST}*")
    assert status == 2
    assert asked == [NEWEST, f"{NEWEST} -c constraints.txt"]
