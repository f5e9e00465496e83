"""Chrome trace: by the rules of the Trace Event Format, and compared with TensorFlow's Timeline."""

import io
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.approval import approve
from tests.chart import check
from tflab.exporters import chrome_trace
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun, StepTime

CPU, OTHER = "/device:CPU:0", "/device:CPU:1"


def chart_text(*captures: Capture, nodes=(), transfers=()) -> str:
    stream = io.StringIO()
    chrome_trace.write(stream, captures, nodes, transfers)
    return stream.getvalue()


def chart(*captures: Capture, nodes=(), transfers=()) -> list[dict]:
    """The events of a chart, which keeps all rules."""
    content = chart_text(*captures, nodes=nodes, transfers=transfers)
    trace = json.loads(content, parse_float=Decimal)
    assert set(trace) == {"displayTimeUnit", "traceEvents", "otherData"}
    assert trace["displayTimeUnit"] == "ns"
    check(trace["traceEvents"])
    for line in filter(lambda line: '"ts"' in line, content.splitlines()):
        # What Perfetto reads up to the time: no string in which there could be an escape.
        assert re.match(r'\{"ph":"[XCsf]",("bp":"e",)?("[pt]id":\d+,)+"ts":\d+\.\d{3}5?,', line)
    return trace["traceEvents"]


def run(name: str, start: int, duration: int, device: str = CPU, step: int = 0, **rest) -> OpRun:
    return OpRun(step, name, "Op", device, start, duration, **rest)


def of(events: list[dict], phase: str, *keys: str) -> list[tuple]:
    """The events of a phase by some of their fields, times in nanoseconds."""
    return [
        tuple(event[key] * 1000 if key in ("ts", "dur") else event[key] for key in keys)
        for event in events
        if event["ph"] == phase
    ]


# Whole charts

SENT = (
    Node("a", "Op"),
    Node("a/_1", "_Send", ("a",)),
    Node("a/_2", "_Recv"),
    Node("b", "Op", ("a/_2",)),
)
TRANSFER = Transfer("a", "a/_1", "a/_2", CPU, OTHER, "float32", (4,), 16)
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
        (
            OpRun(3, "a", "Conv2D", CPU, 20_000_100, 1),
            OpRun(3, "b", "Relu", OTHER, 20_000_200, 1),
        ),
    ),
)


def test_every_event_of_two_captures_in_order():
    assert chart(*TWO_CAPTURES, nodes=SENT, transfers=(TRANSFER,))
    approve("chrome-trace.json", chart_text(*TWO_CAPTURES, nodes=SENT, transfers=(TRANSFER,)))


# Slices


def names(events: list[dict], what: str) -> list[str]:
    return [event["args"]["name"] for event in events if event["name"] == f"{what}_name"]


def test_a_process_is_a_device_and_its_threads_are_lanes_in_which_nothing_overlaps():
    runs = (run("a", 1_000, 20), run("b", 1_010, 20), run("c", 1_000, 5, OTHER))
    steps = (StepTime(0, 1_000, 100), StepTime(1, 1_050, 100), StepTime(2, 1_100, 10))
    events = chart(Capture("one", steps, runs))
    assert names(events, "process") == ["steps", CPU, OTHER]
    assert names(events, "thread") == ["lane 1", "lane 2", "lane 1", "lane 2", "lane 1"]
    assert of(events, "X", "name", "tid")[-2:] == [("step 1", 3), ("step 2", 2)]


def test_time_begins_at_the_first_event_and_the_file_says_when_that_was():
    late = Capture("one", (), (run("a", 1_795_000_000_000_000_123, 1),))
    early = Capture("one", (), (run("a", 1_999, 5, allocations=((1, 8, "cpu"),)),))
    for capture, origin, start in ((late, 1_795_000_000_000_000_123, 0), (early, 1_000, 999)):
        content = json.loads(chart_text(capture))
        assert content["otherData"] == {"origin_ns_since_1970": origin}
        assert of(chart(capture), "X", "ts") == [(start,)]


def test_names_of_strangers_are_visible_and_letters_written_as_they_are():
    name = 'größe"b\\c\n\u202e</script>\x00\ufffd'
    hostile = OpRun(0, name, name, name, 1_000, 1, 1, ((1, 1, name),))
    captures = Capture(name, (), (hostile,)), Capture("", (), ())
    events = chart(*captures)
    shown = 'größe"b\\c\\x0a\\u202e</script>\\x00\ufffd'
    assert of(events, "X", "name") == [(shown,)]
    assert f"{shown}: {shown}" in names(events, "process")
    assert "größe" in chart_text(*captures)


def test_nothing_at_all_is_a_chart_too():
    assert chart() == []
    assert json.loads(chart_text())["otherData"] == {"origin_ns_since_1970": 0}
    assert names(chart(Capture("one", (), ())), "process") == ["steps"]


# Curves


def test_curves_show_how_many_ops_run_at_once_and_what_each_allocator_holds_in_a_step():
    steps = (StepTime(0, 1_000_000, 10_000), StepTime(1, 2_000_000, 10_000))
    runs = (
        run("a", 1_000_000, 30, allocations=((1_001, 64, "cpu"), (1_003, -64, "cpu"))),
        run("b", 1_000_010, 20, allocations=((1_002, 36, "cpu"), (1_002, 5, "gpu"))),
        run("c", 1_000_030, 5),
        run("d", 1_000_012, 0),
        run("a", 2_000_000, 1, step=1, allocations=((2_001, 64, "cpu"),)),
    )
    curves = defaultdict(list)
    for name, ts, args in of(chart(Capture("one", steps, runs)), "C", "name", "ts", "args"):
        curves[name].append((int(ts), *args.values()))
    assert curves == {
        "ops at once": [(0, 1), (10, 2), (30, 1), (35, 0), (1_000_000, 1), (1_000_001, 0)],
        "memory of cpu": [
            *((1_000, 64), (2_000, 100), (3_000, 36), (10_000, 0)),
            *((1_001_000, 64), (1_010_000, 0)),
        ],
        "memory of gpu": [(2_000, 5), (10_000, 0)],
    }


