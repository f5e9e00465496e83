"""The view of values: every number of a small step, statistics of others, and the first NaN."""

from dataclasses import replace
from math import inf

import pytest

from tests.examples.histories import value
from tests.examples.printed import approve_view
from tests.examples.walk import EXECUTION, PLACEMENT
from tests.records_by_hand import LOAD, source
from tflab.records.blocks import in_full, offered
from tflab.records.values import NotFinite, ValuesStep
from tflab.views import stages, values

NAN = float("nan")
STEP = ValuesStep("the first step of all", 268_000_000, (), ())
SMALL = (
    value("unused:0", (7.0,), (1,), "Placeholder", "fed"),
    value("x:0", (0.023643, 0.9, -712.25, 1e-5, -0.0, NAN), (2, 3), "_Arg", "fed"),
    value("y", (0.0,), (), "VarHandleOp", "variable", after=(0.917,)),
    value("w", (1.0, 2.0), (2,), "VarHandleOp", "variable", after=(3.0, 3.0)),
    value("grad/Args:1", (), (0,), "BroadcastGradientArgs"),
    value("mul:0", (0.125,) * 5, (5,)),
    value("inf:0", (-inf, inf), (2,)),
    value("kind:0", (True, 12, "text", "1+2j"), (4,), "Any"),
)


