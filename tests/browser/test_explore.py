"""The live page in a browser: an edit, an error, the file, and the state in the address."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.browser.conftest import node

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

WAIT_MS = 120_000  # TensorFlow's import and all stages, on a machine with other work
PROGRAM = """\
x = tf1.placeholder(tf.float32, [None], name="x")
y = tf1.get_variable("y", initializer=2.0)
z = tf1.get_variable("z", initializer=1.0)
loss = tf.reduce_sum(x * y + z, name="loss")
"""


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """The address of a page, and the file that it follows."""
    path = tmp_path_factory.mktemp("program") / "mine.py"
    path.write_text(PROGRAM)
    command = [sys.executable, "-m", "tflab.explore", str(path), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stdout.readline, "")
            yield next(line.strip() for line in lines if "http://" in line), path
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture
def opened(page, live):
    address, path = live
    path.write_text(PROGRAM)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(address)
    ran(page)
    yield page
    assert said == []


def ran(page, how="done"):
    page.locator(f"[data-run={how}]").wait_for(state="attached", timeout=WAIT_MS)


@contextmanager
def next_run(page):
    """What is done in it makes the page run the program once more."""
    before = page.locator("[data-number]").get_attribute("data-number")
    yield
    begun = page.locator(f"[data-number]:not([data-number='{before}'])")
    begun.wait_for(state="attached", timeout=WAIT_MS)


def write(page, text):
    with next_run(page):
        page.locator("textarea").fill(text)


def test_an_edit_is_marked_and_an_error_stands_at_its_line(opened, artefacts):
    page = opened
    write(page, PROGRAM.replace("+ z", "+ z * z"))
    ran(page)
    page.screenshot(path=artefacts / "explore.png", full_page=True)
    assert page.locator(".editor").evaluate("e => e.scrollWidth <= e.clientWidth")  # no line is cut
    rows = page.locator(".since tr", has=page.get_by_role("cell", name="new", exact=True))
    assert "mul_1" in rows.inner_text()
    assert "new" in node(page, "mul_1").text_content()
    assert "changed" in node(page, "add").text_content()
    write(page, PROGRAM.replace("+ z", "+ unknown"))
    ran(page, "failed")
    error = page.locator("[data-part=error]")
    assert error.inner_text() == "Line 4: NameError: name 'unknown' is not defined"
    assert page.locator(".line.wrong").get_attribute("data-line") == "4"
    assert page.locator("[data-part=life].stale").count() == 1
    assert node(page, "mul_1").count() == 1  # the last life stays
    write(page, PROGRAM)
    ran(page)
    assert not error.is_visible()
    assert page.locator(".stale").count() == 0


def test_a_line_and_its_nodes_have_one_colour_and_light_up_together(opened):
    page = opened
    kernel = page.locator(".line[data-line='2']")
    (colour,) = set(kernel.get_attribute("class").split()) - {"line"}
    assert colour in node(page, "scope y").get_attribute("class").split()
    page.locator("textarea").click()
    assert page.locator("textarea:focus").count() == 1
    kernel.hover(force=True)
    assert "lit" in node(page, "scope y").get_attribute("class").split()
    assert "lit" not in node(page, "loss").get_attribute("class").split()
    node(page, "loss").hover()
    lit = page.locator(".line.lit")
    assert [line.get_attribute("data-line") for line in lit.all()] == ["4"]
    page.get_by_role("heading", name="mine.py").hover()
    assert lit.count() == 0


def test_what_is_looked_at_stays_through_edits(opened):
    page = opened
    page.get_by_role("button", name="Backward").click()
    page.locator("[data-part=colour]").select_option("fate")
    node(page, "loss").click()
    write(page, PROGRAM.replace("+ z", "+ z * z"))
    ran(page)
    assert page.locator("[data-part=title]").inner_text() == "Backward"
    assert page.locator(".panel h4").inner_text() == "loss"
    assert page.locator("svg.colour-fate").count() == 1


def test_the_page_asks_before_it_shows_the_results_of_an_edit(opened, artefacts):
    page = opened
    with next_run(page):
        page.get_by_role("switch", name="Predict first").click()
    with next_run(page):
        page.locator("textarea").fill(PROGRAM.replace("+ z", "+ z * z"))
    run = page.get_by_role("spinbutton", name="How many of these")
    run.wait_for(timeout=WAIT_MS)
    stages = page.get_by_role("group", name="Stages").get_by_role("button")
    assert stages.all_inner_texts() == ["Frontend"]
    assert page.locator("[data-part=parts] *").count() == page.locator(".since table").count() == 0
    run.fill("1000000")
    page.get_by_role("button", name="Look").click()
    page.screenshot(path=artefacts / "predicted.png")
    assert "too high" in page.locator("[data-part=rows]").inner_text()
    assert stages.count() > 3
    assert "mul_1" in page.locator(".since table").first.inner_text()
    page.get_by_role("switch", name="Predict first").click()
    assert stages.count() > 3
    assert not page.get_by_role("button", name="Look").is_visible()


def test_the_file_is_followed_and_edits_are_kept_in_the_address(opened, live, chromium):
    page, (address, path) = opened, live
    with next_run(page):
        path.write_text(PROGRAM.replace("+ z", "- z"))
    assert "- z" in page.locator("textarea").input_value()
    ran(page)
    mine = PROGRAM.replace("+ z", "/ z")
    write(page, mine)
    with next_run(page):
        page.get_by_label("CPU devices").select_option("2")
    ran(page)
    other = chromium.new_page()  # without what the first has
    other.goto(f"{address}#{page.url.partition('#')[2]}")
    other.get_by_role("button", name="Run it").click()  # it may come from anybody
    ran(other)
    assert other.locator("textarea").input_value() == mine
    assert other.get_by_label("CPU devices").input_value() == "2"
    ran(page)
    other.close()
