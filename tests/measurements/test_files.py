"""Files of measurements: what is written comes back, and nothing that strangers send does harm."""

import gzip
import json
import os
import random
import tracemalloc
from dataclasses import replace

import pytest

from tests.measurements_by_hand import COMPARISON, STEPS, TABLES, changed, measurement
from tflab import __version__
from tflab.compare import view as compared
from tflab.errors import TflabError, UsageError
from tflab.measurements import contrast, files, view
from tflab.records.measured import ConfigTimes
from tflab.records.timed import Holder, LiveBytes, Spread
from tflab.records.verdicts import Experiment, Experiments, Verdict

INFINITE = float("inf")
RICH = changed(
    measurement(),
    configs=tuple(
        ConfigTimes(name, size, Spread(1e5, 9e4, 2e5), 1e6, verdict, ((1, 2), (3,)))
        for size in (4, 16)
        for name, verdict in (
            ("default", None),
            ("xla", Verdict(1.2, 0.0, INFINITE, 1.0, 2, "cannot tell")),
        )
    ),
    experiments={
        4: Experiments(
            (Experiment("conv", "Conv2D", -5.0, -INFINITE, INFINITE, 2, -1.0),), None, ()
        )
    },
    steps={
        **STEPS,
        4: replace(
            STEPS[4], curve=LiveBytes(1, ((5, 8), (9, 0)), 8, 5, (Holder("a", "b", 8, True),))
        ),
    },
)


def written(path, kept=RICH) -> str:
    files.write(path, kept)
    return str(path)


def test_what_is_written_comes_back_as_it_was(tmp_path):
    assert files.read(written(tmp_path / "new" / "a.json.gz")) == RICH


def test_a_file_that_was_unpacked_is_read_as_well(tmp_path):
    (tmp_path / "a.json").write_bytes(gzip.decompress(files.packed(RICH)))
    assert files.read(str(tmp_path / "a.json")) == RICH


def test_a_file_that_was_unpacked_and_is_too_large_or_cut_is_refused(tmp_path, monkeypatch):
    text = gzip.decompress(files.packed(RICH))
    (tmp_path / "a.json").write_bytes(text[:-10])
    assert refused(tmp_path / "a.json")[1].startswith(
        "'FILE' is not a measurement, because it is not"
    )
    monkeypatch.setattr(files, "MOST_BYTES", 2**10)
    monkeypatch.setattr(files, "MOST_TEXT", 2**12)
    assert refused(tmp_path / "a.json")[1].startswith("'FILE' has more than 0 MiB")


def test_a_file_of_the_first_format_has_no_checksum(tmp_path):
    content = content_of(RICH) | {"format": 1}
    del content["checksum"]
    packed(tmp_path / "a", content)
    assert files.read(str(tmp_path / "a")) == RICH
    packed(tmp_path / "b", content | {"format": 2})
    assert "it was changed" in refused(tmp_path / "b")[1]


def test_a_file_says_what_it_is_in_which_format_and_names_every_field(tmp_path):
    content = json.loads(gzip.decompress((tmp_path / written(tmp_path / "a")).read_bytes()))
    assert (content["kind"], content["format"]) == ("tflab measurement", 2)
    assert content["observed"]["processes"][0]["untraced_ns"]["4"] == [
        [99_990, 100_000, 900_000],
        [11_111, 100_000, 100_010],
    ]
    assert content["comparison"]["configs"][1]["verdict"]["high"] is None


def test_the_same_measurement_gives_the_same_bytes():
    assert files.packed(RICH) == files.packed(RICH)


def test_nothing_is_written_over(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_text("mine")
    with pytest.raises(UsageError) as error:
        files.write(path, RICH)
    assert str(error.value) == (
        f"The measurement '{path}' exists already; remove it or give another path."
    )
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [(path.name, "mine")]


# What is wrong with a file

GIVE = "give a file that `python -m tflab.compare --save FILE` wrote"


def refused(path) -> tuple[type, str]:
    """The kind of error, and its sentence without the name of the file."""
    with pytest.raises(TflabError) as error:
        files.read(str(path))
    return type(error.value), str(error.value).replace(str(path), "FILE")


def packed(path, content) -> None:
    path.write_bytes(gzip.compress(json.dumps(content).encode()))


def test_a_file_that_is_not_there_or_a_folder_is_a_sentence(tmp_path):
    assert refused(tmp_path / "none") == (UsageError, "There is no file 'FILE'.")
    assert refused(tmp_path) == (UsageError, "'FILE' cannot be read: Is a directory.")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == (
        UsageError,
        "'FILE' cannot be read: it is a pipe, not a file.",
    )


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)  # else tests were called after the time of day


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", f"'FILE' is empty; {GIVE}."),
        (
            b"\x80\x04K\x01.",  # a pickle
            f"'FILE' is not a measurement, because it is not JSON; {GIVE}.",
        ),
        (b'{"kind": "mine"}', f"'FILE' is not a measurement; {GIVE}."),
        (
            zipped(b"\x80\x04K\x01."),
            f"'FILE' is not a measurement, because it is not JSON; {GIVE}.",
        ),
        (zipped(b"[" * 100_000), f"'FILE' is not a measurement, because it is not JSON; {GIVE}."),
        (zipped(b"[1]"), f"'FILE' is not a measurement; {GIVE}."),
        (zipped(b'{"kind": "mine"}'), f"'FILE' is not a measurement; {GIVE}."),
    ],
)
def test_what_is_no_measurement_is_a_sentence(tmp_path, content, sentence):
    (tmp_path / "a").write_bytes(content)
    assert refused(tmp_path / "a") == (UsageError, sentence)