def large(tensor, elements, kind="computed", op="Mul", **known):
    numbers = {"mean": 0.5, "min": -1.5, "max": 2.125}
    return value(tensor, None, (elements // 2, 2), op, kind, **numbers | known)


LARGE = (
    large("x:0", 4_000, "fed", "_Arg", mean=0.1),
    large("scale:0", 9_000, "constant", "Const"),
    large("small", 10, "variable", "VarHandleOp", min=-0.25),
    large("still", 90, "variable", "VarHandleOp"),
    large("most", 50, "variable", "VarHandleOp"),
    large("read:0", 8_000, op="ReadVariableOp"),
    large("hidden:1", 6_000, max=7.0),
    large("out:0", 2),
    replace(large("gradients/shape:0", 7_000), dtype="int32"),
    large("empty:0", 0),
)
TENSORS = tuple(large(f"t{n}:0", 2 * n) for n in range(1, 31))
ODD = replace(TENSORS[2], not_finite=1_234, mean=None)
VARIABLES = tuple(large(f"v{n}", 2 * n, "variable") for n in range(1, 31))


def blocks(rows, **step):
    return [*values.tables(replace(EXECUTION, values=rows, values_step=replace(STEP, **step)))]


def numbers(count):
    return (value("a:0", tuple(map(float, range(count))), (count,)),)


REPEATED = (
    value("a:0", (1.0, 2.0, 3.0, 4.0, 5.0), (5,)),
    value("b:0", (1.0, 2.0, 3.0, 4.0, 5.0001), (5,)),
    value("c:0", (1.0, 2.0, 3.0, 4.0, 5.0), (1, 5)),
    value("d:0", (1.0, 2.0, 3.0, 4.0), (4,)),
    value("e:0", (1.0, 2.0, 3.0, 4.0), (4,)),
    replace(value("gradients/f:0", (1.0, 2.0, 3.0, 4.0, 5.0001), (5,)), phase="backward"),
    replace(value("train/g:0", (0.5,), ()), phase="update"),
)


def test_numbers_that_a_row_above_has_are_its_name_and_only_in_full_every_node_has_a_row():
    (shown,) = values.tables(replace(EXECUTION, values=REPEATED, values_step=STEP))
    every = [cells[-1] for cells in in_full(shown).cells()]
    assert every[:3] == ["1, 2, 3, 4, 5", "1, 2, 3, 4, 5", "as a"]
    assert every[3:] == ["1, 2, 3, 4", "1, 2, 3, 4", "as b", "0.5"]
    in_short = [cells[-1] for cells in shown.cells()]
    assert in_short == ["1, 2, 3, 4 and 1 more"] * 2 + ["as a"] + ["1, 2, 3, 4"] * 2
    assert offered(shown, "--full shows all").rest() == "... and 2 more (--full shows all)"


def test_every_number_of_a_small_step_is_shown_in_the_order_of_execution():
    variants = {
        "sixteen numbers of a tensor": blocks(numbers(16)),
        "seventeen numbers of a tensor": blocks(numbers(17)),
        "notes": blocks(SMALL, notes=("One thing was not seen.", "Another neither.")),
        "nothing was recorded": blocks((), ns=None, notes=("It was not fetched. No room.",)),
        "no tensors": blocks(()),
        "not asked for": values.tables(replace(EXECUTION, values=SMALL, values_step=None)),
    }
    approve_view("views-values-small.txt", blocks(SMALL), variants)


@pytest.mark.parametrize("tensors, shown", [(64, True), (65, False)])
def test_all_numbers_are_shown_up_to_sixty_four_tensors(tensors, shown):
    table, *_ = blocks(SMALL[:1] * tensors)
    assert (table.title == "What the nodes compute in the first step of all") is shown


def test_of_a_large_step_the_largest_variables_and_the_largest_tensors_are_shown():
    variants = {
        "many tensors": blocks(TENSORS),
        "a tensor that is not finite": blocks((*TENSORS[:2], ODD, *TENSORS[3:])),
        "many variables": blocks(VARIABLES),
        "no variables": blocks(LARGE[:2]),
    }
    approve_view("views-values-large.txt", blocks(LARGE), variants)


# Where the first NaN or Inf came from

FIRST = NotFinite(
    tensor="layer/log:0",
    node="layer/log",
    op="Log",
    kind="computed",
    nan=0,
    infinite=4,
    size=16,
    source=source(19, "y = tf.math.log(x)"),
    derives=None,
)
ORIGINS = (  # what is different
    {},
    {"nan": 1, "infinite": 1_000, "size": 2_000, "source": None, "tensor": "split:2"},
    {"nan": 4, "infinite": 0},
    {"source": source(7, "long " * 20)},
    {"derives": "log"},
    {"kind": "fed", "tensor": "x:0", "nan": 3, "infinite": 0, "source": None},
    {"kind": "variable", "tensor": "w", "size": 1, "infinite": 1},
    {"kind": "constant"},
    {"kind": "update", "tensor": "w", "node": "train/w", "op": "Apply"},
)


def test_origins_at_one_line_are_one_sentence():
    """The values of each begin there; equal counts are said once."""
    gradient = replace(FIRST, node="gradients/log_grad", tensor="gradients/log_grad:0", op="Mul")
    gradient = replace(gradient, derives="layer/log")
    other = replace(FIRST, node="x", tensor="x:0", infinite=1)
    elsewhere = replace(FIRST, source=source(20, "z = y / 0"), nan=1, infinite=0, node="z")
    assert [*values.origins((FIRST, gradient, elsewhere, other))] == [
        "Inf began at model.py:19, `y = tf.math.log(x)`: in layer/log and in its gradient "
        "log_grad, 4 of 16 elements each; in x (Log), 1 of 16 elements.",
        "NaN began at model.py:20, `z = y / 0`: in layer/log, 1 of 16 elements.",
    ]


def odd(results, origins):
    step = replace(STEP, not_finite=results)
    return replace(EXECUTION, values_step=step, not_finite=origins)


def test_where_nan_or_inf_came_from_is_said():
    approve_view(
        "views-not-finite.txt",
        [*map(" ".join, ([*values.origins([replace(FIRST, **each)])] for each in ORIGINS))],
        {
            "it reached results": values.not_finite(odd(("loss:0", "w"), (FIRST,))),
            "it reached many": values.not_finite(odd(("loss:0",) * 10, (FIRST,))),
            "it reached none": values.not_finite(odd((), (FIRST,))),
            "no origin is known": values.not_finite(odd(("loss:0",), ())),
            "many origins": values.not_finite(odd((), (FIRST,) * 10)),
        },
    )


def test_the_first_nan_stands_above_everything_then_the_load_and_the_times():
    stage = replace(odd((), (FIRST,)), values=SMALL, load=LOAD)
    above = list(values.not_finite(stage))
    assert stages.results("toy", [PLACEMENT, stage])[1:] == above  # the machine was quiet
    *first, load, facts, table = stages.blocks(stage)[: len(above) + 3]
    assert first == above
    assert load.startswith("Other programs used ")
    assert facts.rows[0].label == "untraced step"
    assert table.title.startswith("The most expensive nodes")


# A tensor in a few characters, and in a line

KNOWN = {"mean": 0.5, "min": -1.0, "max": 3.0}


@pytest.mark.parametrize(
    "numbers, shape, known, brief, line",
    [
        ((4.25,), (), {}, "4.25", "4.25"),
        ((1.5, -2.0), (2,), {}, "[1.5, -2]", "1.5, -2"),
        ((1.5, -0.25, 3.0), (3,), {}, "[1.5, -0.25, …]", "1.5, -0.25, 3"),
        ((0.5,) * 1_600, (40, 40), {}, "all 0.5 (1,600)", "all 0.5 (1,600)"),
        ((), (0,), {}, "no elements", "no elements"),
        ((1.0, 1.0000001), (2,), {}, "[1, 1]", "1, 1"),  # not the same bits
        ((0.0, -0.0), (2,), {}, "[0, 0]", "0, 0"),
        (None, (2, 9), KNOWN, "[18 elements, mean 0.5, …]", "18 elements, mean 0.5, min -1, max 3"),
        (None, (2,), {"not_finite": 3}, "[2 elements, not finite 3]", "2 elements, not finite 3"),
    ],
)
def test_a_tensor_in_a_few_characters_and_in_a_line(numbers, shape, known, brief, line):
    row = value("a:0", numbers, shape, **known)
    assert values.brief(row, shape) == brief
    assert values.amounts_of(row, shape) == line
