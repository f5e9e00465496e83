"""How the columns of the views stand: numbers right, and what is long gives way or goes first."""

import itertools
from dataclasses import replace

import pytest

from tests.convert import test_view as converting
from tests.examples import histories as following
from tests.examples.comparison import COMPARISON, EXPERIMENTS
from tests.shown import layout
from tests.train import test_view as training
from tests.views import test_backward as backward
from tests.views import test_chain_rule as chain
from tests.views import test_frontend as frontend
from tests.views import test_generated_code as generated
from tests.views import test_in_short as short
from tests.views import test_network as network
from tests.views import test_placement as placement
from tests.views import test_values as recorded
from tflab.compare import view as of_sizes
from tflab.convert import conversion
from tflab.convert import view as of_trace
from tflab.follow import view as of_node
from tflab.records.blocks import Table
from tflab.records.stages import Frontend
from tflab.records.values import PathPoint
from tflab.train import view as of_training
from tflab.views import chain_rule, generated_code, in_short, stages, values
from tflab.views import network as network_view
from tflab.views.execution import op_costs


def recorded_values(rows, **step):
    known = replace(recorded.STEP, **step)
    return values.blocks(replace(recorded.STAGE, values=rows, values_step=known))


UNUSUAL = (replace(recorded.LARGE[0], not_finite=3), *recorded.LARGE[1:])


LONG = tuple(replace(frontend.MUL, name=f"s{n}/{n}") for n in range(50))
PATH = PathPoint(1, 6.9, {"y": 0.9})