def test_a_file_of_a_newer_tflab_is_a_sentence_that_names_both(tmp_path):
    packed(tmp_path / "a", {"kind": files.KIND, "format": 3, "tflab": "9.0"})
    assert refused(tmp_path / "a") == (
        UsageError,
        f"'FILE' was written by a newer tflab 9.0, in format 3; this is {__version__}, which "
        "reads formats up to 2. Install the newer version, or measure again.",
    )


@pytest.mark.parametrize("share", [0.01, 0.5, 0.999])
def test_a_file_that_was_cut_is_a_sentence(tmp_path, share):
    whole = files.packed(RICH)
    (tmp_path / "a").write_bytes(whole[: int(share * len(whole))])
    kind, sentence = refused(tmp_path / "a")
    assert sentence == "'FILE' is incomplete: it ends in the middle. Copy it again."
    assert kind is UsageError


def test_a_file_with_a_wrong_byte_is_a_sentence(tmp_path):
    whole = bytearray(files.packed(RICH))
    whole[-6] ^= 1  # of its checksum
    (tmp_path / "a").write_bytes(whole)
    kind, sentence = refused(tmp_path / "a")
    assert "its compressed content cannot be unpacked" in sentence
    assert kind is UsageError


def test_a_file_that_unpacks_to_far_more_than_it_is_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_TEXT", 2**20)
    monkeypatch.setattr(files, "MOST_BYTES", 2**20)
    (tmp_path / "a").write_bytes(gzip.compress(bytes(2**24)))
    tracemalloc.start()
    assert refused(tmp_path / "a")[1].startswith("'FILE' unpacks to more than 1 MiB")
    assert tracemalloc.get_traced_memory()[1] < 2**22  # no more than that was unpacked
    tracemalloc.stop()
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    assert refused(tmp_path / "a")[1].startswith("'FILE' has more than 0 MiB")


def content_of(kept) -> dict:
    return json.loads(gzip.decompress(files.packed(kept)))


