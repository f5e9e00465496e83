"""Landlock: Linux restricts this process, and all processes that it starts, to the given files, and
takes the network from them.

A process needs no privileges for it, and cannot undo it. Source: the kernel's
Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h. Each ABI handles more: 1
files (Linux 5.13), 2 moves between folders, 3 truncation, 4 TCP ports, 5 ioctl of devices, 6
signals and abstract sockets.

Landlock does not restrict Unix sockets, UDP, or TCP before ABI 4. A filter of system calls
(seccomp) refuses all sockets, and io_uring, which could open them. Sources: the kernel's
Documentation/userspace-api/seccomp_filter.rst, include/uapi/linux/{filter,seccomp,audit}.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, the same on x86-64 and ARM
VERSION = 1  # the flag that asks for the ABI
BENEATH = 1  # the kind of rule for files
NO_NEW_PRIVILEGES, DEATH_SIGNAL = 38, 1  # of prctl

# Rights to files, in the order of their bits, and the ABI that introduced them
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
RIGHTS_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
# The rights that a rule for a file can have
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL
READ = EXECUTE | READ_FILE | READ_DIR
TCP = 0b11  # bind and connect
SCOPES = 0b11  # abstract sockets and signals of other processes


def abi() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none, or no filters of system
    calls, or if this module does not know the numbers of the calls."""
    known = platform.machine() in ARCHITECTURES and sys.byteorder == "little"
    filters = os.path.exists("/proc/sys/kernel/seccomp")
    if not (sys.platform == "linux" and known and filters):
        return 0
    return max(0, call(CREATE_RULESET, None, 0, VERSION))


def call(number: int, *args: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *args))


def prctl(option: int, value: int, more: object = 0) -> None:
    checked(int(ctypes.CDLL(None, use_errno=True).prctl(option, value, more, 0, 0)))


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends. Only Linux does."""
    if sys.platform.startswith("linux"):
        prctl(DEATH_SIGNAL, signal.SIGKILL)


def confine(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Confine this process permanently. It can read below these paths, write below the writable
    ones, open no socket, and signal only its children.

    Missing paths are ignored. Raises OSError if the kernel refuses.
    """
    version = abi()
    if not version:
        raise OSError("this kernel has no Landlock")
    every = next(RIGHTS_OF_ABI[known] for known in (5, 3, 2, 1) if version >= known)
    fields = (every, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    attributes = struct.pack("=QQQ", *fields)[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = checked(call(CREATE_RULESET, attributes, len(attributes), 0))
    try:
        for path in writable:
            allow(ruleset, path, every & ~IOCTL)
        for path in readable:
            allow(ruleset, path, READ)
        prctl(NO_NEW_PRIVILEGES, 1)
        checked(call(RESTRICT_SELF, ruleset, 0))
        refuse_sockets()
    finally:
        os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            rule = struct.pack("=Qi", rights if folder else rights & OF_FILES, descriptor)
            checked(call(ADD_RULE, ruleset, BENEATH, rule, 0))
        finally:
            os.close(descriptor)


def checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# Sockets

ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # with `socket`'s number
IO_URING_SETUP = 425
FOREIGN = 0x40000000  # x86-64: system calls from here on are of another ABI
NUMBER, ARCHITECTURE = 0, 4  # places in struct seccomp_data
LOAD, RETURN, EQUAL, AT_LEAST = 0x20, 0x06, 0x15, 0x35  # instructions of BPF
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EACCES
SECCOMP, FILTER = 22, 2  # of prctl


def refuse_sockets() -> None:
    """Allow this process no new sockets, permanently. Pairs of sockets, which lead nowhere else,
    remain. Raises OSError if the kernel refuses."""
    architecture, opens = ARCHITECTURES[platform.machine()]
    program = (  # instruction, instructions to skip if a comparison is true or false, value
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 0, 4, architecture),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 2, 0, FOREIGN),
        (EQUAL, 1, 0, IO_URING_SETUP),
        (EQUAL, 0, 1, opens),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    )
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    content = ctypes.create_string_buffer(code, len(code))
    prctl(SECCOMP, FILTER, struct.pack("@HP", len(program), ctypes.addressof(content)))
