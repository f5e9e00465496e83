"""Page: a watched program as a page, with its lines next to the drawing of its graph."""

from __future__ import annotations

import os
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

from tflab import units
from tflab.follow import recorded
from tflab.records.blocks import Table
from tflab.records.graph import grouped
from tflab.records.watched import Recorded, RecordedValues, Watched, WatchedLine
from tflab.report import drawing, storage
from tflab.report.contents import Annotated, Chapter, DrawnGraph, Report, Script, ScriptLine, State
from tflab.run import sampler, view
from tflab.run.groups import DATA_OPS
from tflab.views.words import listed

MOST_LINES = 5_000  # of a file that is shown completely


def report(seen: Watched, command: str) -> Report:
    """Return the page of a watched program; `command` repeats it."""
    name, blocks = view.name_of(seen), [*view.blocks(seen, with_lines=False)]
    about = [*takewhile(lambda block: isinstance(block, str), blocks)]
    # A terminal has the tables without rules, in few lines; here their long cells go on below
    rest = (
        replace(block, drawing=False) if isinstance(block, Table) else block
        for block in blocks[len(about) :]
    )
    chapters = [Chapter("The whole process", tuple(rest))]
    graph = drawn_graph(seen.graph, seen.values) if seen.graph else None
    annotated = Annotated(tuple(scripts(seen)), graph)
    if annotated.scripts:
        about_times = (EXPLAINED,) if annotated.hottest else ()
        parts = (annotated, *((OF_GRAPH,) if graph else ()), *about_times)
        chapters.insert(0, Chapter("The program, line by line", parts))
    lead = " ".join(map(str, about)).removeprefix(f"tflab: {name} ")
    return Report(name, lead, command, tuple(chapters))


def life(seen: Watched) -> storage.Life | None:
    """Return the largest group's graph as TensorBoard's Life shows it; None if none was kept."""
    if seen.graph is None:
        return None
    _, *where = view.blocks(seen, with_lines=False)
    graph = drawn_graph(seen.graph)
    return storage.life(graph.drawing.states[-1].stage, graph, (("In short", where),))


EXPLAINED = (
    "Forward, backward, updates and waiting (for data): times of the nodes that a line made, "
    f"estimated from the traced runs ({view.ONCE} from one). Python and TensorFlow: sampled times "
    "of the line itself and of its calls to TensorFlow and Keras, without runs."
)
OF_GRAPH = "The drawing shows the graph whose steps took longest. Point at a line to see its nodes."


# The lines of the program


def scripts(seen: Watched) -> Iterator[Script]:
    """Yield the program's files: first the script, then the most expensive ones."""
    by_file: defaultdict[str, dict[int, WatchedLine]] = defaultdict(dict)
    for line in seen.lines:
        by_file[line.file][line.line] = line
    spent = {file: sum(map(view.shown_ns, own.values())) for file, own in by_file.items()}
    files = sorted(by_file, key=lambda file: (file != seen.program[0], -spent[file], file))
    most = max(map(view.shown_ns, seen.lines), default=0)
    nodes = grouped(
        ((node.line.file, node.line.line), node.name)
        for node in (seen.graph.nodes if seen.graph else ())
        if node.line
    )

    def row(file: str, number: int, code: str) -> ScriptLine:
        line = by_file[file].get(number)
        cells = zip(view.times(line), view.HEADERS, strict=True) if line else ()
        times = tuple((what, text) for (_, text), what in sorted(cells, reverse=True) if text)
        share = view.shown_ns(line) / most if line and times else None
        made = tuple(nodes.get((file, number), ()))
        return ScriptLine(number, code.expandtabs(4), times, share, made)

    for file in files:
        within = os.path.relpath(file)  # of the working directory
        texts = lines_of_file(file, by_file[file])
        about = "" if texts else "the file has changed; only the recorded lines are shown"
        texts = texts or {number: line.code for number, line in sorted(by_file[file].items())}
        rows = tuple(row(file, number, code) for number, code in texts.items())
        yield Script(file if within.startswith(os.pardir) else within, about, rows)


def lines_of_file(file: str, known: Mapping[int, WatchedLine]) -> dict[int, str]:
    """Return the text of each line of a file; none if it has changed since, or is too long."""
    try:
        with tokenize.open(file) as content:
            texts = dict(enumerate(content.read().splitlines(), 1))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return {}
    same = all(
        texts.get(number, "").strip()[: sampler.MOST_CODE] == line.code
        for number, line in known.items()
    )
    return texts if same and len(texts) <= MOST_LINES else {}


# The drawing of the graph


def drawn_graph(graph: Recorded, known: RecordedValues | None = None) -> DrawnGraph:
    """Return the graph of the largest group in its states, as the report draws it."""
    stages = recorded.stages(recorded.needed(graph))
    histories = recorded.histories(graph, stages, known)
    plain = drawing.draw(stages, histories)
    how = f"Times are estimated from {units.plural(graph.traced, 'traced run')} of the program."
    about = "The ops ran in the order of their dependencies."
    if not graph.executed:
        about = "The ops of the function ran; this is its graph before the runtime rewrote it."
    ran = State(stage="execution", title="Execution", about=about, lines=(how,))
    states = (*plain.states, ran) if graph.traced else plain.states
    return DrawnGraph(
        name=f"the graph of {listed(graph.fetches, view.NAMED)}",
        drawing=replace(plain, states=states),
        histories=histories,
        ns={n: op.ns / graph.traced for n, op in graph.ops.items() if not n.startswith(DATA_OPS)},
        statistic="mean",
        start=len(states) - 1,
    )
