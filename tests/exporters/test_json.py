"""JSON: what other programs may rely on. Each text of the records says where it stands, and each
number is the place of its field, so that an approved file shows what each key has."""

import json
import math
from dataclasses import dataclass, field

import pytest

from tests.approval import approve
from tests.examples.records import filled
from tests.records_by_hand import a_backward, a_frontend
from tflab.exporters import json as exported
from tflab.records.graph import Node
from tflab.records.stages import Backward, Execution, Frontend, Placement


class Live:
    """What means something inside this process only, like a tf.Graph."""


@pytest.mark.parametrize("kind", [Frontend, Backward, Placement, Execution])
def test_every_field_of_a_stage(kind):
    stage = filled(kind, place=kind.__name__.lower())
    name = f"stage-{kind.__name__.lower()}.json"
    approve(name, json.dumps(exported.stage_object(stage), indent=1))


def test_one_object_holds_model_environment_stages_in_order_and_the_error_that_ended_them():
    nodes = (Node("x", "Placeholder"), Node("y", "Add", ("x", "x:1"), ("x",)))
    stages = [a_frontend(Live(), nodes), a_backward(Live(), nodes[:1], (), (), ())]
    whole = json.loads(exported.stages("toy", {"cpus": 2}, stages))
    assert (whole["model"], whole["environment"]) == ("toy", {"cpus": 2})
    assert [(one["stage"], one["node_count"], one["edge_count"]) for one in whole["stages"]] == [
        ("frontend", 2, 3),
        ("backward", 1, 0),
    ]
    assert list(whole) == ["model", "environment", "stages"]
    failed = json.loads(exported.stages("toy", {}, stages[:1], "No kernel."))
    assert (failed["error"], len(failed["stages"])) == ("No kernel.", 1)


@dataclass(frozen=True)
class Move:
    start: str = field(metadata={"json": "from"})
    live: object = field(metadata={"json": None})
    cost: float


def test_the_key_of_a_field_stands_at_the_field_and_so_does_what_is_left_out():
    assert exported.plain(Move("a", Live(), 2.5)) == {"from": "a", "cost": 2.5}
    assert exported.document(steps={16: (Move("a", None, 1.0),)}) == (
        '{\n "steps": {\n  "16": [\n   {\n    "from": "a",\n    "cost": 1.0\n   }\n  ]\n }\n}'
    )


def test_a_number_that_is_not_finite_is_null_and_what_is_unknown_too():
    assert json.loads(exported.document(rate=(math.nan, math.inf, 1.5, None, True))) == {
        "rate": [None, None, 1.5, None, True]
    }
