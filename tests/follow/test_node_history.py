"""Node history: what the stages say of one name, put together."""

from dataclasses import fields, replace

import pytest

from tests.examples import walk
from tests.examples.histories import (
    BACK,
    GATE,
    HISTORIES,
    KNOWN,
    MEANINGS,
    MUL,
    ONE,
    SEED,
    SUM,
    VALUES,
)
from tests.examples.histories import X as X_VALUE
from tests.examples.histories import Y as Y_VALUE
from tests.examples.printed import approve_text
from tests.graph_notation import one_pass
from tests.records_by_hand import CPU_0, LOAD, LOAD_LINE, a_backward, a_frontend, op_stats
from tflab.errors import UsageError
from tflab.follow import node_history, view
from tflab.records.graph import Node, Source, Tensor
from tflab.records.measured import OpStats
from tflab.records.placed import CompiledKernel, Fate, Generated, Kernel
from tflab.records.timed import CriticalPath

LINE = Source("model.py", 7, "build", "y = tf.nn.relu(tf.matmul(x, w))")
X = replace(walk.X, source=LINE, outputs=(Tensor("float32", (None, 4)),))
FRONTEND = replace(walk.FRONTEND, nodes=(X, *walk.FORWARD[1:]))
BACKWARD = replace(walk.BACKWARD, nodes=(X, *walk.WHOLE[1:]))
PLACEMENT = replace(
    walk.PLACEMENT,
    kernels=(Kernel("relu", "_FusedMatMul", CPU_0, "CPU"),),
    generated=(
        Generated(
            *("c", (), 1),
            tuple(
                CompiledKernel(name, ("op",), (node,), 0, (), (), ())
                for name, node in (("dot.1", "matmul"), ("max.1", "relu"))
            ),
            {},
        ),
    ),
)
EXECUTION = replace(walk.EXECUTION, critical_path=CriticalPath(("relu",), 10.0, 1.0, ()))


def row(key: str) -> OpStats:
    return op_stats(key, ops=("_FusedMatMul",), nodes=(key,), calls=1, share=1, flops=32)


def known(by_name) -> str:
    """All that is known of each node; of its times, the number of calls."""
    lines = []
    for name, history in by_name.items():
        lines += ["", name]
        for field in fields(history):
            value = getattr(history, field.name)
            if field.name == "times":
                value = {size: (row.key, row.calls) for size, row in value.items()}
            unknown = value is None or value is False or value in ("", (), {})
            if field.name != "name" and not unknown:
                lines.append(f"  {field.name} = {value}")
    return "\n".join(lines)


def test_every_node_of_every_stage_has_a_history_with_all_that_is_known_of_it():
    tables = {4: (row("_arg_x"), row("relu")), 16: (replace(row("relu"), calls=3), row("_arg_x"))}
    stages = (FRONTEND, BACKWARD, PLACEMENT, EXECUTION)
    early = {
        f"after {length} stages": known(node_history.histories(stages[:length]))
        for length in (3, 2, 1)
    }
    approve_text("follow-histories.txt", known(node_history.histories(stages, tables)), early)


def test_what_a_pass_did_is_told_of_each_node():
    step = one_pass(
        "+new, -old, -gone, -passed, kept Relu>_Relu, product Mul>Const, loop While>IdentityN, "
        "~user, ~loop, old merged kept, gone removed, constant folded constant, "
        "product removed, loop removed exit, passed removed heir, square replaced new"
    )
    assert [" ".join(change).strip() for change in node_history.changes(step)] == [
        "new added",
        "old merged kept",
        "gone removed",
        "constant folded",
        "product reused",  # a node of this name is still there
        "loop bypassed exit",  # it stays, but nobody takes it
        "passed removed heir",
        "square replaced new",
        "kept rewritten Relu to _Relu",
        "product rewritten Mul to Const",
        "loop rewritten While to IdentityN",
    ]


def test_a_constant_that_keeps_the_name_of_what_was_folded_does_no_work_besides_its_own():
    ledger = (Fate("relu", "folded", "p", "relu"), Fate("matmul", "folded", "p", "relu"))
    inside = replace(ledger[1], name="x", has_value=False)  # a constant was computed from it
    assert node_history.extra_work((*ledger, inside)) == {"relu": ["matmul"]}


def test_a_loop_whose_outputs_come_from_several_nodes_has_no_carrier():
    loop = replace(HISTORIES["x"], outputs=(Tensor("float32", ()),) * 2)
    fate, exits = Fate("x", "removed", "lower", "exit"), {"exit": Node("exit", "Exit")}
    assert node_history.carrier_of(loop, fate, exits) is None
    one = replace(loop, outputs=loop.outputs[:1])
    assert node_history.carrier_of(one, fate, exits) == "exit"


