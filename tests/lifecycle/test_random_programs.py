"""Random programs: what is printed about their gradients is true, and a check that lets everything
pass is noticed."""

import pytest
from hypothesis import HealthCheck, given, settings

from tflab.analysis.evaluation import Points
from tools.fuzz import random_programs

pytestmark = pytest.mark.tensorflow

WIDE = (  # where formulas that look right are not: broadcasts, axes, casts, slices, clipping
    [
        ("column", "variable", [3]),
        ("add", "add", [0, 2]),
        ("square", "square", [0]),
        ("to_int", "to_int", [0]),
        ("sum", "sum", [0, 1, 1]),
        ("fill", "fill", [0]),
        ("mul", "mul", [0, 1]),
    ],
    "mean",
    "norm",
)


def wide():
    steps, how, clip = WIDE
    return [(op, numbers) for _, op, numbers in steps], how, clip


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


@pytest.mark.parametrize("mistake", [everything_passes, all_kinds_pass])
def test_a_check_that_lets_everything_pass_is_noticed(mistake, monkeypatch):
    mistake(monkeypatch)
    assert random_programs.false_statements(wide())[1] != []


def test_nothing_false_is_printed_about_that_program():
    assert random_programs.false_statements(wide())[1] == []
