"""The live page: how long after a key the picture of each stage is there.

    python -m benchmarks.explore

Chromium types a key into the page of x*y + z, of LeNet and of a chain, whose process is warm. The
page waits 200 ms for another key before it runs the program; that is part of the time. Then the
states of the chain, with some 300 nodes, all of them open, are shown in turn: one in each frame.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import report
from tflab.errors import TflabError
from tflab.records.blocks import Block, Column, Table

CHAIN = "a chain"
PAGES = {"x*y + z": (), "lenet": ("--model", "lenet"), CHAIN: ("chain.py",)}
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

# It is drawn with some 300 nodes in its last states
PROGRAM = """\
x = tf1.placeholder(tf.float32, [None], name="x")
y = x
for _ in range(22):
    y = tf.tanh(y) * x
loss = tf.reduce_sum(y, name="loss")
"""
FRAMES = 60
# The milliseconds between frames, and those of the script in each, while states take turns
TURNS = """async (frames) => {
  const viewer = document.querySelector("[data-part=life] .viewer");
  viewer.querySelector("[data-part=open-all]").click();
  const states = [...viewer.querySelectorAll("[data-state]")];
  const frame = () => new Promise(requestAnimationFrame);
  const gaps = [], scripts = [];
  let last = await frame();
  for (let number = 0; number < frames; number++) {
    const now = await frame();
    gaps.push(now - last);
    last = now;
    const start = performance.now();
    states[number % states.length].click();
    scripts.push(performance.now() - start);
  }
  return { boxes: viewer.querySelectorAll("svg [data-box]").length, gaps, scripts };
}"""

Times = dict[str, dict[str, list[float]]]  # page -> stage -> seconds of each edit
Turns = dict[str, Any]  # what TURNS returns


def measure(quick: bool) -> tuple[Times, Turns]:
    from playwright import sync_api

    browser_path = shutil.which("chromium")
    if browser_path is None:
        raise TflabError("There is no Chromium here; get it with: apt-get install chromium.")
    with sync_api.sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        Path(folder, "chain.py").write_text(PROGRAM, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        times = {}
        for name in [*PAGES][: 1 if quick else None]:
            with opened(browser, folder, PAGES[name]) as page:
                times[name] = typed(page, 1 if quick else EDITS)
                if quick or name == CHAIN:
                    page.evaluate(TURNS, 4)  # warm-up
                    turns = page.evaluate(TURNS, 2 if quick else FRAMES)
        browser.close()
    return times, turns


@contextmanager
def opened(browser: Any, folder: str, args: tuple[str, ...]) -> Iterator[Any]:
    """A live page that has run its program."""
    command = [sys.executable, "-m", "tflab.explore", "--no-browser", "--seconds", "60", *args]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            address = next(line.strip() for line in process.stdout if "http://" in line)
            page = browser.new_page()
            page.goto(address)
            page.locator("[data-run=done]").wait_for(**ATTACHED)
            yield page
            page.close()
        finally:
            process.terminate()


def typed(page: Any, edits: int) -> dict[str, list[float]]:
    """The seconds from each key press to the picture of each stage."""
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
    return times


def blocks(result: tuple[Times, Turns]) -> Iterator[Block]:
    times, turns = result
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
    gap, script = (median(turns[name]) for name in ("gaps", "scripts"))
    yield (
        f"Another state in each frame, of a graph with {turns['boxes']} boxes: a frame took "
        f"{gap:.1f} ms, {script:.1f} ms of it in the page's script (medians of "
        f"{len(turns['gaps'])}). Target: 16.7 ms, which is 60 frames a second."
    )


def spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    report.show("explore")
