"""Outputs in the documentation are those that the commands print today, numbers and times aside."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from tests.commands import run_here
from tflab.__main__ import module_of

# The pages show outputs with MNIST.
pytestmark = [pytest.mark.tensorflow, pytest.mark.mnist]

ROOT = Path(__file__).parents[2]
REFRESH = runpy.run_path(str(ROOT / "docs" / "refresh.py"))
# Of these stages the order of the rows does not depend on times, and only of gradients that are
# compared with finite differences a name depends on rounding.
UNTIMED = re.compile(r"--stage (frontend|backward|placement)\b")
ROUNDED = "from: Gradients compared"
NUMBERED = "tests.graphs:lstm"  # Keras counts its layers in a process
BLOCKS = [
    pytest.param(*block.groups(), id=f"{page.name} {block[2].removeprefix('python -m tflab.')}")
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for block in REFRESH["BLOCK"].finditer(page.read_text())
    if UNTIMED.search(block[2]) and ROUNDED not in block[3] and NUMBERED not in block[2]
]
ADDRESS = re.compile(r"(?m)^ +[0-9a-f]+(?= [0-9a-f]{2,} )")  # of an instruction: processors differ
NUMBER = re.compile(r"-?\d[\d,.]*(e[-+]\d+)?( (ns|us|ms|s|B|KiB|MiB|GiB|%)(?!\w))?")


def words_of(text):
    """The lines without numbers, rules and the spaces between columns."""
    lines = (NUMBER.sub("#", ADDRESS.sub("#", line)) for line in text.splitlines())
    return [re.sub(r"[─\s]+", " ", line).strip() for line in lines]


@pytest.mark.parametrize(("head", "command", "parts", "content", "end"), BLOCKS)
def test_a_page_shows_what_the_command_prints(
    head, command, parts, content, end, monkeypatch, whole_walks
):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    _, _, name, *words = shlex.split(command)
    done = run_here(module_of(name.removeprefix("tflab.")).main, *words, folder=ROOT)
    assert done.returncode == 0, done.stderr
    bounds = dict(re.findall(r"\| (\w+): ([^|]+?)(?= \||$)", parts))
    shown = REFRESH["excerpt"](done.stdout, bounds.get("from"), bounds.get("to"))
    assert words_of(shown) == words_of(content), f"Run `make docs` to refresh {head}"
