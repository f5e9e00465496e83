"""Flows: which run had its data from which."""

from dataclasses import replace

import numpy as np
import pytest

from tests.records_by_hand import run
from tflab.analysis import flows
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun

SENT = Transfer("a", "a/_1", "a/_2", "/device:CPU:0", "/device:CPU:1", "float32", (4,), 16)


def drawn(runs, before) -> set[tuple[str, int, str, int]]:
    """Arrows as (name, start, name, start)."""
    producers, consumers = (
        [(runs[place].name, runs[place].start_ns) for place in places]
        for places in flows.pairs(runs, before)
    )
    return {(*a, *b) for a, b in zip(producers, consumers, strict=True)}


# Producers


def test_a_node_has_its_data_from_the_nodes_of_its_inputs():
    nodes = [Node("a", "Op"), Node("b", "Op"), Node("c", "Op", ("a", "b:1", "a:1"), ("d",))]
    assert flows.producers([*nodes, Node("d", "Op")], (), {"a", "b", "c", "d"}) == {"c": ("a", "b")}


def test_data_come_through_nodes_that_did_not_run():
    nodes = [
        Node("a", "Op"),
        Node("bias", "Op", ("a", "conv")),
        Node("conv", "Op", ("a",)),
        Node("relu", "Op", ("bias",)),
    ]
    assert flows.producers(nodes, (), {"a", "relu"}) == {"relu": ("a",)}


def test_data_come_from_the_other_side_of_a_transfer():
    nodes = [
        Node("a", "Op"),
        Node("a/_1", "_Send", ("a",)),
        Node("a/_2", "_Recv"),
        Node("b", "Op", ("a/_2",)),
    ]
    assert flows.producers(nodes, [SENT], {"a", "b"}) == {"b": ("a",)}
    assert flows.producers(nodes, [SENT], {"a", "b", "a/_2"}) == {"a/_2": ("a",), "b": ("a/_2",)}


# Pairs


def test_a_run_takes_from_the_run_of_its_step():
    runs = [run("b", 10), run("a", 0), run("b", 110, step=1), run("a", 100, step=1)]
    assert drawn(runs, {"b": ["a"]}) == {("a", 0, "b", 10), ("a", 100, "b", 110)}


def test_in_a_loop_a_run_takes_from_the_one_that_ended_last():
    runs = [run("a", start) for start in (20, 0, 10)] + [run("b", start) for start in (5, 18, 25)]
    assert drawn(runs, {"b": ["a"]}) == {
        ("a", 0, "b", 5),
        ("a", 10, "b", 18),
        ("a", 20, "b", 25),
    }


def test_nothing_comes_from_what_has_not_ended_or_did_not_run():
    assert drawn([run("a", 0, 20), run("b", 10)], {"b": ["a", "c"]}) == set()


def test_a_run_has_an_arrow_from_each_of_its_producers():
    runs = [run("a", 0), run("b", 1), run("c", 9)]
    assert drawn(runs, {"c": ["a", "b"]}) == {("a", 0, "c", 9), ("b", 1, "c", 9)}


def test_what_has_not_ended_is_not_replaced_by_another_node():
    assert drawn([run("a", 30), run("b", 10, 50)], {"a": ["b"]}) == set()


def test_every_arrow_is_that_of_a_search_through_all_runs():
    numbers = np.random.default_rng(0)
    runs = [
        run("abc"[node], int(start), int(duration), int(step))
        for node, start, duration, step in zip(
            *(numbers.integers(0, most, 120) for most in (3, 40, 8, 3)), strict=True
        )
    ]
    before = {"b": ["a"], "c": ["a", "b"], "a": ["c"]}
    expected = set()
    for place, taker in enumerate(runs):
        for name in before[taker.name]:
            ended = [
                (flows.end_ns(other), at)
                for at, other in enumerate(runs)
                if (other.name, other.step) == (name, taker.step)
                and flows.end_ns(other) <= taker.start_ns
            ]
            if ended:
                expected.add((max(ended)[1], place))
    assert set(zip(*map(np.ndarray.tolist, flows.pairs(runs, before)), strict=True)) == expected


def test_the_runs_of_a_node_stand_in_the_order_in_which_they_ended():
    long, short, late = run("a", 0, 50), run("a", 10, 5), run("a", 60)
    assert flows.runs_by_node([long, run("b", 1), short]) == {
        "a": [short, long],
        "b": [run("b", 1)],
    }
    assert flows.runs_by_node([late, long, short]) == {"a": [short, long, late]}


# Transfers

NODES = [Node("a", "Op"), Node("a/_1", "_Send", ("a",)), Node("a/_2", "_Recv")]


@pytest.mark.parametrize("waiting", [("a/_2",), ()])
def test_a_transfer_lasts_from_its_producer_to_its_first_consumer(waiting):
    nodes = [*NODES, Node("b", "Op", ("a/_2",)), Node("c", "Op", waiting, ("a/_2",))]
    runs = [run("a", 0), run("b", 40, device="CPU:1"), run("c", 30, device="CPU:1")]
    assert list(flows.inferred_transfers(runs, nodes, [SENT])) == [
        OpRun(0, "a/_2", "a (inferred)", "transfers CPU:0 to CPU:1 (inferred)", 5, 25, 16)
    ]


def test_there_is_nothing_to_infer_where_the_receive_was_timed():
    nodes = [*NODES, Node("b", "Op", ("a/_2",))]
    assert (
        list(flows.inferred_transfers([run("a", 0), run("a/_2", 9), run("b", 40)], nodes, [SENT]))
        == []
    )


def test_there_is_nothing_to_infer_without_a_consumer_after_the_producer():
    nodes = [*NODES, Node("b", "Op", ("a/_2",))]
    assert list(flows.inferred_transfers([run("a", 0), run("b", 3)], nodes, [SENT])) == []
    assert list(flows.inferred_transfers([run("a", 0)], nodes, [SENT])) == []
    assert list(flows.inferred_transfers([run("a", 0)], NODES, [SENT])) == []
    assert list(flows.inferred_transfers([run("b", 40)], nodes, [SENT])) == []


def test_each_step_without_a_timed_receive_has_an_inferred_one():
    nodes = [*NODES, Node("b", "Op", ("a/_2",))]
    runs = [run("a", 0), run("a/_2", 9), run("b", 40)]
    later = [run("a", 100, step=1), run("b", 140, step=1)]
    sent = replace(SENT, bytes=None)
    assert list(flows.inferred_transfers([*runs, *later], nodes, [sent])) == [
        OpRun(1, "a/_2", "a (inferred)", "transfers CPU:0 to CPU:1 (inferred)", 105, 35, 0)
    ]
