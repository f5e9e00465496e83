"""The live page: how long after a key the picture of each stage is there.

    python -m benchmarks.explore

Chromium types a key into the page of x*y + z, of LeNet and of a chain, whose process is warm. The
page waits 200 ms for another key before it runs the program; that is part of the time. Then the
chain, with some 300 nodes, all of them open, shows something else in each frame, and a page with
some 10,000 nodes is opened and scrolled.
"""

from __future__ import annotations

import json
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
# What happens in each frame: a selector, and the event that each of its elements gets in turn
ACTS = {
    "another state": ("[data-state]", "click"),
    "the history of another node": ("svg .node", "click"),
    "the nodes of another line": ("svg .node", "mouseover"),
}
# The milliseconds between frames, and those of the script in each
TURNS = """async ([frames, selector, event]) => {
  const viewer = document.querySelector("[data-part=life] .viewer");
  viewer.querySelector("[data-part=open-all]").click();
  const targets = [...viewer.querySelectorAll(selector)];
  const frame = () => new Promise(requestAnimationFrame);
  const gaps = [], scripts = [];
  let last = await frame();
  for (let number = 0; number < frames; number++) {
    const now = await frame();
    gaps.push(now - last);
    last = now;
    const start = performance.now();
    targets[number % targets.length].dispatchEvent(new MouseEvent(event, { bubbles: true }));
    scripts.push(performance.now() - start);
  }
  return { boxes: viewer.querySelectorAll("svg [data-box]").length, gaps, scripts };
}"""

# A graph that has some 10,000 nodes with its gradients, most of them in scopes
HUGE = """\
x = tf1.placeholder(tf.float32, [None], name="x")
y = x
for block in range(33):
    with tf1.name_scope(f"block{block}"):
        for layer in range(4):
            with tf1.name_scope(f"layer{layer}"):
                for _ in range(4):
                    y = tf.tanh(y) * x + 1.0
loss = tf.reduce_sum(y, name="loss")
"""
SMALLER = HUGE.replace("range(33)", "range(2)")
DRAWN = """async () => {
  for (let number = 0; number < 2; number++) await new Promise(requestAnimationFrame);
  return performance.now();
}"""

SCROLLED = 3  # seconds
# The drawing moves 60 pixels in each frame, to and fro
SCROLL = """async (seconds) => {
  const paper = document.querySelector("[data-part=paper]");
  paper.scrollIntoView({ block: "center" });
  const end = performance.now() + 1000 * seconds;
  for (let far = 60; performance.now() < end; ) {
    await new Promise(requestAnimationFrame);
    const before = paper.scrollTop;
    paper.scrollTop += far;
    if (paper.scrollTop === before) far = -far;
  }
}"""
FRAME_EVENTS = "disabled-by-default-devtools.timeline.frame"

Times = dict[str, dict[str, list[float]]]  # page -> stage -> seconds of each edit
Turns = dict[str, dict[str, Any]]  # act -> what TURNS returns
# The nodes of a page, the seconds until they were drawn, the frames a second while it scrolled
Opened = tuple[int, float, float]


def measure(quick: bool) -> tuple[Times, Turns, Opened]:
    from playwright import sync_api

    browser_path = shutil.which("chromium")
    if browser_path is None:
        raise TflabError("There is no Chromium here; get it with: apt-get install chromium.")
    with sync_api.sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        Path(folder, "chain.py").write_text(PROGRAM, encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        times, turns = {}, {}
        for name in [*PAGES][: 1 if quick else None]:
            with opened(browser, folder, PAGES[name]) as page:
                times[name] = typed(page, 1 if quick else EDITS)
                if quick or name == CHAIN:
                    turns = turned(page, 2 if quick else FRAMES)
        huge = drawn(browser, folder, SMALLER if quick else HUGE)
        browser.close()
    return times, turns, huge


@contextmanager
def opened(browser: Any, folder: str, args: tuple[str, ...]) -> Iterator[Any]:
    """A live page that has run its program."""
    command = [sys.executable, "-m", "tflab.explore", "--no-browser", *args]
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


def turned(page: Any, frames: int) -> Turns:
    """Each of ACTS, once in a frame."""
    page.evaluate(TURNS, [4, *ACTS["another state"]])  # warm-up
    return {act: page.evaluate(TURNS, [frames, *how]) for act, how in ACTS.items()}


def drawn(browser: Any, folder: str, program: str) -> Opened:
    """A page with the graph of a program and its gradients, opened as a file and scrolled.
    Chromium's own trace has the frames that it drew."""
    from tflab.explore import markup, stages_as_data
    from tflab.explore.request import ProgramRequest, Source

    walked = stages_as_data.walk_program(ProgramRequest(program), Source("huge.py"))
    shown = next(message for message in walked if message["stage"] == "backward")
    path = Path(folder, "huge.html")
    path.write_text(markup.page_of(shown), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    milliseconds = page.evaluate(DRAWN)
    page.evaluate(SCROLL, 1)  # warm-up
    browser.start_tracing(page=page, categories=["devtools.timeline.frame", FRAME_EVENTS])
    page.evaluate(SCROLL, SCROLLED)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    frames = sum(event["name"] == "DrawFrame" for event in events)
    return len(shown["graph"]["nodes"]), milliseconds / 1000, frames / SCROLLED


def blocks(result: tuple[Times, Turns, Opened]) -> Iterator[Block]:
    times, turns, (nodes, seconds, frames) = result
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
    boxes = turns["another state"]["boxes"]
    yield Table(
        f"Something else in each frame, in a graph with {boxes} boxes: milliseconds, medians of "
        f"{len(turns['another state']['gaps'])}",
        (
            Column("in each frame", lambda row: row[0]),
            Column("from frame to frame", lambda row: f"{median(row[1]['gaps']):.1f}", right=True),
            Column("script", lambda row: f"{median(row[1]['scripts']):.1f}", right=True),
        ),
        tuple(turns.items()),
    )
    yield "Target: 16.7 ms from frame to frame, which is 60 frames a second."
    yield (
        f"A page with {nodes:,} nodes in closed scopes was drawn {seconds:.1f} s after it was "
        f"opened. While it scrolled, Chromium drew {frames:.0f} frames a second. Targets: 3 s and "
        "30 frames."
    )


def spread(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


if __name__ == "__main__":
    report.show("explore")
