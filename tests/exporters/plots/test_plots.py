"""Plots: all marks and words of each picture, in approved files, and what all pictures keep."""

import functools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from tests.approval import approve
from tests.examples import plots as examples
from tests.exporters.plots.pictures import marks, plain
from tflab.exporters import plots
from tflab.exporters.plots import style

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SVG = "http://www.w3.org/2000/svg"
TAGS = ("svg", "g", "path", "text", "tspan", "defs", "clipPath", "rect", "use", "pattern", "image")
HOSTILE = '$\\f{_$<b>&"]]>\x1b\ud800\u4f60'
SHOWN = '$\\f{_$<b>&"]]>\\x1b\\ud800\u4f60'
every_picture = pytest.mark.parametrize("name", examples.EMPTY)


@pytest.fixture(scope="module")
def drawn():
    return functools.cache(examples.draw)


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_every_mark_and_word_of_a_picture(name, drawn):
    approve(f"plot-{name}.txt", marks(drawn(name)))


def test_every_picture_has_a_module_of_its_name_and_examples():
    folder = Path(plots.__file__).parent
    modules = {path.stem for path in folder.glob("*.py") if "def draw(" in path.read_text()}
    assert modules == set(examples.EMPTY) == set(examples.hostile("a"))
    assert modules <= set(examples.EXAMPLES)


def test_where_there_is_nothing_to_draw_a_sentence_says_so():
    empty = {name: getattr(plots, name).draw(*records) for name, records in examples.EMPTY.items()}
    approve("plots-empty.txt", "\n\n".join(map(marks, empty.values())))
    assert all(plots.svg(figure).startswith("<svg ") for figure in empty.values())


@every_picture
def test_a_picture_has_the_width_of_a_page_and_none_of_its_text_is_cut_off(name, drawn):
    figure = drawn(name)
    assert figure.get_figwidth() == style.WIDTH
    edges = figure.bbox
    for box in [
        *(text.get_window_extent() for text in figure.texts),
        *(axes.get_tightbbox() for axes in figure.axes),
    ]:
        assert edges.x0 <= box.x0 and edges.y0 <= box.y0
        assert box.x1 <= edges.x1 and box.y1 <= edges.y1


@every_picture
def test_a_users_settings_change_no_picture_and_are_left_as_they_were(name, drawn):
    """Nor does what was drawn before: the same input gives the same bytes."""
    expected = plots.svg(drawn(name))
    with matplotlib.rc_context({"font.size": 40, "axes.linewidth": 5, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert plots.svg(examples.draw(name)) == expected
        assert dict(matplotlib.rcParams) == before


@every_picture
@pytest.mark.filterwarnings("error")
def test_names_can_hold_anything(name):
    figure = getattr(plots, name).draw(*examples.hostile(HOSTILE)[name])
    assert plots.png(figure)
    page = ElementTree.fromstring(plots.svg(figure))
    assert {part.tag for part in page.iter()} <= {f"{{{SVG}}}{tag}" for tag in TAGS}
    assert SHOWN in plain("".join(page.itertext())) or name == "memory"  # which has no names


def test_pictures_in_one_page_share_no_ids_and_each_reference_leads_somewhere(drawn):
    all_ids: list[str] = []
    for name in examples.EMPTY:
        svg = plots.svg(drawn(name))
        own = [
            part.attrib["id"] for part in ElementTree.fromstring(svg).iter() if "id" in part.attrib
        ]
        used = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert used and set(used) <= set(own)
        all_ids += own
    assert len(set(all_ids)) == len(all_ids) > 100
