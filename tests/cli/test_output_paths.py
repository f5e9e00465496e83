"""New files: whole or not there, and nobody else's is replaced."""

import errno
import os
import sys
from datetime import datetime
from pathlib import Path

import pytest

from tflab.cli import output_paths
from tflab.errors import TflabError, UsageError


def test_a_file_is_written_into_a_folder_that_was_not_there(tmp_path):
    output_paths.write(tmp_path / "new" / "a", b"mine", "picture")
    assert (tmp_path / "new" / "a").read_bytes() == b"mine"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "a.svg"
    path.write_text("somebody else's")
    with pytest.raises(UsageError) as error:
        output_paths.write(path, b"mine", "picture")
    assert (
        str(error.value) == f"The picture '{path}' exists already; remove it or give another path."
    )
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("a.svg", "somebody else's")
    ]


@pytest.mark.parametrize(("number", "kind"), [(28, TflabError), (5, UsageError)])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, number, kind):
    """A full disk is a failure of the run, any other place a wrong argument."""
    drafts = []

    def failing(draft, path):
        drafts.append((draft.name, draft.read_bytes(), path.name, path.read_bytes()))
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(TflabError, match=f"cannot be written: {os.strerror(number)}") as error:
        output_paths.write(tmp_path / "a.svg", b"<svg />", "picture")
    assert type(error.value) is kind
    ((draft, *others),) = drafts
    assert draft.startswith(f".a.svg.{os.getpid()}-")
    assert others == [b"<svg />", "a.svg", b""]
    assert list(tmp_path.iterdir()) == []


def test_a_check_leaves_nothing_behind(tmp_path):
    output_paths.check(tmp_path / "new" / "a", "picture")
    assert list(tmp_path.iterdir()) == []


