"""Saved comparisons: what is read of two files, compared, shown, and decided by the exit status."""

import json
from dataclasses import replace

import pytest

from tests.approval import approve, refused
from tests.examples.watched import WATCHED
from tflab.compare import __main__ as command
from tflab.compare import saved
from tflab.exporters import text
from tflab.records import watched
from tflab.records.measured import Gate

STILL = (1.0, 1.01, 0.99, 1.0, 1.0)


def content(factor: float = 1, rows: float = 1, spread=STILL, **changes):
    """A comparison at batch 4 and 16, whose steps take so many times 1 and 4 ms."""
    rounds = {
        str(size): {
            "step_ns": [1e6 * size / 4 * factor * each for each in spread],
            "rows_ns": {
                "Conv2D": [6e5 * rows * each for each in spread],
                "MaxPool": [2e5 * each for each in spread],
                "NoOp": [0.0] * len(spread),
            },
        }
        for size in (4, 16)
    }
    whole = {
        "environment": {"processor": "Some CPU"},
        "model": "lenet",
        "phase": "inference",
        "by": "op",
        "rounds": rounds,
        "findings": ["not needed"],
    }
    return whole | changes


@pytest.fixture
def files(tmp_path):
    def write(*contents):
        paths = []
        for name, each in zip("ab", contents, strict=True):
            (tmp_path / f"{name}.json").write_text(json.dumps(each))
            paths.append(str(tmp_path / f"{name}.json"))
        return paths

    return write


def test_steps_and_rows_are_compared():
    other = content(1.5, 2)
    result = saved.compare("usual", "new", content(), other)
    result = replace(result, gate=saved.gate_of(10, result.steps))
    approve("compare-saved.txt", text.as_text(saved.blocks(result)))


def test_a_step_that_only_one_file_has_has_no_ratio():
    other = content()
    del other["rounds"]["16"], other["rounds"]["4"]["rows_ns"]["MaxPool"]
    result = saved.compare("a", "b", content(), other)
    assert [change.batch_size for change in result.steps] == [4]
    pool = next(row for row in result.rows if row.key == "MaxPool")
    assert (pool.second_ns, pool.verdict) == (None, None)
    assert "NoOp" not in {row.key for row in result.rows}  # took no time
    assert saved.compare("a", "b", content(), content(model="toy")).model == "lenet and toy"


@pytest.mark.parametrize(
    "factor, spread, percent, status",
    [
        (1.5, STILL, 10, 1),
        (1.5, STILL, 50, 3),
        (1.5, STILL, 44, 3),  # clear of that, but not of the control
        (1.0, STILL, 10, 0),
        (0.5, STILL, 10, 0),
        (1.5, (1.0, 1.3, 0.8, 1.0, 1.2), 10, 3),  # its rounds differ by more
        (1.5, (1.0, 1.0), 10, 3),
    ],
)
def test_the_exit_status_says_if_a_step_is_slower(files, capsys, factor, spread, percent, status):
    paths = files(content(spread=spread), content(factor, spread=spread))
    assert command.main([*paths, "--fail-if-slower", str(percent)]) == status
    said = capsys.readouterr()
    assert "The untraced step" in said.out
    result = {
        0: "passes for the step at batch 4, 16",
        1: "fails for the step at batch 4, 16",
        3: "undecided for the step at batch 4, 16",
    }
    first = f"Gate, at most {percent} % slower: {result[status]} (exit status {status})."
    assert (said.out.splitlines()[0], said.out.count("Gate"), said.err) == (first, 1, "")


WRONG_FILES = (
    *({"rounds": 1}, {"rounds": {}}, {"phase": "training"}, {"by": "layer"}),
    *({"rounds": {"4": {"step_ns": [ns], "rows_ns": {}}}} for ns in (0.0, -1.0)),
)
WRONG = (
    *("a.json b.json", "a.json", "a.json a.json", "a.json c.json", "lenet toy"),
    *("a.json b.json --images 4", "--fail-if-slower 5"),
    # Two runs of one program have no verdict
    *("run.json again.json", "run.json again.json --fail-if-slower 5"),
    # Programs
    *("a.py", "a.py -- x", "-- x -- y", "gone.py b.json", "a.py b.json", "a.py a.py --images 4"),
)


