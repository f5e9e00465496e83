"""Doctor: each check in a made-up world where something is wrong, and in one where nothing is."""

import importlib.util
from importlib import metadata

import pytest

from tests.approval import approve
from tflab import doctor
from tflab.datasets import mnist
from tflab.doctor import Check
from tflab.errors import TflabError

pytestmark = pytest.mark.slow

OF_EXTRAS = (
    *(("xprof>=2.22,<3", "profile"), ("igraph>=0.11", "report"), ("capstone>=5", "code")),
    ("pytest>=8", "test"),
)


def said(checks):
    """One line for each check, with what to do."""
    for check in checks:
        status = doctor.status(check) or "neither ok nor wrong"
        yield f"{check.what}: {status}; {check.found} ({check.checked}) {check.remedy}"


def test_each_package_is_compared_with_its_range(monkeypatch):
    versions = {"numpy": "2.4.6", "xprof": "2.20.1", "igraph": "1.0"}
    lines = ("numpy>=2,<3", "rich>=14", *(f"{of}; extra == '{extra}'" for of, extra in OF_EXTRAS))
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    monkeypatch.setattr(doctor.environment, "version", versions.get)
    approve("doctor-packages.txt", "\n".join(said(doctor.packages())))


def test_every_package_of_an_extra_is_known_by_its_import():
    extras = doctor.environment.EXTRAS
    declared = [line for line in metadata.requires("tflab") if "extra ==" in line]
    for extra, what in doctor.EXTRAS.items():
        assert what
        assert all(importlib.util.find_spec(package) for package in extras[extra])
        own = [line for line in declared if f'"{extra}"' in line]
        assert len(own) == len({*extras[extra]} - {"PIL"})  # Matplotlib brings it


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("raise ModuleNotFoundError('No absl')", "status 1: ModuleNotFoundError: No absl"),
        ("import os; os.kill(os.getpid(), 4)", "status -4 (SIGILL)."),
    ],
)
def test_a_tensorflow_that_does_not_load_is_one_line(monkeypatch, tmp_path, code, error):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    found = f"The process that ran tflab.doctor:imported ended with {error}"
    expected = Check("devices", found, "loads", False, doctor.INSTALL)
    assert doctor.loads("devices", "imported") == expected


def test_mnist_is_looked_for_where_the_commands_look(monkeypatch, tmp_path):
    def read_split(folder, split):
        if not (folder / "whole").exists():
            raise TflabError(f"{folder} lacks whole ({split}).")

    monkeypatch.setattr(mnist, "read_split", read_split)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)
    checks = [doctor.mnist()]
    cache = tmp_path / "cache" / "tflab" / "mnist"
    cache.mkdir(parents=True)
    (cache / "whole").touch()
    checks.append(doctor.mnist())
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path))
    checks.append(doctor.mnist())
    approve("doctor-mnist.txt", "\n".join(said(checks)).replace(str(tmp_path), "FOLDER"))


@pytest.mark.tensorflow
def test_what_is_installed_here_loads():
    assert doctor.imported()[0] == "CPU:0"
    assert doctor.plugins()[0].startswith("xprof 2.")


def test_the_table_has_every_check_and_the_remedies_are_below_it(monkeypatch, capsys):
    wrong = Check("rich", "It is missing.", ">=14", False, "Install it.")
    monkeypatch.setattr(doctor, "packages", lambda: iter((wrong,)))
    monkeypatch.setattr(doctor, "loads", lambda what, _: Check(what, "x", "", True))
    monkeypatch.setattr(doctor, "mnist", lambda: Check("MNIST", "x", "", True))
    monkeypatch.setattr(doctor.environment, "version", {"xprof": "2.24.2"}.get)
    assert doctor.main([]) == 1
    out, err = capsys.readouterr()
    approve("doctor.txt", out)
    assert err == ""
