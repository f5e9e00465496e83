"""Claims: what a written report says of times and rates, wherever it says it.

A claim is a key (whose step or op, which quantity, which statistic) and the numbers that its text
leaves open: `2.50 ms` may be anything from 2.495 to 2.505 ms. Two claims of one key have to agree.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from tests.report.told import Grid, Page, drawn_texts, handout

NUMBER = r"-?\d[\d,]*(?:\.\d+)?"
TIME = rf"{NUMBER} (?:ns|us|ms|s)\b"
FACTORS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "%": 1.0, "x": 1.0, "": 1.0}
Key = tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    key: Key
    low: float
    high: float
    where: str

    def agrees(self, other: Claim) -> bool:
        return self.low <= other.high and other.low <= self.high


def claim(key: Key, text: str, where: str) -> Claim:
    number, _, unit = text.partition(" ")
    digits = number.replace(",", "")
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2]) * FACTORS[unit]
    value = float(digits) * FACTORS[unit]
    return Claim(key, value - 1.001 * half, value + 1.001 * half, f"{text} ({where})")


STEP, TRACED = "untraced step", "traced step"
# A sentence -> the keys of its groups, in their order; `{0}` is the first group, `{model}` the
# model that the chapter is about. A key that is None is another number than a time or a rate.
SENTENCES: dict[str, tuple[tuple[str, ...] | None, ...]] = {
    rf"A step took ({TIME}) for a batch of \d+ \(the median": (("{model}", STEP, "median"),),
    rf"({TIME}) a step for a batch of \d+ \(median\)": (("{model}", STEP, "median"),),
    rf"critical path: \d+ op runs?, ({TIME})": (
        ("{model}", "critical path", "of the median step"),
    ),
    rf"In a traced step these took ({TIME})\.": (
        ("{model}", "critical path", "of the median step"),
    ),
    rf"at batch (\d+), took {TIME}, and a warm traced step took ({TIME}) \(median\)": (
        None,
        ("batch {0}", TRACED, "median"),
    ),
    rf"^(\S+) takes ({NUMBER} %) of the op time, ({TIME}) a call on average": (
        None,
        ("batch {row}", "{0}", "share"),
        ("batch {row}", "{0}", "mean"),
    ),
    rf"^(\S+): the time of a call fits ({TIME}) \+ ({TIME}) per \w+ within ({NUMBER} %)": (
        None,
        ("fit", "{0}", "fixed"),
        ("fit", "{0}", "an image"),
        ("fit", "{0}", "error"),
    ),
    r"^(?:Against default, an )?untraced step under (\S+) takes .*": (None,),
    rf"x as long \[[\d., ]+\] at batch (\d+) \({TIME} against ({TIME})\)": (
        None,
        ("processes {0}", "default", "median"),
    ),
    rf"^(\S+) is .* as default on this machine, at batch (\d+) .*\(({TIME}) against ({TIME})\)": (
        None,
        None,
        ("processes {1}", "{0}", "median"),
        ("processes {1}", "default", "median"),
    ),
    rf"At batch (\d+) an untraced step takes ({TIME}), but its ops take only ({TIME})": (
        None,
        ("batch {0}", STEP, "median"),
        ("batch {0}", "ops of a step", "mean"),
    ),
    rf"steps at batch (\d+) is {NUMBER} x p10 \(({TIME}) and ({TIME})\)": (
        None,
        ("{measured}{0}", STEP, "p90"),
        ("{measured}{0}", STEP, "p10"),
    ),
    rf"at batch (\d+) the untraced step took {NUMBER} x as long as the traced step "
    rf"\(({TIME}) and ({TIME})\)": (
        None,
        ("{measured}{0}", STEP, "median"),
        ("{measured}{0}", TRACED, "median"),
    ),
}
# Times of one event, which have no statistic
EVENTS = (
    rf"from {TIME} (?:to {TIME} )?(?:\(inferred\) )?of the median traced step",
    rf"from {TIME} to the end of the median traced step",
    rf"peaked after {TIME}",
    rf"not on the critical path, with a slack of {TIME} by median",
    rf"^A step of {TIME}: \d+ ops? of \d+ .* Step \d+\.",
    rf"\({TIME} before the first op, {TIME} between ops, {TIME} after the last\)",
    rf"at batch \d+, took {TIME}, and a warm traced step",
    r"for about \d+ s\b",
    r"^.* of a median step at batch \d+ \(.* Try .*",  # a reason, with what it costs
    rf"^No single cause stands out: of a median step at batch \d+ \({TIME}\)",
)
SINGLE = {"first run", "alive", "backward", "time", "total", "self", "adds", "from", "to", "fit"}


def of_text(text: str, names: dict[str, str], where: str) -> Iterator[Claim]:
    """The claims of a text. AssertionError where it has a time and no rule says of what."""
    known: list[tuple[int, int]] = []
    for pattern, keys in SENTENCES.items():
        for match in re.finditer(pattern, text):
            known.append(match.span())
            groups = match.groups()
            for key, said in zip(keys, groups, strict=True):
                if key is not None:
                    yield claim(tuple(part.format(*groups, **names) for part in key), said, where)
    known += [match.span() for pattern in EVENTS for match in re.finditer(pattern, text)]
    for match in re.finditer(rf"(?<![\w.]){TIME}", text):
        inside = any(first <= match.start() and match.end() <= last for first, last in known)
        assert inside, f"{match[0]!r} has no statistic: {text}"


def of_grid(grid: Grid, names: dict[str, str]) -> Iterator[Claim]:
    """The claims of a table, by its title and headers."""
    where = grid.title
    stated = re.search(r"\b(mean|median)\b", grid.title.lower())
    batch = re.match(r"Batch (\d+): the time", grid.title)
    for row in grid.rows:
        cells = dict(zip(grid.headers, row, strict=False))
        first = row[0]
        for header, cell in list(cells.items())[1:]:
            if not re.fullmatch(rf"(?:{TIME}|{NUMBER} %|{NUMBER})(?: [\[(+].*)?", cell):
                yield from of_text(cell, names | {"row": first}, where) if cell else ()
                continue
            statistic = re.search(r"\b(mean|median|p10|p90|p95|share)\b", header) or stated
            if re.match(TIME, cell):
                assert statistic or header in SINGLE, f"{header} of '{where}' has no statistic"
            said = statistic[1] if statistic else header
            text = re.match(rf"{TIME}|{NUMBER} %|{NUMBER}", cell)[0]
            if grid.title.startswith("Time of a step"):
                yield claim((names["model"], f"{first} step", said), text, where)
            elif "nodes (self time" in grid.title:
                yield claim((names["model"], first, said), text, where)
            elif batch:
                yield claim((f"batch {batch[1]}", first, said), text, where)
            elif grid.title.startswith("Mean time of a call at each batch size"):
                yield from of_calls(header, cell, first, where)
            elif grid.title.startswith("Steps of each") or "findings at each" in grid.title:
                whose = {"ops, mean": "ops of a step", "traced, median": TRACED}.get(header, STEP)
                yield claim((f"batch {first}", whose, said), text, where)
            elif grid.title.startswith("Median untraced step under other"):
                yield claim((f"processes {first}", header, said), text, where)
        yield from of_rates(cells, first, where)


def of_calls(header: str, cell: str, first: str, where: str) -> Iterator[Claim]:
    if header == "fit":
        fixed, _, rising = cell.partition(" + ")
        yield claim(("fit", first, "fixed"), fixed, where)
        yield claim(("fit", first, "an image"), rising, where)
    elif header == "error":
        yield claim(("fit", first, "error"), cell, where)
    else:
        yield claim((header, first, "mean"), cell.partition(" (")[0], where)


def of_rates(cells: dict[str, str], batch: str, where: str) -> Iterator[Claim]:
    """Images a second follow from a time that is shown: the mean of a step."""
    if "images a second" in cells and "batch" in cells:
        rate = claim((), cells["images a second"], where)
        low, high = (1e9 * int(batch) / end for end in (rate.high, rate.low))
        words = f"{batch} over {cells['images a second']} images a second ({where})"
        yield Claim((f"batch {batch}", STEP, "mean"), low, high, words)


def of_drawing(data: dict, names: dict[str, str], steps: int) -> Iterator[Claim]:
    """The times of a drawing's boxes, and those of the panel at the batch size of the walk."""
    once = set()
    for node in data["nodes"]:
        title, rows = node["times"]["title"], node["times"]["rows"]
        if not rows or " for the whole of " in title:
            continue
        heads, *lines = rows
        by_name = {line[0]: dict(zip(heads, line, strict=True)) for line in lines}
        at = names["batch"]
        if by_name["calls"].get(at) == f"{steps:,}":
            once.add(node["name"])
            for said in ("mean", "median", "share"):
                where = f"panel of {node['name']}"
                yield claim((names["model"], node["name"], said), by_name[said][at], where)
    for box in data["boxes"]:
        name = None if box["node"] is None else data["nodes"][box["node"]]["name"]
        if name in once and "time" in box:
            yield claim((names["model"], name, "median"), box["time"], f"drawing of {name}")


