"""The report's page in a browser: from file://, with nothing but itself."""

import pytest

from tests.browser.conftest import ASKED, drawn, node, press, save_graph, title
from tests.examples.layer import EVIL
from tests.records_by_hand import a_frontend
from tflab.escaping import visible
from tflab.records.graph import Node
from tflab.report import graph_states, html
from tflab.units import size

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]


@pytest.fixture
def viewer(at):
    viewer = at("lenet")
    press(viewer, "scope conv1, 20 nodes, closed")
    return viewer


def test_it_opens_from_a_file_without_an_error_or_a_request(page, heard, written, artefacts):
    page.goto(written.as_uri())
    page.screenshot(path=artefacts / "report.png", full_page=True)
    assert heard == [written.as_uri()]


def test_a_hostile_name_is_only_ever_text_and_large_data_are_unpacked(
    page, heard, tmp_path, monkeypatch
):
    monkeypatch.setattr(html, "LARGE", 0)
    nodes = (Node(EVIL, EVIL), Node("b", "Op", (EVIL,)))
    path = save_graph(tmp_path / "evil.html", EVIL, (a_frontend(nodes=nodes),))
    page.goto(path.as_uri())
    search = page.locator("[data-part=search]")
    search.fill("script")
    search.press("Enter")
    assert page.locator("[data-part=panel] h4").text_content() == visible(EVIL)
    assert page.locator("img, iframe, object").count() == 0
    assert heard == [path.as_uri()]


# States


def test_buttons_lead_to_each_stage_to_each_pass_and_to_the_states_beside(viewer, lenet):
    first, second, third = (state.title for state in graph_states.states(lenet)[:3])
    assert title(viewer) == first
    for button, shown in (("Next", second), ("Next", third), ("Previous", second)):
        press(viewer, f"{button} state")
        assert title(viewer) == shown
    nodes = [len(stage.nodes) for stage in lenet[:2]]
    assert viewer.locator("[data-part=count]").inner_text() == f"{nodes[0]} → {nodes[1]} nodes"
    pictures = set()
    for stage in viewer.get_by_role("group", name="Stages", exact=True).get_by_role("button").all():
        stage.click()
        pictures.add(viewer.locator("[data-part=paper]").inner_html())
        if stage.inner_text() == "Backward":
            assert drawn(viewer) == nodes[1]
    assert len(pictures) == 4
    assert viewer.locator("[aria-current]").all_inner_texts() == ["Execution"]
    assert viewer.get_by_role("button", name="Next state").is_disabled()
    passes = viewer.get_by_role("group", name="Placement, pass by pass")
    assert not passes.is_visible()
    press(viewer, "Placement")
    changed = [step for step in lenet[2].passes if step.changed]
    assert passes.get_by_role("button").count() == len(changed)


# Nodes


def test_play_goes_from_state_to_state_until_it_is_paused_or_done(page, at):
    page.clock.install()
    viewer = at("lenet")
    for button, ms, shown in (
        ("Play", 3_100, "Backward"),
        (None, 3_000, "placer"),
        ("Pause", 30_000, "placer"),
        ("Play", 60_000, "Execution"),
    ):
        if button:
            viewer.get_by_role("button", name=button).click()
        page.clock.run_for(ms)
        assert title(viewer) == shown
    assert viewer.get_by_role("button", name="Play").is_visible()


def test_a_click_shows_a_history_that_leads_to_its_passes_and_nodes(viewer, artefacts):
    node(viewer, "conv1/Conv2D").click()
    panel = viewer.locator("[data-part=panel]")
    text = panel.inner_text()
    viewer.screenshot(path=artefacts / "report_life.png")
    assert panel.locator("h4").inner_text() == "conv1/Conv2D"
    assert viewer.get_by_role("status").last.text_content() == "conv1/Conv2D, Conv2D"
    assert panel.get_attribute("aria-live") is None  # it would be read from beginning to end
    for words in (
        "tf.nn.conv2d(images, kernel",
        "takes images, conv1/Conv2D/ReadVariableOp",
        ": fused into conv1/Relu",
        "its computation was done by conv1/Relu",
        "device of conv1/Relu: CPU:0",
    ):
        assert words in text
    assert panel.locator("thead th").all_inner_texts() == ["batch", "1", "16"]
    panel.get_by_role("link", name="remapper").click()
    assert title(viewer) == "remapper"
    press(viewer, "Execution")
    assert "related" in node(viewer, "conv1/Relu").get_attribute("class")
    assert "gone selected" in node(viewer, "conv1/Conv2D").get_attribute("class")
    panel.get_by_role("link", name="conv1/Relu").first.click()
    assert "selected" in node(viewer, "conv1/Relu").get_attribute("class")
    assert "related" in node(viewer, "conv1/BiasAdd").get_attribute("class")


