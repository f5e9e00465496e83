"""The tab Life in the real TensorBoard: a run, two runs, and damaged ones beside them."""

import gzip
import json
import shutil

import pytest

from tflab.report import storage

pytestmark = pytest.mark.browser

DRAW_MS = 60_000


@pytest.fixture
def tab(page, tensorboard, logdir):
    """The frame of the tab, with LeNet as it ran."""
    life = storage.read(storage.runs(logdir)["."])
    life["nodes"].pop("loss/Mean", None)
    name = next(iter(life["nodes"]))
    life["nodes"]["<b>new</b>"] = life["nodes"].pop(name)
    for run in ("edited", "damaged"):
        logdir.parent.joinpath(run, *storage.PLACE).mkdir(parents=True, exist_ok=True)
    content = {"kind": storage.KIND, "format": storage.FORMAT, **life}
    places = {
        run: logdir.parent.joinpath(run, *storage.PLACE, storage.NAME)
        for run in ("edited", "damaged")
    }
    places["edited"].write_bytes(gzip.compress(json.dumps(content).encode()))
    content["graph"]["nodes"] = [{}] * len(life["graph"]["nodes"])
    places["damaged"].write_bytes(gzip.compress(json.dumps(content).encode()))
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{tensorboard}/#tflab_life")
    frame = page.frame_locator("iframe")
    frame.get_by_label("Run").locator("option", has_text="edited").wait_for(
        state="attached", timeout=DRAW_MS
    )
    yield frame
    assert said == []


def choose(frame, menu, run):
    frame.get_by_label(menu, exact=True).select_option(run)


def test_a_run_is_drawn_as_in_the_report_alone_and_beside_another(page, tab, artefacts):
    choose(tab, "Run", "lenet")
    tab.get_by_role("button", name="scope conv1, ").first.wait_for(timeout=DRAW_MS)
    assert tab.locator("[data-part=title]").first.inner_text() == "Execution"
    tab.get_by_role("button", name="Backward", exact=True).click()
    tab.get_by_label("Find a node").first.fill("conv1/Conv2D")
    tab.get_by_label("Find a node").first.press("Enter")
    assert tab.locator(".panel h4").first.inner_text() == "conv1/Conv2D"
    page.screenshot(path=artefacts / "life.png")
    choose(tab, "Compare with", "edited")
    tab.locator("[data-part=since]").get_by_text("<b>new</b>").wait_for(timeout=DRAW_MS)
    names = tab.locator("[data-part=run-name], [data-part=beside-name]").all_inner_texts()
    assert names == ["lenet", "edited"]
    assert tab.locator(".viewer").count() == 2
    page.screenshot(path=artefacts / "life_beside.png")


# As if the reader came back to the tab again and again: it then looks at the logdir
LOOKING = "setInterval(() => document.dispatchEvent(new Event('visibilitychange')), 300)"


def test_a_damaged_run_is_a_sentence_a_gone_one_not_shown_and_a_new_one_is(page, tab, logdir):
    choose(tab, "Run", "edited")
    tab.get_by_role("button", name="scope conv1, ").first.wait_for(timeout=DRAW_MS)
    page.frames[-1].evaluate(LOOKING)
    edited, damaged = (logdir.parent.joinpath(run, *storage.PLACE) for run in ("edited", "damaged"))
    whole = (edited / storage.NAME).read_bytes()
    shutil.rmtree(logdir.parent / "edited")
    sentence = tab.get_by_text("The file of this run is damaged: it cannot be drawn.")
    sentence.wait_for(timeout=DRAW_MS)  # it is the first of those that are left
    assert not tab.locator(".viewer").first.is_visible()
    (damaged / storage.NAME).write_bytes(whole)
    tab.get_by_role("button", name="scope conv1, ").first.wait_for(timeout=DRAW_MS)
    assert not sentence.is_visible()
    page.get_by_role("tab", name="Graphs").click()  # other tabs go on
    page.locator("tf-graph-scene g.node[data-name='conv1']").wait_for(timeout=DRAW_MS)
