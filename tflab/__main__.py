"""`python -m tflab COMMAND ...`: the commands, a line each."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from tflab import __version__
from tflab.cli import command, terminal
from tflab.errors import UsageError
from tflab.escaping import visible

COMMANDS = {
    "lifecycle": "follow a graph through the four stages of its life",
    "train": "train a model, with curves, images and checkpoints",
    "compare": "what the ops of a step cost at several batch sizes",
    "follow": "one node through every stage",
    "report": "the whole lab as one page",
    "run": "your own program, unchanged: where its time went",
    "explore": "a local page: edit the program, and see its stages move",
    "convert": "traces recorded anywhere, for TensorBoard or Perfetto",
    "worker": "a task of a cluster, for other machines",
    "doctor": "what does not work here, and what to do about it",
}


def main(argv: Sequence[str] | None = None) -> int:
    sys.path.insert(0, "")  # as `python -m` has it: models of the folder one works in are found
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        return command.run(usage)
    if name == "--version":
        print(f"tflab {__version__}")
        return 0
    try:
        command.one_of("command", list(COMMANDS))(name)
    except UsageError as error:
        terminal.say(f"tflab: {visible(str(error))}", sys.stderr)
        return error.status
    return module_of(name).main(rest)


def module_of(name: str) -> Any:
    """Import the module of a command; for a package, import its `__main__`."""
    module = importlib.import_module(f"tflab.{name}")
    is_package = hasattr(module, "__path__")
    return importlib.import_module(f"tflab.{name}.__main__") if is_package else module


def usage() -> int:
    terminal.say("usage: python -m tflab COMMAND ...  (COMMAND --help tells more; --version)\n")
    for name, line in COMMANDS.items():
        terminal.say(f"  {name:<12}{line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
