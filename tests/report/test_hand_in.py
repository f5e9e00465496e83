"""The report of the lab, in both languages, from measurements that were worked out by hand."""

import re
from dataclasses import replace

import pytest

from tests.approval import approve
from tests.examples.comparison import CONV, POOL, STEPS
from tests.examples.lab import COMPARED, HISTORY, LAB, LATE, LINEAR, RACED
from tests.records_by_hand import LOAD, config_times, verdict
from tests.shown import grid
from tflab.compare import CONFIGURATIONS
from tflab.exporters.plots import style
from tflab.records.measured import Load
from tflab.report import chapters, contents, handout, html
from tflab.units import plural
from tflab.views import execution, op_table

pytestmark = pytest.mark.usefixtures("undrawn")

NAMES = tuple(name for name in CONFIGURATIONS if name != "default")
EVERY = tuple(
    config_times(name, 64, 8e6, 8e6, verdict(ratio, different))
    for name, ratio, different in zip(NAMES, (1.5, 0.7, 1, 2, 0.5), (1, 1, 0, 1, 1), strict=True)
)
ENVIRONMENT = (
    ("Date", "2026-01-01T12:00:00Z"),
    ("(v)CPUs", "2"),
    ("Memory", "8.00 GiB"),
    ("GPUs", "none"),
    ("Operating system", "Debian 12"),
    ("Framework", "2.21.0"),
    ("oneDNN", "on"),
    ("Python", "3.11.2"),
    ("CUDA", "built for 12.5; not in use, there is no GPU"),
    ("Other packages", "2.2.0"),
)
DIGITS = replace(HISTORY.settings, data="digits, not MNIST")
WHOLE = replace(
    LAB,
    environment=ENVIRONMENT,
    compared=replace(COMPARED, data="MNIST", load=LOAD, configs=EVERY, steps=STEPS),
    history=replace(HISTORY, settings=DIGITS),
)
# What else a report of the lab may have
OTHERS = (
    replace(WHOLE, history=None, compared=replace(COMPARED, unit="row", data="points of 3x + 2")),
    replace(WHOLE, history=replace(HISTORY, epochs=HISTORY.epochs[:1])),
    replace(WHOLE, interrupted=True, history=None),
    replace(WHOLE, compared=replace(RACED, load=Load(1, None)), environment=()),
    replace(
        WHOLE,
        environment=(("CUDA", "none: this TensorFlow is built without it"), ("oneDNN", "off")),
    ),
)
LATIN = re.compile(r"(?<!-)\b[A-Za-z]{2,},? [a-z]{2,}\b")  # two words of a sentence


def of(lab, chinese=False):
    with style.translated(contents.chinese if chinese else str):
        report = chapters.report(lab, "python -m tflab.report --chapters lab", ("lab",))
    return contents.in_chinese(report) if chinese else report


@pytest.mark.parametrize(("name", "chinese"), [("en", False), ("zh", True)])
def test_the_hand_in_has_the_parts_that_the_lab_asks_for(name, chinese):
    approve(f"hand-in-{name}.md", handout.page(of(WHOLE, chinese)))


@pytest.mark.parametrize("lab", [WHOLE, *OTHERS])
def test_no_english_sentence_is_left_in_chinese(lab):
    report = of(lab, chinese=True)
    texts = re.sub(r"```text\n.*?```", "", handout.page(report), flags=re.DOTALL)
    page = html.page(report)
    main = re.sub(r"<(style|script|svg|pre|code)\b.*?</\1>", "", page, flags=re.DOTALL)
    read = "\n".join([texts, re.sub(r"<[^>]*>", "\n", main)])
    assert LATIN.findall(read) == []
    assert page.startswith('<!DOCTYPE html>\n<html lang="zh">')


def test_each_entry_of_the_dictionary_has_the_same_blanks_and_is_chinese():
    for english, chinese in contents.dictionary().items():
        blanks = re.findall(r"\{\d?\}", chinese)
        assert len(blanks) == english.count("{}"), english
        assert re.search("[\u3000-\uffff]", chinese), english


def test_a_text_that_the_dictionary_lacks_and_a_name_stay_as_they_are():
    assert contents.chinese("No such sentence.") == "No such sentence."
    table = op_table.costs(COMPARED, 64, 1)
    named = replace(table, rows=(replace(table.rows[0], key="loss"),))
    assert grid(contents.chinese_part(named))[1:] == [
        ("算子类型", "调用次数", "总耗时", "平均耗时", "耗时占比"),
        ("loss", "1,001", "49.0 ms", "20.1 us", "19.0%"),
        0,
    ]


