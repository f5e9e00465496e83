"""The view of values: every number of a small step, statistics of others, and the first NaN."""

from dataclasses import replace
from math import inf

import pytest

from tests.examples.step import STAGE
from tests.records_by_hand import LOAD, LOAD_LINE, read, source
from tflab.records.values import Entered, NotFinite, PathPoint, Statistics, Value, ValuesStep
from tflab.views import stages, values

NAN, INF = float("nan"), float("inf")
STEP = ValuesStep("the first step of all", 268_000_000, (), (), {}, ())
ABOUT = (
    "The program's values in the first step of all, with graph passes off. This step is not among "
    "the timed ones; its session took 268 ms."
)
LEGEND = "Mean, minimum and maximum are those of the finite elements."


def value(tensor, numbers, shape=(), op="Mul", kind="computed", after=None, **known):
    unsaid = dict.fromkeys(("mean", "min", "max", "moved"))
    return Value(
        values=numbers,
        tensor=tensor,
        node=tensor.partition(":")[0],
        op=op,
        kind=kind,
        dtype="float32",
        shape=shape,
        after=after and Statistics(after, -1, -1, -1, -1),
        **{"not_finite": 0, **unsaid, **known},
    )


def blocks(*rows, step=STEP):
    return list(map(read, values.blocks(replace(STAGE, values=rows, values_step=step))))


SMALL = (
    value("unused:0", (7.0,), (1,), "Placeholder", "fed"),
    value("x:0", (0.023643, 0.9, -712.25, 1e-5, -0.0, NAN), (2, 3), "_Arg", "fed"),
    value("y", (0.0,), (), "VarHandleOp", "variable", after=(0.917,)),
    value("w", (1.0, 2.0), (2,), "VarHandleOp", "variable", after=(3.0, 3.0)),
    value("grad/Args:1", (), (0,), "BroadcastGradientArgs"),
    value("mul:0", (0.125,) * 5, (5,)),
    value("inf:0", (-INF, INF), (2,)),
    value("kind:0", (True, 12, "text", "1+2j"), (4,), "Any"),
)


def test_every_number_of_a_small_step_is_shown_in_the_order_of_execution():
    assert blocks(*SMALL) == [
        ABOUT,
        [
            "What every node computes",
            ("node", "op", "shape", "values"),
            ("unused", "Placeholder", "1", "7"),
            ("x", "_Arg", "2 x 3", "   0.0236      0.9     -712    1e-05"),
            ("", "", "", "        0      NaN"),
            ("y", "VarHandleOp", "", "0"),
            ("  after the step", "", "", "0.917"),
            ("w", "VarHandleOp", "2", "        1        2"),
            ("  after the step", "", "", "all 3"),
            ("grad/Args:1", "BroadcastGradientArgs", "0", "none"),
            ("mul", "Mul", "5", "all 0.125"),
            ("inf", "Mul", "2", "     -Inf      Inf"),
            ("kind", "Any", "4", "     True       12     text     1+2j"),
            "",
        ],
    ]


@pytest.mark.parametrize("numbers, shown", [(16, True), (17, False)])
def test_all_numbers_are_shown_up_to_sixteen_of_a_tensor(numbers, shown):
    _, table, *_ = blocks(value("a:0", tuple(map(float, range(numbers))), (numbers,)))
    assert (table[0] == "What every node computes") is shown


@pytest.mark.parametrize("tensors, shown", [(64, True), (65, False)])
def test_all_numbers_are_shown_up_to_sixty_four_tensors(tensors, shown):
    _, table, *_ = blocks(*SMALL[:1] * tensors)
    assert (table[0] == "What every node computes") is shown


