"""TensorBoard Graphs draws the network, and colours it by what each traced step cost.

The page is built of nested shadow roots; playwright's CSS selectors reach through them.
"""

import time

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.tensorflow]

LAYERS = ["conv1", "pool1", "conv2", "pool2", "flatten", "dense1", "dense2", "dense3", "loss"]
TAGS = ["batch 1", "batch 16", "batch 64"]
SLOWEST = "rgb(251, 106, 74)"  # the red end of TensorBoard's scale
DRAW_MS = 60_000
ANIMATION_SECONDS = 0.6  # fitting and expanding take 0.5 s


@pytest.fixture
def graphs(page, tensorboard):
    """The Graphs page with its drawing complete."""
    page.goto(f"{tensorboard}/#graphs")
    wait_until_drawn(page, [*LAYERS, "gradients", "train"])
    return page


def test_the_graph_that_ran_and_the_one_that_was_written_can_both_be_drawn(graphs, artefacts):
    save(graphs, artefacts / "graphs.png")
    assert {*LAYERS, "gradients", "train"} <= set(fills(graphs))
    runs = graphs.locator("tf-graph-controls paper-dropdown-menu").first
    assert runs.locator("input").input_value() == "lenet/executed"
    assert "images" not in fills(graphs)  # what is fed runs under another name
    runs.click()
    runs.locator("paper-item", has_text="lenet/written").click()
    wait_until_drawn(graphs, [*LAYERS, "gradients", "train", "images"])
    save(graphs, artefacts / "graphs_written.png")


def test_a_step_of_each_batch_size_colours_the_nodes_by_time_and_by_memory(graphs, artefacts):
    menu = graphs.locator("tf-graph-controls paper-dropdown-menu").nth(1)
    menu.click()
    menu.locator("paper-item", has_text="batch 64").wait_for()
    offered = [text.strip() for text in menu.locator("paper-item").all_text_contents()]
    # Where digits stand in for MNIST, the tags say so in brackets.
    assert [tag.partition(" (")[0] for tag in offered] == ["Default", *TAGS]
    before = fills(graphs)
    legend = graphs.locator("tf-graph-controls .domainEnd")  # the slow end of the colour scale
    assert not legend.is_visible()
    menu.locator("paper-item", has_text="batch 64").click()
    # The traced step has arrived when the colours that need it can be chosen
    graphs.locator("#compute-time-radio-button[aria-disabled='false']").wait_for()
    graphs.locator("#compute-time-radio-button").click()
    legend.wait_for()
    graphs.get_by_text("Fit to screen").click()
    save(graphs, artefacts / "graphs_compute_time.png")
    after = fills(graphs)
    assert legend.inner_text().endswith("s")  # µs or ms
    assert SLOWEST in after.values()
    assert SLOWEST not in before.values()
    assert len({after[layer] for layer in LAYERS}) > 1
    graphs.locator("#memory-radio-button").click()
    graphs.wait_for_timeout(1000 * ANIMATION_SECONDS)
    save(graphs, artefacts / "graphs_memory.png")
    assert legend.inner_text().endswith("B")  # KB or MB
    assert SLOWEST in fills(graphs).values()
    graphs.locator("#compute-time-radio-button").click()
    graphs.locator(f"{node('conv1')} > .nodeshape").dblclick()
    wait_until_drawn(graphs, [f"conv1/{op}" for op in ("Conv2D", "BiasAdd", "Relu", "kernel")])
    save(graphs, artefacts / "graphs_fused.png")
    colours = fills(graphs)
    # The time of the convolution stands on the Relu, whose name the fused node took over.
    assert colours["conv1/Relu"] != colours["conv1/kernel"]


def node(name):
    return f"tf-graph-scene g.node[data-name='{name}']"


def fills(page):
    """The fill of every drawn node, by name."""
    pairs = page.locator("tf-graph-scene g.node").evaluate_all(
        """nodes => nodes.map(node => [
            node.dataset.name,
            node.querySelector(':scope > .nodeshape > *')?.style.fill,
        ])"""
    )
    return dict(pairs)


def save(page, path):
    time.sleep(ANIMATION_SECONDS)
    page.screenshot(path=path)


def wait_until_drawn(page, names):
    for name in names:
        page.locator(node(name)).wait_for(timeout=DRAW_MS)