def test_a_call_is_compared_at_the_first_and_the_last_batch_size_if_its_work_grows():
    """240 us is 4 times 60 us, and 432,000 FLOPs are 16 times 27,000."""
    compared = replace(COMPARED, steps=STEPS)
    change = (
        "From batch size 4 to 64, a call of MaxPool takes 4.00 times as long (240 us instead of "
        "60.0 us) for 16.0 times the FLOPs."
    )
    assert [*chapters.grown(compared, POOL, 4, 64)] == [change]
    more = replace(compared, steps={**STEPS, 4: replace(STEPS[4], steps=19)})
    assert [*chapters.grown(more, POOL, 4, 64)] == []
    for flops in (None, 0, 432_000):  # as of an op that reads a variable
        cells = {**POOL.cells, 4: replace(POOL.cells[4], flops=flops)}
        assert [*chapters.grown(compared, replace(POOL, cells=cells), 4, 64)] == []
    assert [*chapters.grown(compared, LATE, 4, 64)] == []


def test_the_most_expensive_op_type_changes_only_if_both_lead_by_five_points():
    def told(conv_at_4):
        conv = replace(CONV, cells={**CONV.cells, 64: replace(CONV.cells[64], share=0.7)})
        conv.cells[4] = replace(conv.cells[4], share=conv_at_4)
        paragraphs = chapters.found(replace(COMPARED, rows=(POOL, conv)))
        return [said for said in paragraphs if "changes" in str(said)]

    change = "The most expensive op type changes: MaxPool at batch size 4, _FusedConv2D at 64."
    assert (told(0.69), told(0.71), told(0.76)) == ([change], [], [])


def test_a_busy_machine_says_that_times_may_be_too_long():
    for during, busy in ((0.5, False), (0.6, True)):
        (line,) = execution.load_line(Load(2, during))
        assert line.endswith(": times may be too long.") == busy


def test_the_picture_of_the_graph_has_the_layers_of_the_forward_graph():
    rows, shapes, parameters = chapters.layers(LINEAR)
    approve("hand-in-graph.txt", "\n".join(map(str, (*rows, *shapes.items(), parameters))))


@pytest.mark.parametrize(("most", "said"), [(1, True), (99, False)])
def test_what_the_picture_of_a_large_graph_leaves_out_is_said_below_it(monkeypatch, most, said):
    monkeypatch.setattr(chapters.frontend, "DRAWN_WHOLE", most)
    assert (", without variables and constants." in handout.page(of(WHOLE))) == said


def test_counts_have_their_measure_words():
    counted = [contents.chinese(plural(n, "image")) for n in (1, 2_000)]
    assert counted == ["1 张图像", "2,000 张图像"]
    title = "lenet is right on 98.91 % of the test rows after 2 epochs"
    assert contents.chinese(title).startswith("lenet 训练 2 轮后")


def test_a_type_that_ran_has_the_ops_of_the_program_that_it_does():
    ops = {"conv1/Conv2D": "Conv2D", "conv1/Relu": "Relu", "conv2/Conv2D": "Conv2D"}
    parts = ("conv1/Conv2D", "conv2/Conv2D")
    fused = replace(CONV.cells[64], key="_FusedConv2D", nodes=("conv1/Relu",), fused_from=parts)
    assert chapters.in_program(fused, ops) == "2 Conv2D, Relu"
    fed = replace(fused, key="_Arg", nodes=("_arg_images_0_0",), fused_from=())
    assert chapters.in_program(fed, ops) == "feed"
    assert chapters.in_program(replace(fed, key="Cast"), ops) == ""


def test_two_op_types_share_the_first_place_unless_one_has_1_3_times_the_share_of_the_other():
    def told(second):
        rows = (replace(POOL.cells[64], share=0.4), replace(CONV.cells[64], share=second))
        named = [replace(row, key=key) for row, key in zip(rows, "ab", strict=True)]
        *_, fact = chapters.results(
            contents.Lab("lenet", (), compared=replace(COMPARED, tables={64: named}))
        )
        return fact.label, fact.text

    one = ("most expensive op type", "a, 40.0 % of the op time at batch size 64")
    both = "a, b, 40.0 % and 31.0 % of the op time at batch size 64"
    assert (told(0.3), told(0.31)) == (one, ("most expensive op types", both))
