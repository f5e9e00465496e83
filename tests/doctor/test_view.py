"""Doctor: what its table and its sentences say of findings, worked out by hand."""

import platform
from types import SimpleNamespace

import pytest

from tflab.cli import environment
from tflab.doctor import __main__ as doctor
from tflab.doctor import runtime
from tflab.doctor.checks import (
    CHECKS,
    FINE,
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
    Finding("Python", "version", "3.12.1"),
    Finding("Packages", "numpy", "2.4.6"),
    Finding("Packages", "xprof", "2.20.1 (asked for: >=2.22)", WRONG, "Install xprof."),
    Finding("Packages", "mypy", "missing", NOTE, "Install mypy."),
    Finding("Data", "MNIST", "lacks a file", WRONG, "Put it there."),
    Finding("Browser", "chromium", "not here", NOTE, "Get chromium."),
)


def test_the_table_has_a_row_for_each_finding_and_names_a_subject_once():
    table, *_ = doctor.blocks(FINDINGS)
    assert table.title == "What was looked at"
    assert [column.header for column in table.columns] == ["", "subject", "what", "found"]
    assert list(table.cells()) == [
        ("fine", "Python", "version", "3.12.1"),
        ("fine", "Packages", "numpy", "2.4.6"),
        ("WRONG", "", "xprof", "2.20.1 (asked for: >=2.22)"),
        ("note", "", "mypy", "missing"),
        ("WRONG", "Data", "MNIST", "lacks a file"),
        ("note", "Browser", "chromium", "not here"),
    ]


def test_what_is_wrong_and_what_is_worth_a_note_are_told_apart_with_their_advice():
    _, *rest = doctor.blocks(FINDINGS)
    assert rest == [
        Strip(
            "What is wrong, and what to do",
            (
                Frame("Packages: xprof", "", ("2.20.1 (asked for: >=2.22)", "Install xprof.")),
                Frame("Data: MNIST", "", ("lacks a file", "Put it there.")),
            ),
        ),
        Strip(
            "Notes",
            (
                Frame("Packages: mypy", "", ("missing", "Install mypy.")),
                Frame("Browser: chromium", "", ("not here", "Get chromium.")),
            ),
        ),
        "2 things are wrong: see above what to do.",
    ]


@pytest.mark.parametrize(
    "verdicts, said",
    [
        ([FINE, FINE], "All that tflab needs works."),
        ([FINE, NOTE], "All that tflab needs works, with 1 note."),
        ([NOTE, FINE, NOTE], "All that tflab needs works, with 2 notes."),
        ([NOTE, WRONG, FINE], "1 thing is wrong: see above what to do."),
        ([WRONG, NOTE, WRONG, WRONG], "3 things are wrong: see above what to do."),
    ],
)
def test_the_last_sentence_counts_what_is_wrong_and_else_the_notes(verdicts, said):
    assert doctor.summary(verdicts) == said


def test_findings_come_in_the_order_of_their_checks(monkeypatch):
    def slow():
        import time

        time.sleep(0.2)
        yield FINDINGS[0]

    monkeypatch.setattr(runtime, "devices", slow)
    monkeypatch.setattr(runtime, "profile_plugin", lambda: iter(FINDINGS[1:3]))
    checks = [Check("Python", "runtime:devices"), Check("Packages", "runtime:profile_plugin")]
    assert list(findings(checks)) == [FINDINGS[:1], FINDINGS[1:3]]


def test_only_what_nothing_runs_without_is_needed():
    needed = [check.function.partition(":")[2] for check in CHECKS if check.needed]
    assert needed == [
        *("python", "needed", "agreement", "profile_plugins"),
        *("devices", "profile_plugin", "folders"),
    ]


def test_an_error_is_told_by_its_kind_and_its_first_line():
    assert sentence(ValueError("  too long\nby far")) == "ValueError: too long"
    assert sentence(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_a_check_that_fails_names_what_it_looked_at(monkeypatch):
    def profile_plugin():
        raise MemoryError

    monkeypatch.setattr(runtime, "profile_plugin", profile_plugin)
    assert carry_out(Check("TensorBoard", "runtime:profile_plugin")) == (
        Finding(
            "TensorBoard",
            "profile plugin",
            "cannot be looked at: MemoryError",
            WRONG,
            "If all else works, please report it: then it is a mistake in tflab.",
        ),
    )


@pytest.mark.parametrize(
    "error, advice",
    [
        ("ImportError: cannot import name 'descriptor' from 'google.protobuf'", "do not agree"),
        ("TypeError: Descriptors cannot be created directly.", "protobuf is too new"),
        ("ImportError: numpy.core.multiarray failed to import", "NumPy do not agree"),
        ("It ended with status -4.", "lacks instructions"),
        ("It ended with status -9.", "It was killed"),
        ("It did not end within 90 s.", "Try again"),
        ("ImportError: no .so", "--force-reinstall -r requirements.txt"),
    ],
)
def test_an_import_error_has_the_advice_that_helps(error, advice, monkeypatch):
    monkeypatch.setattr(child, "call", lambda function, seconds: {"error": error})
    (finding,) = runtime.devices()
    assert (finding.looked_at, finding.found, finding.verdict) == ("import", error, WRONG)
    assert advice in finding.advice


def test_a_device_is_told_by_its_processors_or_its_name(monkeypatch):
    names = {"GPU:0": {"device_name": "NVIDIA A100"}, "TPU:0": {}}
    tf = SimpleNamespace(
        config=SimpleNamespace(
            experimental=SimpleNamespace(get_device_details=lambda device: names[device.name])
        )
    )
    monkeypatch.setattr(environment, "describe", lambda: {"cpus": 6, "os": platform.system()})
    details = [
        runtime.details(tf, SimpleNamespace(name=f"{kind}:0", device_type=kind))
        for kind in ("CPU", "GPU", "TPU")
    ]
    assert details == ["6 processors", "NVIDIA A100", "TPU"]
