"""The chapter of other machines: what differs and by how much, or why it cannot be told."""

from dataclasses import replace

import pytest

from tests.measurements_by_hand import HERE, changed, measurement, of_graph
from tests.report.lab_by_hand import LAB, chosen, shown
from tflab.errors import UsageError
from tflab.measurements import contrast, files, view
from tflab.report import __main__ as report
from tflab.report import chapters, comparison_chapters, selection
from tflab.report.contents import Method

THERE = measurement(factor=0.5, environment={**HERE, "GPUs": "1 x Some GPU"})


def test_what_differs_comes_first_then_steps_and_ops_then_how_to_measure_elsewhere():
    first, *parts, last = shown(
        comparison_chapters.other_measurements(measurement(), {"gpu": THERE})
    )
    assert first.startswith("This is the same step, measured elsewhere or at another time")
    held = contrast.contrast({"this report": measurement(), "gpu": THERE})
    assert parts == shown(view.parts(held, 10))
    assert [
        "Differences",
        ("", "this report", "gpu"),
        ("GPUs", "none", "1 x Some GPU"),
        0,
    ] in parts
    assert last == Method(
        "The step ran in 5 processes, one after the other; each process is one observation. The "
        "command saves such a measurement on another machine.",
        "python -m tflab.compare --model lenet --batch-sizes 4 16 --save there.json.gz",
    )


def test_what_cannot_be_compared_is_said_and_the_report_goes_on():
    other = of_graph(measurement(), graph="2")
    (sentence,) = comparison_chapters.other_measurements(measurement(), {"there": other})
    assert sentence.startswith(
        "These measurements cannot be compared. 'this report' and 'there' are of different models"
    )


def titles(lab) -> list[str]:
    return [chapter.title for chapter in chapters.report(lab, "").chapters]


@pytest.mark.usefixtures("undrawn")
def test_only_a_report_with_measurements_has_the_chapter():
    title = "On another machine, or another day"
    assert title not in titles(LAB)
    assert title in titles(replace(LAB, here=measurement(), others={"gpu": THERE}))


# What is given


def test_the_chapter_is_there_with_those_that_were_chosen():
    assert chosen("--chapters", "memory", "--with", "a") == ("elsewhere", "memory")
    assert chosen("--model", "lenet", "--with", "a") == selection.CHAPTERS
    with pytest.raises(UsageError) as error:
        chosen("--chapters", "elsewhere")
    assert str(error.value) == (
        "The chapter 'elsewhere' compares this machine with saved measurements; give their files "
        "with --with."
    )


def test_the_command_that_repeats_a_report_names_its_files():
    args = report.parser().parse_args(["--with", "a.json.gz", "b c"])
    assert report.repeated(args).endswith(" --with a.json.gz 'b c'")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "convnet"}, "'there' is a measurement of 'convnet', not of 'lenet'."),
        (
            {"phase": "training"},
            "'there' cannot be compared with a report. A report measures inference by op at "
            "batch sizes 1, 16, 64; this file has training by op at 4, 16.",
        ),
    ],
)
def test_what_is_no_match_is_refused_before_anything_is_measured(
    tmp_path, capsys, changes, sentence
):
    path = tmp_path / "there.json.gz"
    files.write(path, changed(measurement(), **changes))
    with pytest.raises(UsageError) as error:
        selection.measurements([str(path)], "lenet")
    assert str(error.value) == sentence
    args = ("--with", str(path), "--model", "lenet", "--out", str(tmp_path / "out"))
    assert report.main([*args]) == 2
    assert capsys.readouterr().err == f"tflab: {sentence}\n"
    assert not (tmp_path / "out").exists()


def test_what_fits_is_read_under_its_name(tmp_path):
    path = tmp_path / "there.json.gz"
    files.write(path, THERE)
    assert selection.measurements([str(path)], "lenet") == {"there": THERE}
