"""Project: promises about the repository itself, which no module can keep alone."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.commands import run_python
from tflab.__main__ import COMMANDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

WITHOUT_TENSORFLOW = (
    *(
        f"{package}.{file.stem}"
        for package in ("analysis", "views", "exporters", "convert")
        for file in (ROOT / "tflab" / package).glob("*.py")
        if file.stem != "tensorboard"  # which writes event files
    ),
    *("lifecycle", "records", "units", "runtime.trace", "follow.node_history"),
    *("report.drawing", "report.graph_states", "compare", "compare.saved", "compare.findings"),
)

HELP = """
import contextlib, importlib, io, json, sys
from tflab import __main__
heavy = {"importlib.metadata", "jinja2", "matplotlib", "numpy", "rich", "tensorflow"}
found = {}
for name in __main__.COMMANDS:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            status = __main__.main([name, "--help"])
        except SystemExit as exit:
            status = exit.code
    usage, lines = out.getvalue().partition(" [")[0], out.getvalue().count("\\n")
    found[name] = [status, usage, lines <= 45, sorted(heavy & {*sys.modules})]
print(json.dumps(found))
"""


def test_what_needs_no_tensorflow_does_not_import_it():
    imports = "".join(f"import tflab.{module}\n" for module in WITHOUT_TENSORFLOW)
    done = run_python(ROOT, "-c", f"{imports}import sys; print('tensorflow' in sys.modules)")
    assert done.stdout == "False\n"


def test_every_command_answers_help_on_one_screen_and_imports_nothing_slow():
    assert json.loads(run_python(ROOT, "-c", HELP, COLUMNS="100").stdout) == {
        name: [0, f"usage: python -m tflab.{name}", True, []] for name in COMMANDS
    }


MACHINE_PATH = re.compile(r"(?<![\w.~}])/(?:work|home|root|Users|tmp)/\w.*")


def test_no_file_knows_the_machine_it_was_written_on():
    """Neither one that is in the repository nor one that is about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    files = [file for name in done.stdout.splitlines() if (file := ROOT / name).is_file()]
    found = {file.name: MACHINE_PATH.findall(file.read_text(errors="replace")) for file in files}
    assert {name: paths for name, paths in found.items() if paths} == {}