def test_the_variables_move_towards_their_answer_step_by_step():
    points = (
        PathPoint(0, None, {"y": 0.0, "z": 0.25}),
        PathPoint(1, 6.954, {"y": 0.917, "z": 2.1}),
        PathPoint(2, 1.57, {"y": 2.99, "z": 2.0004}),
    )
    step = replace(STEP, path=points, answer={"y": 3.0, "z": 2.0})
    assert blocks(*SMALL, step=step)[1] == [
        "Training moves the variables towards those that the data were generated with: y = 3, z = "
        "2",
        ("after step", "y", "z", "loss before it"),
        ("0", "0", "0.25", ""),
        ("1", "0.917", "2.1", "6.95"),
        ("2", "2.99", "2", "1.57"),
        "",
    ]


def large(tensor, elements, kind="computed", op="Mul", **known):
    numbers = {"mean": 0.5, "min": -1.5, "max": 2.125}
    return value(tensor, None, (elements // 2, 2), op, kind, **numbers | known)


LARGE = (
    large("x:0", 4_000, "fed", "_Arg", mean=0.1),
    large("scale:0", 9_000, "constant", "Const"),
    large("small", 10, "variable", "VarHandleOp", moved=0.5, min=-0.25),
    large("still", 90, "variable", "VarHandleOp", moved=0.0),
    large("most", 50, "variable", "VarHandleOp", moved=1.25),
    large("read:0", 8_000, op="ReadVariableOp"),
    large("hidden:1", 6_000, max=7.0),
    large("out:0", 2),
)


def test_of_a_large_step_the_variables_that_moved_most_and_the_largest_tensors_are_shown():
    assert blocks(*LARGE) == [
        ABOUT,
        [
            "Variables before the step, and how far it moved them",
            ("variable", "shape", "mean", "min", "max", "moved at most"),
            ("most", "25 x 2", "0.5", "-1.5", "2.12", "1.25"),
            ("small", "5 x 2", "0.5", "-0.25", "2.12", "0.5"),
            ("still", "45 x 2", "0.5", "-1.5", "2.12", "0"),
            "",
        ],
        [
            "The largest tensors of the step",
            ("tensor", "shape", "mean", "min", "max"),
            ("x", "2000 x 2", "0.1", "-1.5", "2.12"),
            ("hidden:1", "3000 x 2", "0.5", "-1.5", "7"),
            ("out", "1 x 2", "0.5", "-1.5", "2.12"),
            "",
        ],
        LEGEND,
    ]


def test_of_many_tensors_the_largest_are_shown_and_the_others_counted():
    rows = [large(f"t{n}:0", 2 * n) for n in range(1, 31)]
    _, table, _ = blocks(*rows)
    assert [row[0] for row in table[2:-1]] == [f"t{n}" for n in range(19, 31)]
    assert table[-1] == "... and 18 more"


def test_of_many_variables_those_that_moved_most_are_shown_and_the_others_counted():
    rows = [large(f"v{n}", 20, "variable", moved=float(n)) for n in range(1, 31)]
    _, table, *_ = blocks(*rows)
    assert [row[0] for row in table[2:-1]] == [f"v{n}" for n in range(30, 18, -1)]
    assert table[-1] == "... and 18 more"


def test_what_is_not_finite_is_shown_first_of_all():
    rows = [large(f"t{n}:0", 2 * n) for n in range(1, 31)]
    rows[2] = replace(rows[2], not_finite=1_234, mean=None)
    _, table, _ = blocks(*rows)
    assert table[1][-1] == "not finite"
    assert [row[0] for row in table[2:-1]] == ["t3", *(f"t{n}" for n in range(20, 31))]
    assert table[2] == ("t3", "3 x 2", "", "-1.5", "2.12", "1,234")


def test_variables_that_nothing_moved_have_no_table():
    still = [large(f"v{n}", 20, "variable", moved=0.0) for n in range(3)]
    titles = [block[0] for block in blocks(*still, LARGE[0])[1:-1]]
    assert titles == ["The largest tensors of the step"]


def test_what_could_not_be_seen_stands_below():
    step = replace(STEP, notes=("One thing was not seen.", "Another neither."))
    assert blocks(*SMALL, step=step)[-2:] == ["One thing was not seen.", "Another neither."]


def test_where_nothing_was_recorded_only_the_reason_is_shown():
    step = replace(STEP, ns=None, notes=("The program's values were not fetched. No room.",))
    assert blocks(step=step) == ["The program's values were not fetched. No room."]


def test_a_step_without_values_says_so():
    assert blocks() == [ABOUT, "It computed no tensor whose value can be shown."]


def test_where_none_was_asked_for_nothing_is_shown():
    assert blocks(*SMALL, step=None) == []


# Where the first NaN or Inf came from

FIRST = NotFinite(
    tensor="layer/log:0",
    node="layer/log",
    op="Log",
    kind="computed",
    dtype="float32",
    nan=0,
    infinite=4,
    size=16,
    source=source(19, "y = tf.math.log(x)"),
    derives=None,
    overflow=False,
    entered=(Entered("relu:0", 4, 16, 4, 0, 0.0, 0.0),),
)
AT = "model.py:19: y = tf.math.log(x)"


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {},
            f"Inf came from layer/log (Log, {AT}), whose inputs were all finite. Of its 16 "
            "elements, 4 are infinite. Its inputs: relu: 4 zeros.",
        ),
        (
            {"nan": 1, "infinite": 1_000, "size": 2_000, "source": None, "tensor": "split:2"},
            "NaN and Inf came from layer/log:2 (Log), whose inputs were all finite. Of its "
            "2,000 elements, 1 is NaN and 1,000 are infinite. Its inputs: relu: 4 "
            "zeros.",
        ),
        (
            {"nan": 4, "infinite": 0, "entered": (Entered("e", 4, 4, 0, 4, -inf, -inf),)},
            f"NaN came from layer/log (Log, {AT}), which had Inf as input. Of its 16 "
            "elements, 4 are NaN. Its inputs: e: 4 elements, all negative, all -Inf.",
        ),
        (
            {"entered": (Entered("a", 1, 1, 1, 0, 0.0, 0.0), Entered("b", 1, 1, 0, 0, 7.0, 7.0))},
            f"Inf came from layer/log (Log, {AT}), whose inputs were all finite. Of its "
            "16 elements, 4 are infinite. Its inputs: a: 1 zero; b: 7.",
        ),
        (
            {"source": source(7, "long " * 20), "entered": ()},
            "Inf came from layer/log (Log, model.py:7), whose inputs were all finite. Of its 16 "
            "elements, 4 are infinite.",
        ),
        (
            {"derives": "log", "overflow": True, "entered": ()},
            f"Inf came from layer/log (Log, of the gradient of log, {AT}), whose inputs were all "
            "finite. Of its 16 elements, 4 are infinite: too large for float32.",
        ),
        (
            {"kind": "fed", "tensor": "x:0", "nan": 3, "infinite": 0, "source": None}
            | {"entered": ()},
            "NaN was fed to x:0. Of its 16 elements, 3 are NaN.",
        ),
        (
            {"kind": "variable", "tensor": "w", "size": 1, "infinite": 1, "entered": ()},
            f"The variable w ({AT}) contained Inf before the step. Of its 1 "
            "element, 1 is infinite.",
        ),
        (
            {"kind": "constant", "entered": ()},
            f"The constant layer/log ({AT}) contains Inf. Of its 16 elements, 4 are infinite.",
        ),
        (
            {"kind": "update", "tensor": "w", "node": "train/w", "op": "Apply", "entered": ()},
            f"train/w (Apply, {AT}), whose inputs were all finite, wrote Inf into the variable w. "
            f"Of its 16 elements, 4 are infinite.",
        ),
    ],
)
def test_where_nan_or_inf_came_from_is_said_with_what_went_in(changes, sentence):
    assert values.origin(replace(FIRST, **changes)) == sentence


