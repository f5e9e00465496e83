"""How the report's page looks: on a phone, a laptop, a projector and paper, in light and dark."""

from dataclasses import replace

import pytest

from tests.browser.conftest import (
    ASKED,
    PHONE,
    drawn,
    drawn_graph,
    node,
    places,
    press,
    save,
    save_graph,
    title,
)
from tflab.report import graph_states
from tflab.report.contents import Annotated, Chapter, Script, ScriptLine

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

LEGIBLE = 9.99  # pixels: ten, but for rounding
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


@pytest.mark.parametrize("window", [(1400, 900), (800, 1000), (PHONE, 800)])
def test_a_drawing_is_seen_with_its_controls_and_can_be_read_in_every_window(at, page, window):
    viewer = at("toy", *window)
    for model in ("toy", "lenet", "two-devices"):
        viewer = page.locator(f"#{model} .viewer")
        assert overflow(viewer) == [0, 0] or letters(viewer) == pytest.approx(10, abs=0.01)
        assert letters(viewer) >= LEGIBLE
        assert model != "toy" or overflow(viewer)[0] == 0
        top = viewer.bounding_box()["y"]
        paper = viewer.locator(".paper").bounding_box()
        assert paper["y"] + paper["height"] - top <= window[1]
        assert paper["x"] + paper["width"] <= window[0]
    page.set_viewport_size({"width": window[0], "height": 700})
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
    assert viewer.locator(".paper").bounding_box()["height"] < 700
    press(viewer, "Open all")
    assert letters(viewer) >= LEGIBLE
    press(viewer, "Fit")
    assert overflow(viewer) == [0, 0]


@pytest.mark.parametrize("window", [(1400, 900), (1920, 1080)])
def test_the_toy_is_whole_and_readable_on_the_first_screen(page, toy, tmp_path, window):
    chapters = Chapter("Toy", (drawn_graph("toy", toy),)), Chapter("B", ()), Chapter("C", ())
    report = save(tmp_path / "report.html", *chapters, asked=ASKED)
    page.set_viewport_size({"width": window[0], "height": window[1]})
    page.goto(report.as_uri())
    drawing = page.locator(".viewer .paper svg")
    place = drawing.bounding_box()
    assert place["y"] + place["height"] <= window[1]
    assert overflow(page.locator(".viewer")) == [0, 0]
    assert letters(page.locator(".viewer")) >= 12


def test_beside_a_program_letters_can_be_read_and_what_took_longest_is_in_view(
    page, lenet, tmp_path
):
    script = Script("a.py", "", (ScriptLine(1, "x", (), None, ()),))
    _, backward, *_ = lenet
    graph = drawn_graph("lenet", lenet, ns={backward.update_nodes[-1]: 9_000.0})
    graph = replace(graph, start=1)
    page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    page.goto(save(tmp_path / "a.html", Chapter("A", (Annotated((script,), graph),))).as_uri())
    viewer = page.locator(".annotated .viewer")
    assert overflow(viewer) != [0, 0]
    assert letters(viewer) >= LEGIBLE
    viewer.locator("[data-part=colour]").select_option("time")
    box, paper = (
        viewer.locator(".box.heat-6").bounding_box(),
        viewer.locator(".paper").bounding_box(),
    )
    for side, size in (("x", "width"), ("y", "height")):
        assert paper[side] <= box[side] <= box[side] + box[size] <= paper[side] + paper[size]


def test_the_wheel_and_the_mouse_move_a_drawing_that_the_reader_is_in(at, page):
    viewer = at("lenet", *LAPTOP)
    svg, paper = viewer.locator(".paper svg"), viewer.locator(".paper")
    viewer.scroll_into_view_if_needed()
    whole = svg.bounding_box()["width"]
    box = paper.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.wheel(0, 10)  # the page scrolls
    assert svg.bounding_box()["width"] == whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -500)
    page.keyboard.up("Control")
    assert svg.bounding_box()["width"] > whole
    before = svg.bounding_box()
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] - 40, steps=4)
    page.mouse.up()
    after = svg.bounding_box()
    assert (before["x"] - after["x"], before["y"] - after["y"]) == pytest.approx((60, 40), abs=2)
    assert not viewer.locator("[data-part=panel]").is_visible()  # the end of a way is no click
    press(viewer, "Fit")
    assert overflow(viewer) == [0, 0]
    for _ in range(6):
        press(viewer, "Smaller")
    assert letters(viewer) < LEGIBLE  # because the reader wants it
    viewer.get_by_label("Find a node").fill("loss")
    viewer.get_by_label("Find a node").press("Enter")
    assert letters(viewer) >= LEGIBLE
    press(viewer, "Open all")
    press(viewer, "Close all")
    assert overflow(viewer) == [0, 0]


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


