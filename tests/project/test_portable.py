"""The package runs on macOS and Windows, as far as its code can tell: what is known to break there
is not in it, or stands where it is caught."""

import ast
import functools
import re
from importlib import util
from pathlib import Path
from types import SimpleNamespace

import pytest

PACKAGE = Path(__file__).parents[2] / "tflab"
# Modules that Windows does not have, and modules of which Windows or macOS has a part
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
IN_PART = {"errno", "mmap", "os", "select", "signal", "socket", "time"}
# mypy brings along what the modules of Python have on each system.
STUBS = Path(util.find_spec("mypy").submodule_search_locations[0], "typeshed", "stdlib")
CAUGHT = {"AttributeError", "Exception", "ImportError", "ModuleNotFoundError"}
# Files of Linux, for which something else is found where they are missing
OF_LINUX = {
    *("/proc/", "/proc/cpuinfo", "/proc/meminfo", "/proc/self/fd", "/proc/stat"),
    *("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.max"),
    "/sys/fs/cgroup/memory.stat",
    *("/dev/nvidiactl", "/dev/nvidia[0-9]*"),
}
# What these do is done only where the kernel is Linux; of `cli`, only where it has Landlock
FOR_LINUX = {
    *("cli/landlock.py", "cli/confined.py", "cli/confinement.py"),
    "run/ticks.py",
}
PLACE = re.compile(r"/(?:proc|dev|sys|tmp|etc|usr|bin|home)(?:/[^ ]*|$)")
DATES = re.compile(r"%-[dmHIMSj]|%[HI]:%M")  # no such dates on Windows; no colon in a file's name
TEXTS = {"open": 3, "read_text": 0, "write_text": 1}  # where the encoding stands, without a name


def breaks(source: str) -> list[str]:
    """What in some code breaks elsewhere, or may: a line each."""
    nodes = [*ast.walk(ast.parse(source))]
    guarded = {id(inner) for node in nodes if guards(node) for inner in ast.walk(node)}
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [
        f"{node.lineno}: {what}"
        for node in nodes
        for what in (
            *missing(node, id(node) in guarded),
            *places(node, id(node) in prose),
            *texts(node),
        )
    ]


def guards(node):
    """Whether what is missing is caught in here, or asked for before it is used."""
    if isinstance(node, ast.FunctionDef):
        return any(
            isinstance(step, ast.If)
            and "hasattr" in named(step.test)
            and isinstance(step.body[-1], ast.Return)
            for step in node.body
        )
    if isinstance(node, ast.Try):
        return any(handler.type and named(handler.type) & CAUGHT for handler in node.handlers)
    if isinstance(node, ast.With):
        return any(named(item.context_expr) & CAUGHT for item in node.items)
    return isinstance(node, ast.If | ast.IfExp) and "hasattr" in named(node.test)


def named(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def missing(node, guarded):
    if guarded:
        return
    if isinstance(node, ast.ImportFrom):
        yield from (f"import {name}" for name in MODULES & {node.module} if not node.level)
    if isinstance(node, ast.Import):
        yield from (f"import {name}" for name in MODULES & {alias.name for alias in node.names})
    if isinstance(node, ast.ImportFrom) and node.module in IN_PART:
        names = (alias.name for alias in node.names)
        yield from (f"{node.module}.{name}" for name in names if name in only_some(node.module))
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = node.value.id
        if module in IN_PART and node.attr in only_some(module):
            yield f"{module}.{node.attr}"


@functools.cache
def only_some(module):
    """The names that a module has on Linux, and not on both Windows and macOS."""
    file = STUBS / f"{module}.pyi"
    source = file if file.exists() else STUBS / module / "__init__.pyi"
    steps = ast.parse(source.read_text("utf-8")).body
    windows, macos, linux = (
        set(defined(steps, platform)) for platform in ("win32", "darwin", "linux")
    )
    return linux - (windows & macos)


def defined(steps, platform):
    """The names that a stub defines on a platform, in the oldest Python."""
    sys = SimpleNamespace(platform=platform, version_info=(3, 10))
    for step in steps:
        match step:
            case ast.If():
                holds = eval(ast.unparse(step.test), {"sys": sys})
                yield from defined(step.body if holds else step.orelse, platform)
            case ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in step.names)
            case ast.FunctionDef() | ast.ClassDef():
                yield step.name
            case ast.AnnAssign():
                yield step.target.id


