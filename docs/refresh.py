"""Put today's output into the documentation: what a page shows is what the program prints.

    TFLAB_DATA_DIR=MNIST python docs/refresh.py [FILE ...]      (default: README*.md and docs/*.md)

The outputs are those with MNIST. tests/project/test_printed_documentation.py compares them.

A block of output stands below a comment that says where it comes from, and what part of it:

    <!-- python -m tflab.lifecycle --stage backward | from: Gradients compared | to: Checked -->

Both `from` and `to` are optional; they are the beginnings of lines, and the second is left out.
The first line of the block is the command, because readers do not see the comment.
If a command no longer prints a block, the page keeps the old one, and a line on stderr names it.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"(<!-- (python -m [^|>]+?)((?: \| \w+: [^|>]+?)*) -->\n```text\n)"
    r"(?:\$ [^\n]+\n)?(.*?)(```\n)",
    re.S,
)


def main() -> None:
    pages = list(map(Path, sys.argv[1:])) or sorted(
        [*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md")]
    )
    for page in pages:
        page.write_text(BLOCK.sub(refreshed, page.read_text()))


def refreshed(block: re.Match[str]) -> str:
    head, command, parts, _, end = block.groups()
    bounds = dict(re.findall(r"\| (\w+): ([^|]+?)(?= \||$)", parts))
    text = excerpt(printed(command), bounds.get("from"), bounds.get("to"))
    if not text:
        print(f"Kept as it was:{parts} of {command}", file=sys.stderr)
        return block.group()
    return f"{head}$ {command}\n{text}\n{end}"


@functools.cache
def printed(command: str) -> str:
    """What a command prints, without spaces at the ends of lines. What `tflab.run` says is in
    standard error, since standard output is the program's."""
    words = shlex.split(command.replace("python", sys.executable, 1))
    variables = {
        "TF_ENABLE_ONEDNN_OPTS": "1",  # the same kernels on every processor
        **os.environ,
        "PYTHONPATH": str(ROOT / "examples"),
    }
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=variables)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}.\n{done.stderr}")
    said = done.stderr if "tflab.run" in command else done.stdout
    return "\n".join(line.rstrip() for line in said.splitlines())


def excerpt(text: str, start: str | None, stop: str | None) -> str:
    """The lines from one of these beginnings to before the other; none where the first is not."""
    lines = text.splitlines()
    first = next(
        (i for i, line in enumerate(lines) if start is None or line.startswith(start)), len(lines)
    )
    last = next(
        (i for i, line in enumerate(lines) if i > first and stop and line.startswith(stop)),
        len(lines),
    )
    return "\n".join(lines[first:last]).strip("\n")


if __name__ == "__main__":
    main()
