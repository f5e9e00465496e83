"""Systems: what differs on macOS and Windows from Linux, where tflab is developed and tested."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from tflab.cli import confinement
from tflab.doctor.checks import FINE, NOTE, Finding

LINUX, MACOS, WINDOWS = "Linux", "Darwin", "Windows"  # as platform.system() calls them
NAMES = {LINUX: "Linux", MACOS: "macOS", WINDOWS: "Windows"}
ARM = ("arm64", "aarch64")
NOT_TESTED = "tflab is tested on Linux only; what differs here stands in the table."
UNCONFINED = "graphs from files"
NO_LANDLOCK = "no Landlock: only rules about ops protect your files, not the kernel"
TRUSTED_ONLY = "Take Linux 5.13 or later, or run only graphs that you trust."
# What is looked at -> what differs
ELSEWHERE = {
    UNCONFINED: NO_LANDLOCK,
    "load": "no /proc: time that a host takes from a virtual machine is not seen",
    "memory": "no /proc: a step that wants more memory than is free is not refused before it runs",
    "cluster": "tasks of --cluster can be reached from other machines, not from this one alone",
    "GPU": "TensorFlow has no packages with CUDA for it: --configs gpu finds none",
    "generated code": "XLA's dumps were not tried here; where they cannot be read, a note says so",
}
INTEL_MAC = {
    "TensorFlow": "no packages for a Mac with an Intel processor after 2.16, and tflab needs 2.18",
}
APPLE_SILICON = {
    "ops": "no oneDNN on Apple silicon: no _Mkl kernels, and --configs no-onednn changes nothing",
}
WINDOWS_ALONE = {
    "load": "the system counts no load average: whether the machine was quiet is told from the "
    "step times alone",
    "locks": "no file locks: nothing refuses a second training that resumes the same folder, and "
    "folders that a killed process left stay",
    "signals": "no SIGHUP, and SIGTERM ends a process at once: what was measured until then is "
    "kept on Ctrl-C only",
    "make": "mostly missing: set up by the lines without make in the README, with .venv\\Scripts "
    "for .venv/bin",
}


def differences() -> Iterator[Finding]:
    """What the system cannot do that Linux can, each with what that means."""
    system, machine = platform.system(), platform.machine()
    name = f"{NAMES.get(system, system)} on {machine}"
    if system == LINUX:
        yield Finding("System", "name", name, FINE)
        if not confinement.is_available():
            yield Finding("System", UNCONFINED, NO_LANDLOCK, NOTE, TRUSTED_ONLY)
        return
    yield Finding("System", "name", name, NOTE, NOT_TESTED)
    own = {}
    if system == WINDOWS:
        own = WINDOWS_ALONE
    elif system == MACOS:
        own = APPLE_SILICON if machine in ARM else INTEL_MAC
    for looked_at, found in (ELSEWHERE | own).items():
        yield Finding("System", looked_at, found)
    if system == WINDOWS:
        yield Finding(
            "System",
            "WSL 2",
            "TensorFlow and tflab run there as on Linux, on a GPU of NVIDIA's as well",
            NOTE,
            "For all that tflab does, install it in the Linux of WSL 2.",
        )


def chromium() -> str:
    """How to get the browser that the tests want."""
    if platform.system() == LINUX:
        return "apt-get install chromium"
    return "Install Chromium, and see that `chromium` is found on the PATH."
