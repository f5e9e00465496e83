"""Checkup: what tflab needs of its surroundings, looked at one thing after another.

Each check is a function that yields findings. Nothing raises: a check that cannot be carried out is
a finding itself. One function and one line in CHECKS add another. No TensorFlow in here; what needs
it runs in a process of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

FINE, NOTE, WRONG = "fine", "note", "wrong"


@dataclass(frozen=True)
class Finding:
    subject: str
    looked_at: str
    found: str
    verdict: str = FINE
    advice: str = ""  # what to do about it


@dataclass(frozen=True)
class Check:
    subject: str
    function: str  # `module:function` in this package
    needed: bool = True  # else tflab can do without what it looks at
    args: tuple[str, ...] = ()


CHECKS = (
    Check("Python", "packages:python"),
    Check("Packages", "packages:needed"),
    Check("Packages", "packages:agreement"),
    Check("Packages", "packages:profile_plugins"),
    Check("Packages", "packages:others", needed=False),
    Check("TensorFlow", "runtime:devices"),
    Check("TensorBoard", "runtime:profile_plugin"),
    Check("Data", "data:sets", needed=False),
    Check("Variables", "surroundings:variables", needed=False),
    Check("Folders", "surroundings:folders"),
    Check("Network", "surroundings:port", needed=False),
    Check("Browser", "surroundings:browser", needed=False),
)
LOGDIR_CHECKS = (  # of the logdir that was given
    Check("Logdir", "logdir:runs"),
    Check("Logdir", "logdir:profiles"),
)
AT_ONCE = 2  # checks; some wait for a process of their own
INSTALL = "Install what tflab needs: python -m pip install -r requirements.txt"
REPORT = "If all else works, please report it: then it is a mistake in tflab."


def checks(logdir: str | None = None) -> tuple[Check, ...]:
    """All checks, with those of a logdir if one is given."""
    if logdir is None:
        return CHECKS
    return (*CHECKS, *(replace(check, args=(logdir,)) for check in LOGDIR_CHECKS))


def findings(checks: Sequence[Check]) -> Iterator[tuple[Finding, ...]]:
    """What each check found, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(carried_out, checks)


def carried_out(check: Check) -> tuple[Finding, ...]:
    """What a check found, and why it could not be carried out to its end, if so."""
    module, _, name = check.function.partition(":")
    found: list[Finding] = []
    try:
        function = getattr(importlib.import_module(f"tflab.doctor.{module}"), name)
        found.extend(function(*check.args))
    except Exception as error:  # whatever it is, the other checks go on
        found.append(
            Finding(
                check.subject,
                name.replace("_", " "),
                f"cannot be looked at: {sentence(error)}",
                WRONG if check.needed else NOTE,
                INSTALL if isinstance(error, ImportError) else REPORT,
            )
        )
    return tuple(found)


def sentence(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
