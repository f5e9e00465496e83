"""Doctor: what its table and its sentences say of findings, worked out by hand."""

import pytest

from tflab.doctor import __main__ as doctor
from tflab.doctor import software
from tflab.doctor.checks import (
    CHECKS,
    NOTE,
    WRONG,
    Check,
    Finding,
    carry_out,
    findings,
    sentence,
)
from tflab.records.blocks import Frame, Strip
from tflab.runtime import child

FINDINGS = (
    Finding("Packages", "xprof", "2.20.1 (required: >=2.22)", "Install xprof."),
    Finding("Packages", "mypy", "missing", "Install mypy.", NOTE),
    Finding("Data", "MNIST", "lacks a file", "Put it there."),
    Finding("System", "Landlock", "not here", "Take Linux.", NOTE),
)


def test_what_is_wrong_and_what_is_worth_a_note_are_told_apart_with_their_advice():
    assert list(doctor.blocks(FINDINGS)) == [
        Strip(
            "Problems, and what to do about them",
            (
                Frame("Packages: xprof", "", ("2.20.1 (required: >=2.22)", "Install xprof.")),
                Frame("Data: MNIST", "", ("lacks a file", "Put it there.")),
            ),
        ),
        Strip(
            "Notes",
            (
                Frame("Packages: mypy", "", ("missing", "Install mypy.")),
                Frame("System: Landlock", "", ("not here", "Take Linux.")),
            ),
        ),
        "2 things are wrong; the lines above say what to do.",
    ]


@pytest.mark.parametrize(
    "verdicts, said",
    [
        ([], "Everything that tflab needs works."),
        ([NOTE], "Everything that tflab needs works, with 1 note."),
        ([NOTE, NOTE], "Everything that tflab needs works, with 2 notes."),
        ([NOTE, WRONG], "1 thing is wrong; the lines above say what to do."),
        ([WRONG, NOTE, WRONG, WRONG], "3 things are wrong; the lines above say what to do."),
    ],
)
def test_the_last_sentence_counts_what_is_wrong_and_else_the_notes(verdicts, said):
    assert doctor.summary(verdicts) == said


def test_findings_come_in_the_order_of_their_checks(monkeypatch):
    def slow():
        import time

        time.sleep(0.05)
        yield FINDINGS[0]

    monkeypatch.setattr(software, "tensorflow", slow)
    monkeypatch.setattr(software, "profile_plugin", lambda: iter(FINDINGS[1:3]))
    checks = [Check("Python", "software:tensorflow"), Check("Packages", "software:profile_plugin")]
    assert list(findings(checks)) == [FINDINGS[:1], FINDINGS[1:3]]


def test_only_what_nothing_runs_without_is_needed():
    needed = [check.function.partition(":")[2] for check in CHECKS if check.needed]
    assert needed == [
        *("needed", "agreement", "profile_plugins"),
        *("tensorflow", "profile_plugin", "folders"),
    ]


def test_an_error_is_told_by_its_kind_and_its_first_line():
    assert sentence(ValueError("  too long\nby far")) == "ValueError: too long"
    assert sentence(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_a_check_that_fails_names_what_it_looked_at(monkeypatch):
    def profile_plugin():
        raise MemoryError

    monkeypatch.setattr(software, "profile_plugin", profile_plugin)
    assert carry_out(Check("TensorBoard", "software:profile_plugin")) == (
        Finding(
            "TensorBoard",
            "profile plugin",
            "cannot be checked: MemoryError",
            "If everything else works, please report it: it is a bug in tflab.",
        ),
    )


@pytest.mark.parametrize(
    "error, advice",
    [
        (
            "ImportError: cannot import name 'descriptor' from 'google.protobuf'",
            "protobuf conflict",
        ),
        ("TypeError: Descriptors cannot be created directly.", "protobuf is too new"),
        ("ImportError: numpy.core.multiarray failed to import", "NumPy conflict"),
        ("It ended with status -4.", "lacks instructions"),
        ("It ended with status -9.", "It was killed"),
        ("It did not end within 90 s.", "Try again"),
        ("ImportError: no .so", "--force-reinstall -r requirements.txt"),
    ],
)
def test_an_import_error_has_the_advice_that_helps(error, advice, monkeypatch):
    monkeypatch.setattr(child, "call", lambda function, seconds: {"error": error})
    (finding,) = software.tensorflow()
    assert (finding.looked_at, finding.found, finding.verdict) == ("import", error, WRONG)
    assert advice in finding.advice
