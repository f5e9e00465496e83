"""Doctor: each check in a made-up world where something is wrong, and in one where nothing is."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tflab.doctor import __main__ as doctor
from tflab.doctor import checks as checkup
from tflab.doctor import software, surroundings
from tflab.doctor import surroundings as around
from tflab.doctor.checks import NOTE, WRONG, Check, Finding
from tflab.errors import TflabError
from tflab.runtime import child

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REINSTALL = "python -m pip install --force-reinstall -r requirements.txt"

# Python and packages


@pytest.fixture
def installed(monkeypatch):
    """`installed(numpy="2.1")`: these packages in these versions, and no others."""

    def world(needed, **versions):
        monkeypatch.setattr(software, "declared", lambda: needed)
        monkeypatch.setattr(software, "version", versions.get)

    return world


def test_packages_out_of_their_range_are_wrong(installed):
    needed = ["numpy>=2.0,<3", "xprof>=2.22,<3", "rich>=14,<16", "jinja2>=3.1,<4"]
    installed(needed=needed, numpy="2.4.6", xprof="2.20.1", jinja2="not a version")
    assert list(software.needed()) == [
        Finding("Packages", name, found, f'python -m pip install "{name}{range_}"')
        for name, range_, found in (
            ("xprof", ">=2.22,<3", "2.20.1 (required: >=2.22,<3)"),
            ("rich", ">=14,<16", "missing (required: >=14,<16)"),
            ("jinja2", ">=3.1,<4", "not a version (required: >=3.1,<4)"),
        )
    ]


def test_what_a_required_package_misses_is_wrong(installed, monkeypatch):
    installed(needed=["tensorflow>=2.21", "numpy>=2.0"])
    line = (
        "tensorflow 2.21.0 has requirement protobuf<8.0.0,>=6.31.1, but you have protobuf 5.29.5."
    )
    others = "somebody 1.0 requires gizmos, which is not installed."
    done = SimpleNamespace(stdout=f"{line}\n{others}\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert list(software.agreement()) == [
        Finding("Packages", "compatibility", line, checkup.INSTALL)
    ]


XPROF, OLD = ("xprof", "2.24.2"), ("tensorboard-plugin-profile", "2.13.1")


def test_two_packages_that_provide_the_profile_plugin_are_wrong(monkeypatch):
    provided = []
    monkeypatch.setattr(software.metadata, "entry_points", lambda **_: provided)
    for name, number in (XPROF, XPROF):  # an entry may be listed twice
        provided.append(SimpleNamespace(dist=SimpleNamespace(name=name, version=number)))
        assert list(software.profile_plugins()) == []
    provided.append(SimpleNamespace(dist=SimpleNamespace(name=OLD[0], version=OLD[1])))
    assert list(software.profile_plugins()) == [
        Finding(
            "Packages",
            "Profile plugin",
            "tensorboard-plugin-profile 2.13.1 and xprof 2.24.2 provide it and cannot be "
            "installed together",
            "python -m pip uninstall tensorboard-plugin-profile && "
            "python -m pip install --force-reinstall xprof",
        )
    ]


def test_the_ranges_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert list(software.declared()) == project["dependencies"]


def test_the_ranges_of_an_installed_tflab_are_in_its_metadata(monkeypatch, tmp_path):
    own = SimpleNamespace(requires=["numpy<3,>=2.0", 'pytest; extra == "test"'])
    monkeypatch.setattr(software, "PROJECT", tmp_path)
    monkeypatch.setattr(software.metadata, "distribution", {"tflab": own}.__getitem__)
    assert software.declared() == ("numpy<3,>=2.0",)


# TensorFlow and TensorBoard


@pytest.fixture
def answer(monkeypatch):
    """`answer({...})`: what the process of its own comes back with."""

    def answering(answer):
        def call(function, seconds):
            if isinstance(answer, TflabError):
                raise answer
            return answer

        monkeypatch.setattr(child, "call", call)

    return answering


@pytest.fixture
def fake_tensorflow(monkeypatch, tmp_path):
    """`fake_tensorflow("raise ...")`: what stands in the package that a child imports."""

    def write(code):
        (tmp_path / "tensorflow").mkdir()
        (tmp_path / "tensorflow" / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    return write


@pytest.mark.parametrize("driver", [True, False])
@pytest.mark.parametrize("devices", [["/physical_device:CPU:0"], ["/physical_device:GPU:0"]])
def test_only_a_driver_without_a_gpu_is_worth_a_note(
    answer, monkeypatch, tmp_path, driver, devices
):
    monkeypatch.setattr(software, "NVIDIA", tmp_path if driver else tmp_path / "none")
    answer({"devices": devices})
    note = Finding(
        "TensorFlow",
        "GPU",
        "TensorFlow sees none, although an NVIDIA driver is loaded",
        'To use it: python -m pip install "tensorflow[and-cuda]"',
        NOTE,
    )
    assert list(software.tensorflow()) == ([note] if driver and "CPU" in devices[0] else [])


GENCODE = "Detected incompatible Protobuf Gencode/Runtime versions when loading x: gencode 6.31.1"


@pytest.mark.parametrize(
    "code, error, advice",
    [
        (
            "raise ModuleNotFoundError(\"No module named 'absl'\")",
            "ModuleNotFoundError: No module named 'absl'",
            REINSTALL,
        ),
        (
            f"raise TypeError({GENCODE!r})",
            f"TypeError: {GENCODE}",
            "TensorFlow needs a newer protobuf: python -m pip install --upgrade protobuf",
        ),
        (
            "import os; os.kill(os.getpid(), 4)",
            "The process that ran tflab.doctor.software:imported ended with status -4 (SIGILL).",
            "The processor probably lacks instructions (AVX); use another machine.",
        ),
    ],
)
def test_a_tensorflow_that_breaks_is_one_line(fake_tensorflow, code, error, advice):
    fake_tensorflow(code)
    assert list(software.tensorflow()) == [Finding("TensorFlow", "import", error, advice)]


def test_a_tensorflow_that_hangs_is_one_line(fake_tensorflow, monkeypatch):
    monkeypatch.setattr(software, "SECONDS", 1)
    fake_tensorflow("import time; time.sleep(60)")
    assert list(software.tensorflow()) == [
        Finding(
            "TensorFlow",
            "import",
            "The process that ran tflab.doctor.software:imported did not end within 1 s.",
            "Try again when the machine is less busy.",
        )
    ]


@pytest.mark.parametrize(
    "answered, expected",
    [
        ({}, []),
        (
            {"converter_error": "ImportError: no .so"},
            [Finding("TensorBoard", "trace converter", "ImportError: no .so", REINSTALL)],
        ),
        (
            {"plugin_error": "TflabError: gives up"},
            [Finding("TensorBoard", "Profile plugin", "TflabError: gives up", REINSTALL)],
        ),
        (
            {"life_error": "TflabError: it is not installed"},
            [
                Finding(
                    "TensorBoard",
                    "tab Life",
                    "TflabError: it is not installed",
                    "python -m pip install --no-deps -e . in the folder of tflab",
                    NOTE,
                )
            ],
        ),
        (
            TflabError("It did not end within 90 s."),
            [
                Finding(
                    "TensorBoard",
                    "Profile plugin",
                    "It did not end within 90 s.",
                    "Try again when the machine is less busy.",
                )
            ],
        ),
    ],
)
def test_plugin_and_converter_are_told_apart(answer, answered, expected):
    answer(answered)
    assert list(software.profile_plugin()) == expected


@pytest.fixture(scope="module")
def answers():
    """What the processes of their own would find here."""
    return {"imported": software.imported(), "loaded": software.loaded()}


@pytest.mark.tensorflow
def test_what_is_installed_here_loads(answers):
    assert answers["imported"].keys() == {"devices"}
    answers["loaded"].pop("life_error", None)  # a clone need not be installed
    assert answers["loaded"] == {}


# Data


@pytest.fixture
def mnist(monkeypatch, tmp_path):
    """A reader of MNIST that takes a folder with a file `whole` and refuses any other."""

    def read_split(folder, split):
        if not (folder / "whole").exists():
            raise TflabError(f"{folder} lacks whole ({split}).")

    monkeypatch.setattr(around.mnist, "read_split", read_split)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)


PUT = "Put its four files into a folder and set TFLAB_DATA_DIR to it."


def test_mnist_in_the_cache_or_in_the_folder_that_was_given_is_no_problem(
    mnist, tmp_path, monkeypatch
):
    put(tmp_path, "cache/tflab/mnist/whole", "given/whole")
    assert list(around.data()) == []
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path / "given"))
    assert list(around.data()) == []


def test_a_given_folder_without_mnist_is_wrong(mnist, tmp_path, monkeypatch):
    put(tmp_path, "cache/tflab/mnist/whole")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path))
    lacks = f"{tmp_path} lacks whole (train)."
    assert list(around.data()) == [Finding("Data", "MNIST", lacks, f"{PUT} Or unset the variable.")]


def test_mnist_that_is_not_here_is_worth_a_note(mnist):
    found = (
        "not on this machine: the first use downloads it; without a network, other images replace "
        "it"
    )
    assert list(around.data()) == [Finding("Data", "MNIST", found, PUT, NOTE)]


# Surroundings


@pytest.fixture
def variables(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TFLAB_")]:
        monkeypatch.delenv(name)
    return monkeypatch.setenv


def test_a_misspelt_variable_is_told_with_the_right_one(variables):
    assert list(around.variables()) == []
    variables("TFLAB_DATADIR", "/data")
    variables("TFLAB_OFFLINE", "1")
    assert list(around.variables()) == [
        Finding(
            "Variables",
            "TFLAB_DATADIR",
            "tflab has no such variable",
            "Did you mean TFLAB_DATA_DIR? It reads TFLAB_DATA_DIR, TFLAB_OFFLINE, TFLAB_ARTEFACTS.",
            NOTE,
        )
    ]


def test_a_linux_without_landlock_does_not_confine_graphs(monkeypatch):
    monkeypatch.setattr(around.confinement, "is_available", lambda: True)
    assert list(around.system()) == []
    monkeypatch.setattr(around.confinement, "is_available", lambda: False)
    assert list(around.system()) == [
        Finding(
            "System",
            "graphs from files",
            "no Landlock: rules about ops protect your files, but the kernel does not",
            "Use Linux 5.13 or later, or run only graphs that you trust.",
            NOTE,
        )
    ]


def test_folders_that_can_be_written_are_no_problem(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert list(around.folders()) == []


def test_folders_that_cannot_be_written_are_wrong(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "inside"
    monkeypatch.setattr(around, "RUNS", path)
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    found = f"{path} cannot be written: Not a directory"
    assert list(around.folders()) == [
        Finding("Folders", "runs", found, "Use a folder that you may write to, or give --logdir."),
        Finding(
            "Folders", "temporary files", found, "Set TMPDIR to a folder that you may write to."
        ),
    ]


# A logdir


def put(folder: Path, *names: str, content: bytes = b"x") -> Path:
    """The folder, with these files in it."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def problems(folder: Path) -> list[Finding]:
    return list(surroundings.logdir_problems(str(folder)))


