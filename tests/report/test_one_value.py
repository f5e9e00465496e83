"""One value: what a written report says twice, it says alike, and each time has a statistic."""

import importlib
import re

import pytest

from tests.report import claims
from tests.report.told import Grid

NAMES = {"model": "m", "measured": "batch ", "batch": "16", "row": ""}


def test_numbers_that_agree_up_to_rounding_agree():
    (low, high, far) = (claims.claim((), text, "") for text in ("1.00 ms", "995 us", "994 us"))
    assert low.agrees(high) and not low.agrees(far)


@pytest.mark.parametrize("text", ["It took 3.00 ms.", "A step of 4 takes 1.00e+3 us"])
def test_a_time_without_a_statistic_is_refused(text):
    with pytest.raises(AssertionError, match="has no statistic"):
        list(claims.of_text(text, NAMES, ""))


def test_a_column_without_a_statistic_is_refused():
    table = Grid("", "Some table", ("op", "took"), (("Mul", "3.00 us"),))
    with pytest.raises(AssertionError, match="took of 'Some table' has no statistic"):
        list(claims.of_grid(table, NAMES))


# A written report, with all of its chapters: those of the toy, too

SHORTER = {
    "report.lab": {"EXPERIMENTS_S": 1, "SWEEP_S": 1, "STEPS": 5},
    "lifecycle.execution": {"ROUNDS": 2},
    "lifecycle.experiments": {"ROUNDS": 3, "LARGEST": 2},
    "compare.configurations": {"ROUNDS": 2, "TURNS": 2, "OBSERVATIONS": 3},
}
LEAST = 700  # claims; a reader that finds fewer does not read the report


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Both files of a report, written by the command in a short time, with pictures that have no
    more than their captions."""
    from tests.commands import in_one_process, run_here
    from tflab.report import __main__ as report
    from tflab.report import contents, lab
    from tflab.report.contents import Picture

    def captioned(name, draw, *records):
        return Picture(name, str(draw(*records).get_label()), "<svg/>", b"")

    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        patch.setattr(contents, "picture", captioned)
        for module, names in SHORTER.items():
            for name, value in names.items():
                patch.setattr(importlib.import_module(f"tflab.{module}"), name, value)
        patch.setattr(lab, "EPOCHS", 2)
        out = ("--out", str(folder / "out"))
        done = run_here(report.main, "--model", "lenet", *out)
    assert done.returncode == 0, done.stderr
    return tuple((folder / f"out/report.{ending}").read_text() for ending in ("html", "md"))


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_report_says_everything_once_or_alike(written):
    found = claims.of_report(*written)
    assert len(found) >= LEAST
    assert claims.contradictions(found) == []


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_number_that_is_changed_in_a_report_is_found(written):
    """Of each kind of place one: a box of the drawing, the panel, a cell, a rate, a sentence."""
    html, markdown = written
    numbers = (
        r'"rows":\[\],"kind":"\w+","fates":[^"]*"\w+",\d+\]\],"time":"(\d[\d.]* us)"',
        r'"Per call in warm, traced steps","rows":.*?\["median","[^"]+","(\d[\d.]* us)"',
        r'at each batch size</p>.*?<tr>(?:<td[^>]*>[^<]*</td>){3}<td class="right">([\d,]+)<',
        r"A step took (\S+ \S+) for a batch",
    )
    for number in numbers:
        match = re.search(number, html, re.DOTALL)
        assert match, number
        value, _, unit = match[1].partition(" ")
        other = f"{float(value.replace(',', '')) * 1.5:.2f} {unit}".strip()
        planted = html[: match.start(1)] + other + html[match.end(1) :]
        assert claims.contradictions(claims.of_report(planted, markdown)), match[0][-80:]