def test_four_results_stand_in_one_row_of_a_laptop_and_no_number_is_cut(at, page):
    for width, rows in ((1920, 1), (1400, 1), (800, 2), (PHONE, 4)):
        at("toy", width, 900)
        cards = page.locator(".numbers > div")
        assert len({card.bounding_box()["y"] for card in cards.all()}) == rows
        whole = "values => values.every(value => value.scrollWidth === value.clientWidth)"
        assert cards.locator("dd").evaluate_all(whole)


# Presentation


def cut(screen):
    """What is not within its room on a screen."""
    return screen.evaluate(
        """screen => {
            const part = name => screen.querySelector(name);
            const place = name => part(name).getBoundingClientRect();
            const [paper, svg] = ['.paper', '.paper svg'].map(place);
            const within = svg.left >= paper.left && svg.right <= paper.right + 1 &&
                svg.top >= paper.top && svg.bottom <= paper.bottom + 1;
            const full = ['.stops', '.caption', '.paper', '.legend'].filter(name => {
                const e = part(name);
                return e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1;
            });
            if (!within) full.push('drawing');
            const program = place('.program');
            for (const box of screen.querySelectorAll('.box')) {
                const { right, bottom, top } = box.getBoundingClientRect();
                if (right > program.left && bottom > program.top && top < program.bottom)
                    full.push('under the program');
            }
            if (place('.drawn').bottom > innerHeight) full.push('below');
            return screen.scrollTop ? [...full, 'scrolled'] : full;
        }"""
    )


@pytest.mark.parametrize(
    ("model", "width", "height", "scheme"),
    [("toy", *LAPTOP, "dark"), ("lenet", *PROJECTOR, "light")],
)
def test_each_screen_of_a_presentation_has_the_whole_drawing_and_ends_where_it_is(
    at, page, walked, model, width, height, scheme, artefacts
):
    viewer = at(model, width, height, scheme)
    press(viewer, "Open all")
    node(viewer, "x" if model == "toy" else "conv1/Relu").click()
    size = viewer.locator(".paper svg").bounding_box()["width"]
    press(viewer, "Frontend")
    press(viewer, "Present")  # from the state that is shown
    screen = page.get_by_role("dialog")
    assert screen.locator(".box.head, .panel").count() == 0
    known = {}
    keys = ("ArrowRight", "PageDown", "Space", "Enter") * 5
    states = graph_states.states(tuple(walked(model).values()))
    passes = walked(model)["placement"].passes
    for key, state in zip(keys, states, strict=False):
        assert title(screen) == state.title
        assert state.place is None or drawn(screen) == passes[state.place].after
        assert state.about in screen.locator("[data-part=about]").inner_text()
        assert cut(screen) == []
        assert screen.locator(".program").is_visible() == (state is states[0])
        for box, place in places(screen).items():
            assert known.setdefault(box, place) == place
        page.screenshot(path=artefacts / f"present_{model}_{state.title}.png")
        page.keyboard.press(key)
    assert faint(screen) == []
    if (width, height) == PROJECTOR:
        assert letters(screen) >= height / 59  # to be read from the last row
    page.keyboard.press("Home")
    screen.locator(".box.scope").first.click()
    assert screen.locator(".box.head").count() == 1
    assert not screen.locator(".program").is_visible()
    assert cut(screen) == []
    for key in ("End", "PageUp", "Escape"):
        page.keyboard.press(key)
    screen.wait_for(state="hidden")
    # The page learns of the end of a dialog a little after it
    viewer.locator("[data-part=title]", has_text=states[-2].title).wait_for()
    assert page.evaluate("document.activeElement.dataset.part") == "present"
    assert viewer.locator(".paper svg").bounding_box()["width"] == pytest.approx(size, rel=0.5)
    assert viewer.locator(".panel").is_visible()


