"""Not finite: which nodes of a graph made NaN or Inf of finite inputs, and what went into them."""

import ml_dtypes
import numpy as np
import pytest

from tests.graph_notation import graph
from tflab.analysis import values
from tflab.analysis.values import Bad
from tflab.records.values import Entered

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64, ml_dtypes.bfloat16])
def test_nans_and_infinities_are_counted(dtype):
    array = np.array([1, NAN, INF, -INF, NAN, NAN]).astype(dtype)
    assert values.bad_elements(array) == Bad(nan=3, infinite=2, size=6)


@pytest.mark.parametrize(
    "array", [np.float32([1]), np.int32([1]), np.array([b"nan"], object), np.zeros(0)]
)
def test_what_is_finite_is_not_bad(array):
    assert values.bad_elements(array) is None


# Which nodes


def origins(text, nan="", infinite="", unknown="", spoiled=""):
    """The origins in a graph such as `x; log=Log(x); w=Var; up=Apply(w,log)`.

    Tensors in `nan` and `infinite` are not finite, those in `unknown` have no value; `spoiled` are
    updates with their variables: `up:w`.
    """
    nodes = graph(text)
    tensors = {node.name for node in nodes} | {tensor for node in nodes for tensor in node.inputs}
    bads = {name: Bad(1, 0, 4) for name in nan.split()}
    bads |= {name: Bad(0, 1, 4) for name in infinite.split()}
    updates = dict(pair.split(":") for pair in spoiled.split())
    known = (tensors | {*bads}) - {*unknown.split()} - {*updates}
    return " ".join(t for _, t in values.origins(nodes, known, bads, updates))


CHAIN = "x; log=Log(x); mul=Mul(log,x); sum=Sum(mul)"
MASK = "x; e=Const; mask=Add(x,e); sub=Sub(mask,x); sum=Sum(sub)"
UPDATE = "w=VarHandleOp; g; up=Apply(w,g); read=ReadVariableOp(w)"
TWICE = "w=VarHandleOp; a; first=Apply(w,a); g; second=Apply(w,g)"
# Nodes in a loop, lists and optionals have no values; what comes out may be from what went in
LOOP = "start; enter=Enter(start); body=Log(enter); exit=Exit(body); after=Neg(exit)"
LIST = "log; put=Push(log); get=Pop(put); mul=Mul(get:1)"


@pytest.mark.parametrize(
    "nodes, given, expected",
    [
        (CHAIN, {"nan": "log mul sum"}, "log"),
        (CHAIN, {}, ""),
        ("x; a=F(x); b=F(x); c=F(a,b); d=F(x)", {"nan": "a b c d"}, "a b d"),
        ("x; split=Split(x); a=F(split); b=F(split:1)", {"infinite": "split:1 b"}, "split:1"),
        # An infinite constant is meant, but a node that makes NaN of it is an origin
        (MASK, {"infinite": "e mask", "nan": "sub sum"}, "sub"),
        (MASK, {"infinite": "e", "nan": "mask sub"}, "mask"),
        (MASK, {"infinite": "e mask sub"}, "e"),
        (MASK, {"nan": "e mask sub"}, "e"),
        (MASK, {"infinite": "e x", "nan": "sub"}, "x"),
        (UPDATE, {"spoiled": "up:w", "nan": "read"}, "w"),
        (UPDATE, {"spoiled": "up:w", "nan": "g read"}, "g"),
        (TWICE, {"spoiled": "first:w second:w", "nan": "g"}, "w g"),
        (LOOP, {"unknown": "enter body", "nan": "exit after"}, "exit"),
        (LOOP, {"unknown": "enter body", "nan": "start exit after"}, "start"),
        (LIST, {"unknown": "put", "nan": "log get:1 mul"}, "log"),
    ],
)
def test_an_origin_is_a_node_whose_inputs_are_finite(nodes, given, expected):
    assert origins(nodes, **given) == expected


# What went in


def test_what_a_node_took_is_counted_and_what_has_no_numbers_is_left_out():
    inputs = (np.float32([[0, -2, 3], [-1, 0, 7]]), None, np.array([b"a"], object), np.zeros(0))
    named = [(f"in{number}", array) for number, array in enumerate(inputs)]
    assert list(values.entered(named)) == [Entered("in0", 6, 2, 2, -2, 7)]
