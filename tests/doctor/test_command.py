"""Doctor: each check in a made-up world where something is wrong, and in one where nothing is."""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tflab.doctor import __main__ as doctor
from tflab.doctor import checks as checkup
from tflab.doctor import data, logdir, packages, runtime
from tflab.doctor import surroundings as around
from tflab.doctor.checks import FINE, NOTE, WRONG, Check, Finding
from tflab.errors import TflabError
from tflab.runtime import child

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REINSTALL = "python -m pip install --force-reinstall -r requirements.txt"

# Python and packages


@pytest.fixture
def installed(monkeypatch):
    """`installed(numpy="2.1")`: these packages in these versions, and no others."""

    def world(python=">=3.10,<3.14", needed=(), others=(), requires=None, **versions):
        declared = packages.Declared(python, tuple(needed), tuple(others))
        monkeypatch.setattr(packages, "declared", lambda: declared)
        monkeypatch.setattr(packages, "version", versions.get)
        monkeypatch.setattr(packages, "requires", lambda name: (requires or {}).get(name, []))

    return world


def test_python_is_held_against_the_range(installed, monkeypatch):
    installed()
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    monkeypatch.setattr(packages.platform, "python_version", lambda: "3.12.1")
    state = "3.12.1 at /usr/bin/python3 (asked for: >=3.10,<3.14)"
    assert list(packages.python()) == [Finding("Python", "version", state)]
    monkeypatch.setattr(packages.platform, "python_version", lambda: "3.9.2")
    assert list(packages.python()) == [
        Finding(
            "Python",
            "version",
            "3.9.2 at /usr/bin/python3 (asked for: >=3.10,<3.14)",
            WRONG,
            "Use a Python that is >=3.10,<3.14: make PYTHON=python3.12 lab",
        )
    ]


def test_packages_are_held_against_their_ranges(installed):
    installed(
        needed=["numpy>=2.0,<3", "xprof>=2.22,<3", "rich>=14,<16", "jinja2>=3.1,<4"],
        numpy="2.4.6",
        xprof="2.20.1",
        jinja2="not a version",
    )
    assert list(packages.needed()) == [
        Finding("Packages", "numpy", "2.4.6 (asked for: >=2.0,<3)"),
        Finding(
            "Packages",
            "xprof",
            "2.20.1 (asked for: >=2.22,<3)",
            WRONG,
            'python -m pip install "xprof>=2.22,<3"',
        ),
        Finding(
            "Packages",
            "rich",
            "missing (asked for: >=14,<16)",
            WRONG,
            'python -m pip install "rich>=14,<16"',
        ),
        Finding(
            "Packages",
            "jinja2",
            "not a version (asked for: >=3.1,<4)",
            WRONG,
            'python -m pip install "jinja2>=3.1,<4"',
        ),
    ]


def test_what_only_tests_want_is_worth_a_note(installed):
    installed(others=["mypy>=1.14,<3"])
    assert list(packages.others()) == [
        Finding(
            "Packages",
            "mypy",
            "missing (asked for: >=1.14,<3)",
            NOTE,
            'python -m pip install "mypy>=1.14,<3"',
        )
    ]


AGREED = Finding("Packages", "their agreement", "2 requirements of one another are met")


def test_packages_that_agree_are_one_line(installed):
    installed(
        needed=["tensorflow>=2.21"],
        requires={
            "tensorflow": [
                "protobuf<8.0.0,>=6.31.1",
                "numpy>=1.26",
                'pywin32>=1; sys_platform == "win32"',
                'nvidia-cudnn>=9; extra == "and-cuda"',
            ]
        },
        tensorflow="2.21.0",
        protobuf="7.36.2",
        numpy="2.4.6",
        tensorboard="2.21.4",
    )
    assert list(packages.agreement()) == [AGREED]


def test_a_protobuf_that_tensorflow_does_not_take_is_wrong(installed):
    installed(
        needed=["tensorflow>=2.21"],
        requires={"tensorflow": ["protobuf<8.0.0,>=6.31.1", "keras>=3", "numpy>=1.26", "rich>=14"]},
        tensorflow="2.21.0",
        protobuf="5.29.5",
        numpy="2.4.6",
        rich="15.0",
    )
    assert list(packages.agreement()) == [
        Finding(
            "Packages",
            "tensorflow with protobuf",
            "protobuf is 5.29.5; tensorflow 2.21.0 asks for <8.0.0,>=6.31.1",
            WRONG,
            'python -m pip install "protobuf<8.0.0,>=6.31.1"',
        ),
        Finding(
            "Packages",
            "tensorflow with keras",
            "keras is missing; tensorflow 2.21.0 asks for >=3",
            WRONG,
            'python -m pip install "keras>=3"',
        ),
        AGREED,
    ]


