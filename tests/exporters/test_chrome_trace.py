"""Chrome trace: by the rules of the Trace Event Format, and compared with TensorFlow's Timeline."""

import io
import json
import re
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.chart import check
from tflab.exporters import chrome_trace
from tflab.records.timed import Capture, OpRun, StepTime

CPU, OTHER = "/device:CPU:0", "/device:CPU:1"


def chart(*captures: Capture) -> tuple[str, list[dict]]:
    """The text and the events of a chart, which keeps all rules."""
    stream = io.StringIO()
    chrome_trace.write(stream, captures)
    content = stream.getvalue()
    trace = json.loads(content, parse_float=Decimal)
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}
    assert trace["displayTimeUnit"] == "ns"
    check(trace["traceEvents"])
    for line in filter(lambda line: '"ts"' in line, content.splitlines()):
        # What Perfetto reads up to the time: no string in which there could be an escape.
        assert re.match(r'\{"ph":"X",("[pt]id":\d+,)+"ts":\d+\.\d{3},', line)
    return content, trace["traceEvents"]


def run(name: str, start: int, duration: int, device: str = CPU, step: int = 0, **rest) -> OpRun:
    return OpRun(step, name, "Op", device, start, duration, **rest)


# Whole charts

TWO_CAPTURES = (
    Capture(
        "one",
        (StepTime(0, 10_000_000, 9_000),),
        (
            OpRun(
                *(0, "a", "Conv2D", CPU, 10_001_500, 2_000, 7),
                ((10_001, 64, "cpu"), (10_004, -64, "cpu")),
            ),
            OpRun(0, "b", "Relu", OTHER, 10_005_250, 1_001),
        ),
    ),
    Capture(
        "two",
        (StepTime(3, 20_000_000, 1_000),),
        (OpRun(3, "a", "Conv2D", CPU, 20_000_100, 1), OpRun(3, "b", "Relu", OTHER, 20_000_200, 1)),
    ),
)


def test_every_event_of_two_captures_in_order():
    text, _ = chart(*TWO_CAPTURES)
    approve("chrome-trace.json", text)


def test_a_device_is_a_process_and_in_its_lanes_nothing_overlaps():
    runs = (run("a", 1_000, 20), run("b", 1_010, 20), run("c", 1_000, 5, OTHER))
    times = ((1_000, 100), (1_050, 100), (1_100, 10))
    steps = tuple(StepTime(number, *time) for number, time in enumerate(times))
    text, _ = chart(Capture("one", steps, runs))
    approve("chrome-trace-lanes.json", text)


def test_the_steps_stay_beside_a_device_of_their_name():
    _, events = chart(Capture("one", (StepTime(0, 1_000, 50),), (run("a", 1_010, 5, "steps"),)))
    slices = [event["args"] for event in events if event["ph"] == "X"]
    assert [(args["op"], args["node"]) for args in slices] == [("step 0", "steps"), ("Op", "a")]


# What holds for all runs

NAMES = st.sampled_from("abcd")
RUNS = st.builds(
    OpRun,
    step=st.integers(0, 2),
    name=NAMES,
    op=NAMES,
    device=st.sampled_from([CPU, OTHER]),
    start_ns=st.integers(0, 60),
    duration_ns=st.integers(0, 30),
    requested_bytes=st.integers(0, 99),
    allocations=st.lists(
        st.tuples(st.integers(0, 1), st.integers(-9, 9), st.sampled_from(["cpu", "gpu"])),
        max_size=2,
    ).map(tuple),
)
STEPS = st.lists(st.builds(StepTime, st.integers(0, 2), st.integers(0, 60), st.integers(0, 60)))


@pytest.mark.slow
@settings(max_examples=50)
@given(STEPS, st.lists(RUNS, max_size=30))
def test_every_chart_keeps_the_rules_and_has_every_run_once(steps, runs):
    _, events = chart(Capture("one", tuple(steps), tuple(runs)))
    drawn = Counter(
        (*(event["args"][key] for key in ("step", "node", "op")), int(event["dur"] * 1000))
        for event in events
        if event["ph"] == "X" and event["args"]["node"] != "steps"
    )
    assert drawn == Counter((run.step, run.name, run.op, run.duration_ns) for run in runs)


# A real trace


@pytest.mark.tensorflow
def test_a_step_of_lenet_has_the_slices_of_tensorflows_timeline(captured):
    from tensorflow.python.client.timeline import Timeline

    from tflab.runtime import trace

    stats = captured("lenet")[1].trace.step_stats
    theirs = json.loads(Timeline(stats).generate_chrome_trace_format())["traceEvents"]
    theirs = {
        (event["args"]["name"], event["args"]["op"]): (event["ts"], event["dur"])
        for event in theirs
        if event["ph"] == "X"
    }
    runs = tuple(trace.op_runs(0, stats, {}))
    content = json.loads(chart(Capture("lenet", (), runs))[0])
    origin = content["otherData"]["origin_ns_since_1970"] / 1000
    ours = {
        (event["args"]["node"], event["args"]["op"]): (origin + event["ts"], event["dur"])
        for event in content["traceEvents"]
        if event["ph"] == "X"
    }
    assert len(runs) == len(ours)
    assert ours.keys() == theirs.keys()
    for node, times in ours.items():
        assert times == pytest.approx(theirs[node], abs=1.5)  # theirs are cut to microseconds