# Arrows

GRAPH = (
    Node("a", "Op"),
    Node("b", "Op", ("a",)),
    Node("c", "Op", ("a", "b"), ("d",)),
    Node("d", "Op"),
)


def arrows(events: list[dict]) -> list[tuple[int, int, int, int]]:
    """(tid and time of the beginning, tid and time of the end) of each arrow."""
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    return sorted(
        (
            event["tid"],
            int(event["ts"] * 1000),
            ends[event["id"]]["tid"],
            int(ends[event["id"]]["ts"] * 1000),
        )
        for event in events
        if event["ph"] == "s"
    )


A, B, C = run("a", 0, 10), run("b", 10, 5), run("c", 20, 5)
NEXT = tuple(one._replace(step=1, start_ns=one.start_ns + 100) for one in (A, B))


@pytest.mark.parametrize(
    "runs, expected",
    [
        # From the end of the producer to the start of the consumer, which d is in another lane
        ((A, B, C, run("d", 0, 5)), [(3, 14, 3, 20), (4, 9, 3, 10), (4, 9, 3, 20)]),
        ((A, run("b", 10, 0), C), [(3, 9, 3, 20)]),  # a run of no duration has none
        ((A, B, *NEXT), [(3, 9, 3, 10), (3, 109, 3, 110)]),  # they stay within their step
    ],
)
def test_an_arrow_goes_from_the_end_of_the_producer_to_the_start_of_the_consumer(runs, expected):
    events = chart(Capture("one", (), runs), nodes=GRAPH)
    assert arrows(events) == expected
    assert {event["name"] for event in events if event["ph"] in "sf"} == {"data"}
    assert arrows(chart(Capture("one", (), runs))) == []  # without a graph
    both = chart(Capture("one", (), runs), Capture("two", (), runs), nodes=GRAPH)
    assert len(arrows(both)) == 2 * len(expected)


def test_a_node_that_is_called_steps_is_not_the_steps():
    nodes = (Node("steps", "Op"), Node("b", "Op", ("steps",)))
    capture = Capture("one", (StepTime(0, 1_000, 10),), (run("b", 1_020, 5),))
    assert arrows(chart(capture, nodes=nodes)) == []


def test_arrows_that_begin_at_once_are_written_in_order():
    takes = {f"b{number}": f"a{number % 3}" for number in range(40)}
    nodes = (
        *(Node(f"a{number}", "Op") for number in range(3)),
        *(Node(name, "Op", (producer,)) for name, producer in takes.items()),
    )
    runs = (
        *(run(f"a{number}", 0, 10 + number) for number in range(3)),
        *(run(name, 20, 5) for name in takes),
    )
    events = chart(Capture("one", (), runs), nodes=nodes)
    begun = [*range(0, 40, 3), *range(1, 40, 3), *range(2, 40, 3)]
    assert of(events, "s", "id") == [(number,) for number in begun]
    assert of(events, "f", "id") == [(number,) for number in range(40)]


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
    events = chart(Capture("one", tuple(steps), tuple(runs)), nodes=GRAPH)
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
    content = json.loads(chart_text(Capture("lenet", (), runs)))
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


@pytest.mark.tensorflow
def test_the_steps_of_a_walk_over_two_devices_keep_the_rules(walked):
    stages = walked("toy", devices=2)
    placement, execution = stages["placement"], stages["execution"]
    capture = Capture("toy", execution.step_times, execution.runs)
    events = chart(capture, nodes=execution.nodes, transfers=placement.transfers)
    sent = [
        event for event in events if event["name"].endswith("(inferred)") and event["ph"] == "X"
    ]
    assert len(sent) == len(placement.transfers) * execution.steps
    assert sum(event["ph"] == "s" for event in events) > len(execution.nodes)


def test_arrows_go_over_the_wire_from_one_task_to_another():
    """a on task 0, the wire, b on task 1: three processes and two arrows."""
    first, second = (f"/job:worker/replica:0/task:{n}/device:CPU:0" for n in (0, 1))
    nodes = [
        Node("a", "Op", device=first),
        Node("a_S1", "_Send", ("a",), device=first),
        Node("a_S2", "_Recv", device=second),
        Node("b", "Op", ("a_S2",), device=second),
    ]
    sent = Transfer("a", "a_S1", "a_S2", first, second, "float32", (1,), 4, edge="edge_1_a")
    runs = (
        OpRun(0, "a", "Op", first, 1_000, 500),
        OpRun(0, "a_S2", "RecvTensor", "wire from task 0 to task 1", 2_000, 500),
        OpRun(0, "b", "Op", second, 3_000, 500),
    )
    recorded = Capture("toy", (StepTime(0, 0, 9_000),), runs)
    events = chart(recorded, nodes=nodes, transfers=[sent])
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert [*names.values()] == ["steps", first, "wire from task 0 to task 1", second]
    ends = [(names[e["pid"]], e["id"]) for e in events if e["ph"] in "sf"]
    wire = "wire from task 0 to task 1"
    assert Counter(name for name, _ in ends) == {first: 1, wire: 2, second: 1}
