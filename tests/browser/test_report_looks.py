"""How the report's page looks: on a phone, a laptop, a projector and paper, in light and dark."""

import io
from dataclasses import replace

import pytest
from matplotlib import image

from tests.browser.test_report_page import PHONE, drawn_graph
from tflab.exporters.plots import style
from tflab.records.blocks import Column, Table
from tflab.report import contents, html
from tflab.report.contents import Beside, Chapter, Question, Report

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

SENTENCE = "a sentence that is far too long to stand in one line of a phone beside its numbers"
WIDE = Table("Wide", (*(Column(f"a number {n}", str) for n in range(20)), Column("why", str)), (1,))
TABLES = (
    Table("Low", (Column("step", str), Column("found", lambda _: SENTENCE)), (1, 2)),
    WIDE,
)
ASKED = (Question("How many?", (), "nodes", "5", "So many."),)
LEGIBLE = 8.99  # pixels: nine, but for rounding
PAGE = {"width": 688, "height": 1001}  # of A4 within its margins, in pixels of CSS


def plot():
    return style.canvas("A title", "A sentence.", 1.0)[0]


@pytest.fixture(scope="module")
def address(walked, tmp_path_factory):
    """The address of a report on a model, with graphs to compare, a plot, tables and a question."""

    def written(model):
        stages = tuple(walked(model).values())
        graph = drawn_graph(model, stages, ns={node.name: 900.0 for node in stages[3].nodes[:4]})
        two = replace(drawn_graph("on two", stages[:3]), name="x on two devices")
        parts = ("A paragraph.", graph, contents.picture("p", plot), *TABLES)
        chapters = (Chapter("Graph", parts), Chapter("Beside", (Beside((two, two), "device"),)))
        path = tmp_path_factory.mktemp("looks") / f"{model}.html"
        report = Report(model, "About it.", "python", chapters, ASKED)
        path.write_text(html.page(report), encoding="utf-8")
        return path.as_uri()

    return {model: written(model) for model in ("toy", "lenet")}