def places(node, prose):
    """Absolute places, and dates that only some systems can write."""
    if prose or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    if PLACE.match(node.value) and node.value not in OF_LINUX:
        yield node.value
    yield from DATES.findall(node.value)


def texts(node):
    """Files of text whose encoding is that of the system."""
    if not isinstance(node, ast.Call):
        return
    method = isinstance(node.func, ast.Attribute)
    called = node.func.attr if method else getattr(node.func, "id", "")
    if called not in TEXTS or method == (called == "open"):
        return
    binary = called == "open" and len(node.args) > 1 and "b" in ast.unparse(node.args[1])
    said = len(node.args) > TEXTS[called] or any(word.arg == "encoding" for word in node.keywords)
    if not binary and not said:
        yield f"{called} without an encoding"


@pytest.mark.parametrize(
    "code, found",
    [
        ("import fcntl", ["1: import fcntl"]),
        ("try:\n    import fcntl\nexcept ImportError:\n    pass", []),
        ("try:\n    import fcntl\nexcept ValueError:\n    pass", ["2: import fcntl"]),
        ("with suppress(ImportError):\n    import fcntl", []),
        ("from resource import getrusage", ["1: import resource"]),
        ("os.kill(1, signal.SIGKILL)", ["1: signal.SIGKILL"]),
        ("getattr(signal, 'SIGHUP', None)", []),
        ("os.getloadavg()[0]", ["1: os.getloadavg"]),
        ("try:\n    os.getloadavg()\nexcept (AttributeError, OSError):\n    pass", []),
        ("n = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else 1", []),
        ("from os import geteuid", ["1: os.geteuid"]),
        ("os.open(path, os.O_RDONLY | os.O_NONBLOCK)", ["1: os.O_NONBLOCK"]),
        ("select.epoll()", ["1: select.epoll"]),
        ("socket.SO_BINDTODEVICE", ["1: socket.SO_BINDTODEVICE"]),
        (
            "time.clock_gettime(time.CLOCK_BOOTTIME)",
            [
                "1: time.clock_gettime",
                "1: time.CLOCK_BOOTTIME",
            ],
        ),
        ("def f():\n    if not hasattr(os, 'fork'):\n        return\n    os.fork()", []),
        ("def f():\n    if hasattr(os, 'fork'):\n        pass\n    os.fork()", ["4: os.fork"]),
        ("open('/dev/shm/x', 'rb')", ["1: /dev/shm/x"]),
        ("Path('/proc/stat')", []),
        ("f'{now:%-d %B}'", ["1: %-d"]),
        ("f'{now:%H:%M}'", ["1: %H:%M"]),
        ("open(path)", ["1: open without an encoding"]),
        ("path.write_text(words, 'utf-8'), path.read_text(encoding='utf-8')", []),
        ("path.write_text(words)", ["1: write_text without an encoding"]),
        ("'/proc/of prose'", []),
    ],
)
def test_what_breaks_elsewhere_is_recognised(code, found):
    assert breaks(code) == found


@pytest.mark.slow
def test_nothing_in_the_package_is_known_to_break_on_macos_or_windows():
    found = {
        name: lines
        for file in sorted(PACKAGE.rglob("*.py"))
        if (name := file.relative_to(PACKAGE).as_posix()) not in FOR_LINUX
        and (lines := breaks(file.read_text("utf-8")))
    }
    assert found == {}