def test_tensorboard_of_another_minor_version_is_worth_a_note(installed):
    installed(tensorflow="2.21.0", tensorboard="2.20.0")
    assert list(packages.agreement())[1:] == [
        Finding(
            "Packages",
            "tensorflow with tensorboard",
            "tensorflow 2.21.0 and tensorboard 2.20.0 are of different minor versions",
            NOTE,
            "Mostly that works. If tensorboard shows nothing: "
            'python -m pip install "tensorboard==2.21.*"',
        )
    ]


@pytest.mark.parametrize(
    "brought, expected",
    [
        (
            [("xprof", "2.24.2")],
            Finding("Packages", "Profile plugin", "brought by xprof 2.24.2"),
        ),
        (
            [("xprof", "2.24.2"), ("tensorboard-plugin-profile", "2.13.1")],
            Finding(
                "Packages",
                "Profile plugin",
                "brought by tensorboard-plugin-profile 2.13.1 and xprof 2.24.2: TensorBoard takes "
                "one of them, and they do not mix",
                WRONG,
                "python -m pip uninstall tensorboard-plugin-profile && "
                "python -m pip install --force-reinstall xprof",
            ),
        ),
        (
            [],
            Finding(
                "Packages",
                "Profile plugin",
                "brought by no package: TensorBoard has no Profile tab",
                WRONG,
                "python -m pip install --force-reinstall xprof",
            ),
        ),
    ],
)
def test_the_profile_plugin_comes_from_one_package(brought, expected, monkeypatch):
    entries = [
        SimpleNamespace(dist=SimpleNamespace(name=name, version=number)) for name, number in brought
    ]
    monkeypatch.setattr(packages.metadata, "entry_points", lambda **_: entries)
    assert list(packages.profile_plugins()) == [expected]


def test_the_ranges_are_those_of_the_project():
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = packages.declared()
    assert declared.python == project["requires-python"]
    assert list(declared.needed) == project["dependencies"]
    assert {line.partition(">=")[0] for line in declared.others} >= {"pytest", "mypy"}


def test_the_ranges_of_an_installed_tflab_are_in_its_metadata(monkeypatch, tmp_path):
    own = SimpleNamespace(
        requires=["numpy<3,>=2.0", 'pytest; extra == "test"'],
        metadata={"Requires-Python": "<3.14,>=3.10"},
    )
    monkeypatch.setattr(packages, "PROJECT", tmp_path)
    monkeypatch.setattr(packages.metadata, "distribution", {"tflab": own}.__getitem__)
    assert packages.declared() == packages.Declared("<3.14,>=3.10", ("numpy<3,>=2.0",), ())


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
def no_nvidia(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "NVIDIA", tmp_path / "none")


@pytest.fixture
def fake_tensorflow(monkeypatch, tmp_path):
    """`fake_tensorflow("raise ...")`: what stands in the package that a child imports."""

    def write(code):
        (tmp_path / "tensorflow").mkdir()
        (tmp_path / "tensorflow" / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)

    return write


def test_the_devices_that_tensorflow_sees_are_told(answer, no_nvidia):
    answer({"seconds": 2.34, "devices": [("CPU:0", "2 processors")]})
    assert list(runtime.devices()) == [
        Finding("TensorFlow", "import", "works, in 2.3 s"),
        Finding("TensorFlow", "CPU:0", "2 processors"),
        Finding("TensorFlow", "GPU", "none; everything but --configs gpu works without one"),
    ]


def test_a_gpu_that_tensorflow_sees_needs_no_further_word(answer):
    answer({"seconds": 2.34, "devices": [("CPU:0", "2 processors"), ("GPU:0", "NVIDIA A100")]})
    assert list(runtime.devices())[2:] == [Finding("TensorFlow", "GPU:0", "NVIDIA A100")]


