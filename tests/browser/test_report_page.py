"""The report's page in a browser: from file://, with nothing but itself."""

import re
from dataclasses import replace

import pytest

from tests.examples.layer import EVIL, STAGES
from tflab.analysis import critical_path
from tflab.escaping import visible
from tflab.follow import measurement, node_history
from tflab.records.blocks import Column, Table
from tflab.records.graph import Node
from tflab.records.options import Options
from tflab.records.stages import Backward, Frontend, Gradient, Placement
from tflab.report import drawing, graph_states, html, stops
from tflab.report.contents import Beside, Chapter, DrawnGraph, Picture, Question, Report
from tflab.units import size

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

PHONE = 400  # pixels across


def drawn_graph(name, stages, histories=None, ns=None):
    histories = histories or node_history.histories(stages)
    return DrawnGraph(name, drawing.draw(stages, histories), histories, ns or {}, 16)


def save(path, *graphs):
    chapters = tuple(Chapter(graph.name, ("A paragraph.", graph)) for graph in graphs)
    page = html.page(Report("A report", "About it.", "python -m tflab.report", chapters))
    path.write_text(page, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def lenet(walked):
    return tuple(walked("lenet").values())


@pytest.fixture(scope="module")
def written(lenet, tmp_path_factory):
    """A page with LeNet, whose times were measured at two batch sizes."""
    histories = measurement.follow(lenet, (1, 16), Options(steps=5)).histories
    graph = drawn_graph("lenet", lenet, histories, critical_path.median_per_step(lenet[3].runs))
    return save(tmp_path_factory.mktemp("report") / "report.html", graph)


@pytest.fixture
def heard(page):
    return heard_from(page)


def heard_from(page):
    """What the page says to the console, and what it asks for."""
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url))
    return heard


@pytest.fixture
def viewer(page, written):
    page.goto(written.as_uri())
    return page.locator(".viewer")


def node(viewer, name):
    return viewer.get_by_role("button", name=f"{name}, ", exact=False).first


def go(viewer, state):
    viewer.locator(f"[data-state='{state}']").last.click()


def drawn(viewer):
    """How many nodes are drawn, in boxes of their own or counted in closed scopes."""
    return viewer.locator("svg [data-count]").evaluate_all(
        "boxes => boxes.reduce((sum, box) => sum + Number(box.dataset.count), 0)"
    )


def test_it_opens_from_a_file_without_an_error_or_a_request(page, heard, written, artefacts):
    page.goto(written.as_uri())
    page.screenshot(path=artefacts / "report.png", full_page=True)
    assert heard == [written.as_uri()]


def test_compressed_data_are_drawn_alike(page, heard, tmp_path, monkeypatch):
    monkeypatch.setattr(html, "LARGE", 0)
    path = save(tmp_path / "report.html", drawn_graph("a graph", STAGES))
    page.goto(path.as_uri())
    node(page.locator(".viewer"), "loss").wait_for()
    assert heard == [path.as_uri()]


def test_a_click_shows_a_history_from_its_line_to_its_time(viewer, artefacts):
    node(viewer, "conv1/Conv2D").click()
    panel = viewer.locator("[data-part=panel]")
    text = panel.inner_text()
    viewer.screenshot(path=artefacts / "report_life.png")
    assert panel.locator("h4").inner_text() == "conv1/Conv2D"
    assert viewer.get_by_role("status").last.text_content() == "conv1/Conv2D, Conv2D"
    assert panel.get_attribute("aria-live") is None  # it would be read from beginning to end
    assert "tf.nn.conv2d(images, kernel" in text
    for words in (
        "takes images, conv1/Conv2D/ReadVariableOp",
        "): fused into conv1/Relu",
        "its computation was done by conv1/Relu",
        "device CPU:0",
    ):
        assert words in text
    sizes = panel.locator("thead th").all_inner_texts()
    assert sizes == ["batch", "1", "16"]
    heads = panel.locator("tbody th").all_inner_texts()
    assert (heads[:4], heads[-1]) == (["calls", "mean", "median", "p95"], "GFLOP/s")
    assert panel.locator("tbody tr").first.locator("td").count() == 2
    mean = panel.locator("tbody tr", has_text="mean").locator("td").all_inner_texts()
    assert len(mean) == 2
    assert all(cell.endswith(("us", "ms")) for cell in mean)


def test_each_state_has_a_labelled_button(viewer, lenet):
    placement = next(stage for stage in lenet if isinstance(stage, Placement))
    for number, state in enumerate(graph_states.states(lenet)):
        go(viewer, number)
        if state.place is not None:
            step = placement.passes[state.place]
            assert viewer.locator("[data-part=title]").inner_text() == state.title
            assert drawn(viewer) == step.after
    assert drawn(viewer) == len(placement.nodes)


def test_the_buttons_go_to_the_stages(viewer, lenet):
    viewer.get_by_role("button", name="With gradients").click()
    assert drawn(viewer) == len(lenet[1].nodes)
    viewer.get_by_role("button", name="Ran").click()
    assert viewer.locator("[aria-current]").all_inner_texts() == ["5 Ran"]
    assert viewer.get_by_role("button", name="Next state").is_disabled()