def test_traces_in_their_place_are_no_problem(tmp_path):
    put(
        tmp_path,
        "plugins/profile/first/host.xplane.pb",
        "train/plugins/profile/second/one.xplane.pb",
        "train/plugins/profile/second/two.xplane.pb",
    )
    assert problems(tmp_path) == []


def test_traces_out_of_their_place_are_wrong_with_the_way_to_move_them(tmp_path):
    put(tmp_path, "profile/my run/host.xplane.pb")
    where, target = f"'{tmp_path}/profile/my run'", f"'{tmp_path}/plugins/profile/my run'"
    assert problems(tmp_path) == [
        Finding(
            "Logdir",
            "profile/my run",
            "has traces, but not in plugins/profile/<run>: no profile data will be found",
            f"mkdir -p {target} && mv {where}/*.xplane.pb {target}",
        ),
    ]


@pytest.mark.parametrize("place", ["plugins/other/run", "plugins/profile", "profile/plugins/run"])
def test_a_trace_has_one_place_only(tmp_path, place):
    put(tmp_path, f"{place}/host.xplane.pb")
    (finding,) = problems(tmp_path)
    assert (finding.looked_at, finding.verdict) == (place, WRONG)


@pytest.mark.parametrize("deep", ["plugins", "plugins/profile", "plugins/profile/first"])
def test_a_logdir_that_is_too_deep_is_told_with_the_right_one(tmp_path, deep):
    put(tmp_path, "plugins/profile/first/host.xplane.pb")
    (finding,) = problems(tmp_path / deep)
    assert finding.verdict == WRONG
    assert (
        finding.advice
        == f"The logdir is a subfolder of the right one: tensorboard --logdir {tmp_path}"
    )


