"""Take the pictures of the pages anew: the graph of LeNet as it ran, beside a node's history;
without an address, the live page after an edit, and five pictures of what an edit moves; of a
TensorBoard, its tab Life.

python -m tflab.report --model lenet --chapters graph --out DIR
python docs/screenshot.py DIR/report.html
python docs/screenshot.py
tensorboard --logdir runs --port 6006
python docs/screenshot.py http://localhost:6006
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright import sync_api

WINDOW = {"width": 1360, "height": 1420}
LIVE = {"width": 1440, "height": 860}
FILM = {"width": 1500, "height": 1000}
COLOURS = 192  # of a picture of the live page, which makes its file small
TAB = {"width": 1500, "height": 900}
WAIT_MS = 120_000


def main() -> None:
    chromium = shutil.which("chromium")
    if len(sys.argv) > 2 or chromium is None:
        sys.exit(
            f"{__doc__}\nIt takes the address of one page or none, and a chromium on the PATH."
        )
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if len(sys.argv) < 2:
            live(browser)
            film(browser)
        else:
            picture = tab if sys.argv[1].startswith("http") else report
            picture(browser, sys.argv[1])
        browser.close()


def report(browser: sync_api.Browser, file: str) -> None:
    page = browser.new_page(viewport=WINDOW)
    page.goto(Path(file).resolve().as_uri())
    viewer = page.locator(".viewer").last
    viewer.get_by_role("button", name="Execution").click()
    viewer.get_by_label("Find a node").fill("conv1/Conv2D")
    viewer.get_by_label("Find a node").press("Enter")
    viewer.get_by_role("button", name="Fit").click()
    viewer.locator("[data-part=colour]").select_option("time")
    viewer.screenshot(path=Path(__file__).with_name("report.png"))


def tab(browser: sync_api.Browser, address: str) -> None:
    page = browser.new_page(viewport=TAB)
    page.goto(f"{address}/#tflab_life")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="scope conv1, ").first.click(timeout=WAIT_MS)
    frame.get_by_role("button", name="conv1/Conv2D, ").first.click()
    frame.locator(".panel h4").wait_for()
    page.screenshot(path=Path(__file__).with_name("life.png"))


@contextmanager
def opened(browser: sync_api.Browser, window: sync_api.ViewportSize) -> Iterator[sync_api.Page]:
    """The live page of `x * y + z`, which has run."""
    command = [sys.executable, "-m", "tflab.explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = next(line.strip() for line in process.stdout if "http://" in line)
            page = browser.new_page(viewport=window)
            page.goto(address)
            page.locator("[data-run=done]").wait_for(timeout=WAIT_MS)
            yield page
        finally:
            process.terminate()


@contextmanager
def run_again(page: sync_api.Page) -> Iterator[None]:
    """What is done in it makes the page run its program once more, to the end."""
    number = int(page.locator("[data-number]").get_attribute("data-number") or 0)
    yield
    page.locator(f"[data-run=done][data-number='{number + 1}']").wait_for(timeout=WAIT_MS)


def change(page: sync_api.Page, old: str, new: str) -> None:
    program = page.locator("textarea")
    with run_again(page):
        program.fill(program.input_value().replace(old, new))


def keep(page: sync_api.Page, name: str) -> None:
    """The page as a PNG of few colours."""
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    few = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(Path(__file__).with_name(name), optimize=True)


def live(browser: sync_api.Browser) -> None:
    """`x * y + z` becomes `x * y + z * z`, and the pointer rests on that line."""
    with opened(browser, LIVE) as page:
        change(page, "x * y + z", "x * y + z * z")
        page.get_by_role("button", name="Backward", exact=True).click()
        page.locator("[data-line='5']").hover(force=True)
        keep(page, "explore.png")


def film(browser: sync_api.Browser) -> None:
    """`x * y + z` becomes `x * x * y + z`, until a pass replaces a node."""
    with opened(browser, FILM) as page:
        life = page.locator("[data-part=life]")
        life.get_by_role("button", name="Frontend", exact=True).click()
        keep(page, "film-1.png")
        change(page, "x * y + z", "x * x * y + z")
        page.locator("[data-line='5']").hover(force=True)
        keep(page, "film-2.png")
        life.get_by_role("button", name="Backward", exact=True).click()
        page.locator("[data-line='5']").hover(force=True)
        keep(page, "film-3.png")
        life.get_by_role("button", name="Placement", exact=True).click()
        life.get_by_role("button", name="arithmetic_optimizer").first.click()
        life.locator("[data-part=colour]").select_option("fate")
        keep(page, "film-4.png")
        life.get_by_role("button", name="mul, ").first.click()
        keep(page, "film-5.png")


if __name__ == "__main__":
    main()