def of_report(html: str, markdown: str) -> list[Claim]:
    """All claims of a report, from both of its files."""
    page = Page(html)
    main = page.title.removeprefix("The stages of ")
    said, grids = handout(markdown)
    texts = [*page.texts, *said]
    shape = re.search(r"for a batch of (\d+) \(the median of (\d+)", html)
    found: list[Claim] = []

    def names_of(chapter: str) -> dict[str, str]:
        own = chapter.removeprefix("The stages of ")
        walked = chapter.startswith("Where a step")
        return {
            "model": own if chapter.startswith("The stages") else main,
            "measured": f"walk of {main}, batch " if walked else "batch ",
            "batch": shape[1] if shape else "",
            "row": "",
        }

    for chapter, text in texts:
        found += of_text(text, names_of(chapter), text[:60])
    for grid in (*page.grids, *grids):
        found += of_grid(grid, names_of(grid.chapter))
    for chapter, data in page.data:
        if isinstance(data, dict):
            for text in drawn_texts(data):
                found += of_text(text, names_of(chapter), f"drawing, {text[:60]}")
            if "devices" not in chapter:
                found += of_drawing(data, names_of(chapter), int(shape[2]) if shape else 0)
    return found


def contradictions(claims: Iterable[Claim]) -> list[str]:
    """Each key with two claims that do not agree."""
    by_key: dict[Key, list[Claim]] = defaultdict(list)
    for one in claims:
        by_key[one.key].append(one)
    return [
        f"{' '.join(key)}: {a.where} and {b.where}"
        for key, same in by_key.items()
        for a, b in combinations(same, 2)
        if not a.agrees(b)
    ]