def test_an_empty_trace_is_wrong(tmp_path):
    put(tmp_path, "plugins/profile/first/host.xplane.pb", content=b"")
    name = "plugins/profile/first/host.xplane.pb"
    assert problems(tmp_path) == [Finding("Logdir", name, "is empty", "Record the trace again.")]


def test_a_cache_older_than_its_trace_is_wrong_and_a_younger_one_fine(tmp_path):
    run = put(tmp_path / "plugins/profile/first", "host.xplane.pb", "ALL_HOSTS.op_stats_v2.pb")
    cache = run / "ALL_HOSTS.op_stats_v2.pb"
    os.utime(cache, (2e9, 2e9))
    assert problems(tmp_path) == []
    os.utime(cache, (1e9, 1e9))
    assert problems(tmp_path) == [
        Finding(
            "Logdir",
            "plugins/profile/first",
            "1 cache older than the trace: Profile may show other numbers",
            f"rm {cache}",
        )
    ]


def test_what_is_no_file_would_make_tensorboard_wait(tmp_path):
    put(tmp_path, "events.out.tfevents.1.vm")
    os.mkfifo(tmp_path / "pipe")
    found = "is not a regular file; TensorBoard would wait for data from it"
    assert problems(tmp_path) == [Finding("Logdir", "pipe", found, f"rm {tmp_path}/pipe")]