def test_a_check_says_before_anything_is_computed_what_a_write_would(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    for path, wrong in (("a", "exists already"), ("a/b", "cannot be written")):
        with pytest.raises(UsageError, match=wrong):
            (tmp_path / "file").write_text("")
            output_paths.check(tmp_path / path.replace("a/", "file/"), "picture")


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


def write(folder: Path, text: str = "new") -> None:
    with output_paths.new_folder(folder) as work:
        (work / "events").write_text(text)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Which folder


def test_without_a_logdir_a_run_is_named_after_its_model_and_time():
    assert output_paths.choose_run_folder(None, "lenet") == Path("runs/lenet-20260102-030405")


def test_a_logdir_that_is_new_or_empty_is_taken_as_it_is(here):
    (here / "empty").mkdir()
    assert output_paths.choose_run_folder("new/one", "toy") == Path("new/one")
    assert output_paths.choose_run_folder("empty", "toy") == Path("empty")


def test_in_a_logdir_with_something_in_it_a_run_has_a_folder_of_its_own(here):
    write(here / "mine")
    assert output_paths.choose_run_folder("mine", "toy") == Path("mine/toy-20260102-030405")


def test_runs_of_the_same_second_are_numbered():
    chosen = []
    for _ in range(3):
        chosen.append(output_paths.choose_run_folder(None, "toy").name)
        write(Path("runs", chosen[-1]))
    assert chosen == [
        "toy-20260102-030405",
        "toy-20260102-030405-2",
        "toy-20260102-030405-3",
    ]


@pytest.mark.parametrize(
    "model, name",
    [
        ("my.models:build", "my.models-build"),
        ("../../etc/passwd", "etc-passwd"),
        ("/absolute:f", "absolute-f"),
        (".hidden", "hidden"),
        ("a b\n<c>", "a-b-c"),
        ("..", "model"),
        ("", "model"),
    ],
)
def test_the_name_of_a_model_never_becomes_a_path(model, name):
    assert output_paths.choose_run_folder(None, model) == Path("runs") / f"{name}-20260102-030405"


# Writing


@pytest.mark.parametrize("folder", ["run", "deep/er/run", "run/"])
def test_a_folder_bears_its_name_once_all_is_in_it(here, folder):
    with output_paths.new_folder(Path(folder)) as work:
        (work / "events").write_text("new")
        assert not Path(folder).exists()
        assert work.parent.samefile(Path(folder).parent)
    assert files(Path(folder)) == ["events"]
    assert os.listdir(Path(folder).parent) == [Path(folder).name]


def test_others_may_read_what_was_written(here):
    write(here / "run")
    assert (here / "run").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_nothing(here, failure):
    with pytest.raises(failure), output_paths.new_folder(here / "run") as work:
        (work / "events").write_text("half")
        raise failure
    assert files(here) == []


@pytest.mark.parametrize("folder", ["taken", "taken/run", "taken/deep/run"])
def test_a_file_in_the_way_is_named_and_kept(here, folder):
    (here / "taken").write_text("precious")
    with pytest.raises(UsageError) as error:
        write(Path(folder))
    assert str(error.value) == (
        f"The logdir '{folder}' cannot be written: 'taken' is not a folder. "
        "Give --logdir a folder that you may write to."
    )
    assert (here / "taken").read_text() == "precious"


def test_a_place_without_permission_is_named_before_anything_runs(here, monkeypatch):
    def refuse(*_, **__):  # chmod would not stop root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(UsageError) as error, output_paths.new_folder(Path("run")):
        pytest.fail("the body ran")
    assert str(error.value) == (
        "The logdir 'run' cannot be written: Permission denied. "
        "Give --logdir a folder that you may write to."
    )
    monkeypatch.undo()
    assert files(here) == []


# What to type


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


def test_a_disk_that_is_full_is_a_sentence_with_the_folder(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(TflabError) as error, output_paths.new_folder(tmp_path / "run") as work:
        (work / "trace").write_text("half")
        raise full
    assert str(error.value) == (
        f"'{tmp_path}/run' cannot be written: No space left on device. Nothing was written; free "
        f"some space there, or give another folder."
    )
    assert not any(tmp_path.iterdir())


# Two at once


def test_two_runs_that_begin_at_once_have_a_folder_each(here):
    with output_paths.new_run(None, "toy") as first, output_paths.new_run(None, "toy") as second:
        (first.work / "events").write_text("first")
        (second.work / "events").write_text("second")
    assert [second.final.name, first.final.name] == ["toy-20260102-030405", "toy-20260102-030405-2"]
    assert files(here / "runs") == [
        *("toy-20260102-030405", "toy-20260102-030405-2"),
        *("toy-20260102-030405-2/events", "toy-20260102-030405/events"),
    ]
    assert (here / second.final / "events").read_text() == "second"


def test_two_runs_into_one_new_logdir_have_a_folder_each(here):
    with (
        output_paths.new_run("mine", "toy") as first,
        output_paths.new_run("mine", "toy") as second,
    ):
        (first.work / "events").touch()
        (second.work / "events").touch()
    assert (second.final, first.final) == (Path("mine"), Path("mine-2"))
    assert files(here) == ["mine", "mine-2", "mine-2/events", "mine/events"]


def test_a_folder_that_is_not_empty_is_refused(here):
    write(here / "run")
    with pytest.raises(UsageError) as error, output_paths.new_folder(here / "run", "--out"):
        pytest.fail("the body ran")
    assert str(error.value) == f"The folder '{here}/run' is not empty; give --out a new folder."


def test_what_somebody_else_wrote_meanwhile_stays_and_the_result_has_the_next_name(here):
    with pytest.raises(TflabError) as error, output_paths.new_folder(here / "run") as work:
        (work / "events").write_text("ours")
        (here / "run").mkdir()
        (here / "run/notes").write_text("theirs")
    assert str(error.value) == (
        f"Another process wrote '{here}/run' in the meantime; the result is in '{here}/run-2'."
    )
    assert files(here) == ["run", "run-2", "run-2/events", "run/notes"]


def test_an_empty_folder_is_taken_and_no_empty_one_is_left(here):
    (here / "run").mkdir()
    write(here / "run")
    with output_paths.new_folder(here / "nothing"):
        pass
    assert files(here) == ["run", "run/events"]