@pytest.fixture
def at(page, address):
    """Open a model's page in a window of some size."""

    def opened(model, width=1280, height=800, scheme="light"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(address[model])
        return page.locator(".viewer")

    return opened


def press(viewer, name):
    viewer.get_by_role("button", name=name, exact=True).click()


def letters(viewer):
    """The size of the smallest letters of the drawing, in pixels of the screen."""
    return viewer.locator(".paper svg").evaluate(
        """svg => {
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            const size = text => parseFloat(getComputedStyle(text).fontSize);
            return scale * Math.min(...[...svg.querySelectorAll('text')].map(size));
        }"""
    )


def overflow(viewer):
    """What of the drawing is outside of its frame, across and down."""
    return viewer.locator(".paper").evaluate(
        "e => [e.scrollWidth - e.clientWidth, e.scrollHeight - e.clientHeight]"
    )


@pytest.mark.parametrize("model", ["toy", "lenet"])
def test_letters_are_never_under_nine_pixels_and_what_fits_is_fitted(at, model):
    viewer = at(model)
    assert letters(viewer) >= LEGIBLE
    assert overflow(viewer) == [0, 0]
    before = viewer.locator(".paper svg").bounding_box()["width"]
    press(viewer, "5 Ran")
    press(viewer, "Open all")
    assert letters(viewer) >= LEGIBLE
    press(viewer, "Close all")
    assert viewer.locator(".paper svg").bounding_box()["width"] == before
    assert overflow(viewer) == [0, 0]
    for _ in range(6):
        press(viewer, "Smaller")
    assert letters(viewer) < LEGIBLE  # because the reader wants it
    viewer.get_by_label("Find a node").fill("loss")
    viewer.get_by_label("Find a node").press("Enter")
    assert letters(viewer) >= LEGIBLE
    press(viewer, "Smaller")
    press(viewer, "Fit")
    assert letters(viewer) >= LEGIBLE


def test_a_drawing_wider_than_its_frame_says_so_and_goes_to_each_track(at, page):
    viewer = at("toy", PHONE)
    bar = viewer.locator("[data-part=sides]")
    assert bar.get_by_role("button").all_inner_texts() == ["Forward", "Backward", "Updates"]
    viewer.get_by_role("button", name="2 With gradients").click()
    train = viewer.locator(".paper").get_by_role("button", name="train, ")
    press(bar, "Updates")
    page.wait_for_timeout(1000)  # it scrolls smoothly
    box = train.bounding_box()
    assert 0 < box["x"] < PHONE - box["width"]
    page.set_viewport_size({"width": 1280, "height": 800})
    bar.wait_for(state="hidden")


def test_the_history_of_a_node_takes_its_room_only_after_a_click(at, page):
    viewer = at("toy")
    panel, paper = viewer.locator("[data-part=panel]"), viewer.locator("[data-part=paper]")
    whole = paper.bounding_box()["width"]
    assert not panel.is_visible()
    assert whole == pytest.approx(viewer.bounding_box()["width"], abs=3)
    node = paper.get_by_role("button", name="mul, ")
    node.click()
    assert panel.is_visible()
    assert paper.bounding_box()["width"] < whole
    press(panel, "Close the history")
    assert not panel.is_visible()
    assert paper.bounding_box()["width"] == whole
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("mul, ")
    page.keyboard.press("Enter")
    assert panel.is_visible()
    page.keyboard.press("Escape")
    assert not panel.is_visible()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
@pytest.mark.parametrize("model", ["toy", "lenet"])
def test_each_screen_of_a_presentation_has_the_whole_drawing(at, page, model, width, height):
    viewer = at(model, width, height)
    press(viewer, "Open all")
    press(viewer, "Present")
    screen = viewer.get_by_role("dialog")
    assert screen.locator(".box.head").count() == 0
    last = int(screen.locator("[data-part=screen-number]").inner_text().split()[-1])
    for _ in range(last):
        assert cut(screen) == []
        page.keyboard.press("ArrowRight")
    screen.locator(".box.scope").first.click()
    assert screen.locator(".box.head").count() == 1
    assert cut(screen) == []


def cut(screen):
    """What is not within its room on a screen."""
    return screen.evaluate(
        """screen => {
            const part = name => screen.querySelector(name);
            const place = name => part(name).getBoundingClientRect();
            const [sheet, svg] = ['.sheet', '.sheet svg'].map(place);
            const within = svg.left >= sheet.left && svg.right <= sheet.right + 1 &&
                svg.top >= sheet.top && svg.bottom <= sheet.bottom + 1;
            const full = ['.look', 'footer', '.sheet'].filter(name => {
                const e = part(name);
                return e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth;
            });
            if (!within) full.push('drawing');
            return screen.scrollTop ? [...full, 'scrolled'] : full;
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_a_drawing_can_be_told_from_its_ground(at, scheme):
    viewer = at("lenet", scheme=scheme)
    press(viewer, "5 Ran")
    for colour in ("by stage", "kind", "fate", "device", "time"):
        viewer.get_by_label(colour, exact=True).check()
        assert faint(viewer) == [], colour


def faint(viewer):
    """Texts in boxes whose contrast, as WCAG 2 defines it, is under 4.5."""
    return viewer.locator(".paper").evaluate(
        """paper => {
            const rgb = colour => (colour.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
            const over = (top, share, below) =>
                top.slice(0, 3).map((c, i) => share * c + (1 - share) * below[i]);
            const light = colour => colour.map(c => c / 255)
                .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
            const ground = rgb(getComputedStyle(paper.closest('.viewer')).backgroundColor);
            return [...paper.querySelectorAll('.box:not(.head)')].flatMap(box => {
                const rect = getComputedStyle(box.querySelector('rect:last-of-type'));
                const share = rect.fill === 'none' ? 0 : rect.fillOpacity * rect.opacity;
                const below = over(rgb(rect.fill), share, ground);
                return [...box.querySelectorAll('text:not(.badge)')].flatMap(text => {
                    const own = getComputedStyle(text);
                    const both = [over(rgb(own.fill), Number(own.opacity), below), below];
                    const [dark, bright] = both.map(light).sort((p, q) => p - q);
                    const contrast = (bright + 0.05) / (dark + 0.05);
                    return contrast < 4.5 ? [`${text.textContent} ${contrast.toFixed(2)}`] : [];
                });
            });
        }"""
    )


@pytest.mark.parametrize(("scheme", "way"), [("light", -1), ("dark", 1)])
def test_what_took_longest_stands_out_most(at, scheme, way):
    """It is the darkest on white and the brightest on black; so is a plot's ground."""
    viewer = at("toy", scheme=scheme)
    press(viewer, "5 Ran")
    fills = viewer.evaluate(
        """viewer => [0, 1, 2, 3, 4, 5, 6].map(n => {
            const box = viewer.querySelector('.box.node');
            box.setAttribute('class', `box node heat-${n}`);
            const { fill } = getComputedStyle(box.querySelector('rect'));
            const [r, g, b] = fill.match(/\\d+/g).map(Number);
            return 2 * r + 7 * g + b;
        })"""
    )
    assert fills == sorted(fills, reverse=way < 0)
    pixels = image.imread(io.BytesIO(viewer.page.locator(".picture").screenshot()), format="png")
    assert pixels[..., :3].mean() > 0.8 if scheme == "light" else pixels[..., :3].mean() < 0.2


def test_of_two_edges_to_and_fro_each_can_be_seen(at):
    viewer = at("lenet")
    press(viewer, "Close all")
    press(viewer, "5 Ran")
    there, back = viewer.evaluate(
        """viewer => {
            const merged = viewer.querySelector('.edge.merged .line');
            const ends = path => [0, path.getTotalLength()].map(at => path.getPointAtLength(at).y);
            const far = other => Math.abs(other[1] - ends(merged)[0]);
            const others = [...viewer.querySelectorAll('.edge:not(.merged) .line')].map(ends);
            return [others.sort((p, q) => far(p) - far(q))[0], ends(merged)];
        }"""
    )
    assert abs(there[1] - back[0]) >= 8
    assert viewer.locator(".edge.merged .count").text_content() == "shared constant"


def test_paper_has_whole_drawings_with_arrowheads_and_legends_two_on_a_page(at, page):
    at("lenet")
    page.set_viewport_size(PAGE)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    figures = page.locator(".prints figure, .still")
    sizes = [figure.bounding_box() for figure in figures.all()]
    assert len(sizes) == 7
    assert max(box["height"] for box in sizes) <= PAGE["height"] / 2
    svgs = [svg.bounding_box() for svg in figures.locator("svg").all()]
    assert min(svg["x"] for svg in svgs) >= 0
    assert max(svg["x"] + svg["width"] for svg in svgs) <= PAGE["width"]
    assert all(figure.locator(".legend li").count() for figure in figures.all())
    lost = page.evaluate(
        """() => [...document.querySelectorAll('.prints [marker-end]')]
            .map(line => line.getAttribute('marker-end').slice(5, -1))
            .filter(id => !document.getElementById(id).closest('.prints')).length"""
    )
    assert lost == 0


def test_on_a_phone_no_sentence_is_cut_and_rows_are_low(at, page):
    viewer = at("lenet", PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    caption = viewer.locator("[data-part=caption]")
    for button in viewer.locator("[data-state]").all():
        button.click()
        assert caption.evaluate("e => e.scrollHeight <= e.clientHeight")
        assert caption.locator("ul").evaluate("e => e.scrollHeight <= e.clientHeight")
    row = page.get_by_role("region", name="Low").locator("tbody tr").first
    assert row.bounding_box()["height"] < 80


def test_a_table_is_a_stop_for_the_keyboard_only_while_it_scrolls(at, page):
    at("toy")
    low, wide = (page.get_by_role("region", name=name) for name in ("Low", "Wide"))
    stops = page.locator(".grid .scroll[tabindex]")
    stops.first.wait_for()
    assert low.get_attribute("tabindex") is None
    assert wide.get_attribute("tabindex") == "0"
    page.set_viewport_size({"width": PHONE, "height": 800})
    stops.nth(1).wait_for()


def test_a_page_that_asks_shows_the_graph_as_it_was_made(at, page):
    viewer = at("toy")
    press(viewer, "5 Ran")
    viewer.locator(".box.node").first.click()
    page.get_by_role("switch", name="Predict first").click()
    stops = viewer.get_by_role("group", name="Stages", exact=True).get_by_role("button")
    assert [stop.inner_text() for stop in stops.all()] == ["1 Written", "2 With gradients"]
    assert viewer.locator("[data-part=title]").inner_text() == "With gradients"
    assert viewer.get_by_role("button", name="Next state").is_disabled()
    assert viewer.locator(".value, .grad").count() == 0
    viewer.locator(".box.node").first.click()
    for hidden in (".panel", ".passes", "[data-part=present]", "fieldset"):
        assert not viewer.locator(hidden).first.is_visible(), hidden
    assert not page.get_by_text("A paragraph.").is_visible()
    page.get_by_role("spinbutton", name="How many?").fill("4")
    page.get_by_role("button", name="Look").click()
    assert page.evaluate("document.activeElement.dataset.part") == "answers"
    assert stops.count() == 5
    assert page.get_by_text("A paragraph.").is_visible()
    assert viewer.locator(".value").count() > 0


def test_a_closed_scope_shows_what_became_of_each_of_its_nodes(at):
    viewer = at("toy")
    press(viewer, "5 Ran")
    viewer.get_by_label("fate", exact=True).check()
    scope = viewer.get_by_role("button", name="scope y, ")
    assert "1 executed, 4 unreached, closed" in scope.get_attribute("aria-label")
    foot = scope.locator(".shares rect")
    assert [part.get_attribute("class") for part in foot.all()] == [
        *("fate-executed", "fate-unreached")
    ]
    ran, unreached = (part.evaluate("e => e.width.baseVal.value") for part in foot.all())
    assert unreached == pytest.approx(4 * ran, abs=0.5)


def test_a_folded_chapter_opens_by_its_link_and_on_paper(page, tmp_path):
    chapters = (Chapter("First", ("a",)), Chapter("Folded", ("b",), folded=True))
    path = tmp_path / "folded.html"
    path.write_text(html.page(Report("R", "", "", chapters)), encoding="utf-8")
    page.goto(path.as_uri())
    sentence = page.locator("#folded p")
    assert not sentence.is_visible()
    page.locator("nav a", has_text="Folded").click()
    sentence.wait_for(state="visible")
    page.goto(path.as_uri() + "#first")
    page.reload()
    assert not sentence.is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert sentence.is_visible()