@pytest.mark.parametrize(
    "record, words",
    [
        (Entered("x:0", 1, 9, 1, 0, 0.0, 0.0), "x: 1 zero"),
        (Entered("x:0", 1, 9, 0, 0, 3e38, 3e38), "x: 3e+38"),
        (
            Entered("x:1", 2, 64, 0, 2, -3.0, -1.0),
            "x:1: 2 of 64 elements, all negative, from -3 to -1",
        ),
        (
            Entered("x:0", 9, 9, 4, 2, -3.0, 1.0),
            "x: 9 elements, 4 zero and 2 negative, from -3 to 1",
        ),
        (Entered("x:0", 9, 9, 0, 0, 2.0, 2.0), "x: 9 elements, all 2"),
    ],
)
def test_what_went_in_is_counted(record, words):
    assert values.input_text(record) == words


def blocks_of(results, *origins):
    step = replace(STEP, not_finite=results)
    return list(values.not_finite(replace(STAGE, values_step=step, not_finite=origins)))


def test_what_became_not_finite_by_it_is_said():
    sentence = values.origin(FIRST)
    assert blocks_of(("loss:0", "w"), FIRST) == [sentence, "Not finite after the step: loss, w."]
    assert blocks_of((), FIRST) == [sentence, "It reached no fetched tensor and no variable."]
    assert blocks_of(("loss:0",)) == []


