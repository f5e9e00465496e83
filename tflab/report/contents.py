"""Contents: the measurements behind a report, its parts (chapters of text, tables, pictures and
drawn graphs), and their translation."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tflab.records.blocks import Block, Column, Fact, Table
from tflab.records.graph import Node
from tflab.records.measured import Comparison, History
from tflab.records.placed import Transfer
from tflab.records.stages import Execution, NodeHistory, Placement, Stage

if TYPE_CHECKING:  # a page without plots needs no matplotlib
    from matplotlib.figure import Figure

EPOCHS = 2  # of a training for the report: enough for curves, and done in seconds
FOLDED = 3  # lines of a program that took no time are folded, if they are so many
HOTTEST = 5  # lines of a program that stand above it
OUTSIDE = "/"  # the end of a lane that leaves or enters its scope


@dataclass(frozen=True)
class Walked:
    """A model's walk through all stages, and the history of each of its nodes."""

    model: str
    stages: tuple[Stage, ...]
    histories: Mapping[str, NodeHistory]
    weights: Counter[str] = field(default_factory=Counter)  # elements of each trained variable

    @property
    def placement(self) -> Placement:
        return next(stage for stage in self.stages if isinstance(stage, Placement))

    @property
    def execution(self) -> Execution:
        return next(stage for stage in self.stages if isinstance(stage, Execution))


@dataclass(frozen=True)
class Lab:
    """All measurements for a report; None if no chapter needs them."""

    model: str
    environment: Sequence[tuple[str, str]]
    walked: Walked | None = None
    history: History | None = None  # None also for a model without a loss
    optimizer: str = ""  # of that training
    recipe_epochs: int = 0  # of a whole training
    compared: Comparison | None = None
    interrupted: bool = False  # by a signal


@dataclass(frozen=True)
class Picture:
    """A plot that is already drawn, as SVG and PNG."""

    name: str  # of its files, without a suffix
    caption: str
    svg: str = field(repr=False)
    png: bytes = field(repr=False)
    title: str = ""  # below it; empty if the picture itself has one in the reader's language
    slices: Mapping[str, object] | None = field(default=None, repr=False)  # of a timeline, to zoom


def picture(name: str, draw: Callable[..., Figure], *records: object) -> Picture:
    """Return a plot of some records. Without a font for its language, the PNG stays English."""
    from tflab.exporters import plots

    figure = printed = draw(*records)
    if len(plots.style.FONTS) == 1:
        with plots.style.translated(str):
            printed = draw(*records)
    return Picture(name, str(figure.get_label()), plots.svg(figure), plots.png(printed))


@dataclass(frozen=True)
class Lane:
    """The space of a long edge in a row that it crosses."""

    source: str  # a box by its name, or OUTSIDE
    target: str


@dataclass(frozen=True)
class Box:
    """A node, or a scope with boxes of its own in rows; names of scopes end with a slash."""

    name: str
    label: str  # its name inside the box around it
    rows: tuple[tuple[Box | Lane, ...], ...] = ()  # empty for a node
    framed: bool = True  # otherwise it only keeps its boxes together


@dataclass(frozen=True)
class State:
    """The graph after one stage or pass, as its changes since the previous state."""

    stage: str
    title: str
    about: str  # what this step does
    lines: tuple[str, ...]  # its effect on this graph
    gone: tuple[str, ...] = ()
    defined: tuple[Node, ...] = ()  # new or changed
    touched: tuple[str, ...] = ()  # nodes that this state is about
    place: int | None = None  # index among all passes of the placement
    # Edges, as pairs of nodes, by which the gradient of a variable does not come back
    cut: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Drawing:
    """One graph with all nodes that it ever had, each at a fixed place, in tracks of equal rows."""

    tracks: tuple[Box, ...]  # forward, backward, update
    states: tuple[State, ...]
    transfers: tuple[Transfer, ...] = ()  # between devices


def nodes_of(box: Box) -> list[str]:
    """Return the names of all nodes in a box."""
    if not box.rows:
        return [] if box.name.endswith("/") else [box.name]
    boxes = (entry for row in box.rows for entry in row if isinstance(entry, Box))
    return [name for inner in boxes for name in nodes_of(inner)]


@dataclass(frozen=True)
class DrawnGraph:
    """A graph drawn through all of its states, with the history of every node."""

    name: str
    drawing: Drawing
    histories: Mapping[str, NodeHistory] = field(repr=False)
    ns: Mapping[str, float] = field(repr=False)  # node -> median time in a step, of what ran
    statistic: str = "median"  # of the times in `ns`
    start: int = 0  # the state that is shown first
    file: str | None = None  # the program that is shown beside it


@dataclass(frozen=True)
class ScriptLine:
    """A line of a program, with what it cost."""

    number: int
    code: str
    times: tuple[tuple[str, str], ...]  # each with what it is of
    share: float | None  # of the time of the costliest line; None where it took none
    nodes: tuple[str, ...]  # that it made, in the graph beside it


