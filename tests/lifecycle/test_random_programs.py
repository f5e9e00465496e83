"""Random programs: what is printed about their gradients is true, and a check that lets everything
pass is noticed."""

import pytest
from hypothesis import HealthCheck, given, settings

from tflab.analysis.expressions import Points
from tools.fuzz import random_programs

pytestmark = pytest.mark.tensorflow

# Where formulas that look right are not: broadcasts, axes, casts, slices, clipping
STEPS = [
    *(("variable", [3]), ("add", [0, 2]), ("square", [0]), ("to_int", [0])),
    *(("sum", [0, 1, 1]), ("fill", [0]), ("mul", [0, 1])),
]
WIDE = (STEPS, "mean", "norm")


@settings(max_examples=10, derandomize=True, suppress_health_check=list(HealthCheck))
@given(random_programs.PROGRAMS)
def test_what_is_printed_about_random_programs_is_true(program):
    checked, wrong = random_programs.false_statements(random_programs.sounded(program))
    assert checked > 20
    assert wrong == []


def everything_passes(monkeypatch):
    monkeypatch.setattr(Points, "everywhere", lambda points, test: True)
    monkeypatch.setattr(Points, "hold", lambda points, formula, tensor: True)


def all_kinds_pass(monkeypatch):
    monkeypatch.setattr(Points, "same", lambda points, tensor, other: True)
    monkeypatch.setattr(Points, "filled", lambda points, tensor, number: True)


@pytest.mark.parametrize("mistake", [None, everything_passes, all_kinds_pass])
def test_a_check_that_lets_everything_pass_is_noticed(mistake, monkeypatch):
    if mistake:
        mistake(monkeypatch)
    assert bool(random_programs.false_statements(WIDE)[1]) == bool(mistake)
