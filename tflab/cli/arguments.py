"""Arguments: those that several commands share, and those that set the options of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from tflab.cli import command
from tflab.errors import UsageError
from tflab.records.options import BATCH_SIZES, SWITCHES, Options, Saved

Container = argparse._ActionsContainer  # a parser, or a group of its arguments
DEFAULTS = Options()
MODEL = "toy"  # the default model
EXPERIMENTS_S = 60
MOST_TASKS = 16  # each new task is a process with its own TensorFlow

# What needs a single process, so that it cannot be combined with --cluster
OF_ONE_PROCESS = ("devices", "xla", "experiments", "configs")


# Types


def tasks(text: str) -> int | tuple[str, ...]:
    """Return the number of tasks to start, or the addresses of existing ones."""
    if ":" not in text:
        return command.count("number of tasks", most=MOST_TASKS)(text)
    addresses = tuple(map(address, text.split(",")))
    if len({*addresses}) < len(addresses):
        raise UsageError(f"A task is listed twice in '{text}'; list each once.")
    if zero := [one for one in addresses if one.endswith(":0")]:
        raise UsageError(f"'{zero[0]}' is not the address of a task: its port cannot be 0.")
    return addresses


def address(text: str, given: str = "") -> str:
    """Return `HOST:PORT`. Raise UsageError, about what the user has `given`, for another text."""
    host, _, port = text.strip().rpartition(":")
    inside = host.startswith("[") and host.endswith("]")  # IPv6
    is_port = port.isascii() and port.isdecimal() and int(port) < 2**16
    if not host or (":" in host and not inside) or not is_port:
        form = "PORT or HOST:PORT" if given else "HOST:PORT"
        raise UsageError(
            f"'{given or text}' is not the address of a task; give {form}, up to port 65535."
        )
    return f"{host}:{port}"


def address_to_listen_at(text: str) -> str:
    """Return the `HOST:PORT` to listen at. If only a port is given, the host is 127.0.0.1."""
    is_whole = ":" in text.strip().lstrip(":")
    return address(text if is_whole else f"127.0.0.1:{text.lstrip(':')}", text)


def feed(text: str) -> tuple[str, str]:
    """Return the name and the file in `NAME=FILE`."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise UsageError(f"'{text}' is not a feed; give it as NAME=FILE.npy.")
    return name, file


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the name and the sizes in `NAME=1,224,224,3`; `NAME=` is a scalar."""
    name, equals, dims = text.rpartition("=")
    try:
        sizes = tuple(int(dim) for dim in dims.split(",")) if dims else ()
    except ValueError:
        sizes = (-1,)
    if not (name and equals) or min(sizes, default=0) < 0:
        raise UsageError(
            f"'{text}' is not a shape; give it as NAME=1,224,224,3, or NAME= for a scalar."
        )
    return name, sizes


# Options

OPTIONS: dict[str, dict[str, Any]] = {
    "--batch-size": {
        "default": DEFAULTS.batch_size,
        "type": command.count("batch size"),
        "metavar": "N",
        "help": "rows of data in a step (default: %(default)s)",
    },
    "--batch-sizes": {
        "nargs": "+",
        "default": [*BATCH_SIZES],
        "type": command.count("batch size"),
        "metavar": "N",
        "help": f"rows of data in a step (default: {' '.join(map(str, BATCH_SIZES))})",
    },
    "--devices": {
        "default": DEFAULTS.devices,
        "type": command.count("number of devices", most=64),
        "metavar": "N",
        "help": "split the model over N CPU devices (default: %(default)s)",
    },
    "--cluster": {
        "default": (),
        "type": tasks,
        "metavar": "TASKS",
        "help": "run on N new tasks of this machine, or on workers at HOST:PORT,...",
    },
    "--without": {
        "nargs": "+",
        "default": (),
        "type": command.one_of("graph pass to switch off", tuple(SWITCHES)),
        "metavar": "PASS",
        "help": "switch these graph passes off: grappler, remapper, ...",
    },
    "--experiments": {
        "nargs": "?",
        "const": EXPERIMENTS_S,
        "type": command.count("number of seconds for experiments"),
        "metavar": "SECONDS",
        "help": "run each of the most expensive ops twice in a step, and show how much longer the "
        f"step takes (for SECONDS, default {EXPERIMENTS_S})",
    },
    "--no-values": {
        "dest": "values",
        "action": "store_false",
        "help": "do not show the values of tensors, which need a further step",
    },
    "--data-dir": {
        "metavar": "DIR",
        "help": "folder of the data set (default: $TFLAB_DATA_DIR, else a cache)",
    },
    "--signature": {"metavar": "NAME", "help": "the signature of a SavedModel to run"},
    "--loss": {
        "metavar": "TENSOR",
        "help": "differentiate this tensor with respect to its variables",
    },
    "--feed": {
        "nargs": "+",
        "default": (),
        "type": feed,
        "metavar": "NAME=FILE.npy",
        "help": "feed a tensor from a file; others get seeded random values",
    },
    "--shape": {
        "nargs": "+",
        "default": (),
        "type": shape,
        "metavar": "NAME=1,28,28,1",
        "help": "feed seeded random values of this shape; NAME= is a scalar",
    },
    "--trust": {
        "action": "store_true",
        "help": "run a graph from a file unconfined, with all your rights",
    },
}


def add(parser: Container, *options: str) -> None:
    """Add these options, as the table OPTIONS describes them."""
    for option in options:
        parser.add_argument(option, **OPTIONS[option])


def model(parser: Container, names: Iterable[str]) -> None:
    parser.add_argument(
        "--model",
        default=MODEL,
        metavar="M",
        help=f"{', '.join(names)}, package.module:function, or the path of a saved graph "
        "(default: %(default)s)",
    )


def choice(
    parser: Container, option: str, kind: str, names: Sequence[str], meaning: str = ""
) -> None:
    """Add an option that takes one of these names, by default the first."""
    parser.add_argument(
        option,
        default=names[0],
        choices=names,
        type=command.one_of(kind, names),
        metavar="NAME",
        help=f"{meaning}{', '.join(names)} (default: %(default)s)",
    )


def saved(parser: argparse.ArgumentParser) -> None:
    """Add the options for a graph from a file."""
    group = parser.add_argument_group("for a graph from a file")
    add(group, "--signature", "--loss", "--feed", "--shape", "--trust")


def saved_of(args: argparse.Namespace) -> Saved:
    return Saved(
        signature=args.signature,
        loss=args.loss,
        feeds=tuple(args.feed),
        shapes=tuple(args.shape),
        trust=args.trust,
    )


def check_cluster(args: argparse.Namespace) -> None:
    """Raise UsageError for an option that cannot be combined with --cluster."""
    for option in OF_ONE_PROCESS if args.cluster else ():
        usual = getattr(DEFAULTS, option, ["default"])  # that of --configs
        if getattr(args, option, None) not in (None, usual):
            raise UsageError(f"--cluster cannot be combined with --{option}.")
