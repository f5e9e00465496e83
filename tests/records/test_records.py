"""Records of stages: what comes next gets the live program, or the reason why there is none."""

import pytest

from tflab import records
from tflab.errors import TflabError
from tflab.records import options, stages
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


def test_every_record_can_be_imported_from_the_package_and_no_other_name():
    assert records.Model is options.Model
    assert records.Frontend is stages.Frontend
    assert records.SWITCHES is options.SWITCHES
    for name in ("replace", "Any", "nonsense"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(records, name)
