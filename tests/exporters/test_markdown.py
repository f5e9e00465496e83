"""Markdown: a page that pastes into a report, and names that stay names."""

from tests.approval import approve
from tests.examples.blocks import BLOCKS
from tflab.exporters import markdown
from tflab.records.blocks import Column, Table

ENVIRONMENT = {
    "python": "3.11.2",
    "os": "Debian",
    "processor": "Some_CPU",
    "cpus": 2,
    "packages": {"tensorflow": "2.21.0", "xprof": None, "numpy": "2.4.6"},
}


def test_a_page_of_stages_with_all_kinds_of_blocks_and_the_error_that_ended_it():
    titled = {"Frontend: Python calls become nodes": BLOCKS, "Backward": BLOCKS}
    page = markdown.page("The stages of le_net", ENVIRONMENT, titled, "No a_b.")
    approve("blocks.md", page)
    assert page.endswith("a\\_b.\n") and "\n\n\n" not in page


def test_a_page_of_one_subject_and_of_a_measurement_from_a_file():
    assert markdown.page("le_net by size", ENVIRONMENT, {"": ["One.", "Two."]}) == (
        "# le\\_net by size\n\n2 CPUs (Some\\_CPU), Debian, Python 3.11.2, tensorflow 2.21.0, "
        "numpy 2.4.6.\n\nOne.\n\nTwo.\n"
    )
    assert markdown.machine({"model": "toy", "file": "a"}) == "model: toy; file: a."


def test_the_fence_of_a_drawing_is_longer_than_what_is_in_it():
    drawing = Table("", (Column("``", str),), ("a ```` b", "`"), drawing=True)
    assert markdown.table(drawing).splitlines() == ["`````text", "``", "a ```` b", "`", "`````"]
