"""Unlike: what differs between a node that no pass fused, merged or folded, and one that was."""

from dataclasses import replace

import pytest

from tests.graph_notation import fates, graph, passes
from tests.records_by_hand import a_placement
from tflab.follow import node_history

NETWORK = (
    "x; l1/Conv=Conv(x); l1/Bias=Bias(l1/Conv); l1/Relu=Relu(l1/Bias); "
    "l2/Conv=Conv(l1/Relu); l2/Bias=Bias(l2/Conv); l2/Relu=Relu(l2/Bias); sum=Sum(l2/Bias)"
)
A_FUSED = "remapper: l1/Conv fused l1/Relu, l1/Bias fused l1/Relu, l1/Relu Relu>_Fused"
LEDGER = "l1/Conv fused l1/Relu, l1/Bias fused l1/Relu, l1/Relu executed, {}"
NODES = "x executed, l2/Conv executed, l2/Bias executed, l2/Relu executed, sum executed"
HOW = "l1/Conv was fused into l1/Relu by remapper; "
BIAS_IS_USED = "l2/Bias is used by Relu, Sum, l1/Bias is used by Relu"
FOLD = "x=Placeholder; k=Const; m=Mul(k,k); n=Mul(m,x); o=Mul(m,k)"
EQUAL = "x; y; a=Mul(x,y); b=Mul(x,y); c=Mul(y,x)"


def found(name, nodes, log, ledger, fetches=()):
    placement = a_placement(
        None,
        (),
        user_nodes=graph(nodes),
        fetches=fetches,
        passes=tuple(passes(log) if isinstance(log, str) else log),
        ledger=tuple(fates(ledger)),
    )
    return list(node_history.unlike_peers(placement, name))


@pytest.mark.parametrize(
    "name, changed, expected",
    [
        ("l2/Conv", "", HOW + BIAS_IS_USED),
        ("l2/Bias", "", HOW.replace("l1/Conv", "l1/Bias") + BIAS_IS_USED),
        ("l2/Relu", "", HOW + BIAS_IS_USED),
        ("l2/Conv", "; sum=Sum(l2/Bias)", None),  # then nothing differs that the log shows
        ("l2/Bias", "l1/Relu)@CPU:1", None),
        (
            "l2/Conv",
            "l2/Bias=Bias(l2/Conv)",
            HOW + "l2/Conv is used by nothing, l1/Conv is used by Bias",
        ),
        ("sum", "", None),  # no other node has its type
        ("l1/Relu", "", None),  # it does the work of the others
        ("l1/Bias", "", None),
        ("nobody", "", None),
    ],
)
def test_what_differs_along_the_chain_that_was_fused_is_named(name, changed, expected):
    nodes = NETWORK.replace(changed, "") if changed else NETWORK
    rows = found(name, nodes, A_FUSED, LEDGER.format(NODES))
    if changed == "l1/Relu)@CPU:1":
        rows = found(name, NETWORK.replace("; sum=Sum(l2/Bias)", ""), A_FUSED, LEDGER.format(NODES))
    assert rows == ([expected] if expected else [])


def test_other_devices_and_fetches_differ_too():
    plain = NETWORK.replace("; sum=Sum(l2/Bias)", "")
    ledger = LEDGER.format(NODES)
    at = plain.replace("l2/Conv=Conv(l1/Relu)", "l2/Conv=Conv(l1/Relu)@/device:CPU:1")
    (row,) = found("l2/Conv", at, A_FUSED, ledger)
    assert row.startswith(HOW + "l2/Conv is on CPU:1, l1/Conv is on ")
    assert found("l2/Conv", plain, A_FUSED, ledger, ["l2/Bias:0"]) == [HOW + "l2/Bias is fetched"]


def test_what_a_pass_did_before_is_in_the_graph():
    before, fused = passes("grappler: ~sum; " + A_FUSED)
    before = replace(before, definitions=graph("sum=Sum(x)"))
    assert found("l2/Conv", NETWORK, (before, fused), LEDGER.format(NODES)) == []


def test_a_node_that_does_the_work_of_others_is_only_compared_with_what_went_into_another():
    nodes = "x; l1/Conv=Conv(x); l1/Bias=Bias(l1/Conv); m=MatMul(l1/Bias); l2/Bias=Bias(m)"
    log = "remapper: l1/Conv fused l1/Bias, m fused l2/Bias"
    ledger = f"x executed, l1/Bias executed, l2/Bias executed; {log}"
    assert found("l1/Bias", nodes, log, ledger) == []


def test_what_was_folded_takes_constants_only_and_the_other_node_does_not():
    ledger = "fold: m folded m, o folded o; x executed, k executed, n executed"
    (row,) = found("n", FOLD, "prune: +z; fold: m folded m, o folded o", ledger)
    assert row == ("o was folded by fold; all its inputs are constant, and n takes x (Placeholder)")


def test_what_was_merged_takes_the_same_and_the_other_node_does_not():
    ledger = "cse: b merged a; x executed, y executed, a executed, c executed"
    log = "cse: -b, b merged a"
    how = "b was merged with a by cse; both have the same inputs, and "
    assert found("c", EQUAL, log, ledger) == [how + "no other Mul has those of c"]
    assert found("c", EQUAL + "; d=Mul(y,x)", log, ledger + ", d executed") == []
    assert found("a", EQUAL, log, ledger) == []
