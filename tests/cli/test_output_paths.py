"""Output paths: files and folders are whole or not there, and nobody else's is replaced."""

import errno
import os
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from tests.approval import approve, refused
from tflab.cli import confined, output_paths
from tflab.errors import TflabError, UsageError


class Clock(datetime):
    @classmethod
    def now(cls) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """An empty current folder, at a time that stands still."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output_paths, "datetime", Clock)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Files


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_file_that_is_there_or_appears_meanwhile_is_not_overwritten(here, meanwhile):
    def appears(moment: bool):
        if moment == meanwhile:
            Path("a.svg").write_text("somebody else's")

    appears(False)
    with pytest.raises(UsageError) as error, output_paths.new(Path("a.svg"), "picture") as run:
        appears(True)
        run.work.write_text("mine")
    assert str(error.value) == (
        "The picture 'a.svg' exists already; remove it or give another path."
    )
    assert (files(here), Path("a.svg").read_text()) == (["a.svg"], "somebody else's")


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, TflabError), (errno.EIO, UsageError)])
def test_a_write_that_fails_leaves_nothing(here, monkeypatch, number, kind):
    """A full disk is a failure of the run, any other place a wrong argument."""
    drafts = []

    def failing(draft, path):
        drafts.append((draft.name, draft.read_bytes(), path.name))
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(TflabError) as error:
        output_paths.write(here / "a.svg", b"<svg />", "picture")
    assert f"a.svg' cannot be written: {os.strerror(number)}. Give another path." in str(
        error.value
    )
    assert type(error.value) is kind
    ((draft, *others),) = drafts
    assert draft.startswith(f".a.svg.{os.getpid()}-")
    assert others == [b"<svg />", "a.svg"]
    assert files(here) == []


def entered(place):
    with place:
        pytest.fail("the body ran")


def test_a_name_that_is_taken_is_refused_before_anything_runs(here, monkeypatch):
    output_paths.check(here / "new" / "a", "picture")
    Path("taken").write_text("precious")
    Path("full/of/things").mkdir(parents=True)
    Path("empty").mkdir()
    Path("link").symlink_to("empty")
    Path("a").symlink_to("elsewhere")
    before = files(here)
    said = [refused(output_paths.check, Path(name), "picture") for name in ("a", "taken/b")]
    for name in ("taken", "taken/run", "full", ".", "link"):
        said.append(refused(entered, output_paths.new(Path(name), "folder", folder=True)))

    def refuse(*_, **__):  # chmod would not stop root
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        said.append(refused(entered, output_paths.new_run("run", "toy")))
    assert (files(here), Path("taken").read_text()) == (before, "precious")
    # The name of a model never becomes a path
    models = ("my.models:build", "../../etc/passwd", "/absolute:f", ".hidden", "a b\n<c>", "..", "")
    said += ["", *(str(output_paths.choose_run_folder(None, model)) for model in models)]
    approve("output-paths.txt", "\n".join(said))


# Folders


def write(folder: Path, text: str = "new") -> None:
    with output_paths.new(folder, "folder", folder=True) as run:
        (run.work / "events").write_text(text)


def test_a_run_takes_a_logdir_that_is_new_or_empty_and_else_has_a_numbered_folder_of_its_own(here):
    Path("empty").mkdir()
    write(Path("mine"))
    chosen = [
        output_paths.choose_run_folder(given, "toy") for given in ("new/one", "empty", "mine")
    ]
    assert chosen == [Path("new/one"), Path("empty"), Path("mine/toy-20260102-030405")]
    for number in ("", "-2", "-3"):
        assert str(output_paths.choose_run_folder(None, "toy")) == f"runs/{FIRST}{number}"
        write(Path(f"runs/{FIRST}{number}"))


FIRST = "toy-20260102-030405"


@pytest.mark.parametrize("folder", ["run", "deep/er/run", "run/"])
def test_a_folder_bears_its_name_once_all_is_in_it_and_others_may_read_it(folder):
    with output_paths.new(Path(folder), "folder", folder=True) as run:
        (run.work / "events").write_text("new")
        assert not Path(folder).exists()
        assert run.work.parent.samefile(Path(folder).parent)
    assert files(Path(folder)) == ["events"]
    assert os.listdir(Path(folder).parent) == [Path(folder).name]
    assert Path(folder).stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (ValueError(), ""),
        (KeyboardInterrupt(), ""),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            "The folder 'run' cannot be written: No space left on device. Give another path.",
        ),
    ],
)
def test_a_failure_leaves_nothing_and_a_full_disk_is_a_sentence(here, failure, said):
    kind = TflabError if said else type(failure)
    place = output_paths.new(Path("run"), "folder", folder=True)
    with pytest.raises(kind) as error, place as run:
        (run.work / "events").write_text("half")
        raise failure
    assert str(error.value) == said
    assert files(here) == []


@pytest.mark.parametrize(
    ("given", "names"), [(None, [f"runs/{FIRST}", f"runs/{FIRST}-2"]), ("mine", ["mine", "mine-2"])]
)
def test_two_runs_that_begin_at_once_have_a_folder_each(given, names):
    with output_paths.new_run(given, "toy") as first, output_paths.new_run(given, "toy") as second:
        (first.work / "events").write_text("first")
        (second.work / "events").write_text("second")
    assert [str(run.final) for run in (second, first)] == names
    assert [Path(name, "events").read_text() for name in names] == ["second", "first"]


# Of a confined process


@pytest.mark.parametrize("ending", [None, ValueError()])
def test_what_a_confined_process_completed_gets_its_name(here, monkeypatch, ending):
    """It may write below its places only; the process that started it has made them."""
    with (
        output_paths.place(here / "file", "comparison") as file,
        output_paths.place(here / "folder", "folder") as folder,
    ):
        outputs = {
            option: (str(place.work), str(place.final))
            for option, place in {"--save": file, "--out": folder}.items()
        }
        rights = confined.Rights((), "", outputs)
        with monkeypatch.context() as child, suppress(ValueError):
            child.setattr(confined, "CONFINED", rights)
            output_paths.write(Path("elsewhere"), b"saved", "comparison", "--save")
            with output_paths.new(Path("other"), "folder", "--out", folder=True) as run:
                assert run.work.parent == folder.work
                (run.work / "events").write_text("new")
                if ending:
                    raise ending
    kept = [] if ending else ["folder", "folder/events"]
    assert files(here) == ["file", *kept]
    assert Path("file").read_bytes() == b"saved"


@pytest.mark.parametrize(
    "on_path, beside, program",
    [(True, True, "tensorboard"), (False, True, "bin/tensorboard"), (False, False, "tensorboard")],
)
def test_the_line_to_type_finds_tensorboard(here, monkeypatch, on_path, beside, program):
    (here / "bin").mkdir()
    if beside:
        (here / "bin/tensorboard").touch()
    monkeypatch.setattr(sys, "executable", str(here / "bin/python"))
    monkeypatch.setattr(output_paths.shutil, "which", lambda _: "found" if on_path else None)
    assert output_paths.opening_line(Path("runs/toy")) == f"{program} --logdir runs/toy"
