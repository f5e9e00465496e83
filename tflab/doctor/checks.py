"""Checks: whether what tflab needs is installed and works, one check after another.

Each check is a function that yields findings. Nothing raises: a check that fails with an exception
is a finding itself. One function and one line in CHECKS add another check. No TensorFlow in here;
checks that need it run in a process of their own.
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
    needed: bool = True  # whether tflab cannot work without what is checked
    args: tuple[str, ...] = ()


CHECKS = (
    Check("Python", "packages:python"),
    Check("System", "systems:differences", needed=False),
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
LOGDIR_CHECKS = (  # for the logdir that was given
    Check("Logdir", "logdir:runs"),
    Check("Logdir", "logdir:profiles"),
)
AT_ONCE = 2  # checks that run in parallel; some wait for a process of their own
INSTALL = "Install what tflab needs: python -m pip install -r requirements.txt"
REPORT = "If all else works, please report it: then it is a mistake in tflab."


def checks(logdir: str | None = None) -> tuple[Check, ...]:
    """All checks, with those of a logdir if one is given."""
    if logdir is None:
        return CHECKS
    return (*CHECKS, *(replace(check, args=(logdir,)) for check in LOGDIR_CHECKS))


def findings(checks: Sequence[Check]) -> Iterator[tuple[Finding, ...]]:
    """The findings of each check, in the order of the checks."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(carry_out, checks)


def carry_out(check: Check) -> tuple[Finding, ...]:
    """The findings of a check, with one more if it failed with an exception."""
    module, _, name = check.function.partition(":")
    findings: list[Finding] = []
    try:
        function = getattr(importlib.import_module(f"tflab.doctor.{module}"), name)
        findings.extend(function(*check.args))
    except Exception as error:  # no exception may stop the other checks
        findings.append(
            Finding(
                check.subject,
                name.replace("_", " "),
                f"cannot be looked at: {sentence(error)}",
                WRONG if check.needed else NOTE,
                INSTALL if isinstance(error, ImportError) else REPORT,
            )
        )
    return tuple(findings)


def sentence(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