@pytest.mark.parametrize(
    ("place", "value", "wrong"),
    [
        (("when",), "yesterday", "when is not a time such as 2026-03-01T12:00:00Z"),
        (("comparison", "images"), "80", "comparison.images is not a whole number"),
        (("comparison", "images"), True, "comparison.images is not a whole number"),
        (("comparison", "images"), -1, "comparison.images is below zero"),
        (("comparison", "cold_step_ns"), 1e300, "comparison.cold_step_ns is not a whole number"),
        (
            ("comparison", "cold_step_ns"),
            2**60,
            "comparison.cold_step_ns is a number outside the permitted range",
        ),
        (("comparison", "interrupted"), 0, "comparison.interrupted is neither true nor false"),
        (("comparison", "model"), 7, "comparison.model is not a string"),
        (("comparison", "model"), "a" * 10_001, "comparison.model is a text of 10,001 characters"),
        (("comparison", "model"), "\ud800", "comparison.model contains an unpaired surrogate"),
        (("comparison", "rows"), {}, "comparison.rows is not a list"),
        (("comparison", "rows", 0), [], "comparison.rows[0] is not an object"),
        (("comparison", "steps"), {}, "its content has steps or tables of other batch sizes"),
        (
            ("comparison", "steps", "4", "ops_ns"),
            None,
            "comparison.steps.4.ops_ns is not a number",
        ),
        (
            ("comparison", "steps", "4", "curve", "points", 0),
            [1],
            "comparison.steps.4.curve.points[0] has 1 items instead of 2",
        ),
        (
            ("comparison", "steps", "04"),
            {},
            "comparison.steps has the key '04', which is not a batch size",
        ),
        # rows that are called as fields are whose values may be without an end, or below zero
        (
            ("observed", "processes", 0, "rows_ns", "4", "high"),
            None,
            "observed.processes[0].rows_ns.4.high is not a number",
        ),
        (
            ("observed", "processes", 0, "rows_ns", "4", "scope.low_ns"),
            -1.0,
            "observed.processes[0].rows_ns.4.scope.low_ns is below zero",
        ),
        (
            ("observed", "processes", 0, "untraced_ns", "4"),
            [[1, 0]],
            "its content has a process with a step of zero or negative time",
        ),
        (
            ("observed", "processes"),
            [],
            "its content has no process, so it has no observation to compare",
        ),
        (
            ("observed", "fingerprint", "ops", "Conv2D"),
            7,
            "its content has a fingerprint of 3 nodes, but 9 ops",
        ),
        (
            ("observed", "fingerprint", "weights"),
            "mine",
            "its content has a fingerprint that is not 16 hexadecimal digits",
        ),
        # what has the right type and is possible, but was not measured
        (
            ("observed", "processes", 1, "untraced_ns", "4"),
            [[1, 1, 1]],
            "it was changed: its checksum does not match its content",
        ),
        (
            ("observed", "fingerprint", "graph"),
            "fedcba9876543210",
            "it was changed: its checksum does not match its content",
        ),
        (
            ("checksum",),
            "0" * 64,
            "it was changed: its checksum does not match its content",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path, place, value, wrong):
    content = content_of(RICH)
    inner = content
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    packed(tmp_path / "a", content)
    assert refused(tmp_path / "a") == (
        UsageError,
        f"'FILE' is not in the format that tflab writes: {wrong}. Measure again, or copy it again.",
    )


def test_a_field_that_is_missing_is_named(tmp_path):
    content = content_of(RICH)
    del content["comparison"]["phase"]
    packed(tmp_path / "a", content)
    assert "comparison.phase is missing" in refused(tmp_path / "a")[1]


def test_a_number_that_is_none_is_not_taken(tmp_path):
    text = gzip.decompress(files.packed(RICH)).replace(b'"ops_ns":80000.0', b'"ops_ns":NaN')
    (tmp_path / "a").write_bytes(gzip.compress(text))
    assert "ops_ns is not a number" in refused(tmp_path / "a")[1]


def places(value, path=()):
    """Every place in a document."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


ODD = (None, True, 0, -1, 1, 2**60, 1e-300, 1e15, "", "x", [], {}, [[]], {"4": 1}, "\x1b[2J")


@pytest.mark.slow
def test_what_is_changed_anywhere_is_refused_in_a_sentence_or_can_be_shown(tmp_path):
    """Of a stranger's file every number may be odd, and no table may trip over it."""
    draw = random.Random(0)
    found = list(places(content_of(RICH)))[1:]
    outcomes = set()
    for _ in range(400):
        content = content_of(RICH)
        *path, last = draw.choice(found)
        inner = content
        for name in path:
            inner = inner[name]
        inner[last] = draw.choice(ODD)
        packed(tmp_path / "a", {**content, "checksum": files.checksum(content)})
        try:
            kept = files.read(str(tmp_path / "a"))
        except TflabError as error:
            assert "\n" not in str(error)
            outcomes.add("refused")
            continue
        outcomes.add("shown")
        shown = [*compared.blocks(kept.comparison)]
        try:
            shown += view.blocks(contrast.contrast({"a": measurement(), "b": kept}))
        except UsageError:
            outcomes.add("of something else")
        for block in shown:
            if hasattr(block, "cells"):
                list(block.cells())
    assert {"refused", "shown"} <= outcomes


def test_no_two_parts_of_a_comparison_may_disagree(tmp_path):
    """Each of these has all types right."""
    wrong = {
        "batch sizes that are not positive and ascending": {"batch_sizes": (16, 4)},
        "rows by something other": {"by": "colour"},
        "a step of zero or negative time": {
            "steps": {**STEPS, 4: replace(STEPS[4], untraced_ns=Spread(0, 0, 0))}
        },
        "a row without a batch size": {"rows": (replace(COMPARISON.rows[0], cells={}),)},
        "a row that never ran": {"cold": (replace(TABLES[4][0], calls=0),)},
        "configurations that were not": {"configs": RICH.comparison.configs[:1]},
        "not the default one": {
            "configs": tuple(replace(row, config="xla") for row in RICH.comparison.configs[::2])
        },
    }
    for place, (words, changes) in enumerate(wrong.items()):
        path = tmp_path / str(place)
        assert words in refused(written(path, changed(measurement(), **changes)))[1]


def test_names_of_files_become_names_of_measurements():
    assert contrast.short_names(["runs/a.json.gz", "b.json", "c"]) == ["a", "b", "c"]
    assert contrast.short_names(["here/a.json.gz", "there/a.json.gz"]) == [
        "here/a.json.gz",
        "there/a.json.gz",
    ]
    with pytest.raises(UsageError) as error:
        contrast.short_names(["a.gz", "a.gz"])
    assert str(error.value) == "The measurement 'a.gz' is given twice; give each file once."
