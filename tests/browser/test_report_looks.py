"""How the report's page looks: on a phone, a laptop, a projector and paper, in light and dark."""

import io

import pytest
from matplotlib import image

from tests.browser.conftest import CHAIN_RULE, PHONE, node, places, press
from tflab.analysis import critical_path
from tflab.report import graph_states, stops

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

LEGIBLE = 8.99  # pixels: nine, but for rounding
PAGE = {"width": 688, "height": 1001}  # of A4 within its margins, in pixels of CSS
PROJECTOR = (1920, 1080)
LAPTOP = (1280, 800)


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
    viewer = at(model, *LAPTOP)
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
    press(viewer, "2 With gradients")
    train = viewer.locator(".paper").get_by_role("button", name="train, ")
    press(bar, "Updates")
    page.wait_for_timeout(1000)  # it scrolls smoothly
    box = train.bounding_box()
    assert 0 < box["x"] < PHONE - box["width"]
    page.set_viewport_size({"width": 1280, "height": 800})
    bar.wait_for(state="hidden")


def test_the_history_of_a_node_takes_its_room_only_after_a_click(at, page):
    viewer = at("toy", *LAPTOP)
    panel, paper = viewer.locator("[data-part=panel]"), viewer.locator("[data-part=paper]")
    whole = paper.bounding_box()["width"]
    assert not panel.is_visible()
    assert whole == pytest.approx(viewer.bounding_box()["width"], abs=3)
    node(paper, "mul").click()
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


# Presentation


@pytest.mark.parametrize(("width", "height"), [LAPTOP, PROJECTOR])
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


def test_a_presentation_says_a_sentence_of_each_state_and_ends_where_it_is(at, page, lenet):
    viewer = at("lenet", *PROJECTOR)
    press(viewer, "Present")
    screen = page.get_by_role("dialog")
    states = graph_states.states(lenet)
    sentences = stops.sentences(states, critical_path.median_per_step(lenet[3].runs))
    keys = ("ArrowRight", "PageDown", "Space", "Enter") * 5
    for number, (key, state, sentence) in enumerate(
        zip(keys, states, sentences, strict=False), start=1
    ):
        words = screen.locator("[data-part=screen-number]").inner_text()
        assert words == f"{number} of {len(states)}"
        assert state.title in screen.locator("[data-part=screen-stop]").inner_text()
        assert screen.locator("[data-part=screen-look]").inner_text() == sentence
        page.keyboard.press(key)
    assert number == len(states)
    assert screen.get_by_role("button", name="Next screen").is_disabled()
    for key in ("End", "PageUp", "ArrowLeft", "Escape"):
        page.keyboard.press(key)
    screen.wait_for(state="hidden")
    # The page learns of the end of a dialog a little after it
    viewer.locator("[data-part=title]", has_text="feeds_and_fetches").wait_for()
    assert page.evaluate("document.activeElement.dataset.part") == "present"
    page.keyboard.press("Enter")
    assert "feeds_and_fetches" in screen.locator("[data-part=screen-stop]").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screen_can_be_read_from_the_last_row_and_its_boxes_stay(
    at, page, toy, scheme, artefacts
):
    """Letters are at least 1/56 of the screen high, a name in the drawing 1/48."""
    press(at("toy", *PROJECTOR, scheme), "Present")
    screen = page.get_by_role("dialog")
    page.keyboard.press("ArrowRight")
    look = screen.locator("[data-part=screen-look]")
    assert look.inner_text().startswith(f"{CHAIN_RULE}: ")
    assert cut(screen) == []
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
    assert faint(screen) == []
    known = {}
    for _ in graph_states.states(toy):
        for box, place in places(screen).items():
            assert known.setdefault(box, place) == place
        page.keyboard.press("ArrowRight")
    assert len(known) > 10


# Colours


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_of_a_drawing_can_be_told_from_its_ground(at, scheme):
    viewer = at("lenet", *LAPTOP, scheme)
    press(viewer, "5 Ran")
    for colour in ("by stage", "kind", "fate", "device", "time"):
        viewer.get_by_label(colour, exact=True).check()
        assert faint(viewer) == [], colour


def faint(shown):
    """Texts in boxes whose contrast, as WCAG 2 defines it, is under 4.5."""
    return shown.evaluate(
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
    viewer = at("toy", *LAPTOP, scheme)
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


# Paper and phone


def test_paper_has_whole_drawings_with_arrowheads_and_legends_and_no_controls(at, page, artefacts):
    viewer = at("lenet")
    page.set_viewport_size(PAGE)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.screenshot(path=artefacts / "report_print.png", full_page=True)
    captions = viewer.locator(".prints figcaption").all_inner_texts()
    stages = ["1 Written", "2 With gradients", "3 Placed", "4 Rewritten", "5 Ran"]
    assert [caption.partition(":")[0] for caption in captions] == stages
    assert not viewer.locator(".tools").is_visible()
    assert not viewer.locator("[data-part=paper]").is_visible()
    figures = page.locator(".prints figure, .still")
    sizes = [figure.bounding_box() for figure in figures.all()]
    assert len(sizes) == 2 * 5 + 2
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


def test_a_phone_has_one_column_of_whole_sentences_and_low_rows(at, page, artefacts):
    viewer = at("lenet", PHONE, 800)
    page.screenshot(path=artefacts / "report_narrow.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    tools, drawing = (viewer.locator(name).bounding_box() for name in (".tools", ".stage-view"))
    words = viewer.locator("[data-part=passes]").bounding_box()
    assert tools["y"] - words["y"] - words["height"] < 20  # nothing is kept free above the drawing
    assert drawing["y"] == pytest.approx(tools["y"] + tools["height"], abs=1)
    caption = viewer.locator("[data-part=caption]")
    for button in viewer.locator("[data-state]").all():
        button.click()
        assert caption.evaluate("e => e.scrollHeight <= e.clientHeight")
        assert caption.locator("ul").evaluate("e => e.scrollHeight <= e.clientHeight")
    row = page.get_by_role("region", name="Low").locator("tbody tr").first
    assert row.bounding_box()["height"] < 80
    node(viewer, "pool1/MaxPool").click()
    paper, panel = (
        viewer.locator(f"[data-part={part}]").bounding_box() for part in ("paper", "panel")
    )
    assert panel["y"] >= paper["y"] + paper["height"]


def test_a_table_is_a_stop_for_the_keyboard_only_while_it_scrolls(at, page):
    at("toy", *LAPTOP)
    low, wide = (page.get_by_role("region", name=name) for name in ("Low", "Wide"))
    stops = page.locator(".grid .scroll[tabindex]")
    stops.first.wait_for()
    assert low.get_attribute("tabindex") is None
    assert wide.get_attribute("tabindex") == "0"
    page.set_viewport_size({"width": PHONE, "height": 800})
    stops.nth(1).wait_for()


def test_a_folded_chapter_opens_by_its_link_and_on_paper(at, page, written):
    at("toy")
    sentence = page.locator("#folded p")
    assert not sentence.is_visible()
    page.locator("nav a", has_text="Folded").click()
    sentence.wait_for(state="visible")
    page.goto(written.as_uri() + "#toy")
    page.reload()
    assert not sentence.is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert sentence.is_visible()
