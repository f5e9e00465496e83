"""Files of pictures: which are written, what they are called, and what is in them."""

import re
import struct
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from tflab.errors import UsageError
from tflab.exporters import plots


def small() -> Figure:
    """A square inch with a line that is clipped by its panel."""
    figure = Figure(figsize=(1, 1))
    figure.set_label("Loss. It falls.")
    axes = figure.subplots()
    axes.plot([1, 2], [2, 1], marker="o")
    axes.set_title('a < b & 2 $ id="x"')
    return figure


@pytest.fixture(scope="module")
def figure() -> Figure:
    return small()


def test_a_picture_is_saved_as_png_and_svg_which_do_not_say_what_wrote_them(figure, tmp_path):
    folder = tmp_path / "new" / "folder"
    paths = plots.save(figure, folder / "lenet-v1.5")
    assert paths == sorted(folder.iterdir()) == [folder / f"lenet-v1.5.{x}" for x in ("png", "svg")]
    content = paths[0].read_bytes()
    assert content == plots.png(figure) and b"tEXt" not in content
    assert struct.unpack(">II", content[16:24]) == (160, 160)
    assert paths[1].read_text() == plots.svg(figure)


def test_nothing_is_overwritten_and_then_nothing_is_written(figure, tmp_path):
    (tmp_path / "a.svg").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError) as error:
        plots.save(figure, tmp_path / "a")
    assert str(error.value) == (
        f"The picture '{tmp_path / 'a.svg'}' exists already; remove it or give another path."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_an_svg_can_stand_in_a_page(figure):
    svg = plots.svg(figure)
    assert svg.startswith("<svg ")
    for absent in ("<?xml", "<!DOCTYPE", "<style", "<metadata", "ns0:", "xlink", "http://purl"):
        assert absent not in svg
    root = ElementTree.fromstring(svg)
    assert {part.tag.rpartition("}")[0] for part in root.iter()} == {"{http://www.w3.org/2000/svg"}
    assert root.attrib == {
        "width": "72pt",
        "height": "72pt",
        "viewBox": "0 0 72 72",
        "version": "1.1",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
        "role": "img",
        "aria-label": "Loss. It falls.",
        "style": "max-width: 100%; height: auto",
    }
    texts = [part.text for part in root.iter() if part.tag.endswith("}text")]
    assert texts[-1] == 'a < b & 2 $ id="x"'
    ids = [part.attrib["id"] for part in root.iter() if "id" in part.attrib]
    assert {re.fullmatch("(p[0-9a-f]{10}-).+", id_).group(1) for id_ in ids} == {ids[0][:12]}