def test_a_driver_without_a_gpu_is_worth_a_note(answer, monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "NVIDIA", tmp_path)
    answer({"seconds": 2.34, "devices": []})
    assert list(runtime.devices())[1:] == [
        Finding(
            "TensorFlow",
            "GPU",
            "none that TensorFlow can use, though there is a driver of NVIDIA's",
            NOTE,
            'For steps on it: python -m pip install "tensorflow[and-cuda]"',
        )
    ]


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
            "TensorFlow was made for a newer protobuf: python -m pip install --upgrade protobuf",
        ),
        (
            "import os; os.kill(os.getpid(), 4)",
            "The process that ran tflab.doctor.runtime:imported ended with status -4 (SIGILL).",
            "Most likely the processor lacks instructions (AVX); run it on another machine.",
        ),
    ],
)
def test_a_tensorflow_that_breaks_is_one_line(fake_tensorflow, code, error, advice):
    fake_tensorflow(code)
    assert list(runtime.devices()) == [Finding("TensorFlow", "import", error, WRONG, advice)]


def test_a_tensorflow_that_hangs_is_one_line(fake_tensorflow, monkeypatch):
    monkeypatch.setattr(runtime, "SECONDS", 1)
    fake_tensorflow("import time; time.sleep(60)")
    assert list(runtime.devices()) == [
        Finding(
            "TensorFlow",
            "import",
            "The process that ran tflab.doctor.runtime:imported did not end within 1 s.",
            WRONG,
            "Try again when the machine is less busy.",
        )
    ]


LOADS = Finding("TensorBoard", "Profile plugin", "loads")


@pytest.mark.parametrize(
    "answered, expected",
    [
        (
            {"tools": 8},
            [LOADS, Finding("TensorBoard", "trace converter", "works, with 8 tools")],
        ),
        (
            {"converter_error": "ImportError: no .so"},
            [
                LOADS,
                Finding("TensorBoard", "trace converter", "ImportError: no .so", WRONG, REINSTALL),
            ],
        ),
        (
            {"plugin_error": "TflabError: gives up", "tools": 8},
            [
                Finding("TensorBoard", "Profile plugin", "TflabError: gives up", WRONG, REINSTALL),
                Finding("TensorBoard", "trace converter", "works, with 8 tools"),
            ],
        ),
        (
            TflabError("It did not end within 90 s."),
            [
                Finding(
                    "TensorBoard",
                    "Profile plugin",
                    "It did not end within 90 s.",
                    WRONG,
                    "Try again when the machine is less busy.",
                )
            ],
        ),
    ],
)
def test_plugin_and_converter_are_told_apart(answer, answered, expected):
    answer(answered)
    assert list(runtime.profile_plugin()) == expected


@pytest.mark.tensorflow
def test_what_is_installed_here_loads():
    assert runtime.answer_of("imported").keys() == {"seconds", "devices"}
    assert runtime.answer_of("loaded").keys() == {"tools"}


# Data


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """A data set whose folder holds a file `whole`; the others are refused."""

    def read_split(folder, split):
        if not (folder / "whole").exists():
            raise TflabError(f"{folder} lacks whole ({split}).")

    monkeypatch.setitem(sys.modules, "made_up", SimpleNamespace(read_split=read_split))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TFLAB_DATA_DIR", raising=False)
    monkeypatch.delenv("TFLAB_OFFLINE", raising=False)
    known = data.Known(
        name="MADE-UP",
        module="made_up",
        cache="made",
        files="the file whole",
        download="1 MB from example.org",
        stand_in="zeros",
        insists=True,
    )
    monkeypatch.setattr(data, "KNOWN", (known,))
    return known


PUT = "Put the file whole into a folder and set TFLAB_DATA_DIR to it."


def set_up(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "whole").touch()
    return folder


def test_data_in_the_folder_that_was_given_are_read(made_up, tmp_path, monkeypatch):
    given = set_up(tmp_path / "given")
    monkeypatch.setenv("TFLAB_DATA_DIR", str(given))
    assert list(data.sets()) == [Finding("Data", "MADE-UP", f"in {given}, as published")]


def test_data_in_the_cache_are_read(made_up, tmp_path):
    cached = set_up(tmp_path / "cache" / "tflab" / "made")
    assert list(data.sets()) == [Finding("Data", "MADE-UP", f"in {cached}, as published")]