def test_of_many_origins_eight_have_a_sentence():
    assert blocks_of((), *[FIRST] * 10)[8] == (
        "Other nodes that independently produced NaN or Inf: 2 (--format json lists all)."
    )


def test_all_of_a_tensor_is_one_number_only_where_its_bits_are():
    nearly = (1.0, 1.0000001, 1.0)
    assert list(values.lines(nearly)) == ["        1        1        1"]
    assert brief(nearly, (3,)) == "[1, 1, …]"
    row = value("a:0", nearly, (3,))
    assert values.amounts_of(row, row.shape) == "1, 1, 1"
    assert list(values.lines((0.0, -0.0))) == ["        0        0"]


def test_the_first_nan_stands_above_everything_and_the_values_above_the_times():
    whole = list(map(read, stages.blocks(STAGE)))
    stage = replace(STAGE, not_finite=(FIRST,), values=SMALL, values_step=STEP)
    shown = list(map(read, stages.blocks(stage)))
    assert shown == [*values.not_finite(stage), *blocks(*SMALL), *whole]
    loaded = list(map(read, stages.blocks(replace(stage, load=LOAD))))
    assert loaded[:3] == [*values.not_finite(stage), LOAD_LINE]


def brief(numbers, shape):
    return values.brief(value("a:0", numbers, shape), shape)


def test_a_tensor_in_a_few_characters():
    assert brief((4.25,), ()) == "4.25"
    assert brief((1.5, -2.0), (2,)) == "[1.5, -2]"
    assert brief((1.5, -0.25, 3.0), (3,)) == "[1.5, -0.25, …]"
    assert brief((0.5,) * 16, (16,)) == "all 0.5 (16)"
    assert brief((), (0,)) == "[]"
    large = value("a:0", None, (32, 32), mean=0.3125)
    assert values.brief(large, large.shape) == "mean 0.312 (1,024)"
    text = value("a:0", None, (32, 32))
    assert values.brief(text, text.shape) == "(1,024)"


def test_a_tensor_in_a_line():
    def amounts(row):
        return values.amounts_of(row, row.shape)

    assert amounts(value("a:0", (1.5, -2.0), (2,))) == "1.5, -2"
    assert amounts(value("a:0", (), (0,))) == "no elements"
    assert amounts(value("a:0", (2.0,) * 20, (4, 5))) == "all 2 (20)"
    known = {"mean": 0.5, "min": -1.0, "max": 3.0}
    several = tuple(map(float, range(17)))
    assert amounts(value("a:0", several, (17,), **known)) == (
        "17 elements, mean 0.5, min -1, max 3"
    )
    assert amounts(value("a:0", None, (64, 2), not_finite=3, **known)) == (
        "128 elements, mean 0.5, min -1, max 3, not finite 3"
    )