def test_wrong_files_and_arguments_are_a_sentence_and_status_2(
    files, tmp_path, capsys, monkeypatch
):
    said = []
    for changes in WRONG_FILES:
        said.append(f"{refused(saved.compare, 'a', 'b', content(), content(**changes))}\n")
    files(content(), {"kind": "other"})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    for name in ("run.json", "again.json"):
        (tmp_path / name).write_text(watched.as_text(WATCHED))
    for line in WRONG:
        assert command.main(line.split()) == 2
        said.append(f"compare {line}\n  {capsys.readouterr().err}")
    approve("compare-saved-errors.txt", "".join(said).replace(str(tmp_path), "FOLDER"))


def test_the_gate_names_slower_and_undecided_steps():
    gate = Gate(10.0, ("step at batch 16",), ("step at batch 1", "step at batch 64"), ())
    limit, unsure = (
        "Gate, at most 10 % slower:",
        "undecided for the step at batch 1, 64 (exit status",
    )
    assert saved.sentence(gate) == f"{limit} fails for the step at batch 16, {unsure} 1)."
    assert saved.sentence(replace(gate, slower=())) == f"{limit} {unsure} 3)."
    passed = replace(gate, undecided=(), passed=("step at batch 4",))
    assert saved.sentence(passed).endswith("16, passes for the step at batch 4 (exit status 1).")


def test_a_step_without_rounds_leaves_the_gate_undecided():
    step = replace(saved.compare("a", "b", content(), content()).steps[0], verdict=None)
    assert saved.gate_of(10, [step]) == Gate(10, (), ("step at batch 4",), ())


def said_of(other, usual=None, **options):
    result = saved.compare("a", "b", usual or content(), other)
    return " ".join(text.as_text(saved.blocks(result, **options)).split())


def test_rows_without_a_difference_are_counted_and_listed_in_full():
    other = content(rows=2)
    assert "2 of 4 rows by type that ran: no difference is proven. --full lists them." in said_of(
        other
    )
    assert ("MaxPool" in said_of(other), "MaxPool" in said_of(other, full=True)) == (False, True)
    assert "--full" not in said_of(other, full=True)


def test_rows_that_differ_are_in_the_first_line_if_no_step_does():
    said = "alike at batch 4, 16; 2 of 4 rows by type that ran differ."
    assert said in said_of(content(rows=2))
    assert "rows by type that ran differ" not in said_of(content(1.5, rows=2))
    assert "rows by type that ran differ" not in said_of(content())


def test_a_row_of_one_file_says_of_which_and_a_difference_what_no_verdict_covers():
    other = content()
    for each in other["rounds"].values():
        del each["rows_ns"]["MaxPool"]
    said = said_of(other)
    assert said.count("only in a") == 2 and "only in b" not in said
    assert "... and 2 more (--top shows more)" in said_of(content(rows=2), other, top=2)
    covered = "not covered errors by changes of the machine between the files"
    assert covered not in said  # nothing is slower or faster
    assert covered in said_of(content(1.5)) and covered in said_of(content(rows=2))


def test_steps_without_a_verdict_have_the_reason_and_what_to_do():
    noisy = content(1.3, spread=(1.0, 1.3, 0.8, 1.0, 1.2))
    assert "Rounds of the step within one file differ by up to 1.62 x" in said_of(
        noisy
    )  # 1.3 / 0.8
    few = content(spread=(1.0, 1.0))
    assert "A verdict takes at least 3 rounds: measure with more --images." in said_of(few, few)
    # The interval alone leaves it open
    close = content(1.04, spread=(1.0, 1.03, 1.0, 1.02, 1.0))
    said = said_of(close)
    assert "cannot tell at batch 4, 16" in said and "differ by up to" not in said


def test_only_words_that_are_printed_are_explained():
    meanings = {"faster": "clear of 1", "alike": "within 5 %", "cannot tell": "nor its absence"}
    for factor, word in ((0.5, "faster"), (1.0, "alike"), (1.04, "cannot tell")):
        said = said_of(content(factor, rows=0.5))
        told = {name for name, meaning in meanings.items() if meaning in said}
        assert told == {word, "faster"}