def test_an_empty_logdir_is_wrong_and_one_with_event_files_alone_is_fine(tmp_path):
    put(tmp_path, "notes.txt")
    assert problems(tmp_path) == [
        Finding(
            "Logdir",
            str(tmp_path),
            "contains nothing that TensorBoard shows: no event files, no profiles",
            f"Write a run into it: python -m tflab.lifecycle --logdir {tmp_path}",
        )
    ]
    put(tmp_path, "train/events.out.tfevents.1.vm")
    assert problems(tmp_path) == []


@pytest.mark.tensorflow
def test_the_plugin_finds_the_runs_that_are_not_called_misplaced(tmp_path):
    put(
        tmp_path,
        "plugins/profile/first/host.xplane.pb",
        "a/b/plugins/profile/second/host.xplane.pb",
        "profile/third/host.xplane.pb",
        "plugins/other/fourth/host.xplane.pb",
    )
    found = software.profile_plugin_in(str(tmp_path)).generate_runs()
    assert sorted(found) == ["a/b/second", "first"]
    misplaced = [finding.looked_at for finding in problems(tmp_path)]
    assert misplaced == ["plugins/other/fourth", "profile/third"]


# The command

FOUND = (
    Finding("Packages", "xprof", "missing", "Install it."),
    Finding("Data", "MNIST", "not here", "Get it.", NOTE),
)


@pytest.fixture
def world(monkeypatch):
    """`world(findings)`: what all checks find together."""

    def replace_findings(findings):
        monkeypatch.setattr(checkup, "findings", lambda checks: iter([tuple(findings)]))

    return replace_findings


