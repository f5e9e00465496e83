"""Checks: what keeps tflab from working here. Each check yields problems, each with its remedy.

A check that raises an exception becomes a problem itself. To add a check, write a function and add
its line to CHECKS. Checks that need TensorFlow run it in a process of their own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

NOTE, WRONG = "note", "wrong"


@dataclass(frozen=True)
class Finding:
    subject: str
    looked_at: str
    found: str
    advice: str  # what to do about it
    verdict: str = WRONG  # a NOTE does not keep tflab from working


@dataclass(frozen=True)
class Check:
    subject: str
    function: str  # `module:function` in this package
    needed: bool = True  # whether tflab cannot work without what is checked
    args: tuple[str, ...] = ()


CHECKS = (
    Check("System", "surroundings:system", needed=False),
    Check("Packages", "software:needed"),
    Check("Packages", "software:agreement"),
    Check("Packages", "software:profile_plugins"),
    Check("TensorFlow", "software:tensorflow"),
    Check("TensorBoard", "software:profile_plugin"),
    Check("Data", "surroundings:data", needed=False),
    Check("Variables", "surroundings:variables", needed=False),
    Check("Folders", "surroundings:folders"),
)
LOGDIR = Check("Logdir", "surroundings:logdir_problems")
AT_ONCE = 2  # checks that run in parallel; some wait for a process of their own
INSTALL = "Install what tflab needs: python -m pip install -r requirements.txt"
REPORT = "If everything else works, please report it: it is a bug in tflab."


def checks(logdir: str | None = None) -> tuple[Check, ...]:
    """All checks, with that of a logdir if one is given."""
    return CHECKS if logdir is None else (*CHECKS, replace(LOGDIR, args=(logdir,)))


def findings(checks: Sequence[Check]) -> Iterator[tuple[Finding, ...]]:
    """The problems that each check finds, in the order of the checks."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(carry_out, checks)


def carry_out(check: Check) -> tuple[Finding, ...]:
    """The problems that a check finds, and one more if it raised an exception."""
    module, _, name = check.function.partition(":")
    problems: list[Finding] = []
    try:
        function = getattr(importlib.import_module(f"tflab.doctor.{module}"), name)
        problems.extend(function(*check.args))
    except Exception as error:  # no exception may stop the other checks
        advice = INSTALL if isinstance(error, ImportError) else REPORT
        state = f"cannot be checked: {sentence(error)}"
        verdict = WRONG if check.needed else NOTE
        problems.append(Finding(check.subject, name.replace("_", " "), state, advice, verdict))
    return tuple(problems)


def sentence(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
