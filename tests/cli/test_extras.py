"""Extras: what needs a package that is not installed says which extra has it, before it starts."""

import pytest

from tests.approval import refused
from tflab.cli import environment
from tflab.compare import __main__ as compare
from tflab.datasets import mnist
from tflab.explore import __main__ as explore
from tflab.report import __main__ as report
from tflab.report import storage
from tflab.run import __main__ as run

RUN = "packages that are not installed. Run: python -m pip install 'tflab[report]'"


@pytest.fixture
def without_extras(monkeypatch):
    monkeypatch.setattr(environment, "find_spec", lambda name: None)


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
    assert refused(mnist.stand_in, "test") == (
        "TflabError: There is no MNIST (set TFLAB_DATA_DIR to a folder with its four files), and "
        f"the stand-in needs {RUN}"
    )


def test_a_logdir_without_its_tab_says_why(without_extras, tmp_path):
    said = storage.keep(tmp_path, 3, lambda: pytest.fail("nothing is drawn"))
    assert said == f"TensorBoard's tab Life needs {RUN}"
    assert not list(tmp_path.iterdir())


def test_the_extra_of_the_first_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(environment, "find_spec", lambda name: None if "elf" in name else name)
    assert environment.missing("igraph", "capstone") == ""
    assert environment.missing("igraph", "elftools") == environment.INSTALL.format("code")
