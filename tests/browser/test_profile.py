"""TensorBoard Profile lists a run for each batch size, and draws its steps and ops.

The trace viewer is a page within a page within the page.
"""

import time
from collections import Counter
from urllib.parse import urlencode

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

BATCH_SIZES = (1, 16, 64)
STEPS = [f"step {step}" for step in range(5)]
DRAW_SECONDS = 60
FIT_SECONDS = 3  # until all of the time axis is in view
TRACE_VIEWER = "trace_viewer_index.html"
MODEL = "document.querySelector('tf-trace-viewer')?._model"  # what the viewer draws


@pytest.fixture
def runs(logdir):
    """The profile of each batch size, as the folder above the logdir has it. Where digits stand in
    for MNIST, the names say so."""
    names = {path.name for path in (logdir / "plugins/profile").iterdir()}
    return [
        next(f"lenet/{name}" for name in names if f"{name}-".startswith(f"lenet-batch-{size}-"))
        for size in BATCH_SIZES
    ]


def test_the_page_offers_the_runs(page, tensorboard, artefacts, runs):
    listed = page.request.get(
        f"{tensorboard}/data/plugin/profile/runs", timeout=1000 * DRAW_SECONDS
    )
    assert sorted(listed.json()) == sorted(runs)
    page.goto(f"{tensorboard}/#profile")
    frame = wait_for_frame(page, "/data/plugin/profile/")
    frame.get_by_text("Sessions (3)").wait_for(timeout=1000 * DRAW_SECONDS)
    frame.get_by_text("Performance Summary").wait_for(timeout=1000 * DRAW_SECONDS)
    frame.locator("mat-select").first.click()
    frame.locator("mat-option").first.wait_for()
    page.screenshot(path=artefacts / "profile.png")
    offered = [text.strip() for text in frame.locator("mat-option").all_text_contents()]
    assert sorted(offered) == sorted(runs)


def test_the_trace_viewer_draws_steps_above_lanes_and_finds_one(page, tensorboard, runs, artefacts):
    query = urlencode({"run": runs[1], "tag": "trace_viewer@"})  # the steps of batch size 16
    page.goto(f"{tensorboard}/?{query}#profile")
    viewer = wait_for_frame(page, TRACE_VIEWER)
    viewer.wait_for_function(f"{MODEL}?.getAllThreads().length", timeout=1000 * DRAW_SECONDS)
    page.wait_for_timeout(1000 * FIT_SECONDS)
    page.screenshot(path=artefacts / "profile_trace_viewer.png")
    names = viewer.evaluate(f"{MODEL}.getAllThreads().map(thread => thread.name)")
    assert names[:2] == ["steps", "session"]
    assert names[2:] and all(name.startswith("CPU:0") for name in names[2:])
    assert slices(viewer, "steps") == STEPS
    ops = Counter(title for name in names[2:] for title in slices(viewer, name))
    assert ops["Relu (conv1/Relu)"] == ops["kernel (conv1/kernel)"] == len(STEPS)
    for name in names:
        assert viewer.get_by_text(name).first.is_visible()
    box = viewer.get_by_placeholder("Find Events...")
    box.fill("step 3")
    box.press("Enter")
    viewer.get_by_text("of 1").wait_for()
    viewer.get_by_text("→").click()
    viewer.get_by_text("1 item selected").wait_for()
    page.keyboard.press("f")  # zoom to what is selected
    page.wait_for_timeout(1000)
    page.screenshot(path=artefacts / "profile_step.png")
    assert viewer.locator("tr-ui-a-analysis-view").get_by_text("step 3").first.is_visible()


def slices(viewer, thread):
    """The titles in a row of the trace viewer, in the order of time."""
    return viewer.evaluate(
        f"""name => {MODEL}.getAllThreads().find(thread => thread.name === name)
            .sliceGroup.slices.map(slice => slice.title)""",
        thread,
    )


def wait_for_frame(page, part):
    """The innermost page whose address has this part."""
    deadline = time.monotonic() + DRAW_SECONDS
    while time.monotonic() < deadline:
        for frame in reversed(page.frames):
            if part in frame.url:
                return frame
        page.wait_for_timeout(200)
    return pytest.fail(f"No page with {part} within {DRAW_SECONDS} s.")
