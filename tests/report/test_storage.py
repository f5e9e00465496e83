"""Lives in a logdir: they come back as they were written, and a stranger's file harms nobody."""

import gzip
import json

import pytest

from tests.examples.lives import small_life
from tflab.errors import TflabError
from tflab.report import storage


@pytest.fixture
def life():
    return small_life()


@pytest.fixture
def path(tmp_path):
    folder = tmp_path.joinpath(*storage.PLACE)
    folder.mkdir(parents=True)
    return folder / storage.NAME


def file_of(path, content):
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


def whole(life, **changed):
    return {"kind": storage.KIND, "format": storage.FORMAT, **life, **changed}


def test_a_life_comes_back_as_it_was_written(tmp_path, life):
    storage.write(tmp_path / "run", life)
    (found,) = storage.runs(tmp_path).items()
    assert found == ("run", tmp_path / "run" / "plugins" / "life" / "life.json.gz")
    assert storage.read(found[1]) == life


def test_what_a_stranger_writes_is_made_visible(path, life):
    life["graph"]["nodes"][0]["name"] = "a\x1b[31mb\u202e"
    assert "\x1b" not in json.dumps(storage.read(file_of(path, whole(life))), ensure_ascii=False)
    assert storage.read(path)["graph"]["nodes"][0]["name"] == "a\\x1b[31mb\\u202e"


DEEP = "[" * 1_000 + "]" * 1_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not gzip",
        *(
            gzip.compress(text)
            for text in (b"not JSON", b"[" * 100_000, b"[1]", b'{"kind": "another"}')
        ),
        gzip.compress(b'{"kind": "tflab life", "format": 4}'),
        gzip.compress(b'{"kind": "tflab life", "format": 4}')[:-9],
        gzip.compress(
            b'{"kind": "tflab life", "format": 4, "stage": "", "graph": {"more": %s}, "parts": {}, '
            b'"nodes": {}}' % DEEP.encode()
        ),
    ],
    ids=["empty", "plain", "text", "deep", "list", "other", "parts", "cut", "nested"],
)
def test_a_file_that_is_no_life_is_damaged(path, content):
    path.write_bytes(content)
    with pytest.raises(TflabError, match="cannot be shown: "):
        storage.read(path)


def test_a_life_of_another_version_says_so(path, life):
    with pytest.raises(TflabError, match="Another version of tflab wrote this run"):
        storage.read(file_of(path, whole(life, format=1)))


def test_a_folder_in_place_of_the_file_is_an_error_in_words(path):
    path.mkdir()
    with pytest.raises(TflabError, match="cannot be read or unpacked"):
        storage.read(path)


def test_a_graph_with_too_many_nodes_is_not_written(tmp_path, life):
    said = storage.keep(tmp_path / "run", storage.MOST_NODES + 1, lambda: life)
    assert said.endswith("it has 20,001 nodes; the limit is 20,000.")
    assert not (tmp_path / "run").exists()


def test_runs_are_found_at_any_depth_and_links_to_folders_are_not_followed(tmp_path, life):
    for name in ("b/deep", "a"):
        storage.write(tmp_path / "logdir" / name, life)
    storage.write(tmp_path / "outside", life)
    (tmp_path / "logdir" / "link").symlink_to(tmp_path / "outside")
    assert list(storage.runs(tmp_path / "logdir")) == ["a", "b/deep"]
    assert list(storage.runs(tmp_path / "outside")) == ["."]
    assert storage.runs(tmp_path / "nowhere") == {}


def test_a_huge_logdir_is_searched_only_in_part(tmp_path, life, monkeypatch):
    for name in ("a", "b"):
        storage.write(tmp_path / name, life)
    monkeypatch.setattr(storage, "SEARCH_S", -1)
    assert storage.runs(tmp_path) == {}
