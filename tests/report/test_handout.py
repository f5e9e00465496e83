"""The pictures of the report's Markdown; `test_chapters` has its text."""

from tflab.report import handout
from tflab.report.contents import Annotated, Chapter, Picture, Report

CURVES = Picture("curves", "A_curve.", "<svg/>", b"png")
ROOF = Picture("roof", "A roof.", "<svg>2</svg>", b"png 2")


def test_every_picture_of_every_chapter_is_written_in_both_formats(tmp_path):
    folder = tmp_path / "report_files"
    chapters = Chapter("First", ("A sentence.", CURVES)), Chapter("Last", (ROOF,))
    handout.write_pictures(Report("", "", "", chapters), folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert files == {
        "curves.png": b"png",
        "curves.svg": b"<svg/>",
        "roof.png": b"png 2",
        "roof.svg": b"<svg>2</svg>",
    }


def test_a_program_line_by_line_is_in_the_page_only():
    assert handout.markdown(Annotated((), None)) == (
        "[report.html](report.html) has the program line by line."
    )
