"""The tab Life in the real TensorBoard: a run, and a damaged one beside it."""

import pytest

pytestmark = pytest.mark.browser

DRAW_MS = 60_000


def test_a_run_is_drawn_as_in_the_report_and_a_damaged_one_is_a_sentence(
    page, tensorboard, artefacts
):
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{tensorboard}/#tflab_life")
    tab = page.frame_locator("iframe")
    sentence = tab.get_by_text("The file of this run cannot be shown: it cannot be drawn.")
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
