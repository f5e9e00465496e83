"""The quick tests and those of the stages, on the oldest and the newest TensorFlow and Python.

    make test-versions

Each pair has an environment of its own in .venvs, with the newest of all other packages that go
with it; an environment that is there is used again. A Python that this machine does not have is
named and left out. Without any of them it is the Python that runs this.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable

# Python -> the oldest TensorFlow that has a package for it, and the newest that tflab takes
PAIRS = {"3.10": ("2.18", "2.21"), "3.13": ("2.20", "2.21")}
FOLDER = ".venvs"


def present(answers: Callable[[str], bool]) -> list[str]:
    return [version for version in PAIRS if answers(f"python{version}")]


def runs(executable: str) -> bool:
    """Whether this Python can be started: pyenv has a shim for each version that it knows of."""
    found = shutil.which(executable)
    return bool(found) and not subprocess.run([found, "-c", ""], capture_output=True).returncode


def pairs(pythons: list[str], own: tuple[int, int]) -> list[tuple[str, str, str]]:
    """(Python, its command, TensorFlow) for each environment."""
    if not pythons:
        oldest, newest = PAIRS["3.10" if own < (3, 13) else "3.13"]
        name = ".".join(map(str, own))
        return [(name, sys.executable, version) for version in (oldest, newest)]
    return [(python, f"python{python}", version) for python in pythons for version in PAIRS[python]]


def command(python: str, executable: str, version: str) -> list[str]:
    """The Makefile's own way to an environment and its tests, with another environment. Where the
    quick tests fail, those of the stages are run nevertheless."""
    return [
        *("make", "--keep-going", "fast", "stages", f"PYTHON={executable}"),
        f"VENV={FOLDER}/python{python}-tensorflow{version}",
        f"WITH=tensorflow=={version}.*",
    ]


def main() -> int:
    pythons = present(runs)
    for version in PAIRS:
        if version not in pythons:
            print(f"python{version} does not run on this machine: nothing is tested on it.")
    results = {}
    for pair in pairs(pythons, sys.version_info[:2]):
        python, _, version = pair
        title = f"Python {python} with TensorFlow {version}"
        print(f"\n{title}", flush=True)
        results[title] = subprocess.run(command(*pair), check=False).returncode == 0
    print()
    for title, passed in results.items():
        print(f"{title}: {'passed' if passed else 'FAILED'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