def test_a_drawing_without_a_later_track_leaves_room_for_its_program(page, walked, tmp_path):
    path = save_graph(tmp_path / "forward.html", "forward", (walked("toy")["frontend"],))
    page.goto(path.as_uri())
    press(page.locator(".viewer"), "Present")
    screen = page.get_by_role("dialog")
    assert "output = x * y + z" in screen.locator(".program").inner_text()
    assert cut(screen) == []


# Colours


def test_every_text_of_a_drawing_can_be_told_from_its_ground(at):
    for scheme in ("light", "dark"):
        viewer = at("lenet", *LAPTOP, scheme)
        press(viewer, "Execution")
        for colour in ("stage", "line", "kind", "fate", "device", "time"):
            viewer.locator("[data-part=colour]").select_option(colour)
            assert faint(viewer) == [], (scheme, colour)


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
                return [...box.querySelectorAll('text')].flatMap(text => {
                    const own = getComputedStyle(text);
                    const both = [over(rgb(own.fill), Number(own.opacity), below), below];
                    const [dark, bright] = both.map(light).sort((p, q) => p - q);
                    const contrast = (bright + 0.05) / (dark + 0.05);
                    return contrast < 4.5 ? [`${text.textContent} ${contrast.toFixed(2)}`] : [];
                });
            });
        }"""
    )


# Paper and phone


def test_paper_has_whole_drawings_with_arrowheads_and_legends_and_no_controls(at, page, artefacts):
    viewer = at("lenet")
    page.set_viewport_size(PAGE)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.screenshot(path=artefacts / "report_print.png", full_page=True)
    assert page.locator("#folded p").is_visible()
    captions = viewer.locator(".prints figcaption").all_inner_texts()
    stages = ["Frontend", "Backward", "Placement", "Execution"]
    assert [caption.partition(":")[0] for caption in captions] == stages
    assert not viewer.locator(".controls").is_visible()
    assert not viewer.locator("[data-part=paper]").is_visible()
    figures = page.locator(".prints figure")
    sizes = [figure.bounding_box() for figure in figures.all()]
    assert len(sizes) == 4 + 4 + 3
    assert max(box["height"] for box in sizes) <= PAGE["height"] / 2
    svgs = [svg.bounding_box() for svg in figures.locator("svg").all()]
    assert min(svg["x"] for svg in svgs) >= 0
    assert max(svg["x"] + svg["width"] for svg in svgs) <= PAGE["width"]
    assert all(figure.locator(".legend li").count() for figure in figures.all())
    heads = page.evaluate(
        """() => [...document.querySelectorAll('.prints .line')]
            .map(line => document.getElementById(line.getAttribute('marker-end').slice(5, -1)))
            .map(head => Boolean(head.closest('.prints')))"""
    )
    assert heads
    assert all(heads)


def test_a_phone_has_one_column_of_whole_sentences_and_low_rows(at, page, artefacts):
    viewer = at("lenet", PHONE, 800)
    page.screenshot(path=artefacts / "report_narrow.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE
    caption = viewer.locator("[data-part=caption]")
    for button in viewer.locator(".stops [data-state]").all():
        button.click()
        assert caption.evaluate("e => e.scrollHeight <= e.clientHeight")
        assert caption.bounding_box()["y"] > viewer.locator(".paper").bounding_box()["y"]
    wide = page.get_by_role("region", name="Low")
    assert wide.locator("tbody tr").first.bounding_box()["height"] < 80
    assert "local" in wide.evaluate("e => getComputedStyle(e).backgroundAttachment")  # shadows
    node(viewer, "pool1/MaxPool").click()
    below = "parts => parts[0].offsetTop >= parts[1].offsetTop + parts[1].offsetHeight"
    assert viewer.locator(".panel, .paper").evaluate_all(f"parts => ({below})(parts.reverse())")