def test_a_node_is_found_in_the_table_of_a_state_and_by_its_name(viewer, lenet):
    viewer.get_by_text("The nodes of this state as a table").click()
    rows = viewer.locator("[data-part=rows-of-nodes] tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(lenet[0].nodes)
    press(viewer, "Backward")
    assert rows.count() == len(lenet[1].nodes)
    rows.get_by_role("button", name="pool1/MaxPool", exact=True).click()
    assert viewer.locator(".panel h4").inner_text() == "pool1/MaxPool"
    search = viewer.locator("[data-part=search]")
    search.fill("dense2/MatMul")
    search.press("Enter")  # the scope around it opens
    assert "selected" in node(viewer, "dense2/MatMul").get_attribute("class")
    search.fill("no such node")
    search.press("Enter")
    result = viewer.locator("[data-part=search-result]")
    assert result.inner_text() == "No node has this text in its name."


def test_the_keyboard_goes_along_edges_through_states_and_to_every_control(viewer, page):
    node(viewer, "conv1/Conv2D").focus()
    page.keyboard.press("ArrowDown")
    assert focused(page, "getAttribute('aria-label')") == "conv1/BiasAdd, BiasAdd"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert viewer.locator("[data-part=panel] h4").inner_text() == "conv1/Conv2D"
    viewer.get_by_role("button", name="Frontend").focus()
    keys = ("ArrowRight", "ArrowRight", "End", "Home")
    for key, shown in zip(keys, ("Backward", "placer", "Execution", "Frontend"), strict=True):
        page.keyboard.press(key)
        assert title(viewer) == shown
        assert shown in focused(page, "textContent")
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(focused(page, "dataset.part") or "box")
    assert reached >= {"play", "present", "after", "search", "colour", "open-all", "fit", "box"}


def focused(page, what):
    return page.evaluate(f"document.activeElement.{what}")


def test_a_colour_stays_as_chosen_and_has_a_legend_and_what_is_gone_has_its_own(viewer):
    svg = viewer.locator("[data-part=paper] svg")
    legend = viewer.locator("[data-part=legend]")
    press(viewer, "Placement")
    assert svg.get_attribute("class") == "colour-kind"
    viewer.locator("[data-part=colour]").select_option("device")
    assert svg.get_attribute("class") == "colour-device"
    assert "CPU:0" in legend.inner_text()
    viewer.locator("[data-part=colour]").select_option("fate")
    press(viewer, "Execution")
    fill = "element => getComputedStyle(element).fill"
    gone = node(viewer, "conv1/Conv2D")
    assert "gone" in gone.get_attribute("class")
    fused = gone.locator("rect").last.evaluate(fill)
    assert fused not in ("none", node(viewer, "conv1/Relu").locator("rect").last.evaluate(fill))


# Values


def texts(viewer, name, kind):
    """What stands in a line of a node's box."""
    return node(viewer, name).locator(f".{kind}").all_text_contents()


def test_boxes_have_the_values_of_the_program_as_soon_as_any_are_known(at, toy):
    viewer = at("toy")
    assert viewer.locator(".value, .grad").count() == 0
    before = node(viewer, "mul").bounding_box()
    recorded = {value.tensor: value for value in toy[3].values}
    y, x = recorded["y"], recorded["x:0"]
    gradient = recorded["gradients/mul_grad/Reshape:0"]
    first = f"[{x.values[0]:.3g}, {x.values[1]:.3g}, …]"
    for stop in ("Backward", "Execution"):
        press(viewer, stop)
        assert texts(viewer, "y", "value") == [f"{y.values[0]:.3g} → {y.after.values[0]:.3g}"]
        assert texts(viewer, "y", "grad") == [f"grad {gradient.values[0]:.3g}"]
        assert texts(viewer, "x", "value") == [first]
        assert texts(viewer, "x", "grad") == []  # no variable is behind it
    press(viewer, "Backward")
    after = node(viewer, "mul").bounding_box()
    for side in ("width", "height"):
        assert after[side] == pytest.approx(before[side], rel=1e-4)
    assert "1 tensor of ?" in viewer.locator(".edge title").all_text_contents()
    press(viewer, "Open all")
    dim = viewer.locator("svg .box.bookkeeping")
    assert 0 < dim.count() < viewer.locator("svg .box.node.kind-gradient").count()


# The lines of boxes that are not within them
OUTSIDE = """boxes => boxes.flatMap(box => {
    const around = box.querySelector('rect:last-of-type').getBBox();
    return [...box.querySelectorAll('text')].filter(text => {
        const own = text.getBBox();
        return own.y < around.y - 1 || own.y + own.height > around.y + around.height + 1
            || own.x < around.x || own.x + own.width > around.x + around.width;
    }).map(text => text.textContent);
})"""


def test_all_lines_of_a_box_are_within_it(at):
    viewer = at("toy")
    press(viewer, "Open all")
    for stop in ("Frontend", "Backward", "Execution"):
        press(viewer, stop)
        assert viewer.locator("svg .box.node").evaluate_all(OUTSIDE) == [], stop


def test_tensors_that_are_sent_to_another_device_are_drawn_with_their_bytes(at, on_two, artefacts):
    viewer = at("two-devices")
    viewer.screenshot(path=artefacts / "report_two_devices.png")
    classes = "boxes => boxes.map(box => [...box.classList].find(name => /^device-/.test(name)))"
    colours = set(viewer.locator(".box.node:not(.gone)").evaluate_all(classes))
    assert colours == {"device-0", "device-1"}
    sent = viewer.locator(".edge.transfer title").all_text_contents()
    for transfer in on_two[-1].transfers:
        words = f"{size(transfer.bytes)} sent: {transfer.tensor}, "
        assert any(words in line for line in sent)
    labels = viewer.locator(".count.transfer").all_text_contents()
    assert sorted(labels) == sorted(size(transfer.bytes) for transfer in on_two[-1].transfers)


# Predictions


def test_a_page_that_asks_shows_no_results_and_then_a_prediction_beside_them(at, page, heard):
    viewer = at("toy")
    results = page.get_by_text("The results of a run.")
    assert results.is_visible()
    assert not page.get_by_role("button", name="Look").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(".predict").is_visible()
    page.emulate_media(media="screen")
    press(viewer, "Execution")
    page.get_by_role("switch", name="Predict first").click()
    assert not results.is_visible()
    stops = viewer.get_by_role("group", name="Stages", exact=True).get_by_role("button")
    assert stops.all_inner_texts() == ["Frontend", "Backward"]
    assert title(viewer) == "Backward"
    assert viewer.get_by_role("button", name="Next state").is_disabled()
    assert viewer.locator(".value, .grad").count() == 0
    viewer.locator(".box.node").first.click()
    for hidden in (".panel", ".passes", "[data-part=present]", "[data-part=colour]"):
        assert not viewer.locator(hidden).first.is_visible(), hidden
    page.get_by_role("spinbutton", name="How many nodes will run?").fill("60")
    page.get_by_role("radio", name="a/b").check()
    press(page, "Look")
    assert focused(page, "dataset.part") == "answers"
    assert results.is_visible()
    assert stops.count() == 4
    rows = page.locator("[data-part=rows] tr").all()
    assert [row.locator("td").all_text_contents() for row in rows] == [
        ["How many nodes will run?", "60 nodes: close, 20 too low", "80 nodes", ASKED[0].reason],
        [visible(ASKED[1].text), "a/b: not this one", visible(EVIL), "It was fused."],
    ]
    page.emulate_media(media="print")
    assert page.locator("[data-part=answers]").is_visible()
    assert not page.get_by_role("button").first.is_visible()
    assert set(heard) == {page.url}


# The timeline of a step


def test_a_timeline_is_zoomed_by_wheel_and_keys_and_says_what_an_op_took(at, page):
    at("toy")
    drawn = page.locator(".slices")
    named = lambda: drawn.locator("g text").all_text_contents()  # noqa: E731
    assert named() == ["layer/first"]
    box = drawn.bounding_box()
    drawn.hover(position={"x": 0.61 * box["width"], "y": 60})
    said = page.locator(".slice-said").inner_text()
    assert said == "layer/second (Relu): 20.0 us, from 600 us on"
    for _ in range(8):
        page.mouse.wheel(0, -100)
    assert named() == ["layer/first", "layer/second"]
    drawn.press("0")
    assert named() == ["layer/first"]
    assert drawn.locator("text.tick").first.text_content() == "0 ms"