@dataclass(frozen=True)
class Script:
    """A file of a program."""

    name: str
    about: str
    lines: tuple[ScriptLine, ...]

    @property
    def parts(self) -> list[tuple[bool, list[ScriptLine]]]:
        """Return (is folded, lines) of each part; parts without times and nodes are folded."""
        warm = [at for at, line in enumerate(self.lines) if line.times or line.nodes]
        shown = {at + near for at in warm for near in (-1, 0, 1)}
        places = itertools.groupby(range(len(self.lines)), lambda at: at not in shown)
        parts = ((cold, [self.lines[at] for at in part]) for cold, part in places)
        return [(cold and len(part) >= FOLDED, part) for cold, part in parts]


@dataclass(frozen=True)
class Annotated:
    """A program line by line beside the graph that it made."""

    scripts: tuple[Script, ...]
    graph: DrawnGraph | None

    @property
    def hottest(self) -> list[tuple[int, str, ScriptLine]]:
        """Return (number, place, line) of the costliest lines, the most expensive first."""
        every = ((script.name, line) for script in self.scripts for line in script.lines)
        timed = [
            (at, f"{name.rpartition('/')[2]}:{line.number}", line)
            for at, (name, line) in enumerate(every)
            if line.share
        ]
        return sorted(timed, key=lambda row: -(row[2].share or 0))[:HOTTEST]


Part = Block | Picture | DrawnGraph | Annotated


@dataclass(frozen=True)
class Chapter:
    title: str
    parts: tuple[Part, ...]
    folded: bool = False  # in the page, until the reader opens it
    result: str = ""  # beside the title of a folded chapter


@dataclass(frozen=True)
class Question:
    """A question that a reader may answer before looking, with the measured answer."""

    text: str
    answer: str
    reason: str
    options: tuple[str, ...] = ()  # empty if the answer is a number
    unit: str = ""  # of the number


@dataclass(frozen=True)
class Report:
    title: str
    about: str
    command: str
    chapters: tuple[Chapter, ...]
    questions: tuple[Question, ...] = ()
    numbers: tuple[Fact, ...] = ()  # the results that come before the chapters
    language: str = "en"


# Selection of chapters
#
# A wrong name is refused before anything is imported.

# Compared by default: fewer processors, and another library for the same work
CONFIGS: tuple[str, ...] = ("one-thread", "no-onednn")
CONFIGS_S = 60  # for comparing them: enough to notice most differences of a tenth

# chapter -> the fields of a Lab that it needs, and what else they have to hold: histories with
# times at each batch size, configurations; in the order of a report
NEEDS = {
    "lab": ("walked", "history", "compared", "configurations"),
    "graph": ("walked", "histories"),
    "network": ("walked",),
    "training": ("walked", "history"),
    "ops": ("walked",),
    "batch-sizes": ("compared",),
    "slow": ("compared",),
    "times": ("walked",),
    "configurations": ("compared", "configurations"),
    "memory": ("walked",),
    "environment": (),
}
CHAPTERS = tuple(NEEDS)
REFERENCE = ("configurations", "memory", "environment")  # chapters that are folded


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the chapters in order, each once. By default these are all but `lab`, the hand-in."""
    return tuple(name for name in CHAPTERS if name in (names or {*CHAPTERS} - {"lab"}))


# The report of the lab in Chinese, from one dictionary, page/chinese.txt
#
# What the dictionary lacks, such as an op's name, stays as it is. Pictures are drawn in Chinese.

PAGE = Path(__file__).resolve().parent / "page"  # the folder of templates and scripts
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def in_chinese(report: Report) -> Report:
    """Return the report with all of its own words in Chinese."""
    return replace(
        report,
        title=chinese(report.title),
        about=chinese(report.about),
        chapters=tuple(
            Chapter(chinese(chapter.title), tuple(map(chinese_part, chapter.parts)))
            for chapter in report.chapters
        ),
        numbers=tuple(
            Fact(chinese(fact.label), chinese(fact.value), chinese(fact.note))
            for fact in report.numbers
        ),
        language="zh",
    )


def chinese_part(item: Part) -> Part:
    if isinstance(item, str):
        return chinese(item)
    if isinstance(item, Table):
        columns = tuple(map(chinese_column, item.columns))
        return replace(item, title=chinese(item.title), columns=columns, more=0)
    return item


def chinese_column(item: Column) -> Column:
    """Return the column with its texts in Chinese; names, which are the program's, stay."""
    cell = item.cell if item.name else lambda row: chinese(item.cell(row))
    return replace(item, header=chinese(item.header), cell=cell)


@cache
def dictionary() -> dict[str, str]:
    """Return English -> Chinese. {} stands for a part that differs, and is translated by itself."""
    text = (PAGE / "chinese.txt").read_text(encoding="utf-8")
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
    """Return the keys with {}, as regular expressions, each with its Chinese."""
    return tuple(
        (re.compile(re.escape(key).replace(r"\{\}", "(.+?)")), words)
        for key, words in dictionary().items()
        if "{}" in key
    )
