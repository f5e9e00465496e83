"""Preparation: whether a step trains."""

from types import SimpleNamespace

import pytest

from tflab.compare import prepare
from tflab.records.graph import Node

pytestmark = pytest.mark.tensorflow

NODES = (
    Node("w", "VarHandleOp"),
    Node("gradient", "Mul"),
    Node("update", "AssignSubVariableOp", inputs=("w", "gradient")),
    Node("loss", "Mean"),
    Node("train", "NoOp", control_inputs=("update",)),
)


@pytest.mark.parametrize(
    ("train_op", "fetches", "updates", "trains"),
    [
        ("train", (), ("update",), True),  # by the optimiser of the model
        (None, ("loss:0", "train"), ("update",), True),  # by updates of the program's own
        (None, ("loss:0",), ("update",), False),  # which nothing that is fetched depends on
        (None, ("train",), (), False),  # the update is no optimiser's
        (None, (), ("update",), False),
    ],
)
def test_a_step_trains_if_what_it_fetches_depends_on_updates(train_op, fetches, updates, trains):
    program = SimpleNamespace(train_op=train_op, model=SimpleNamespace(fetches=fetches))
    stage = SimpleNamespace(program=program, nodes=NODES, update_nodes=updates)
    assert prepare.trains(stage) is trains
