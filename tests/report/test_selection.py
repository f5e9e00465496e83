"""Selection: which chapters a report has, and what is measured for them."""

from tflab.report import selection


def test_chapters_come_in_their_order_each_once_and_some_only_if_they_are_named():
    assert selection.chosen(("memory", "toy", "memory"), "lenet") == ("toy", "memory")
    usual = tuple(name for name in selection.CHAPTERS if name not in ("lab", "toy", "devices"))
    assert selection.chosen((), "lenet") == usual
    assert selection.chosen(("lab", "graph"), "lenet") == ("lab", "graph")
    # The chapters of the small model are those of its graph and of two devices
    assert selection.chosen(("toy",), "toy") == ("graph",)
    assert selection.chosen((), "toy")[:2] == ("graph", "devices")
    assert selection.needs(("memory", "batch-sizes")) == {"walked", "compared"}