def test_a_given_folder_without_the_data_is_wrong_where_nothing_takes_its_place(
    made_up, tmp_path, monkeypatch
):
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path))
    lacks = f"{tmp_path} lacks whole (train)."
    assert list(data.sets()) == [Finding("Data", "MADE-UP", lacks, WRONG, f"{PUT} Or unset it.")]


def test_a_given_folder_may_be_there_for_other_data(made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "KNOWN", (replace(made_up, insists=False),))
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path))
    cached = set_up(tmp_path / "cache" / "tflab" / "made")
    assert list(data.sets()) == [Finding("Data", "MADE-UP", f"in {cached}, as published")]


def test_a_given_folder_that_is_not_there_is_wrong(made_up, tmp_path, monkeypatch):
    monkeypatch.setenv("TFLAB_DATA_DIR", str(tmp_path / "none"))
    state = (
        f"{tmp_path / 'none'} (from TFLAB_DATA_DIR) cannot be read: No such file or directory; "
        "it should be a folder with the file whole."
    )
    assert list(data.sets()) == [Finding("Data", "MADE-UP", state, WRONG, PUT)]


def test_data_that_are_not_here_would_be_downloaded(made_up):
    assert list(data.sets()) == [
        Finding(
            "Data",
            "MADE-UP",
            "not here: the first use downloads 1 MB from example.org",
            NOTE,
            f"Without a network, zeros stand in. {PUT}",
        )
    ]


def test_offline_the_stand_in_is_named(made_up, monkeypatch):
    monkeypatch.setenv("TFLAB_OFFLINE", "1")
    assert list(data.sets()) == [
        Finding(
            "Data",
            "MADE-UP",
            "not here, and TFLAB_OFFLINE forbids a download: zeros stand in",
            NOTE,
            PUT,
        )
    ]


@pytest.mark.parametrize("known", data.KNOWN, ids=lambda known: known.name)
def test_every_known_data_set_refuses_an_empty_folder(known, tmp_path):
    assert data.reason_unreadable(known, tmp_path).startswith(f"{tmp_path} lacks ")


# Surroundings


@pytest.fixture
def variables(monkeypatch):
    for name in [name for name in os.environ if name.startswith("TFLAB_")]:
        monkeypatch.delenv(name)
    return monkeypatch.setenv


def test_no_variables_are_fine(variables):
    (finding,) = around.variables()
    assert finding == Finding("Variables", "TFLAB_...", "none is set, and none has to be")


def test_a_misspelt_variable_is_told_with_the_right_one(variables):
    variables("TFLAB_DATADIR", "/data")
    variables("TFLAB_OFFLINE", "1")
    assert list(around.variables()) == [
        Finding(
            "Variables",
            "TFLAB_DATADIR",
            "tflab knows no such variable",
            NOTE,
            "Did you mean TFLAB_DATA_DIR? It reads TFLAB_DATA_DIR, TFLAB_OFFLINE, TFLAB_ARTEFACTS.",
        ),
        Finding("Variables", "TFLAB_OFFLINE", "1 (forbids downloads if it is not 0)"),
    ]


@pytest.fixture
def free(monkeypatch):
    def bytes_free(count):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=count))

    return bytes_free


def test_folders_that_can_be_written_tell_their_space(free, tmp_path, monkeypatch):
    free(3 * 2**30)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert list(around.folders()) == [
        Finding("Folders", "runs", f"{tmp_path}/runs, with 3.00 GiB free"),
        Finding("Folders", "cache", f"{tmp_path}/cache/tflab, with 3.00 GiB free"),
        Finding("Folders", "temporary files", f"{tmp_path}, with 3.00 GiB free"),
    ]


def test_little_space_is_worth_a_note(free, tmp_path):
    free(2**20)
    finding = around.check_folder("runs", tmp_path / "runs", WRONG, "Go elsewhere.")
    state = f"{tmp_path}/runs, with 1.00 MiB free"
    assert finding == Finding("Folders", "runs", state, NOTE, "Free some: 500 MiB are safe.")


def test_a_folder_that_cannot_be_written_is_what_it_is_needed_for(tmp_path):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "runs"
    assert around.check_folder("runs", path, WRONG, "Go elsewhere.") == Finding(
        "Folders", "runs", f"{path} cannot be written: Not a directory", WRONG, "Go elsewhere."
    )