def test_two_buttons_go_one_state_on_and_back(viewer, lenet):
    first, second, third = (state.title for state in graph_states.states(lenet)[:3])
    title = viewer.locator("[data-part=title]")
    assert title.inner_text() == first
    for button, shown in (
        ("Next state", second),
        ("Next state", third),
        ("Previous state", second),
    ):
        viewer.get_by_role("button", name=button).click()
        assert title.inner_text() == shown
    nodes = [len(stage.nodes) for stage in lenet[:2]]
    assert viewer.locator("[data-part=count]").inner_text() == f"{nodes[0]} → {nodes[1]} nodes"


def test_no_two_stages_have_the_same_picture(viewer):
    pictures = []
    for stop in viewer.get_by_role("group", name="Stages", exact=True).get_by_role("button").all():
        stop.click()
        pictures.append(viewer.locator("[data-part=paper]").inner_html())
    assert len(set(pictures)) == 5


def test_a_reader_who_chooses_a_colour_keeps_it(viewer):
    svg = viewer.locator("[data-part=paper] svg")
    viewer.get_by_role("button", name="Placed").click()
    assert svg.get_attribute("class") == "colour-device"
    assert node(viewer, "conv1/Conv2D").locator(".type").text_content() == "CPU:0"
    viewer.get_by_label("fate", exact=True).check()
    viewer.get_by_role("button", name="Ran").click()
    assert svg.get_attribute("class") == "colour-fate"


def test_passes_are_named_with_their_iteration_and_their_change(viewer, lenet):
    placement = next(stage for stage in lenet if isinstance(stage, Placement))
    buttons = viewer.get_by_role("group", name="Rewritten, pass by pass").get_by_role("button")
    changed = [step for step in placement.passes if graph_states.changed(step)][1:]
    for button, step in zip(buttons.all(), changed, strict=True):
        words = button.inner_text().split()
        assert words[0] == step.name
        assert words[1:-1] == (["iteration", f"{step.iteration + 1}"] if step.iteration else [])
        by = {"\N{MINUS SIGN}": -1, "+": 1, "±": 0}[words[-1][0]] * int(words[-1][1:])
        assert by == step.after - step.before


def test_idle_passes_stand_behind_a_disclosure(viewer):
    idle = viewer.locator(".idle")
    assert idle.locator("summary").inner_text().endswith("other runs of passes changed nothing")
    assert not idle.get_by_text("memory_optimizer").is_visible()
    idle.locator("summary").click()
    assert idle.get_by_text("memory_optimizer").is_visible()


def places(viewer):
    """Where the box of each drawn node stands on the screen."""
    return dict(
        viewer.locator("svg [data-box]").evaluate_all(
            """boxes => boxes.map(box => {
                const rect = box.querySelector('rect:last-of-type').getBoundingClientRect();
                return [box.dataset.box, [rect.x + scrollX, rect.y + scrollY].map(Math.round)];
            })"""
        )
    )


@pytest.mark.parametrize("across", [PHONE, 1280])
def test_the_drawing_stays_where_it_is_from_state_to_state(page, written, lenet, across):
    page.set_viewport_size({"width": across, "height": 900})
    page.goto(written.as_uri())
    viewer = page.locator(".viewer")
    known = {}
    for number in range(len(graph_states.states(lenet))):
        go(viewer, number)
        for box, place in places(viewer).items():
            assert known.setdefault(box, place) == place


# How many of the boxes that were in the page first leave it; one that is moved leaves it, too
LEFT = """svg => {
  window.left = 0;
  svg.querySelectorAll("[data-box]").forEach((box) => (box.first = true));
  const removed = (records) => records.flatMap((record) => [...record.removedNodes]);
  const count = (records) => (window.left += removed(records).filter((part) => part.first).length);
  new MutationObserver(count).observe(svg, { childList: true, subtree: true });
}"""


def test_a_state_is_drawn_as_if_it_had_been_the_first(page, viewer, lenet, written):
    """Only what differs is changed: boxes that stay are not moved, and the picture is the same."""
    last = len(graph_states.states(lenet)) - 1
    picture = viewer.locator("[data-part=paper] svg")
    picture.evaluate(LEFT)
    for state in (last, 1, 3, 2):
        go(viewer, state)
    assert page.evaluate("left") == 0
    changed = picture.evaluate("svg => svg.outerHTML")
    page.goto(written.as_uri())
    go(viewer, 2)
    assert changed == picture.evaluate("svg => svg.outerHTML")


