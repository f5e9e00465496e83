"""Seccomp: Linux allows this process, and all processes that it starts, no sockets other than TCP.

Landlock restricts the ports of TCP, but not other protocols. A filter of system calls refuses their
sockets, and io_uring, which could open them. Sources: the kernel's
Documentation/userspace-api/seccomp_filter.rst, include/uapi/linux/{filter,seccomp,audit}.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys

# And the number of `socket`
ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
IO_URING_SETUP = 425
FOREIGN = 0x40000000  # x86-64: system calls from here on are of another ABI
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # places in struct seccomp_data
LOAD, AND, RETURN, EQUAL, AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35  # instructions of BPF
VERDICTS = {"allow": 0x7FFF0000, "refuse": 0x00050000 | errno.EACCES}
KIND = 0xF  # of a socket's type, without its flags
INTERNET, INTERNET_6_BIT = 2, 8  # AF_INET, and the bit that AF_INET6 adds
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2  # of prctl

# Instruction, value, and where to go if a comparison is true or false: "" is the next one
Instruction = tuple[int, int, str, str]


def is_available() -> bool:
    """Whether this kernel has such filters, and this module knows its system calls."""
    known = platform.machine() in ARCHITECTURES and sys.byteorder == "little"
    return known and sys.platform == "linux" and os.path.exists("/proc/sys/kernel/seccomp")


def only_tcp() -> None:
    """Allow this process only TCP sockets, permanently; do nothing if `is_available` is false.
    Raises OSError if the kernel refuses."""
    if not is_available():
        return
    architecture, opens = ARCHITECTURES[platform.machine()]
    program: list[Instruction] = [
        (LOAD, ARCHITECTURE, "", ""),
        (EQUAL, architecture, "", "refuse"),
        (LOAD, NUMBER, "", ""),
        (AT_LEAST, FOREIGN, "refuse", ""),
        (EQUAL, IO_URING_SETUP, "refuse", ""),
        (EQUAL, opens, "", "allow"),
        (LOAD, ARGUMENTS, "", ""),  # the address family
        (AND, 0xFFFFFFFF ^ INTERNET_6_BIT, "", ""),
        (EQUAL, INTERNET, "", "refuse"),
        (LOAD, ARGUMENTS + 8, "", ""),
        (AND, KIND, "", ""),
        (EQUAL, socket.SOCK_STREAM, "", "refuse"),
        (LOAD, ARGUMENTS + 16, "", ""),  # the protocol; 0 is TCP for a stream
        (EQUAL, 0, "allow", ""),
        (EQUAL, socket.IPPROTO_TCP, "allow", "refuse"),
    ]
    code = b"".join(instructions(program))
    content = ctypes.create_string_buffer(code, len(code))
    given = struct.pack("@HP", len(code) // 8, ctypes.addressof(content))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0), (SECCOMP, FILTER, given)):
        if libc.prctl(*arguments, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def instructions(program: list[Instruction]) -> list[bytes]:
    """The program as struct sock_filter; each label becomes the distance to its verdict at the
    end."""
    ends = dict(zip(VERDICTS, range(len(program), len(program) + len(VERDICTS)), strict=True))
    coded = [
        struct.pack("=HBBI", code, *(ends.get(to, at + 1) - at - 1 for to in (yes, no)), value)
        for at, (code, value, yes, no) in enumerate(program)
    ]
    return [*coded, *(struct.pack("=HBBI", RETURN, 0, 0, value) for value in VERDICTS.values())]