def test_a_cache_that_is_no_absolute_path_is_worth_a_note(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert list(around.folders())[1] == Finding(
        "Folders",
        "cache",
        "The cache here is no absolute path; set XDG_CACHE_HOME to one.",
        NOTE,
        "Set XDG_CACHE_HOME to a folder.",
    )


def test_a_port_that_is_taken_is_worth_a_note(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(around, "PORT", port)
        assert list(around.port()) == [
            Finding(
                "Network",
                f"port {port}",
                "taken, most likely by a TensorBoard that is still running",
                NOTE,
                "Look at that one, or start another with: tensorboard --port 0 --logdir runs",
            )
        ]
    assert list(around.port()) == [Finding("Network", f"port {port}", "free for TensorBoard")]


def test_a_missing_chromium_is_worth_a_note(monkeypatch):
    monkeypatch.setattr(shutil, "which", {"chromium": "/usr/bin/chromium"}.get)
    assert list(around.browser()) == [Finding("Browser", "chromium", "/usr/bin/chromium")]
    monkeypatch.setattr(shutil, "which", {}.get)
    assert list(around.browser()) == [
        Finding(
            "Browser",
            "chromium",
            "missing; only the browser tests want it",
            NOTE,
            "apt-get install chromium",
        )
    ]


# A logdir


def put(folder: Path, *names: str, content: bytes = b"x") -> Path:
    """The folder, with these files in it."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def profiles(folder: Path) -> list[Finding]:
    return list(logdir.profiles(str(folder)))


def test_traces_in_their_place_are_runs_of_profile(tmp_path):
    put(
        tmp_path,
        "plugins/profile/first/host.xplane.pb",
        "train/plugins/profile/second/one.xplane.pb",
        "train/plugins/profile/second/two.xplane.pb",
    )
    state = "2 runs: first, train/second"
    assert profiles(tmp_path) == [Finding("Logdir", "profiles", state)]


def test_many_runs_are_shortened(tmp_path):
    put(tmp_path, *(f"plugins/profile/{name}/host.xplane.pb" for name in "abcde"))
    state = "5 runs: a, b, c and 2 more"
    assert profiles(tmp_path) == [Finding("Logdir", "profiles", state)]


NONE = Finding("Logdir", "profiles", "none: the Profile tab stays empty")


def test_traces_out_of_their_place_are_wrong_with_the_way_to_move_them(tmp_path):
    put(tmp_path, "profile/my run/host.xplane.pb")
    where, target = f"'{tmp_path}/profile/my run'", f"'{tmp_path}/plugins/profile/my run'"
    assert profiles(tmp_path) == [
        NONE,
        Finding(
            "Logdir",
            "profile/my run",
            "has traces, but not in plugins/profile/<run>: no profile data will be found",
            WRONG,
            f"mkdir -p {target} && mv {where}/*.xplane.pb {target}",
        ),
    ]


@pytest.mark.parametrize("place", ["plugins/other/run", "plugins/profile", "profile/plugins/run"])
def test_a_trace_has_one_place_only(tmp_path, place):
    put(tmp_path, f"{place}/host.xplane.pb")
    none, finding = profiles(tmp_path)
    assert (none, finding.looked_at, finding.verdict) == (NONE, place, WRONG)


@pytest.mark.parametrize("deep", ["plugins", "plugins/profile", "plugins/profile/first"])
def test_a_logdir_that_is_too_deep_is_told_with_the_right_one(tmp_path, deep):
    put(tmp_path, "plugins/profile/first/host.xplane.pb")
    none, finding = profiles(tmp_path / deep)
    assert (none, finding.verdict) == (NONE, WRONG)
    assert finding.advice == f"The logdir is too deep: tensorboard --logdir {tmp_path}"


def test_an_empty_trace_is_wrong(tmp_path):
    put(tmp_path, "plugins/profile/first/host.xplane.pb", content=b"")
    assert profiles(tmp_path)[1:] == [
        Finding(
            "Logdir",
            "plugins/profile/first/host.xplane.pb",
            "is empty",
            WRONG,
            "Record the trace again.",
        )
    ]


def test_a_cache_older_than_its_trace_is_wrong_and_a_younger_one_fine(tmp_path):
    run = put(tmp_path / "plugins/profile/first", "host.xplane.pb", "ALL_HOSTS.op_stats_v2.pb")
    cache = run / "ALL_HOSTS.op_stats_v2.pb"
    os.utime(cache, (2e9, 2e9))
    assert profiles(tmp_path) == [Finding("Logdir", "profiles", "1 run: first")]
    os.utime(cache, (1e9, 1e9))
    assert profiles(tmp_path)[1:] == [
        Finding(
            "Logdir",
            "plugins/profile/first",
            "1 cache older than the trace: Profile may show other numbers",
            WRONG,
            f"rm {cache}",
        )
    ]


def test_event_files_are_told_by_what_shows_them(tmp_path, monkeypatch):
    put(tmp_path, "train/events.out.tfevents.1.vm", "test/events.out.tfevents.1.vm")
    tags = {
        "scalars": {"train": 2, "test": 1},
        "graph_tagged_run_metadata": {"train": 3},
        "graph_run_metadata": {"train": 1},
        "pr_curves": {"test": 1},
    }
    monkeypatch.setattr(child, "call", lambda function, folder, seconds: tags)
    assert list(logdir.runs(str(tmp_path))) == [
        Finding("Logdir", "event files", "2 files"),
        Finding("Logdir", "pr_curves", "1 tag in 1 run: test"),
        Finding("Logdir", "scalars", "3 tags in 2 runs: test, train"),
        Finding("Logdir", "traces of graphs", "4 tags in 1 run: train"),
    ]


def test_a_logdir_with_profiles_alone_needs_no_event_files(tmp_path):
    put(tmp_path, "plugins/profile/first/host.xplane.pb")
    assert list(logdir.runs(str(tmp_path))) == [Finding("Logdir", "event files", "0 files")]


def test_an_empty_logdir_is_wrong(tmp_path):
    put(tmp_path, "notes.txt")
    assert list(logdir.runs(str(tmp_path))) == [
        Finding(
            "Logdir",
            str(tmp_path),
            "holds nothing that TensorBoard shows: no event files, no profiles",
            WRONG,
            f"Write a run into it: python -m tflab.lifecycle --logdir {tmp_path}",
        )
    ]


@pytest.mark.parametrize("name, about", [("file", "is no folder"), ("none", "is not there")])
def test_a_logdir_that_is_no_folder_is_wrong(tmp_path, name, about):
    put(tmp_path, "file")
    path = str(tmp_path / name)
    advice = "Give --logdir the folder of a run, or runs."
    assert list(logdir.runs(path)) == [Finding("Logdir", path, about, WRONG, advice)]
    assert profiles(tmp_path / name) == []


THEIRS = """
import sys
from tflab.doctor import runtime
print("RUNS", *sorted(runtime.profile_plugin_in(sys.argv[1]).generate_runs()))
"""


@pytest.mark.tensorflow
def test_profile_runs_are_those_that_the_plugin_finds(tmp_path):
    put(
        tmp_path,
        "plugins/profile/first/host.xplane.pb",
        "a/b/plugins/profile/second/host.xplane.pb",
        "profile/third/host.xplane.pb",
        "plugins/other/fourth/host.xplane.pb",
    )
    command = [sys.executable, "-c", THEIRS, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    theirs = done.stdout.splitlines()[-1].split()[1:]
    assert profiles(tmp_path)[0].found == f"2 runs: {', '.join(theirs)}"


@pytest.mark.tensorflow
def test_tags_are_those_that_tensorboard_reads(tmp_path):
    writing = (
        "import sys, tensorflow as tf\n"
        "with tf.summary.create_file_writer(sys.argv[1]).as_default():\n"
        "    tf.summary.scalar('loss', 1.0, 0), tf.summary.histogram('weights', [1.0], 0)\n"
    )
    run = [sys.executable, "-c", writing, str(tmp_path / "train")]
    subprocess.run(run, check=True, capture_output=True)
    assert list(logdir.runs(str(tmp_path))) == [
        Finding("Logdir", "event files", "1 file"),
        Finding("Logdir", "histograms", "1 tag in 1 run: train"),
        Finding("Logdir", "scalars", "1 tag in 1 run: train"),
    ]


# The command

FOUND = (
    Finding("Python", "version", "3.12.1"),
    Finding("Packages", "numpy", "2.4.6"),
    Finding("Packages", "xprof", "missing", WRONG, "Install it."),
    Finding("Browser", "chromium", "missing", NOTE, "Get it."),
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
        "What was looked at",
        "         subject   what      found",
        "  ──────────────────────────────────",
        "  fine   Python    version   3.12.1",
        "  fine   Packages  numpy     2.4.6",
        "  WRONG            xprof     missing",
        "  note   Browser   chromium  missing",
        "",
        "What is wrong, and what to do",
        "  Packages: xprof",
        "      missing",
        "      Install it.",
        "",
        "Notes",
        "  Browser: chromium",
        "      missing",
        "      Get it.",
        "",
        "1 thing is wrong: see above what to do.",
    ]
    assert err == ""


def test_notes_alone_are_status_0(world, capsys):
    world(FOUND[:2] + FOUND[3:])
    assert doctor.main([]) == 0
    assert capsys.readouterr().out.endswith("\nAll that tflab needs works, with 1 note.\n")


def test_without_notes_it_is_said_that_all_works(world, capsys):
    world(FOUND[:2])
    assert doctor.main([]) == 0
    assert capsys.readouterr().out.endswith("\nAll that tflab needs works.\n")


def test_json_has_every_finding(world, capsys):
    world(FOUND[1:3])
    assert doctor.main(["--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "works": False,
        "findings": [
            {
                "subject": "Packages",
                "looked_at": "numpy",
                "found": "2.4.6",
                "verdict": "fine",
                "advice": "",
            },
            {
                "subject": "Packages",
                "looked_at": "xprof",
                "found": "missing",
                "verdict": "wrong",
                "advice": "Install it.",
            },
        ],
    }


def test_without_rich_it_is_told_all_the_same(world, capsys, monkeypatch):
    world(FOUND)
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    assert doctor.main([]) == 1
    assert "| WRONG |  | xprof | missing |" in capsys.readouterr().out


@pytest.mark.parametrize("needed, verdict", [(True, WRONG), (False, NOTE)])
def test_a_check_that_cannot_be_carried_out_is_a_finding(needed, verdict, monkeypatch):
    def port():
        yield FOUND[0]
        raise PermissionError("no sockets here\nnor there")

    monkeypatch.setattr(around, "port", port)
    assert checkup.carry_out(Check("Network", "surroundings:port", needed)) == (
        FOUND[0],
        Finding(
            "Network",
            "port",
            "cannot be looked at: PermissionError: no sockets here",
            verdict,
            "If all else works, please report it: then it is a mistake in tflab.",
        ),
    )


def test_a_check_whose_module_is_missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.requirements", None)
    (finding,) = checkup.carry_out(Check("Packages", "packages:needed"))
    assert finding.verdict == WRONG
    assert finding.advice == ("Install what tflab needs: python -m pip install -r requirements.txt")


def test_a_logdir_that_is_not_there_is_a_wrong_argument(tmp_path, capsys):
    assert doctor.main(["--logdir", str(tmp_path / "none")]) == 2
    assert capsys.readouterr() == (
        "",
        f"tflab: The logdir '{tmp_path / 'none'}' is not there; give --logdir the folder of a "
        "run, or of several.\n",
    )


def test_a_logdir_adds_its_checks():
    assert checkup.checks() == checkup.CHECKS
    more = checkup.checks("runs")[len(checkup.CHECKS) :]
    assert [(check.subject, check.args) for check in more] == [("Logdir", ("runs",))] * 2


def test_every_check_can_be_carried_out_here(monkeypatch, tmp_path):
    """But for the processes of their own."""

    def call(*_, **__):
        raise TflabError("Not now.")

    monkeypatch.setattr(child, "call", call)
    checks = checkup.checks(str(put(tmp_path, "plugins/profile/a/host.xplane.pb")))
    all_findings = [finding for part in checkup.findings(checks) for finding in part]
    assert {check.subject for check in checks} == {finding.subject for finding in all_findings}
    assert not [finding for finding in all_findings if "cannot be looked at" in finding.found]
    assert {finding.verdict for finding in all_findings} <= {FINE, NOTE, WRONG}


@pytest.mark.tensorflow
def test_the_whole_of_it_ends_with_a_verdict(capsys):
    status = doctor.main(["--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    assert answer["works"] == (status == 0)
    assert len(answer["findings"]) > len(checkup.CHECKS)