def test_what_is_needed_and_wrong_is_status_1(world, capsys):
    world(FOUND)
    assert doctor.main([]) == 1
    out, err = capsys.readouterr()
    assert [line.rstrip() for line in out.splitlines()] == [
        "",
        "Problems, and what to do about them",
        "  Packages: xprof",
        "      missing",
        "      Install it.",
        "",
        "Notes",
        "  Data: MNIST",
        "      not here",
        "      Get it.",
        "",
        "1 thing is wrong; the lines above say what to do.",
    ]
    assert err == ""


def test_notes_alone_are_status_0(world, capsys):
    world(FOUND[1:])
    assert doctor.main([]) == 0
    assert capsys.readouterr().out.endswith("\nEverything that tflab needs works, with 1 note.\n")


def test_without_problems_it_says_that_all_works(world, capsys):
    world([])
    assert doctor.main([]) == 0
    assert capsys.readouterr().out.strip() == "Everything that tflab needs works."


def test_json_has_every_finding(world, capsys):
    world(FOUND[:1])
    assert doctor.main(["--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "works": False,
        "findings": [
            {
                "subject": "Packages",
                "looked_at": "xprof",
                "found": "missing",
                "advice": "Install it.",
                "verdict": "wrong",
            },
        ],
    }


def test_without_rich_it_is_told_all_the_same(world, capsys, monkeypatch):
    world(FOUND)
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    assert doctor.main([]) == 1
    out = capsys.readouterr().out
    assert "Packages: xprof" in out and "Install it." in out


@pytest.mark.parametrize("needed, verdict", [(True, WRONG), (False, NOTE)])
def test_a_check_that_cannot_be_carried_out_is_a_finding(needed, verdict, monkeypatch):
    def variables():
        yield FOUND[0]
        raise PermissionError("not here\nnor there")

    monkeypatch.setattr(around, "variables", variables)
    assert checkup.carry_out(Check("Variables", "surroundings:variables", needed)) == (
        FOUND[0],
        Finding(
            "Variables",
            "variables",
            "cannot be checked: PermissionError: not here",
            "If everything else works, please report it: it is a bug in tflab.",
            verdict,
        ),
    )


def test_a_check_whose_module_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    (finding,) = checkup.carry_out(Check("Packages", "software:needed"))
    assert finding.verdict == WRONG
    assert finding.advice == ("Install what tflab needs: python -m pip install -r requirements.txt")


def test_a_logdir_that_is_not_there_is_a_wrong_argument(tmp_path, capsys):
    assert doctor.main(["--logdir", str(tmp_path / "none")]) == 2
    assert capsys.readouterr() == (
        "",
        f"tflab: The logdir '{tmp_path / 'none'}' does not exist; give --logdir a folder with one "
        "or several runs."
        "\n",
    )


def test_a_logdir_adds_its_check():
    assert checkup.checks() == checkup.CHECKS
    (more,) = checkup.checks("runs")[len(checkup.CHECKS) :]
    assert (more.function, more.args) == ("surroundings:logdir_problems", ("runs",))


def test_every_check_can_be_carried_out_here(monkeypatch, tmp_path):
    """But for the processes of their own."""

    def call(*_, **__):
        raise TflabError("Not now.")

    monkeypatch.setattr(child, "call", call)
    checks = checkup.checks(str(put(tmp_path, "plugins/profile/a/host.xplane.pb")))
    found = [finding for part in checkup.findings(checks) for finding in part]
    assert not [finding for finding in found if "cannot be checked" in finding.found]
    assert {finding.verdict for finding in found} <= {NOTE, WRONG}
    assert all(finding.advice for finding in found)


@pytest.mark.tensorflow
def test_the_whole_of_it_ends_with_a_verdict(answers, capsys, monkeypatch):
    monkeypatch.setattr(software, "answer_of", answers.__getitem__)
    status = doctor.main(["--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["works"] == (status == 0)
