"""Eager ops that make NaN or Inf: the first of them, by tensors made by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.examples.watched import MADE_NAN, VALUES
from tflab.run import values


class Eager:
    """A tensor of eager code; of whole numbers if `dtype` is an integer's."""

    def __init__(self, *elements, dtype=np.float32):
        self.array = np.array(elements if len(elements) != 1 else elements[0], dtype)
        self.dtype = SimpleNamespace(is_floating=self.array.dtype.kind == "f")

    def numpy(self):
        return self.array


LINE = ("/code/a.py", 3, "step")
ONE, ZERO, BELOW = Eager(1), Eager(0), Eager(-1, 2)
NAN, INF, MASK = Eager(np.nan), Eager(np.inf), Eager(0, -np.inf)


@pytest.mark.parametrize(
    "function, known, note",
    [
        ("", {}, "There are no values of run 3: it did not happen, failed or is not kept."),
        ("", {7: None}, None),  # a note said why
        ("step", {}, "There are no values of run 3: it did not happen, failed or is not kept."),
    ],
)
def test_a_group_without_values_has_one_reason(function, known, note, tmp_path):
    said = []
    kept = values.Values(3, said.append, None, None, None)
    kept.seen |= known
    kept.write(SimpleNamespace(number=7, function=function), str(tmp_path))
    assert (len(said), "".join(said)[: len(note or "")]) == (bool(note), note or "")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "before, wanted, kept",
    [
        ("computed", "variable", 2),  # a variable had NaN, which the run before made
        ("", "variable", 3),
        ("computed", "computed", 3),
        ("computed", "", 3),
    ],
)
def test_the_run_before_is_kept_if_it_made_what_a_variable_had(monkeypatch, before, wanted, kept):
    seen = values.Values(3, None, None, None, None)
    for run, kind in ((2, before), (3, wanted)):
        origins = (replace(MADE_NAN, kind=kind),) * bool(kind)
        recorded = replace(VALUES, group=7, run=run, origins=origins)
        monkeypatch.setattr(seen, "recorded", lambda *of, recorded=recorded: recorded)
        graphs = SimpleNamespace(nodes_of=lambda graph: ())
        step = SimpleNamespace(group=SimpleNamespace(graph=None), own_ns=0)
        seen.take(step, None, (), graphs)
    assert seen.seen[7].run == kept


def told(*ran, calling=True):
    """The origins, if these ops run in a function."""
    broken = []
    seen = values.Values(1, None, lambda frame: LINE, None, broken.append)
    seen.calling = calling
    for op, inputs, outputs in ran:
        seen.look(op, inputs, outputs)
    seen.end()
    assert not broken
    return [(origin.op, origin.kind, origin.nan, origin.infinite) for origin in seen.origins]


class Again(Eager):
    """A tensor that is infinite at first."""

    def numpy(self):
        self.array, now = np.array(1, np.float32), self.array
        return now


AGAIN, NEW = Again(np.inf), [("Sub", "computed", 1, 0)]
LOG = ("Log", [BELOW], [Eager(np.nan, 0.7)])


@pytest.mark.parametrize(
    "ran, origins",
    [
        ([LOG], [("Log", "computed", 1, 0)]),
        ([("Sqrt", [ONE], [ONE]), LOG, ("Neg", [NAN], [NAN])], [("Log", "computed", 1, 0)]),
        ([("Mul", [NAN, ONE], [NAN])], [("Mul", "fed", 1, 0)]),  # no op made it
        ([("IteratorGetNext", [], [NAN])], [("IteratorGetNext", "fed", 1, 0)]),
        # Inf is the origin where NaN is made of it
        ([("Exp", [ONE], [INF]), ("Sub", [INF, INF], [NAN])], [("Exp", "computed", 0, 1)]),
        ([("Sub", [INF, INF], [NAN])], [("Sub", "computed", 1, 0)]),  # of a constant
        # A loss or a variable gets infinite; a mask has an infinite element
        ([("Exp", [ONE], [INF])], [("Exp", "computed", 0, 1)]),
        ([("Log", [ONE], [MASK])], []),
        ([("Log", [ONE], [MASK]), ("Softmax", [MASK], [BELOW])], []),
        (
            [("Log", [ONE], [MASK]), ("AssignVariableOp", [ONE, MASK], [])],
            [("Log", "computed", 0, 1)],
        ),
        # A tensor of other elements has the place of one that is gone
        ([("Exp", [ONE], [AGAIN]), ("Neg", [ONE], [AGAIN]), ("Sub", [AGAIN], [NAN])], NEW),
        ([("Shape", [ONE], [Eager(3, dtype=np.int32)])], []),
    ],
)
def test_the_first_op_with_nan_or_the_inf_that_it_is_made_of(ran, origins):
    assert told(*ran) == origins


def test_outside_of_functions_only_nan_counts():
    assert told(("Exp", [ONE], [INF]), ("Assign", [INF], []), calling=False) == []
    assert told(LOG, calling=False) == [("Log", "computed", 1, 0)]


def test_an_origin_has_its_line():
    ops = values.Values(1, None, lambda frame: LINE, None, None)
    ops.look(*LOG)
    (origin,) = ops.origins
    assert (origin.source.file, origin.source.line) == LINE[:2]
    assert told(("Exp", [Eager(89)], [INF]))[0][0] == "Exp"


def test_a_gradient_has_the_line_of_the_op_that_it_is_of():
    ops = values.Values(1, None, lambda frame: LINE, None, None)
    root = Eager(0.0)
    ops.look("Sqrt", [ZERO], [root])

    def _gradient_function(op_name, outputs):  # as the one of TensorFlow
        ops.line_of = lambda frame: ("/code/a.py", 9, "step")
        ops.look("SqrtGrad", [root, ONE], [NAN])

    _gradient_function("Sqrt", [root])
    (origin,) = ops.origins
    assert (origin.op, origin.derives, origin.source.line) == ("SqrtGrad", "Sqrt", 3)


def test_a_variable_that_had_nan_before_is_named():
    ops = values.Values(1, None, lambda frame: LINE, None, None)

    class Variable:
        name = "weights:0"

        def __bool__(self):
            raise AssertionError("This runs an op.")

        def _read_variable_op(self):  # as that of TensorFlow
            ops.look("ReadVariableOp", [Eager(1, dtype=np.int64)], [NAN])

    Variable()._read_variable_op()
    (origin,) = ops.origins
    assert (origin.kind, origin.tensor) == ("variable", "weights")