# What is shown -> its blocks
SHOWN = {
    "a drawing": lambda: stages.blocks(Frontend(frontend.PROGRAM, frontend.NODES)),
    "scopes": lambda: stages.blocks(Frontend(None, LONG, functions=frontend.FUNCTIONS)),
    "backward": lambda: stages.blocks(backward.STAGE),
    "the chain rule": lambda: chain_rule.opening(chain.STAGE),
    "placement": lambda: stages.blocks(placement.STAGE),
    "experiments": lambda: op_costs(EXPERIMENTS[4], {"conv1/Relu": 38e3}),
    "values of a small step": lambda: recorded_values(recorded.SMALL, path=(PATH,)),
    "values of a large step": lambda: recorded_values(recorded.LARGE),
    "values that are not finite": lambda: recorded_values(UNUSUAL),
    "the network": lambda: network_view.blocks(network.Stage(network.NETWORK)),
    "generated code": lambda: generated_code.blocks(generated.CODE, generated.STAGE),
    "in short": lambda: itertools.chain.from_iterable(
        map(in_short.blocks, (short.BUILT, short.DERIVED, short.PLACED, short.MEASURED))
    ),
    "a recorded trace": lambda: of_trace.blocks(conversion.convert(converting.RECORDED)),
    "a comparison": lambda: of_sizes.blocks(replace(COMPARISON, tables={4: COMPARISON.tables[4]})),
    "the steps of a node": lambda: [of_node.times(following.FUSED)],
    "a training": lambda: of_training.blocks(training.HISTORY),
}
EXPECTED = {
    "a drawing": [
        " | node | op | output goes 1 | line | code gives way to 34 goes 2",
    ],
    "scopes": [
        "scope | nodes right | types gives way to 16 | first line goes 2",
        (
            "function in the middle | called by gives way to 34 | nodes right | "
            "types gives way to 20 goes 1 | first line goes 2"
        ),
    ],
    "backward": [
        (
            "forward node | type | gradient function goes 1 | nodes right | "
            "types gives way to 28 goes 2"
        ),
        "because | nodes right | which gives way to 16",
        (
            "function in the middle | called by gives way to 34 | nodes right | "
            "types gives way to 20 goes 1"
        ),
        "variable | elements right | largest relative error right",
    ],
    "the chain rule": [
        (
            "forward op in the middle | computes gives way to 20 goes 1 | "
            "hands back dL/d(...) in the middle | which is gives way to 34"
        ),
        ("variable | derivative gives way to 34 | value right | finite differences right goes 1"),
    ],
    "placement": [
        "fate | nodes right | meaning goes 1 | by gives way to 16",
        "device | because gives way to 16 | nodes right",
        "usual fate | fate now | nodes right | which gives way to 16",
        "device | nodes right | types gives way to 16 goes 1",
        "tensor | from | to | shape | bytes right | send and receive gives way to 16 goes 1",
        (
            "written | runs as | nodes right | registered for gives way to 20 goes 1 | "
            "on a GPU (not run) gives way to 18 goes 2"
        ),
    ],
    "experiments": [
        (
            "node gives way to 16 in the middle | type that ran goes 3 | adds right | "
            "from right | to right | self a step, mean right goes 2"
        ),
    ],
    "values of a small step": [
        "after step right | y right | loss before it right",
        (
            "node gives way to 16 in the middle | "
            "op gives way to 16 in the middle goes 2 | shape goes 1 | "
            "values gives way to 36"
        ),
    ],
    "values of a large step": [
        (
            "variable gives way to 16 in the middle | shape goes 1 | mean right | "
            "min right | max right | "
            "moved at most right"
        ),
        (
            "tensor gives way to 16 in the middle | shape goes 1 | mean right | "
            "min right | max right"
        ),
    ],
    "values that are not finite": [
        (
            "variable gives way to 16 in the middle | shape goes 1 | mean right | "
            "min right | max right | "
            "moved at most right"
        ),
        (
            "tensor gives way to 16 in the middle | shape goes 1 | mean right | "
            "min right | max right | not finite right"
        ),
    ],
    "the network": [
        (
            "task | computing right | of it receiving right | only receiving right | "
            "neither right | received a step right | sent a step right"
        ),
        "tensor gives way to 16 | from | to | bytes right | median right | rate right",
    ],
    "generated code": [
        "kernel | fuses gives way to 16 | bytes of code right",
    ],
    "in short": [
        "line | code gives way to 28 | nodes right | ops gives way to 24",
        "fate | nodes right | meaning goes 1 | by gives way to 16",
        ("node gives way to 16 in the middle | type that ran goes 1 | self right | share right"),
    ],
    "a recorded trace": [
        (
            "device gives way to 16 in the middle | its rows are goes 1 | op runs right | "
            "total right | left out right"
        ),
        (
            "step right | file gives way to 16 in the middle | start to end right | "
            "an op ran right goes 1 | op runs right goes 2 | at most at once right goes 3"
        ),
        "owner | a step right | share right",
        (
            "node gives way to 16 in the middle | type that ran goes 1 | kind | calls right | "
            "self right | mean right | share of kind right"
        ),
        "node gives way to 16 in the middle | type that ran | took right | share right",
    ],
    "a comparison": [
        (
            "batch right | traced steps right | median right | p10 right goes 3 | "
            "p90 right goes 3 | mean right goes 1 | images a second right | "
            "traced, median right | ops, mean right goes 1 | memory peak right goes 2"
        ),
        (
            "type that ran gives way to 24 in the middle | batch 4 right | batch 16 right | "
            "batch 64 right"
        ),
        (
            "type that ran gives way to 24 in the middle | batch 4 right | batch 16 right | "
            "batch 64 right | fit right goes 2 | error right goes 1"
        ),
        (
            "type that ran gives way to 24 in the middle | batch 4 right | batch 16 right | "
            "batch 64 right"
        ),
        (
            "batch right | configuration | step, median right | default, median right | ratio | "
            "control"
        ),
        (
            "node gives way to 16 in the middle | type that ran goes 3 | adds right | "
            "from right | to right"
        ),
        (
            "type that ran gives way to 18 in the middle | calls right | total right | "
            "self right | mean right | median right goes 1 | p95 right goes 2 | share right | "
            "cumulative right goes 3"
        ),
        (
            "type that ran gives way to 18 in the middle | requested right goes 2 | peak right | "
            "FLOPs right | GFLOP/s right | "
            "fused from gives way to 15 goes 1"
        ),
        (
            "node gives way to 30 in the middle | type that ran goes 1 | first run right | "
            "warm, mean right | ratio right"
        ),
    ],
    "the steps of a node": [
        (
            "batch right | calls right | mean right | median right goes 1 | p95 right goes 2 | "
            "share right | memory right goes 2 | FLOPs right | GFLOP/s right"
        ),
    ],
    "a training": [
        (
            "epoch right | last step right | loss right | right right | test loss right | "
            "test right right | time right goes 1 | rows a second right goes 2"
        ),
    ],
}


@pytest.mark.parametrize("what", SHOWN)
def test_numbers_stand_right_and_what_is_long_gives_way(what):
    tables = [block for block in SHOWN[what]() if isinstance(block, Table) and block.title]
    assert [" | ".join(layout(table)) for table in tables] == EXPECTED[what]
