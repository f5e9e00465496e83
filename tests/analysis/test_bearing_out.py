"""Bearing out: a fate is kept if the values of a step agree with it."""

from tests.views.test_values import value
from tflab.analysis import bearing_out
from tflab.records.placed import Fate
from tflab.records.values import COMPUTED, CONSTANT, FED, Defined


def recorded(*names, kind=COMPUTED):
    return [value(f"{name}:0", (1.0,), (), "Op", kind) for name in names]


def defined(name, held_by):
    return Defined(**vars(value(f"{name}:0", (1.0,), ())), held_by=held_by)


def borne_out(fate, ran, *reference):
    (checked,) = bearing_out.borne_out_by_values([fate], ran, reference)
    return checked


def test_an_heir_that_has_the_value_is_kept_and_another_is_not():
    for kind in ("removed", "merged", "folded"):
        fate = Fate("a", kind, "pass", "b")
        assert borne_out(fate, recorded("b"), defined("a", "b")) == fate
        gone = Fate("a", "removed", "pass", None)
        assert borne_out(fate, recorded("b", kind=CONSTANT), defined("a", None)) == gone


def test_a_constant_of_the_nodes_own_name_with_another_value_is_another_node():
    fate = Fate("a", "folded", "pass", "a")
    assert borne_out(fate, recorded("a"), defined("a", "a")) == fate
    assert borne_out(fate, recorded("a"), defined("a", None)) == Fate("a", "executed", "pass", None)


def test_what_was_not_recorded_or_not_claimed_refutes_nothing():
    fate = Fate("a", "removed", "pass", "b")
    assert borne_out(fate, recorded("b")) == fate  # no value by definition
    assert borne_out(fate, [], defined("a", None)) == fate  # the heir was not recorded
    assert borne_out(fate, recorded("b", kind=FED), defined("a", None)) == fate
    inside = Fate("a", "folded", "pass", "b", has_value=False)
    assert borne_out(inside, recorded("b"), defined("a", None)) == inside
    compiled = Fate("a", "compiled", "pass", "b")
    assert borne_out(compiled, recorded("b"), defined("a", None)) == compiled


def test_a_kernel_has_the_value_of_one_of_the_nodes_that_were_fused_into_it():
    ledger = [
        Fate("conv", "fused", "pass", "relu", has_value=False),
        Fate("add", "fused", "pass", "relu", has_value=False),
    ]
    inner = [defined("conv", None), defined("add", None)]
    ran = recorded("relu")
    kept = bearing_out.borne_out_by_values(ledger, ran, [*inner, defined("relu", "relu")])
    assert [*kept] == ledger
    refuted = bearing_out.borne_out_by_values(ledger, ran, [*inner, defined("relu", None)])
    assert [(fate.fate, fate.into) for fate in refuted] == [("removed", None)] * 2
