"""Records of stages: what comes next gets the live program, or the reason why there is none."""

import pytest

from tflab.errors import TflabError
from tflab.records.options import Model, Program
from tflab.records.stages import Frontend


def program(loss=None):
    return Program("line", None, Model("y", {}, None, loss), None)


def test_a_frontend_hands_its_program_on():
    made = program()
    assert Frontend(made, ()).live is made


def test_a_blocked_frontend_says_why_it_has_no_program():
    with pytest.raises(TflabError) as error:
        _ = Frontend(None, (), blocked="The graph 'g.pb' cannot be imported.").live
    assert str(error.value) == "The graph 'g.pb' cannot be imported."


def test_a_program_has_the_loss_of_its_model():
    assert program("loss").loss == "loss"


def test_a_program_without_a_loss_says_so():
    with pytest.raises(TflabError) as error:
        _ = program().loss
    assert str(error.value) == "The model 'line' has no loss."