def test_the_nodes_of_a_state_can_be_read_as_a_table(viewer, lenet):
    viewer.get_by_text("The nodes of this state as a table").click()
    rows = viewer.locator("[data-part=rows-of-nodes] tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(lenet[0].nodes)
    viewer.get_by_role("button", name="With gradients").click()
    assert rows.count() == len(lenet[1].nodes)
    rows.get_by_role("button", name="pool1/MaxPool", exact=True).click()
    assert viewer.locator(".panel h4").inner_text() == "pool1/MaxPool"


def test_play_goes_from_state_to_state_until_it_is_paused_or_done(page, written):
    page.clock.install()
    page.goto(written.as_uri())
    viewer = page.locator(".viewer")
    viewer.get_by_role("button", name="Play").click()
    page.clock.run_for(3_100)
    assert viewer.locator("[data-part=title]").inner_text() == "With gradients"
    page.clock.run_for(3_000)
    assert viewer.locator("[data-part=title]").inner_text() == "placer"
    viewer.get_by_role("button", name="Pause").click()
    page.clock.run_for(30_000)
    assert viewer.locator("[data-part=title]").inner_text() == "placer"
    viewer.get_by_role("button", name="Play").click()
    page.clock.run_for(60_000)
    assert viewer.locator("[data-part=title]").inner_text() == "Ran"
    assert viewer.get_by_role("button", name="Play").is_visible()


def test_what_is_gone_keeps_the_colour_of_its_fate(viewer):
    viewer.get_by_role("button", name="Ran").click()
    viewer.get_by_label("fate", exact=True).check()
    fill = "element => getComputedStyle(element).fill"
    gone = node(viewer, "conv1/Conv2D")
    assert "gone" in gone.get_attribute("class")
    fused = gone.locator("rect").last.evaluate(fill)
    assert fused not in ("none", node(viewer, "conv1/Relu").locator("rect").last.evaluate(fill))


def test_an_arrow_from_backward_to_forward_says_why_it_is_there(viewer):
    notes = viewer.locator("[data-part=notes] li")
    assert notes.count() == 0
    viewer.get_by_role("button", name="Ran").click()
    assert notes.all_inner_texts() == [
        "loss/mean takes gradients/loss/mean_grad/mod: common_subgraph_elimination found it equal "
        "to loss/Const, and kept one of the two."
    ]
    assert viewer.locator(".edge.merged").count() == 1


def test_scopes_of_gradients_have_names_of_their_own(viewer):
    viewer.get_by_role("button", name="With gradients").click()
    names = viewer.locator("svg .scope .name").all_text_contents()
    assert "+ conv2" in names
    assert "+ conv2 gradients" in names
    assert len(names) == len(set(names))


def test_scopes_open_and_close(viewer):
    before = drawn(viewer)
    viewer.get_by_role("button", name="scope conv2, 20 nodes, closed").click()
    opened = viewer.get_by_role("button", name="scope conv2, open")
    assert opened.get_attribute("aria-expanded") == "true"
    assert node(viewer, "conv2/Conv2D").is_visible()
    assert drawn(viewer) == before
    opened.click()
    assert viewer.get_by_role("button", name="scope conv2, 20 nodes, closed").is_visible()


def test_a_fused_node_lights_up_the_one_that_does_its_work(viewer):
    node(viewer, "conv1/Conv2D").click()
    viewer.get_by_role("button", name="Ran").click()
    assert "related" in node(viewer, "conv1/Relu").get_attribute("class")
    assert "gone selected" in node(viewer, "conv1/Conv2D").get_attribute("class")
    viewer.locator("[data-part=panel]").get_by_role("link", name="conv1/Relu").first.click()
    assert "selected" in node(viewer, "conv1/Relu").get_attribute("class")
    assert "related" in node(viewer, "conv1/BiasAdd").get_attribute("class")


def test_a_link_to_a_pass_goes_to_its_state(viewer):
    node(viewer, "conv1/Conv2D").click()
    viewer.locator("[data-part=panel]").get_by_role("link", name="remapper").click()
    assert viewer.locator("[data-part=title]").inner_text() == "remapper"


def test_a_search_opens_what_the_node_is_in(viewer):
    search = viewer.locator("[data-part=search]")
    search.fill("dense2/MatMul")
    search.press("Enter")
    assert "selected" in node(viewer, "dense2/MatMul").get_attribute("class")
    search.fill("no such node")
    search.press("Enter")
    result = viewer.locator("[data-part=search-result]")
    assert result.inner_text() == "No node has this text in its name."


# The edge under the mouse, four pixels beside the middle of a line
REACHED = """edge => {
  edge.scrollIntoView({ block: "center" });
  const line = edge.querySelector(".line"), middle = line.getTotalLength() / 2;
  const [before, after] = [middle - 1, middle + 1].map((length) => line.getPointAtLength(length));
  const far = 4 / Math.hypot(after.x - before.x, after.y - before.y);
  const { x, y } = line.getPointAtLength(middle);
  const at = new DOMPoint(x + far * (before.y - after.y), y + far * (after.x - before.x));
  const beside = at.matrixTransform(line.getScreenCTM());
  const under = document.elementFromPoint(beside.x, beside.y).closest(".edge");
  return under && under.dataset.edge;
}"""


def test_an_edge_is_reached_beside_its_line(viewer):
    edge = viewer.locator(".edge").first
    ends = edge.get_attribute("data-edge")
    assert ">" in ends
    assert edge.evaluate(REACHED) == ends


def test_the_keyboard_goes_along_the_edges(viewer, page):
    node(viewer, "conv1/Conv2D").focus()
    page.keyboard.press("ArrowDown")
    assert focused(page) == "conv1/BiasAdd, BiasAdd"
    page.keyboard.press("ArrowUp")
    assert focused(page).startswith("conv1/Conv2D")
    page.keyboard.press("Enter")
    assert viewer.locator("[data-part=panel] h4").inner_text() == "conv1/Conv2D"
    viewer.get_by_role("button", name="1 Written").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert viewer.locator("[data-part=title]").inner_text() == "model_pruner"
    assert page.evaluate("document.activeElement.textContent.trim()").startswith("model_pruner")
    page.keyboard.press("End")
    assert viewer.locator("[data-part=title]").inner_text() == "Ran"
    page.keyboard.press("Home")
    assert viewer.locator("[data-part=title]").inner_text() == "Written"


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_every_control_can_be_reached_with_tab(viewer, page):
    viewer.get_by_role("button", name="1 Written").focus()
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.part || 'box'"))
    assert reached >= {"play", "after", "search", "open-all", "close-all", "fit", "box"}


@pytest.mark.parametrize("colour", ["fate", "device", "time"])
def test_colours_have_a_legend(viewer, colour):
    viewer.get_by_role("button", name="Ran").click()
    viewer.get_by_label(colour, exact=True).check()
    words = viewer.locator("[data-part=legend]").inner_text()
    assert {"fate": "fused", "device": "CPU:0", "time": "did not run"}[colour] in words
    if colour == "time":
        steps = words.split("\n")[:7]
        assert steps[0] == "less (median)"
        assert all(re.fullmatch(r"from [\d.]+ (ns|us|ms)", step) for step in steps[1:])
    assert viewer.locator(f"svg [class*={'heat' if colour == 'time' else colour}-]").count()


def test_a_narrow_window_has_one_column(page, written, artefacts):
    page.set_viewport_size({"width": PHONE, "height": 800})
    page.goto(written.as_uri())
    page.screenshot(path=artefacts / "report_narrow.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    tools, drawing = (page.locator(name).first.bounding_box() for name in (".tools", ".stage-view"))
    words = page.locator("[data-part=passes]").bounding_box()
    assert tools["y"] - words["y"] - words["height"] < 20  # nothing is kept free above the drawing
    assert drawing["y"] == pytest.approx(tools["y"] + tools["height"], abs=1)
    node(page.locator(".viewer"), "pool1/MaxPool").click()
    paper = page.locator("[data-part=paper]").bounding_box()
    panel = page.locator("[data-part=panel]").bounding_box()
    assert panel["y"] >= paper["y"] + paper["height"]


def test_paper_gets_a_drawing_of_each_stage_and_no_controls(page, written, artefacts):
    page.goto(written.as_uri())
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.screenshot(path=artefacts / "report_print.png", full_page=True)
    captions = page.locator(".prints figcaption").all_inner_texts()
    assert [caption.partition(":")[0] for caption in captions] == [
        "1 Written",
        "2 With gradients",
        "3 Placed",
        "4 Rewritten",
        "5 Ran",
    ]
    assert not page.locator(".tools").is_visible()
    assert not page.locator("[data-part=paper]").is_visible()


def test_a_hostile_name_is_only_ever_text(page, heard, tmp_path):
    nodes = (Node(EVIL, EVIL), Node("b", "Op", (EVIL,)))
    path = save(tmp_path / "evil.html", drawn_graph(EVIL, (Frontend(program=None, nodes=nodes),)))
    page.goto(path.as_uri())
    search = page.locator("[data-part=search]")
    search.fill("script")
    search.press("Enter")
    assert page.locator("[data-part=panel] h4").text_content() == visible(EVIL)
    assert page.locator("img, iframe, object").count() == 0
    assert heard == [path.as_uri()]


def test_a_model_that_was_only_written_can_be_followed(page, heard, tmp_path):
    path = save(tmp_path / "small.html", drawn_graph("small", STAGES[:1]))
    page.goto(path.as_uri())
    assert drawn(page.locator(".viewer")) == len(STAGES[0].nodes)
    assert heard == [path.as_uri()]


PROJECTOR = {"width": 1920, "height": 1080}


@pytest.fixture
def screen(page, written):
    page.set_viewport_size(PROJECTOR)
    page.goto(written.as_uri())
    page.get_by_role("button", name="Present").click()
    return page.get_by_role("dialog")


def test_a_presentation_has_a_screen_for_each_state_and_a_sentence_on_it(screen, page, lenet):
    states = graph_states.states(lenet)
    ns = critical_path.median_per_step(lenet[3].runs)
    sentences = list(stops.sentences(states, ns))
    for number, (key, state) in enumerate(zip(FORTH, states, strict=False)):
        assert screen.locator("[data-part=screen-number]").inner_text() == (
            f"{number + 1} of {len(states)}"
        )
        assert state.title in screen.locator("[data-part=screen-stop]").inner_text()
        assert screen.locator("[data-part=screen-look]").inner_text() == sentences[number]
        page.keyboard.press(key)
    assert screen.get_by_role("button", name="Next screen").is_disabled()


FORTH = ("ArrowRight", "PageDown", "Space", "Enter") * 5


def test_a_presentation_ends_where_it_is_and_begins_where_the_page_is(screen, page):
    for key in ("End", "PageUp", "ArrowLeft"):
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    screen.wait_for(state="hidden")
    from playwright.sync_api import expect

    # The page learns of the end of a dialog a little after it
    expect(page.locator(".viewer [data-part=title]")).to_have_text("feeds_and_fetches")
    assert page.evaluate("document.activeElement.dataset.part") == "present"
    page.keyboard.press("Enter")
    assert "feeds_and_fetches" in screen.locator("[data-part=screen-stop]").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_can_be_read_from_the_last_row(page, heard, tmp_path, walked, scheme, artefacts):
    """Letters are at least 1/56 of the screen high, a name in the drawing 1/48."""
    path = save(tmp_path / "toy.html", drawn_graph("toy", tuple(walked("toy").values())))
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(PROJECTOR)
    page.goto(path.as_uri())
    page.get_by_role("button", name="Present").click()
    screen = page.get_by_role("dialog")
    page.keyboard.press("ArrowRight")
    sheet = screen.locator("[data-part=sheet]")
    assert sheet.evaluate("e => [e.scrollWidth, e.scrollHeight]") == sheet.evaluate(
        "e => [e.clientWidth, e.clientHeight]"
    )
    page.screenshot(path=artefacts / f"report_present_{scheme}.png")
    sizes = screen.evaluate(
        """screen => Object.fromEntries(['.name', '.type', '.look', '.legend'].map(name => {
            const element = screen.querySelector(name);
            const svg = element.closest('svg');
            const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
            return [name, scale * parseFloat(getComputedStyle(element).fontSize)];
        }))"""
    )
    assert sizes[".name"] >= 1080 / 48
    assert sizes[".look"] >= 1080 / 36
    assert min(sizes.values()) >= 1080 / 56
    assert contrast(screen.locator("svg .name").first, screen.locator("svg .node rect").first) > 7
    assert heard == [path.as_uri()]


def contrast(text, ground):
    """The contrast of a text and what is behind it, as WCAG 2 defines it."""
    fills = [e.evaluate("e => getComputedStyle(e).fill") for e in (text, ground)]
    light, dark = sorted((luminance(fill) for fill in fills), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(fill):
    channels = [int(value) / 255 for value in re.findall(r"\d+", fill)[:3]]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_drawing_of_a_presentation_stays_where_it_is(page, tmp_path, walked):
    stages = tuple(walked("toy").values())
    path = save(tmp_path / "toy.html", drawn_graph("toy", stages))
    page.set_viewport_size(PROJECTOR)
    page.goto(path.as_uri())
    page.get_by_role("button", name="Present").click()
    known = {}
    for _ in graph_states.states(stages):
        for box, place in places(page.get_by_role("dialog")).items():
            assert known.setdefault(box, place) == place
        page.keyboard.press("ArrowRight")
    assert len(known) > 10


@pytest.fixture(scope="module")
def on_two(walked):
    """The toy's stages up to its placement on two devices."""
    return tuple(walked("toy", 2).values())[:3]


@pytest.fixture
def beside(page, walked, on_two, tmp_path):
    one = tuple(walked("toy").values())[:3]
    graphs = (drawn_graph("on one", one), drawn_graph("on two", on_two))
    path = tmp_path / "beside.html"
    chapter = Chapter("Two devices", (Beside(graphs, "device"),))
    path.write_text(html.page(Report("", "", "", (chapter,))), encoding="utf-8")
    page.set_viewport_size(PROJECTOR)
    page.goto(path.as_uri())
    return page.locator(".still")


def test_a_graph_on_two_devices_stands_beside_the_same_on_one(beside, heard, artefacts, page):
    page.screenshot(path=artefacts / "report_beside.png")
    one, two = (still.bounding_box() for still in beside.all())
    assert one["y"] == two["y"]
    assert one["x"] + one["width"] < two["x"]
    classes = "boxes => boxes.map(box => [...box.classList].find(name => /^device-/.test(name)))"
    colours = [set(still.locator(".box.node").evaluate_all(classes)) for still in beside.all()]
    assert colours == [{"device-0"}, {"device-0", "device-1"}]


def test_every_transfer_between_boxes_is_an_arrow_with_its_bytes(beside, on_two):
    placement = on_two[-1]
    one, two = beside.all()
    assert one.locator(".edge.transfer").count() == 0
    assert placement.transfers
    sent = two.locator(".edge.transfer title").all_text_contents()
    for transfer in placement.transfers:
        words = f"{size(transfer.bytes)} sent: {transfer.tensor}, "
        assert any(words in title for title in sent)
    labels = two.locator(".edge.transfer .count").all_text_contents()
    assert sorted(labels) == sorted(size(transfer.bytes) for transfer in placement.transfers)


def test_graphs_that_are_only_compared_have_no_buttons(beside):
    assert beside.locator("[role=button]").count() == 0
    assert beside.locator("svg[role=img]").count() == 2
    assert beside.locator(".gone, .changed, .leaving").count() == 0


ASKED = (
    Question("How many nodes will run?", (), "nodes", "80", "The passes took the others."),
    Question(f"Which goes, {EVIL}?", ("a/b", EVIL), "", EVIL, "It was fused."),
    Question("How many times as long?", (), "x", "2.5", "A reason."),
)


@pytest.fixture
def asking(page, tmp_path):
    path = tmp_path / "asking.html"
    chapters = (Chapter("Results", ("The results of a run.",)),)
    path.write_text(html.page(Report("", "", "", chapters, ASKED)), encoding="utf-8")
    page.goto(path.as_uri())
    return page


def predict(page):
    page.get_by_role("switch", name="Predict first").click()
    page.get_by_role("spinbutton", name="How many nodes will run?").fill("60")
    page.get_by_role("radio", name="a/b").check()
    page.get_by_role("button", name="Look").click()


COMPARISON = [
    ["How many nodes will run?", "60 nodes: close, 20 too low", "80 nodes", ASKED[0].reason],
    [visible(ASKED[1].text), "a/b: not this one", visible(EVIL), "It was fused."],
]


def compared(page):
    rows = page.locator("[data-part=rows] tr").all()
    return [row.locator("td").all_text_contents() for row in rows]


def test_nothing_is_asked_until_the_switch_is_on(asking):
    assert asking.get_by_text("The results of a run.").is_visible()
    assert not asking.get_by_role("button", name="Look").is_visible()
    switch = asking.get_by_role("switch", name="Predict first")
    switch.click()
    assert switch.get_attribute("aria-checked") == "true"
    assert not asking.get_by_text("The results of a run.").is_visible()
    switch.click()
    assert asking.get_by_text("The results of a run.").is_visible()


def test_a_prediction_stands_beside_what_was_measured_with_the_reason(asking, heard):
    predict(asking)
    assert asking.get_by_text("The results of a run.").is_visible()
    assert compared(asking) == COMPARISON
    assert heard == []


def test_predictions_stay_until_the_page_asks_again(asking):
    predict(asking)
    asking.reload()
    assert compared(asking) == COMPARISON
    asking.get_by_role("button", name="Predict again").click()
    assert asking.get_by_role("spinbutton").first.input_value() == ""
    asking.reload()
    assert compared(asking) == []


def test_predictions_work_where_the_browser_keeps_nothing(chromium, tmp_path):
    page = chromium.new_page()
    heard = heard_from(page)
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
    )
    path = tmp_path / "asking.html"
    path.write_text(html.page(Report("", "", "", (), ASKED)), encoding="utf-8")
    page.goto(path.as_uri())
    predict(page)
    assert compared(page) == COMPARISON
    assert heard == [path.as_uri()]
    page.close()


def test_predictions_are_printed_and_questions_are_not(asking):
    asking.emulate_media(media="print")
    assert not asking.locator(".predict").is_visible()
    asking.emulate_media(media="screen")
    predict(asking)
    asking.emulate_media(media="print")
    assert asking.locator("[data-part=answers]").is_visible()
    assert not asking.get_by_role("button").first.is_visible()


def test_the_text_of_a_plot_can_be_selected(page, tmp_path):
    svg = (
        '<svg viewBox="0 0 540 90">'
        '<text x="9" y="20" style="font-size: 9px">words of a plot</text></svg>'
    )
    path = tmp_path / "plot.html"
    chapter = Chapter("A plot", (Picture("p", "A plot.", svg, b""),))
    path.write_text(html.page(Report("", "", "", (chapter,))), encoding="utf-8")
    page.goto(path.as_uri())
    page.locator("text", has_text="words of a plot").click(click_count=3)
    assert page.evaluate("getSelection().toString()") == "words of a plot"


LINES_OF_CELL = """cell => {
    const lines = new Map(), range = document.createRange();
    for (const node of cell.childNodes) if (node.nodeType === 3) {
        for (let i = 0; i < node.length; i++) {
            range.setStart(node, i); range.setEnd(node, i + 1);
            const y = Math.round(range.getBoundingClientRect().y);
            lines.set(y, (lines.get(y) || '') + node.data[i]);
        }
    }
    return [...lines.values()];
}"""


@pytest.mark.parametrize(("media", "across"), [("screen", PHONE), ("print", 688)])
def test_a_name_in_a_table_breaks_after_a_scope_only(page, tmp_path, media, across):
    names = "gradients/conv2/Conv2D_grad/Conv2DBackpropFilter"
    shown = (str, lambda _: "gradients/conv2/tuple/group_deps", lambda _: "ResourceApplyMomentum")
    times = (Column("time", lambda _: "1.00 ms", right=True),) * 6
    columns = (*(Column(f"name {n}", show) for n, show in enumerate(shown)), *times)
    path = tmp_path / "table.html"
    chapter = Chapter("A table", (Table("Costs", columns, (names,)),))
    path.write_text(html.page(Report("", "", "", (chapter,))), encoding="utf-8")
    page.set_viewport_size({"width": across, "height": 800})
    page.emulate_media(media=media)
    page.goto(path.as_uri())
    cells = [page.locator("tbody td").nth(place).evaluate(LINES_OF_CELL) for place in range(3)]
    assert len(cells[0]) > 1
    assert all(line.endswith("/") for lines in cells for line in lines[:-1])
    scroll = page.locator("section .grid > .scroll")
    if media == "print":
        assert page.evaluate("document.documentElement.scrollWidth") == across
        return
    assert scroll.evaluate("element => element.scrollWidth > element.clientWidth")
    assert scroll.evaluate("element => getComputedStyle(element).backgroundAttachment") == (
        "local, local, scroll, scroll"
    )


def test_a_long_label_loses_its_outer_scopes_unless_two_would_look_alike(page, tmp_path):
    tail = "a_grad/Conv2DBackpropFilter"
    longer = [f"s/{'outer' * 5}{n}/{tail}" for n in (1, 2)]
    nodes = tuple(Node(name, "Op") for name in (f"{'t' * 40}/b_grad/Mul", *longer))
    path = save(tmp_path / "labels.html", drawn_graph("g", (Frontend(program=None, nodes=nodes),)))
    page.goto(path.as_uri())
    labels = page.locator("svg .name").all_text_contents()
    assert sorted(labels) == [".../b_grad/Mul", *longer]


def both_ways(count):
    """A graph whose every node has a gradient."""
    forward = tuple(
        Node(f"block{i // 10}/op{i}", "Op", (f"block{(i - 1) // 10}/op{i - 1}",) if i else ())
        for i in range(count)
    )
    later = [f"gradients/block{i // 10}/op{i}_grad" for i in range(1, count)]
    added = tuple(
        Node(f"gradients/{node.name}_grad", "OpGrad", (node.name, *later[i : i + 1]))
        for i, node in enumerate(forward)
    )
    derived = tuple(
        Gradient(node.name, "Op", "_Grad", (grad.name,))
        for node, grad in zip(forward, added, strict=True)
    )
    names = tuple(node.name for node in added)
    return Frontend(None, forward), Backward(None, (*forward, *added), names, derived)


# How often a click lets the browser make an element, change one, and lay the page out
WORK = """button => {
    const counts = {made: 0, changed: 0, laid: 0};
    const counted = [
        ["made", Document.prototype, "createElement"],
        ["made", Document.prototype, "createElementNS"],
        ["changed", Element.prototype, "setAttribute"], ["changed", Node.prototype, "removeChild"],
        ["changed", Node.prototype, "insertBefore"], ["changed", Element.prototype, "remove"],
        ["laid", SVGGraphicsElement.prototype, "getBBox"],
        ["laid", SVGTextContentElement.prototype, "getComputedTextLength"],
        ["laid", Element.prototype, "getBoundingClientRect"],
    ];
    for (const [what, owner, name] of counted) {
        const own = owner[name];
        owner[name] = function (...given) {
            counts[what] += 1;
            return own.apply(this, given);
        };
    }
    button.click();
    return [counts.made, counts.changed, counts.laid];
}"""


def work_of_opening_all(page, path, count):
    page.goto(save(path, drawn_graph("large", both_ways(count // 2))).as_uri())
    viewer = page.locator(".viewer")
    viewer.get_by_role("button", name="With gradients").click()
    assert drawn(viewer) == count
    work = viewer.get_by_role("button", name="Open all").evaluate(WORK)
    assert viewer.locator("svg [data-count='1']").count() == count
    return work


def test_opening_twice_as_many_nodes_is_twice_the_work(page, heard, tmp_path):
    path = tmp_path / "large.html"
    (made, changed, laid), twice = (work_of_opening_all(page, path, n) for n in (500, 1000))
    assert 500 < made < 12 * 500  # a box is a handful of elements, which are made once
    assert twice[0] <= 2 * made
    assert twice[1] <= 2.01 * changed
    assert (laid, twice[2]) == (0, 0)  # the sizes of boxes are known without asking the browser
    assert {*heard} == {path.as_uri()}


@pytest.fixture
def toy(page, tmp_path, walked):
    page.goto(
        save(tmp_path / "toy.html", drawn_graph("toy", tuple(walked("toy").values()))).as_uri()
    )
    return page.locator(".viewer")


def below(viewer, name, kind):
    """What stands in a line of a node's box."""
    return node(viewer, name).locator(f".{kind}").all_text_contents()


@pytest.mark.parametrize("stop", ["With gradients", "Ran"])
def test_boxes_have_the_values_of_the_recorded_step(toy, walked, stop, artefacts):
    toy.get_by_role("button", name=stop).click()
    toy.screenshot(path=artefacts / f"report_values_{stop.replace(' ', '_')}.png")
    recorded = {value.tensor: value for value in walked("toy")["execution"].values}
    y, x, loss = recorded["y"], recorded["x:0"], recorded["loss:0"]
    gradient = recorded["gradients/mul_grad/Reshape:0"]
    assert below(toy, "y", "value") == [f"{y.values[0]:.3g} → {y.after.values[0]:.3g}"]
    assert below(toy, "y", "grad") == [f"grad {gradient.values[0]:.3g}"]
    assert below(toy, "x", "value") == [f"[{x.values[0]:.3g}, {x.values[1]:.3g}, …]"]
    assert below(toy, "x", "grad") == []  # no variable is behind it
    assert below(toy, "loss", "value") == [f"{loss.values[0]:.3g}"]
    assert below(toy, "loss", "grad") == ["grad 1"]
    assert below(toy, "Const", "value") == ["0"]  # merged, and still known by definition
    titles = toy.locator(".edge title").all_text_contents()
    if stop == "With gradients":
        assert f"1 tensor. x = [{x.values[0]:.3g}, {x.values[1]:.3g}, …]" in titles


def test_a_closed_scope_says_what_it_is_about(toy, walked):
    toy.get_by_role("button", name="With gradients").click()
    recorded = {value.tensor: value for value in walked("toy")["execution"].values}
    gradient = recorded["gradients/add_grad/Reshape:0"].values[0]
    z, scope = recorded["z"], toy.get_by_role("button", name="scope z, ")
    assert scope.locator(".value").text_content() == (
        f"{z.values[0]:.3g} → {z.after.values[0]:.3g}"
    )
    assert scope.locator(".grad").text_content() == f"grad {gradient:.3g}"
    scope = toy.get_by_role("button", name="scope add_grad, ")
    assert scope.locator(".grad").text_content() == f"dL/dz = {gradient:.3g}"


def test_boxes_have_no_values_before_any_are_known_and_keep_their_places(toy):
    assert toy.locator(".value, .grad").count() == 0
    assert not any(" = " in title for title in toy.locator(".edge title").all_text_contents())
    written = node(toy, "mul").bounding_box()
    toy.get_by_role("button", name="With gradients").click()
    gradients = node(toy, "mul").bounding_box()
    assert gradients["width"] == pytest.approx(written["width"])
    assert gradients["height"] == pytest.approx(written["height"])


@pytest.mark.parametrize("stop", ["1 Written", "With gradients", "Ran"])
def test_all_lines_of_a_box_are_within_it(toy, stop):
    toy.get_by_role("button", name=stop).click()
    toy.get_by_role("button", name="Open all").click()
    outside = toy.locator("svg .box.node").evaluate_all(
        """boxes => boxes.flatMap(box => {
            const around = box.querySelector('rect:last-of-type').getBBox();
            return [...box.querySelectorAll('text:not(.badge)')].filter(text => {
                const own = text.getBBox();
                return own.y < around.y - 1 || own.y + own.height > around.y + around.height + 1
                    || own.x < around.x || own.x + own.width > around.x + around.width;
            }).map(text => text.textContent);
        })"""
    )
    assert outside == []


def test_a_gradient_node_says_what_it_computes_and_bookkeeping_is_dim(toy):
    toy.get_by_role("button", name="With gradients").click()
    toy.get_by_role("button", name="Open all").click()
    node(toy, "gradients/mul_grad/Mul_1").click()
    panel = toy.locator("[data-part=panel]")
    assert "computes x * dL/d(mul), which leads to dL/dy" in panel.inner_text()
    assert "math_grad.py" in panel.inner_text()
    assert "\nvalue: " in panel.inner_text()
    node(toy, "gradients/error_grad/Reshape").click()
    assert panel.locator(".aside").inner_text().startswith("bookkeeping (broadcasting): ")
    dim = toy.locator("svg .box.bookkeeping")
    assert 0 < dim.count() < toy.locator("svg .box.node.kind-gradient").count()
    assert toy.get_by_text("bookkeeping: not part of a formula").is_visible()


def test_a_presentation_of_the_gradients_opens_with_their_chain_rule(page, tmp_path, walked):
    stages = tuple(walked("toy").values())
    graph = replace(drawn_graph("toy", stages), chain_rule="dL/dy = dL/d(mul) * d(mul)/dy")
    page.goto(save(tmp_path / "toy.html", graph).as_uri())
    page.get_by_role("button", name="Present").click()
    page.keyboard.press("ArrowRight")
    look = page.get_by_role("dialog").locator("[data-part=screen-look]")
    assert look.inner_text().startswith("dL/dy = dL/d(mul) * d(mul)/dy: ")
    assert look.evaluate("e => e.scrollHeight <= e.clientHeight")
