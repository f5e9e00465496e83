"""Doctor: each check in a made-up world where something is wrong, and in one where nothing is."""

import importlib.util
from importlib import metadata
from types import SimpleNamespace

import pytest

from tests.approval import approve
from tflab import doctor
from tflab.datasets import mnist
from tflab.doctor import PUT, Check
from tflab.errors import TflabError
from tflab.runtime import processes

pytestmark = pytest.mark.slow

LOADS, FILES = "TensorFlow loads", "its files, byte for byte"
OF_EXTRAS = (
    *(("xprof>=2.22,<3", "profile"), ("igraph>=0.11", "report"), ("capstone>=5", "code")),
    ("pytest>=8", "test"),
)


def test_each_package_is_compared_with_its_range(monkeypatch):
    versions = {"numpy": "2.4.6", "xprof": "2.20.1", "igraph": "1.0"}
    lines = ("numpy>=2,<3", "rich>=14", *(f"{of}; extra == '{extra}'" for of, extra in OF_EXTRAS))
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    monkeypatch.setattr(doctor.environment, "version", versions.get)
    more = "For listings of machine instructions: python -m pip install 'tflab[code]'"
    old = 'python -m pip install "xprof>=2.22,<3"'
    assert list(doctor.packages()) == [
        Check("numpy", "2.4.6", "version >=2,<3", True),
        Check("rich", "missing", "version >=14", False, 'python -m pip install "rich>=14"'),
        Check("xprof [profile]", "2.20.1", "version >=2.22,<3", False, old),
        Check("igraph [report]", "1.0", "version >=0.11", True),
        Check("capstone [code]", "not installed", "version >=5", True, more),
    ]


def test_every_package_of_an_extra_is_known_by_its_import():
    extras = doctor.environment.EXTRAS
    declared = [line for line in metadata.requires("tflab") if "extra ==" in line]
    for extra, what in doctor.EXTRAS.items():
        assert what
        assert all(importlib.util.find_spec(package) for package in extras[extra])
        own = [line for line in declared if f'"{extra}"' in line]
        assert len(own) == len({*extras[extra]} - {"PIL"})  # Matplotlib brings it


@pytest.fixture
def answer(monkeypatch):
    """`answer({...})`: the result of a process of its own, or its error."""

    def answering(result):
        def call(function, seconds):
            if isinstance(result, TflabError):
                raise result
            return result

        monkeypatch.setattr(processes, "call", call)

    return answering


def test_devices_are_listed_and_a_gpu_that_is_not_seen_has_a_remedy(answer, monkeypatch, tmp_path):
    answer({"devices": ["CPU:0"]})
    monkeypatch.setattr(doctor, "NVIDIA", tmp_path / "none")
    assert doctor.devices() == Check("devices", "CPU:0", LOADS, True)
    monkeypatch.setattr(doctor, "NVIDIA", tmp_path)
    remedy = 'To use the GPU: python -m pip install "tensorflow[and-cuda]"'
    assert doctor.devices() == Check("devices", "CPU:0", LOADS, True, remedy)
    answer({"devices": ["CPU:0", "GPU:0"]})
    assert doctor.devices() == Check("devices", "CPU:0, GPU:0", LOADS, True)
    answer(processes.LateError("late"))
    assert not doctor.status(doctor.devices())  # neither ok nor wrong


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
    assert doctor.devices() == Check("devices", found, LOADS, False, doctor.INSTALL)


def test_mnist_is_looked_for_where_the_commands_look(monkeypatch, tmp_path):
    def read_split(folder, split):
        if not (folder / "whole").exists():
            raise TflabError(f"{folder} lacks whole ({split}).")

    monkeypatch.setattr(mnist, "read_split", read_split)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)
    absent = doctor.mnist()
    assert (absent.found, absent.works, doctor.status(absent)) == (doctor.NOT_HERE, True, "")
    cache = tmp_path / "cache" / "tflab" / "mnist"
    cache.mkdir(parents=True)
    (cache / "whole").touch()
    assert doctor.mnist() == Check("MNIST", str(cache), FILES, True)
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path))
    lacks = f"{tmp_path} lacks whole (train)."
    assert doctor.mnist() == Check("MNIST", lacks, FILES, False, f"{PUT} Or unset the variable.")


def test_one_package_provides_the_profile_plugin(monkeypatch, answer):
    entries = []

    def provide(name, version):
        entries.append(SimpleNamespace(dist=SimpleNamespace(name=name, version=version)))

    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: entries)
    alone = "loads, from one package"
    assert doctor.profile_plugin() == Check("Profile plugin", doctor.ABSENT, alone, True)
    provide("xprof", "2.24.2")
    provide("xprof", "2.24.2")  # an entry may be listed twice
    answer({})
    assert doctor.profile_plugin() == Check("Profile plugin", "xprof 2.24.2", alone, True)
    answer({"error": "ImportError: no .so"})
    failed = Check("Profile plugin", "ImportError: no .so", alone, False, doctor.INSTALL)
    assert doctor.profile_plugin() == failed
    provide("tensorboard-plugin-profile", "2.13.1")
    both = "tensorboard-plugin-profile 2.13.1 and xprof 2.24.2"
    assert doctor.profile_plugin() == Check("Profile plugin", both, alone, False, doctor.REPLACE)


@pytest.mark.tensorflow
def test_what_is_installed_here_loads():
    assert doctor.imported()["devices"][0] == "CPU:0"
    assert doctor.loaded() == {}


def test_the_table_has_every_check_and_the_remedies_are_below_it(monkeypatch, capsys):
    wrong = Check("rich", "missing", ">=14", False, "Install it.")
    monkeypatch.setattr(doctor, "packages", lambda: iter((wrong,)))
    monkeypatch.setattr(doctor, "devices", lambda: Check("devices", "CPU:0", "", True))
    for name in ("mnist", "profile_plugin"):
        monkeypatch.setattr(doctor, name, lambda: Check("more", "x", "", True))
    assert doctor.main([]) == 1
    out, err = capsys.readouterr()
    approve("doctor.txt", out)
    assert err == ""
