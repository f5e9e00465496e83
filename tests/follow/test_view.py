"""The view of a node's history, from records made by hand."""

from dataclasses import replace

from tests.examples.histories import BACK, FUSED, KNOWN, LOSS, MEANINGS, PLAIN
from tests.examples.printed import approve_view
from tests.records_by_hand import LOAD
from tflab.follow import view
from tflab.follow.view import Link
from tflab.records.graph import GradientNode, Tensor
from tflab.records.placed import Fate
from tflab.records.stages import Touch

RAN = replace(FUSED, carrier="conv")
EXECUTED = Fate("conv", "executed", "remapper", None)
FOLDED = Fate("conv", "folded", "constant_folding", "conv")
DEAD = replace(RAN, fate=EXECUTED, not_run=True)
FORWARD = replace(PLAIN, kind="forward")
MANY = tuple(f"near{n}" for n in range(1, 27))  # two more than are named
CHANGES = ("removed", "folded", "merged", "compiled", "replaced", "bypassed", "reused")
UNDONE = {"carrier": None, "fate": None, "times": {}}
GATE = GradientNode("x", "", "dL/dy", True, True, "gate")

# Title -> a history, or what is different
VARIANTS = {
    "made by the runtime, and nothing else is known": PLAIN,
    "ran as it was made": replace(PLAIN, carrier="x", ran_as="_Arg"),
    "forward": FORWARD,
    "forward, with a line": replace(FORWARD, source=FUSED.source),
    "made by the optimiser": replace(PLAIN, kind="update"),
    "no gradient": {"gradient_nodes": (), "derived_from": None},
    "a variable whose gradient stops": {
        "gradient_nodes": (),
        "no_gradient": "its gradient stops at mask (Round)",
        "gradient_path": ("x", "mask", "loss"),
    },
    "another node was fused": {"unlike": ("a was fused into b", "c was folded")},
    "no constraints of the kernel": {"kernel": replace(FUSED.kernel, constraints="")},
    "no code": {"code": ()},
    "compiled": {"fate": Fate("conv", "compiled", "a pass", "cluster")},
    "many neighbours": {"inputs": MANY, "consumers": MANY[:24]},
    "every change": {
        "touches": (Touch("a", 1, "added", ""), *(Touch("a", 2, w, "other") for w in CHANGES[:6]))
    },
    "a name that another node has": {"touches": (Touch("a", 2, "reused", ""),)},
    "it ran": RAN,
    "it ran as it was made": replace(RAN, ran_outputs=FUSED.outputs),
    "it ran and its outputs are not known": replace(RAN, ran_outputs=(Tensor("float32", None),)),
    "it ran under its name": replace(RAN, fate=EXECUTED),
    "nobody did its work": UNDONE | {"fate": Fate("conv", "removed", "a pass", None)},
    "nothing is known of its fate": UNDONE,
    "nobody touched it": UNDONE | {"touches": ()},
    "folded": {"fate": replace(FOLDED, into="relu")},
    "folded into what is in no constant": {"fate": replace(FOLDED, into="relu", has_value=False)},
    "passed over": {"fate": Fate("conv", "removed", "a pass", "relu")},
    "passed over by a branch": {
        "fate": Fate("conv", "removed", "a pass", "relu"),
        "ran_as": "Switch",
    },
    "replaced": {"fate": Fate("conv", "removed", "a pass", "relu", replaced=True)},
    "merged": {"fate": Fate("conv", "merged", "a pass", "relu")},
    "its branch was not taken": DEAD,
    "its branch was not taken, made by the runtime": replace(DEAD, fate=None),
    "its branch was not taken, folded into itself": replace(DEAD, fate=FOLDED),
    "the branch of what does its work was not taken": {"not_run": True},
    "whether its branch was taken is not known": replace(DEAD, not_run=None),
    "whether that branch was taken is not known": {"not_run": None},
    "a busy machine": {"load": LOAD},
    "no times": {"times": {}},
    "bookkeeping": replace(PLAIN, meaning=GATE),
    "a part of a gradient": replace(PLAIN, meaning=MEANINGS[1]),
    "a gradient that no variable needs": replace(PLAIN, meaning=MEANINGS[6]),
    "values": KNOWN["mul"],
    "values of a variable": KNOWN["y"],
    "values that are fed": KNOWN["x"],
    "more inputs and outputs than have their values": replace(
        KNOWN["back"], values=(BACK, *[replace(BACK, tensor="back:1")] * 5), taken=(LOSS,) * 6
    ),
}


def test_a_history_is_what_each_stage_did_to_the_node_and_its_times():
    variants = {
        title: view.blocks(replace(FUSED, **to) if isinstance(to, dict) else to)
        for title, to in VARIANTS.items()
    }
    approve_view("follow.txt", view.blocks(FUSED), variants)


def test_a_call_that_was_inlined_does_not_have_the_times_of_what_keeps_its_name():
    loop = replace(FUSED, op="While", ran_as="While")
    assert view.times(loop).rows
    for left in ("Identity", "IdentityN", "NoOp"):
        assert not view.times(replace(loop, ran_as=left)).rows
        assert view.times(replace(loop, op="Square", ran_as=left)).rows


def test_a_tensor_links_to_its_node_and_what_was_rewritten_links_to_none():
    assert list(view.links(["split:1"])) == [Link("split:1", "split")]
    first, *_, last = view.parts_of_touch(Touch("a pass", 2, "rewritten", "Relu to _Relu"))
    assert (first, last) == (Link("a pass", 2), "Relu to _Relu")
