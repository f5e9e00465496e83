"""The documentation: its commands exist, its links lead somewhere, its columns are explained."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from tflab.__main__ import COMMANDS, module_of
from tflab.views.words import FATES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/*.md"), ROOT / "examples" / "README.md"])
PROGRAMS = {"torch_lenet", "torch_peer", "watched_program"}  # which benchmarks run
BENCHMARKS = {file.stem for file in (ROOT / "benchmarks").glob("*.py")} - {"__init__"} - PROGRAMS
COMMAND = re.compile(r"python -m tflab(?:\.| )([\w-]+)((?: [^\n`|]*)?)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_written_down_is_understood(page):
    for name, rest in COMMAND.findall(page.read_text()):
        assert name in COMMANDS, f"{name} in {page.name}"
        words = shlex.split(re.split(" -- |-->|#", rest)[0], comments=True)
        if not any(word.startswith("[") for word in words) and words[:1] != ["COMMAND"]:
            module_of(name).parser().parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading_of_it(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.exists(), f"{target} in {page.name}"
        assert not anchor or anchor in anchors(file), f"{target}#{anchor} in {page.name}"


@pytest.mark.parametrize("page", ["README.md", "docs/lab.md"])
def test_a_page_has_the_same_commands_links_and_headings_in_chinese(page):
    english = (ROOT / page).read_text()
    chinese = (ROOT / page.replace(".md", ".zh.md")).read_text()
    assert re.findall("^(#+) ", chinese, re.M) == re.findall("^(#+) ", english, re.M)
    assert linked(chinese) == linked(english)
    assert code_of(chinese) == code_of(english)


def linked(text):
    """The targets of links and pictures, but for those to the page in the other language."""
    targets = re.findall(r"\]\((.+?)\)", text.partition("\n\n")[2].partition("\n\n")[2])
    return [target.replace(".zh.md", ".md") for target in targets]


def code_of(text):
    """Blocks without their comments, and what stands in the sentences as code."""
    blocks = re.findall("^```.*?^```", text, re.M | re.S)
    sentences = re.sub("^```.*?^```", "", text, flags=re.M | re.S)
    spoken = [re.sub(r"\s+", " ", code) for code in re.findall("`([^`]+)`", sentences)]
    return [re.sub(" +# .*", "", block) for block in blocks], spoken


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall("^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(heading):
    """A section of the reference, without its heading."""
    text = (ROOT / "docs" / "reference.md").read_text()
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.md").read_text()
    for name in COMMANDS:
        assert f"python -m tflab.{name}" in text


def test_the_glossary_lists_each_term_once():
    terms = re.findall(r"^\| \*\*(.+)\*\* \| .+ \|$", section("Glossary"), re.M)
    assert terms == sorted(set(terms))
    assert {*FATES, *("node", "op", "kernel", "step", "feed", "fetch")} <= set(terms)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_is_complete_and_points_to_the_glossary(name):
    text = module_of(name).parser().format_help()
    assert "docs/reference.md" in text
    assert not re.search(r"\{[A-Z_]+\b[^,]*?\}", text)  # an f-string without its f


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_benchmark_still_finds_what_it_measures(name):
    assert importlib.import_module(f"benchmarks.{name}").__doc__


def test_every_column_of_every_table_is_explained():
    """Columns are named in the code of the views; the reference has a line for each."""
    explained = section("Columns of the tables")
    sources = [
        file
        for file in sorted((ROOT / "tflab").rglob("*.py"))
        if file.parent.name == "views"
        or file.name in ("view.py", "conversion.py")
        or file.stem.endswith(("_chapter", "chapters", "_table"))
    ]
    headers = {
        header
        for source in sources
        for header in re.findall(r'[Cc]olumn\(\s*"([^"]+)"', source.read_text())
    }
    missing = sorted(header for header in headers if f"**{header}**" not in explained)
    assert not missing
