"""What doctor says of the system: plain functions of its name, tested with the name patched."""

import pytest

from tflab.doctor import checks, systems
from tflab.doctor.checks import NOTE, Check, Finding

NO_PROC = "no /proc: time that a host takes from a virtual machine is not seen"
NO_MEMINFO = "no /proc: a step that wants more memory than is free is not refused before it runs"
REACHED = "tasks of --cluster can be reached from other machines, not from this one alone"
NO_CUDA = "TensorFlow has no packages with CUDA for it: --configs gpu finds none"
NO_DUMPS = "XLA's dumps were not tried here; where they cannot be read, a note says so"


UNCONFINED = Finding("System", systems.UNCONFINED, systems.NO_LANDLOCK)


@pytest.fixture
def on(monkeypatch):
    """`on("Darwin", "arm64")`: what is found on such a machine."""

    def found(system, machine):
        monkeypatch.setattr(systems.platform, "system", lambda: system)
        monkeypatch.setattr(systems.platform, "machine", lambda: machine)
        return list(systems.differences())

    return found


def named(name):
    return Finding("System", "name", name, NOTE, systems.NOT_TESTED)


def test_linux_is_named_and_nothing_differs(on, monkeypatch):
    monkeypatch.setattr(systems.confinement, "is_available", lambda: True)
    assert on("Linux", "x86_64") == [Finding("System", "name", "Linux on x86_64")]


def test_a_mac_with_apples_processor_has_no_onednn(on):
    assert on("Darwin", "arm64") == [
        named("macOS on arm64"),
        UNCONFINED,
        Finding("System", "load", NO_PROC),
        Finding("System", "memory", NO_MEMINFO),
        Finding("System", "cluster", REACHED),
        Finding("System", "GPU", NO_CUDA),
        Finding("System", "generated code", NO_DUMPS),
        Finding(
            "System",
            "ops",
            "no oneDNN on Apple silicon: no _Mkl kernels, and --configs no-onednn changes nothing",
        ),
    ]


def test_a_mac_with_intels_processor_has_no_tensorflow_that_is_new_enough(on):
    *others, last = on("Darwin", "x86_64")
    assert [finding.looked_at for finding in others] == [
        *("name", "graphs from files", "load", "memory", "cluster", "GPU", "generated code")
    ]
    assert (last.looked_at, last.found) == (
        "TensorFlow",
        "no packages for a Mac with an Intel processor after 2.16, and tflab needs 2.18",
    )


def test_windows_lacks_locks_signals_and_make(on):
    found = {finding.looked_at: finding.found for finding in on("Windows", "AMD64")}
    assert found == {
        "name": "Windows on AMD64",
        "graphs from files": systems.NO_LANDLOCK,
        "load": "the system counts no load average: whether the machine was quiet is told from "
        "the step times alone",
        "memory": NO_MEMINFO,
        "cluster": REACHED,
        "GPU": NO_CUDA,
        "generated code": NO_DUMPS,
        "locks": "no file locks: nothing refuses a second training that resumes the same folder, "
        "and folders that a killed process left stay",
        "signals": "no SIGHUP, and SIGTERM ends a process at once: what was measured until then "
        "is kept on Ctrl-C only",
        "make": "mostly missing: set up by the lines without make in the README, with "
        ".venv\\Scripts for .venv/bin",
        "WSL 2": "TensorFlow and tflab run there as on Linux, on a GPU of NVIDIA's as well",
    }


def test_a_system_without_a_name_of_ours_keeps_its_own(on):
    assert on("FreeBSD", "arm64")[0] == named("FreeBSD on arm64")
    assert len(on("FreeBSD", "arm64")) == 7


def test_the_browser_is_asked_of_apt_on_linux_alone(on):
    on("Linux", "x86_64")
    assert systems.chromium() == "apt-get install chromium"
    on("Darwin", "arm64")
    assert systems.chromium() == "Install Chromium, and see that `chromium` is found on the PATH."


def test_doctor_looks_at_the_system():
    assert Check("System", "systems:differences", needed=False) in checks.CHECKS


def test_a_linux_without_landlock_does_not_confine_graphs(monkeypatch):
    monkeypatch.setattr(systems.platform, "system", lambda: "Linux")
    monkeypatch.setattr(systems.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(systems.confinement, "is_available", lambda: True)
    linux = Finding("System", "name", "Linux on x86_64")
    assert list(systems.differences()) == [linux]
    monkeypatch.setattr(systems.confinement, "is_available", lambda: False)
    assert list(systems.differences()) == [
        linux,
        Finding(
            "System",
            "graphs from files",
            "no Landlock: only rules about ops protect your files, not the kernel",
            NOTE,
            "Take Linux 5.13 or later, or run only graphs that you trust.",
        ),
    ]