def test_the_load_stands_below_the_times_of_a_history():
    walk = FRONTEND, BACKWARD, PLACEMENT, replace(EXECUTION, load=LOAD)
    history = node_history.histories(walk, {16: (row("relu"), row("_arg_x"))})["matmul"]
    assert [*view.blocks(history)][-1] == LOAD_LINE


def test_a_node_that_nobody_carries_has_no_times():
    lone = node_history.from_program(FRONTEND, None)
    assert node_history.with_times(lone, EXECUTION, {16: (row("matmul"),)}) == lone


def test_a_gradient_is_the_value_of_the_last_node_that_computes_it():
    found = {name: node.gradient for name, node in KNOWN.items() if node.gradient}
    assert found == {"y": SUM, "mul": GATE, "loss": SEED}
    for change in ({"complete": False}, {"used": False}):  # a part of it, or nobody needs it
        later = replace(MEANINGS[2], name="loss", **change)
        known = node_history.with_values(HISTORIES, (*MEANINGS, later), VALUES)
        assert known["y"].gradient == SUM
    rows = replace(BACK, shape=(1,), values=(6.0,))  # as of a lookup, that are for some rows only
    assert node_history.with_values(HISTORIES, MEANINGS, (MUL, rows))["mul"].gradient is None


def test_a_node_has_the_program_s_values_of_its_outputs_and_inputs():
    own = {name: node.values for name, node in KNOWN.items() if node.values}
    assert own == {row.node: (row,) for row in VALUES if row is not ONE}
    assert KNOWN["mul"].taken == (X_VALUE, Y_VALUE)


def test_a_name_that_does_not_exist_gets_the_five_nearest_ones():
    histories = node_history.histories((FRONTEND, BACKWARD, PLACEMENT))
    assert node_history.find("matmul:0", histories) is histories["matmul"]
    with pytest.raises(UsageError, match=r"no node '<b>' .* the program\. Some names: 'x', "):
        node_history.find("<b>", histories)
    with pytest.raises(UsageError) as error:
        node_history.find("layer", dict.fromkeys(f"layer{n}" for n in range(1, 8)), "lenet")
    message = str(error.value)
    assert message.startswith("There is no node 'layer' in the graph of lenet. Did you mean 'layer")
    assert message.count("layer") == 1 + 5


def test_a_node_did_not_run_if_neither_its_carrier_nor_a_measured_step_says_so():
    """`matmul` is fused into `relu`, so it did not run either."""
    placed = replace(PLACEMENT, not_run=("relu",))
    still = replace(EXECUTION, top_ops=(), values=())

    def not_run(stages, tables=None):
        by_name = node_history.histories(stages, tables)
        return [name for name, history in by_name.items() if history.not_run]

    assert not_run((FRONTEND, BACKWARD, PLACEMENT)) == []
    assert not_run((FRONTEND, BACKWARD, placed)) == ["matmul", "relu"]
    assert not_run((FRONTEND, BACKWARD, placed, still)) == ["matmul", "relu"]
    traced = replace(still, top_ops=(row("relu"),))
    assert not_run((FRONTEND, BACKWARD, placed, traced)) == []
    assert not_run((FRONTEND, BACKWARD, placed), {16: (row("relu"),)}) == []
    assert not_run((FRONTEND, BACKWARD, placed), {16: (row("x"),)}) == ["matmul", "relu"]


def test_a_loop_is_shown_as_it_was_written_without_what_differentiation_added():
    loop = Node("loop", "While", ("x",), source=LINE, outputs=(Tensor("float32", ()),))
    after = Node("after", "Neg", ("loop",), outputs=(Tensor("float32", ()),))
    kept = Node("gradients/kept", "EmptyTensorList", outputs=(Tensor("variant", ()),))
    grad = Node("gradients/loop_grad", "While", ("loop:1",))
    grown = replace(loop, inputs=("x", kept.name), outputs=(*loop.outputs, *kept.outputs))
    backward = a_backward(None, (X, grown, after, kept, grad))
    history = node_history.histories((a_frontend(None, (X, loop, after)), backward))["loop"]
    lines = [*view.frontend_lines(history), *view.backward_lines(history)]
    assert [view.text_of(line) for line in lines] == [
        "model.py:7  y = tf.nn.relu(tf.matmul(x, w))",
        "takes x",
        "makes float32 []",
        "is used by after",
        "also used by gradients/loop_grad",
    ]
    own = node_history.histories((a_frontend(None, (X, grown, after, kept, grad)),))["loop"]
    assert (own.inputs, own.consumers) == (grown.inputs, ("after", "gradients/loop_grad"))
