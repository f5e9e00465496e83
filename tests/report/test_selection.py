"""Selection: which chapters a report has, and what is measured for them."""

from tflab.report import selection


def test_chapters_come_in_their_order_each_once_and_some_only_if_they_are_named():
    assert selection.chosen(("memory", "toy", "memory"), "lenet") == ("toy", "memory")
    usual = tuple(name for name in selection.CHAPTERS if name not in ("lab", "toy", "devices"))
    assert selection.chosen((), "lenet") == usual
    assert selection.chosen(("lab", "graph"), "lenet") == ("lab", "graph")


def test_the_chapters_of_the_small_model_are_those_of_its_graph_and_of_two_devices():
    assert selection.chosen(("toy",), "toy") == ("graph",)
    assert selection.chosen((), "toy")[:2] == ("graph", "devices")


def test_what_is_measured_is_what_the_chapters_need():
    assert selection.needs(("environment",)) == set()
    assert selection.needs(("memory", "batch-sizes")) == {"walk", "sweep"}
    assert selection.needs(("configurations",)) == {"sweep", "configurations"}
