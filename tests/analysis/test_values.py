"""Values: which tensors can be fetched, and what elements come to in every type."""

import math
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.graph_notation import graph
from tflab.analysis import values
from tflab.analysis.values import Bad
from tflab.records.graph import Tensor
from tflab.records.values import Statistics

NAN, INF = float("nan"), float("inf")
FLOAT8 = (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn)
QINT8 = np.dtype([("qint8", np.int8)])  # as TensorFlow gives it


# What elements come to


RAMP = np.arange(65, dtype=np.float64)
MOST = 2**63 - 1
TEXTS = np.array([b"abc", b"\xff", b"x" * 100], object)
COMPLEX = np.array([1 + 2j, 0, complex(NAN, 1)], np.complex64)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.float32([[1, 0], [-2, 5]]), Statistics((1.0, 0.0, -2.0, 5.0), 1.0, -2, 5, 0)),
        # Of 64 elements all are kept, and of more none
        (RAMP[:64], Statistics(tuple(map(float, range(64))), 31.5, 0, 63, 0)),
        (RAMP, Statistics(None, 32, 0, 64, 0)),
        # What is not finite is counted and left out
        (np.float32([INF, 0, 4, -INF, 5]), Statistics((INF, 0, 4, -INF, 5), 3, 0, 5, 2)),
        (np.float32([INF]), Statistics((INF,), None, None, None, 1)),
        (np.float32([NAN, INF] * 50), Statistics(None, None, None, None, 100)),
        # A mean of halves is not computed in halves, whose sum no float16 can hold
        (np.full(100_000, 3, np.float16), Statistics(None, 3, 3, 3, 0)),
        (np.array([MOST, -MOST, 0]), Statistics((MOST, -MOST, 0), 0, -MOST, MOST, 0)),
        (np.array([True, False, True, True]), Statistics((True, False, True, True), 0.75, 0, 1, 0)),
        # Complex numbers have no order and no mean here, and texts are cut
        (COMPLEX, Statistics(("1+2j", "0j", "nan+1j"), None, None, None, 1)),
        (TEXTS, Statistics(("abc", "\ufffd", "x" * 63 + "…"), None, None, None, 0)),
        (np.zeros((0, 3), np.float32), Statistics((), None, None, None, 0)),
    ],
)
def test_what_elements_come_to(array, expected):
    assert values.statistics(array) == expected


def test_truth_values_are_kept_as_such_and_nan_as_it_is():
    assert values.statistics(np.array([True])).values[0] is True
    assert math.isnan(values.statistics(np.float32([NAN, 1])).values[0])


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float64, ml_dtypes.bfloat16, *FLOAT8, np.int8, np.uint8, np.int64, QINT8],
)
def test_every_type_of_number_has_its_mean(dtype):
    array = np.array([0, 1, 2, 5], np.int8).astype(dtype)
    assert values.statistics(array) == Statistics((0, 1, 2, 5), 2, 0, 5, 0)


# Which tensors can be fetched


OUTPUTS = {"VarHandleOp": ("resource",), "Split": ("float32", "float32"), "NoOp": ()}


def with_outputs(node):
    types = OUTPUTS.get(node.op, ("float32",))
    return replace(node, outputs=tuple(Tensor(dtype, ()) for dtype in types))


GRAPH = "x=Placeholder; v=VarHandleOp; r=Read(v); s=Split(x); m=Mul(s:1,r); up=NoOp(^m); out=Neg(m)"
COND = "p=Const; x=Const; sw=Switch(x,p); t=Log(sw:1); me=Merge(t,sw); y=Neg(me); z=Neg(y)"
LOOP = (
    "i=Const; e=Enter(i); m=Merge(e,n); l=LoopCond(m); s=Switch(m,l); b=Add(s:1); "
    "n=NextIteration(b); o=Exit(s); y=Neg(o)"
)


@pytest.mark.parametrize(
    "nodes, fetches, feeds, tensors",
    [
        (GRAPH, ["m:0", "up"], ["x:0"], "r:0 s:0 s:1 m:0"),
        (GRAPH, ["m:0"], ["x:0", "s:1"], "r:0 s:0 m:0"),
        (COND, ["z:0"], [], "p:0 x:0 me:0 y:0 z:0"),
        (LOOP, ["y:0"], [], "i:0 o:0 y:0"),
    ],
)
def test_values_are_fetched_outside_of_loops_and_branches(nodes, fetches, feeds, tensors):
    needed = values.needed(list(map(with_outputs, graph(nodes))), fetches, feeds)
    assert values.fetchable(needed, feeds) == tensors.split()


# The nodes that made NaN or Inf


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
NAN_LOOP = "start; enter=Enter(start); body=Log(enter); exit=Exit(body); after=Neg(exit)"
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
        (NAN_LOOP, {"unknown": "enter body", "nan": "exit after"}, "exit"),
        (NAN_LOOP, {"unknown": "enter body", "nan": "start exit after"}, "start"),
        (LIST, {"unknown": "put", "nan": "log get:1 mul"}, "log"),
    ],
)
def test_an_origin_is_a_node_whose_inputs_are_finite(nodes, given, expected):
    assert origins(nodes, **given) == expected
