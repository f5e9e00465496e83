"""Extras: what needs a package that is not installed says which extra has it, before it starts."""

import importlib.util
import re
from pathlib import Path

import pytest

from tflab.cli import environment
from tflab.compare import __main__ as compare
from tflab.datasets import mnist
from tflab.errors import TflabError
from tflab.explore import __main__ as explore
from tflab.report import __main__ as report
from tflab.report import storage
from tflab.run import __main__ as run

ROOT = Path(__file__).parents[2]
RUN = "packages that are not installed. Run: python -m pip install 'tflab[report]'"
OWN = re.compile(
    r"^(?:import|from) (xprof|matplotlib|igraph|sklearn|PIL|capstone|elftools)\b", re.M
)


@pytest.fixture
def without_extras(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_a_command_names_the_extra_in_one_sentence(without_extras, capsys):
    for main, args, what in (
        (compare.main, ["--plots", "new"], "--plots"),
        (report.main, [], "The report"),
        (explore.main, ["--no-browser"], "The live page"),
        (run.main, ["--html", "new.html", __file__], "--html"),
    ):
        assert main(args) == 1
        assert capsys.readouterr().err.split() == f"tflab: {what} needs {RUN}".split()


def test_without_mnist_and_its_stand_in_both_remedies_are_named(without_extras):
    with pytest.raises(TflabError) as error:
        mnist.stand_in("test")
    assert str(error.value) == (
        "There is no MNIST (set TFLAB_DATA_DIR to a folder with its four files), and the stand-in "
        f"needs {RUN}"
    )


def test_a_logdir_without_its_tab_says_why(without_extras, tmp_path):
    said = storage.keep(tmp_path, 3, lambda: pytest.fail("nothing is drawn"))
    assert said == f"TensorBoard's tab Life needs {RUN}"
    assert not list(tmp_path.iterdir())


def test_the_extra_of_the_first_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if "elf" in name else name)
    assert environment.missing("igraph", "capstone") == ""
    assert environment.missing("igraph", "elftools") == environment.installing("code")


def test_only_modules_that_draw_import_a_package_of_an_extra_when_they_are_imported():
    """What imports the plots is imported by the report alone, which has asked for its extra."""
    found = {
        str(path.relative_to(ROOT / "tflab").parent)
        for path in (ROOT / "tflab").rglob("*.py")
        if OWN.search(text := path.read_text()) or re.search(r"^from.* import .*plots", text, re.M)
    }
    assert found == {"exporters/plots", "report"}
