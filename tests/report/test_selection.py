"""Selection: which chapters a report has, and what is measured for them."""

from tflab.report import selection


def test_chapters_come_in_their_order_each_once():
    assert selection.chosen(("memory", "toy", "memory"), "lenet") == ("toy", "memory")
    assert selection.chosen((), "lenet") == selection.CHAPTERS


def test_the_graph_of_the_small_model_is_that_of_its_own_chapter():
    assert selection.chosen(("graph",), "toy") == ("toy",)
    assert "graph" not in selection.chosen((), "toy")


def test_what_is_measured_is_what_the_chapters_need():
    assert selection.needs(("environment", "methods"), "lenet") == set()
    assert selection.needs(("memory", "batch-sizes"), "lenet") == {"walk", "sweep"}
    assert selection.needs(("memory",), "toy") == {"walk", "toy"}
    assert selection.needs(("configurations",), "lenet") == {"sweep", "configurations"}
