"""Records of stages: what comes next gets the live program, or the reason why there is none."""

from tests.approval import refused
from tests.records_by_hand import a_frontend
from tflab.records.options import Model, Program


def test_a_blocked_graph_and_a_model_without_a_loss_say_what_is_missing():
    blocked = a_frontend(None, (), blocked="The graph 'g.pb' cannot be imported.")
    program = Program("line", None, Model("y", {}, None), None)
    assert [refused(getattr, blocked, "live"), refused(getattr, program, "loss")] == [
        "TflabError: The graph 'g.pb' cannot be imported.",
        "TflabError: The model 'line' has no loss.",
    ]
