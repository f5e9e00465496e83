"""TensorBoard's tab: it answers what its page asks for, and nothing in a logdir breaks it."""

import pytest
from tensorboard.plugins.base_plugin import TBContext
from werkzeug.test import Client

from tests.examples.lives import small_life
from tflab.explore import tensorboard_tab
from tflab.report import storage

EVIL = "</script><img src=x onerror=alert(1)>"


class Tab:
    """The plugin as TensorBoard calls it."""

    def __init__(self, logdir):
        self.plugin = tensorboard_tab.Loader().load(TBContext(logdir=str(logdir) if logdir else ""))
        self.apps = self.plugin.get_plugin_apps()

    def get(self, path, **query):
        return Client(self.apps[path]).get(path, query_string=query)

    def run(self, name):
        return self.get("/run", run=name)


@pytest.fixture
def life():
    return small_life()


@pytest.fixture
def logdir(tmp_path, life):
    storage.write(tmp_path / "first", life)
    life["parts"]["In short"] = [EVIL]
    storage.write(tmp_path / "second", life)
    return tmp_path


def test_the_runs_are_listed_and_shown_without_a_name_that_acts(logdir):
    tab = Tab(logdir)
    assert tab.plugin.is_active()
    assert tab.get("/runs").json == ["first", "second"]
    shown = tab.run("first").json
    assert shown["graph"]["title"] == "toy"
    assert "<p>A sentence.</p>" in shown["parts"]["In short"]
    evil = tab.run("second").json["parts"]["In short"].replace("<wbr>", "")
    assert evil.strip() == "<p>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</p>"


@pytest.mark.parametrize("mark", ["./first", "../first", "/etc/passwd", "", "%00"])
def test_a_run_is_not_asked_for_by_a_path(logdir, mark):
    answer = Tab(logdir).get("/run", run=mark)
    assert (answer.status_code, answer.text) == (404, "This run is no longer in the logdir.")


def test_a_damaged_run_is_a_sentence_and_the_others_are_shown(logdir, life):
    (logdir / "first").joinpath(*storage.PLACE, storage.NAME).write_bytes(b"damaged")
    storage.write(logdir / "third", life | {"parts": {"T": [{"table": "T"}]}})
    tab = Tab(logdir)
    assert tab.run("first").status_code == 404
    told = tab.run("third")
    sentence = "The file of this run cannot be shown: its tables make no sense."
    assert (told.status_code, told.text) == (404, sentence)
    assert tab.run("second").status_code == 200


@pytest.mark.parametrize("logdir", ["", "gs://nowhere/at/all", "/nowhere"])
def test_a_logdir_that_is_not_there_has_no_tab(logdir):
    tab = Tab(logdir)
    assert not tab.plugin.is_active()
    assert tab.get("/runs").json == []


def test_a_growing_logdir_is_searched_again(logdir, life, monkeypatch):
    tab = Tab(logdir)
    assert len(tab.get("/runs").json) == 2
    storage.write(logdir / "third", life)
    assert len(tab.get("/runs").json) == 2  # it was searched a moment ago
    monkeypatch.setattr(tensorboard_tab, "OLD_S", 0)
    assert len(tab.get("/runs").json) == 3


def test_what_the_page_needs_is_served_with_types_and_policies(tmp_path):
    tab = Tab(tmp_path)
    script, style, page = (tab.get(path) for path in ("/index.js", "/style.css", "/page.html"))
    assert script.mimetype == "text/javascript"
    assert script.text.endswith("export function render() {}\n")
    assert style.mimetype == "text/css"
    assert page.headers["Content-Security-Policy"] == "default-src 'none'"
    assert {answer.headers["X-Content-Type-Options"] for answer in (script, style, page)} == {
        "nosniff"
    }
