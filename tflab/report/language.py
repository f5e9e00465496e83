"""Language: the report of the lab in Chinese, from one dictionary, page/chinese.txt.

What the dictionary does not have, such as the name of an op, stays as it is. Pictures keep their
English, because Matplotlib's font has no Chinese letters; each gets a Chinese title below it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib import resources

from tflab.records.blocks import Column, Fact, Table
from tflab.report.contents import Chapter, Method, Part, Picture, Report

FOLDER = resources.files("tflab.report") / "page"
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def in_chinese(report: Report) -> Report:
    """Return the report with all of its own words in Chinese."""
    chapters = (
        Chapter(chinese(chapter.title), tuple(map(part, chapter.parts)))
        for chapter in report.chapters
    )
    numbers = (
        Fact(chinese(fact.label), chinese(fact.value), chinese(fact.note))
        for fact in report.numbers
    )
    return replace(
        report,
        title=chinese(report.title),
        about=chinese(report.about),
        chapters=tuple(chapters),
        numbers=tuple(numbers),
        language="zh",
    )


def part(item: Part) -> Part:
    if isinstance(item, str):
        return chinese(item)
    if isinstance(item, Table):
        return replace(item, title=chinese(item.title), columns=tuple(map(column, item.columns)))
    if isinstance(item, Method):
        return replace(item, how=chinese(item.how))
    if isinstance(item, Picture):
        return replace(item, title=chinese(item.name), caption=chinese(item.name))
    return item


def column(item: Column) -> Column:
    """Return the column with its texts in Chinese; names, which are the program's, stay."""
    header = chinese(item.header)
    if item.name:
        return replace(item, header=header)
    return replace(item, header=header, cell=lambda row: chinese(item.cell(row)))


@cache
def dictionary() -> dict[str, str]:
    """Return English -> Chinese, with {} where texts differ; what it stands for is looked up."""
    text = (FOLDER / "chinese.txt").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if not line.startswith("#")]
    return dict(zip(lines[::2], lines[1::2], strict=True))


def chinese(text: str) -> str:
    """Return the Chinese of a text, sentence by sentence; the text itself if there is none."""
    if text in dictionary():
        return dictionary()[text]
    sentences = SENTENCE.split(text)
    if len(sentences) > 1:
        return "".join(map(chinese, sentences))
    for pattern, words in patterns():
        if match := pattern.fullmatch(text):
            return words.format(*map(chinese, match.groups()))
    return text.replace(" %", "%").replace(" x ", " \N{MULTIPLICATION SIGN} ")


@cache
def patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the keys with {}, as expressions that find what stands there."""
    return tuple(
        (re.compile(re.escape(key).replace(r"\{\}", "(.+?)")), words)
        for key, words in dictionary().items()
        if "{}" in key
    )
