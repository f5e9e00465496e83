"""The live page: how long after a key the picture of each stage is there.

    python -m benchmarks.explore

Chromium types a key into the page of x*y + z and of LeNet, whose process is warm. The page waits
200 ms for another key before it runs the program; that is part of the time.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from benchmarks import report
from tflab.errors import TflabError
from tflab.records.blocks import Block, Column, Table

PAGES = {"x*y + z": (), "lenet": ("--model", "lenet")}
STAGES = ("frontend", "backward", "placement", "execution", "values")
EDITS = 10
ATTACHED = {"state": "attached", "timeout": 120_000}

# The page notes when a key was pressed, and when the picture of each stage was drawn after that
NOTE = """() => {
  window.noted = {};
  addEventListener("keydown", () => (noted = { key: performance.now() }), true);
  const life = document.querySelector("[data-run]");
  const note = () => (noted[life.dataset.stage] = performance.now());
  new MutationObserver(note).observe(life, { attributeFilter: ["data-stage"] });
}"""

Times = dict[str, dict[str, list[float]]]  # page -> stage -> seconds of each edit


def measure(quick: bool) -> Times:
    from playwright import sync_api

    browser_path = shutil.which("chromium")
    if browser_path is None:
        raise TflabError("There is no Chromium here; get it with: apt-get install chromium.")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        pages = [*PAGES.items()][: 1 if quick else None]
        times = {name: typed(browser, args, 1 if quick else EDITS) for name, args in pages}
        browser.close()
    return times


def typed(browser: object, args: tuple[str, ...], edits: int) -> dict[str, list[float]]:
    """The seconds from each key press to the picture of each stage."""
    command = [sys.executable, "-m", "tflab.explore", "--no-browser", "--seconds", "60", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            address = next(line.strip() for line in process.stdout if "http://" in line)
            page = browser.new_page()
            page.goto(address)
            page.locator("[data-run=done]").wait_for(**ATTACHED)
            times: dict[str, list[float]] = {stage: [] for stage in STAGES}
            page.evaluate(NOTE)
            page.locator("textarea").focus()
            page.keyboard.press("Control+End")
            for number in range(edits + 1):
                before = int(page.locator("[data-number]").get_attribute("data-number"))
                page.keyboard.type("#")  # all stages run again after any edit
                page.locator(f"[data-number='{before + 1}']").wait_for(**ATTACHED)
                page.locator("[data-run=done]").wait_for(**ATTACHED)
                noted = page.evaluate("noted")
                if number:  # the first edit is warm-up
                    for stage in STAGES:
                        times[stage].append((noted[stage] - noted["key"]) / 1000)
            page.close()
        finally:
            process.terminate()
    return times


def blocks(times: Times) -> Iterator[Block]:
    edits = len(next(iter(times.values()))["frontend"])
    yield Table(
        f"The live page: seconds from a key to the picture of a stage, {edits} edits",
        (
            Column("program", lambda row: row[0]),
            *(
                Column(stage, lambda row, stage=stage: spread(row[1][stage]), right=True)
                for stage in STAGES
            ),
        ),
        tuple(times.items()),
    )
    yield (
        "Targets: the picture of the execution within 1 s for x*y + z and 2 s for LeNet. The stage "
        "`values` draws the same graph once more with the numbers of a recorded step."
    )


def spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    report.show("explore")
