"""What TensorBoard shows of a training: curves in Scalars, digits with what was read in Images."""

import time

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

DRAW_MS = 60_000


def longest_path(page) -> int:
    return page.locator("vz-line-chart2 path").evaluate_all(
        "paths => Math.max(0, ...paths.map(path => (path.getAttribute('d') || '').length))"
    )


def test_train_and_test_have_the_same_curves_which_are_drawn_and_the_digits_too(
    tensorboard, page, artefacts
):
    found = page.request.get(f"{tensorboard}/data/plugin/scalars/tags").json()
    shared = set.intersection(*(set(tags) for tags in found.values() if tags))
    assert {tag for tag in shared if "loss" in tag}
    assert {tag for tag in shared if "accuracy" in tag}
    page.goto(f"{tensorboard}/#scalars")
    page.locator("tf-scalar-card vz-line-chart2").first.wait_for(timeout=DRAW_MS)
    deadline = time.monotonic() + DRAW_MS / 1000
    while longest_path(page) <= 100 and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    page.screenshot(path=artefacts / "scalars.png")
    drawn = page.locator("tf-scalar-card").evaluate_all("cards => cards.map(card => card.tag)")
    curves = ("epoch/loss", "epoch/accuracy", "step/loss")
    assert {f"{curve} (digits, not MNIST)" for curve in curves} <= set(drawn)
    assert longest_path(page) > 100  # a curve, and not only its axes
    page.goto(f"{tensorboard}/#images")
    image = page.locator("tf-image-loader", has_text="predictions/first").locator("img").first
    image.wait_for(timeout=DRAW_MS)
    page.wait_for_timeout(500)
    page.screenshot(path=artefacts / "images.png")
    assert image.evaluate("image => image.naturalWidth") > 100
