"""The tab Life in the real TensorBoard: a run, and a damaged one beside it."""

import gzip
import json

import pytest

from tflab.report import storage

pytestmark = pytest.mark.browser

DRAW_MS = 60_000


def test_a_run_is_drawn_as_in_the_report_and_a_damaged_one_is_a_sentence(
    page, tensorboard, logdir, artefacts
):
    life = storage.read(storage.runs(logdir)["."])
    content = {"kind": storage.KIND, "format": storage.FORMAT, **life}
    content["graph"] = {**life["graph"], "nodes": [{}] * len(life["graph"]["nodes"])}
    folder = logdir.parent.joinpath("damaged", *storage.PLACE)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / storage.NAME).write_bytes(gzip.compress(json.dumps(content).encode()))
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{tensorboard}/#tflab_life")
    tab = page.frame_locator("iframe")
    sentence = tab.get_by_text("The file of this run is damaged: it cannot be drawn.")
    sentence.wait_for(timeout=DRAW_MS)  # it is the first of the runs
    tab.get_by_label("Run", exact=True).select_option("lenet")
    tab.get_by_role("button", name="scope conv1, ").first.wait_for(timeout=DRAW_MS)
    assert not sentence.is_visible()
    assert tab.locator("[data-part=title]").first.inner_text() == "Execution"
    tab.get_by_role("button", name="Backward", exact=True).click()
    tab.get_by_label("Find a node").first.fill("conv1/Conv2D")
    tab.get_by_label("Find a node").first.press("Enter")
    assert tab.locator(".panel h4").first.inner_text() == "conv1/Conv2D"
    page.screenshot(path=artefacts / "life.png")
    page.get_by_role("tab", name="Graphs").click()  # other tabs go on
    page.locator("tf-graph-scene g.node[data-name='conv1']").wait_for(timeout=DRAW_MS)
    assert said == []
