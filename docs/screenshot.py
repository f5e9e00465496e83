"""Take the pictures of the pages anew: the graph of LeNet as it ran, beside a node's history;
without an address, the live page after an edit; of a TensorBoard, its tab Life.

python -m tflab.report --model lenet --chapters graph --out DIR
python docs/screenshot.py DIR/report.html
python docs/screenshot.py
tensorboard --logdir runs --port 6006
python docs/screenshot.py http://localhost:6006
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from playwright import sync_api

WINDOW = {"width": 1360, "height": 1420}
LIVE = {"width": 1440, "height": 860}
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
        else:
            picture = tab if sys.argv[1].startswith("http") else report
            picture(browser, sys.argv[1])
        browser.close()


def report(browser: sync_api.Browser, file: str) -> None:
    page = browser.new_page(viewport=WINDOW)
    page.goto(Path(file).resolve().as_uri())
    viewer = page.locator(".viewer").last
    viewer.get_by_role("button", name="Ran").click()
    viewer.get_by_role("button", name="conv1/Conv2D, ", exact=False).first.click()
    viewer.get_by_label("time", exact=True).check()
    viewer.screenshot(path=Path(__file__).with_name("report.png"))


def tab(browser: sync_api.Browser, address: str) -> None:
    page = browser.new_page(viewport=TAB)
    page.goto(f"{address}/#tflab_life")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="scope conv1, ").first.click(timeout=WAIT_MS)
    frame.get_by_role("button", name="conv1/Conv2D, ").first.click()
    frame.locator(".panel h4").wait_for()
    page.screenshot(path=Path(__file__).with_name("life.png"))


def live(browser: sync_api.Browser) -> None:
    """`x * y + z` becomes `x * y + z * z`, and the pointer rests on that line."""
    command = [sys.executable, "-m", "tflab.explore", "--no-browser", "--seconds", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            address = next(line.strip() for line in process.stdout if "http://" in line)
            page = browser.new_page(viewport=LIVE)
            page.goto(address)
            page.locator("[data-run=done]").wait_for(timeout=WAIT_MS)
            program = page.locator("textarea")
            program.fill(program.input_value().replace("x * y + z", "x * y + z * z"))
            page.locator("[data-run=done][data-number='2']").wait_for(timeout=WAIT_MS)
            page.get_by_role("button", name="With gradients").click()
            page.locator("[data-line='5']").hover(force=True)
            page.screenshot(path=Path(__file__).with_name("explore.png"))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
