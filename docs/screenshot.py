"""Take the picture of the page anew: the graph of LeNet as it ran, beside a node's history.

python -m tflab.report --model lenet --chapters graph --out DIR
python docs/screenshot.py DIR/report.html
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright import sync_api

WINDOW = {"width": 1360, "height": 1420}


def main() -> None:
    chromium = shutil.which("chromium")
    if len(sys.argv) != 2 or chromium is None:
        sys.exit(f"{__doc__}\nIt takes the address of one page, and a chromium on the PATH.")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW)
        page.goto(Path(sys.argv[1]).resolve().as_uri())
        viewer = page.locator(".viewer").last
        viewer.get_by_role("button", name="Ran").click()
        viewer.get_by_role("button", name="conv1/Conv2D, ", exact=False).first.click()
        viewer.get_by_label("time", exact=True).check()
        viewer.screenshot(path=Path(__file__).with_name("report.png"))
        browser.close()


if __name__ == "__main__":
    main()
