"""A whole profile by hand: every plane, line, event and stat of two steps and five runs."""

import pytest

from tests import xplane
from tflab.analysis.timeline import AFTER, BEFORE, GAPS
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun, StepTime

pytestmark = pytest.mark.tensorflow

TASK = "/job:localhost/replica:0/task:0"
CPU, GPU, STREAM = f"{TASK}/device:CPU:0", f"{TASK}/device:GPU:0", "/device:GPU:0/stream:13"
MEMORY, STEPS = -559_038_730, -559_038_737

# Times count from 49,999 ns: a nanosecond before the microsecond of the first step.
CAPTURE = Capture(
    "toy",
    (StepTime(4, 50_300, 900), StepTime(6, 51_500, 400)),
    (
        OpRun(4, "c1/Conv", "_FusedConv2D", CPU, 50_400, 200, 64, ((50, 64, "cpu"),)),
        OpRun(4, "relu", "Relu", CPU, 50_500, 300),  # while the convolution runs
        OpRun(
            6, "c1/Conv", "_FusedConv2D", CPU, 51_600, 100, 0, ((51, 64, "cpu"), (51, -64, "cpu"))
        ),
        OpRun(4, "mul", "Mul", GPU, 50_700, 50),
        OpRun(4, "mul", "Mul", STREAM, 50_720, 300),  # the kernel that it launched
    ),
)
CONV = ("c1/Conv:_FusedConv2D", "Conv (c1/Conv)")


def ns(*event) -> tuple:
    """Name, start and duration in ns, stats."""
    name, start, duration, stats = event
    return name, start * 1000, duration * 1000, stats


def held(bytes_held: int, address: int, group: int) -> dict:
    return {
        "group_id": group,
        "bytes_allocated": bytes_held,
        "peak_bytes_in_use": 64,
        "requested_bytes": 64,
        "allocation_bytes": 64,
        "addr": address,
        "allocator_name": "cpu",
        "tf_op": "c1/Conv",
    }


LINES = [
    (
        1,
        "steps",
        [
            ns("SessionRun", 301, 900, {"group_id": 1, "step_name": "step 4"}),
            ns("SessionRun", 1_501, 400, {"group_id": 2, "step_name": "step 6"}),
        ],
    ),
    (
        2,
        "session",
        [
            ns(BEFORE, 301, 100, {}),
            ns(AFTER, 1_021, 180, {}),
            ns(BEFORE, 1_501, 100, {}),
            ns(AFTER, 1_701, 200, {}),
        ],
    ),
    (
        3,
        "CPU:0, lane 1",
        [ns(CONV, 401, 200, {"group_id": 1}), ns(CONV, 1_601, 100, {"group_id": 2})],
    ),
    (4, "CPU:0, lane 2", [ns(("relu:Relu", "relu"), 501, 300, {"group_id": 1})]),
    (5, "GPU:0", [ns(("mul:Mul", "mul"), 701, 50, {"group_id": 1})]),
    (
        6,
        "_counters_",
        [
            ns("ops running at once", start, 0, {"ops": ops})
            for start, ops in (
                (401, 1),
                (501, 2),
                (601, 1),
                (701, 2),
                (721, 3),
                (751, 2),
                (801, 1),
                (1_021, 0),
                (1_601, 1),
                (1_701, 0),
            )
        ],
    ),
    (
        MEMORY,
        "memory",
        [
            ns("MemoryAllocation", 1, 1, held(64, 1, 1)),
            ns("MemoryAllocation", 1_001, 1, held(0, 2, 2)),
            ns("MemoryDeallocation", 1_002, 1, held(0, 2, 2)),
        ],
    ),
    (
        8,
        "_counters_",
        [
            ns("bytes held by cpu", 1, 0, {"bytes": 64}),
            ns("bytes held by cpu", 1_001, 0, {"bytes": 0}),
        ],
    ),
]

GPU_LINES = [
    (
        STEPS,
        "Steps",
        [ns("4", 301, 900, {"group_id": 1}), ns("6", 1_501, 400, {"group_id": 2})],
    ),
    (
        2,
        "GPU:0/stream:13",
        [
            ns(
                *(("gpu/mul:Mul", "mul"), 721, 300),
                {"group_id": 1, "correlation_id": 0, "tf_op": "gpu/mul:Mul"},
            )
        ],
    ),
]


def test_every_plane_line_event_and_stat():
    encoded = xspace.encode(CAPTURE, host="node-7", modules={"cluster_0": b"\x01", "f": b"\x02"})
    space = xplane.read(encoded)
    traced, on_gpu, metadata, environment = space.planes
    assert list(space.hostnames) == ["node-7"]
    assert [plane.name for plane in space.planes] == [
        "/host:CPU",
        "/device:GPU:0",
        "/host:metadata",
        "Task Environment",
    ]
    assert xplane.lines(traced) == LINES
    assert xplane.lines(on_gpu) == GPU_LINES
    assert xplane.names(metadata.event_metadata) == {1: "cluster_0", 2: "f"}
    assert [xplane.stats(metadata, metadata.event_metadata[number].stats) for number in (1, 2)] == [
        {"Hlo Proto": b"\x01"},
        {"Hlo Proto": b"\x02"},
    ]
    assert xplane.stats(environment, environment.stats) == {
        "profile_start_time": 49_999,
        "profile_stop_time": 51_900,
    }
    assert {stat.WhichOneof("value") for stat in environment.stats} == {"uint64_value"}


def lines(*runs: OpRun, steps: tuple[StepTime, ...] = ()) -> list:
    return xplane.lines(xplane.planes(xspace.encode(Capture("c", steps, runs)))["/host:CPU"])


def environment(*runs: OpRun, steps: tuple[StepTime, ...] = ()) -> dict:
    plane = xplane.planes(xspace.encode(Capture("c", steps, runs)))["Task Environment"]
    return xplane.stats(plane, plane.stats)


def test_nothing_at_all_is_a_profile_too():
    space = xplane.read(xspace.encode(Capture("empty", (), ())))
    traced, metadata, _ = space.planes
    assert list(space.hostnames) == ["localhost"]
    assert xplane.lines(traced) == [
        (1, "_counters_", []),
        (MEMORY, "memory", []),
        (3, "_counters_", []),
    ]
    assert (metadata.name, len(metadata.event_metadata)) == ("/host:metadata", 0)
    assert environment() == {"profile_start_time": 0, "profile_stop_time": 0}


def test_time_begins_a_nanosecond_before_the_microsecond_of_whatever_came_first():
    early = OpRun(0, "a", "Op", "CPU:0", 5_000, 3)
    step = StepTime(0, 6_200, 100)
    assert environment(early, steps=(step,)) == {
        "profile_start_time": 4_999,
        "profile_stop_time": 6_300,
    }
    assert environment(early) == {"profile_start_time": 4_999, "profile_stop_time": 4_999}
    number, name, events = lines(early)[0]
    assert (number, name, events) == (1, "CPU:0", [ns(("a:Op", "a"), 1, 3, {"group_id": 0})])


def test_a_profile_ends_with_the_step_that_ends_last():
    steps = (StepTime(0, 2_000, 900), StepTime(1, 2_100, 100))
    assert environment(steps=steps) == {"profile_start_time": 1_999, "profile_stop_time": 2_900}


def test_an_op_that_ends_as_another_begins_or_takes_no_time_is_no_point_of_the_curve():
    runs = (
        OpRun(0, "a", "Op", "CPU:0", 1_009, 21),
        OpRun(0, "b", "Op", "CPU:1", 1_019, 10),
        OpRun(0, "c", "Op", "CPU:1", 1_029, 0),
        OpRun(0, "d", "Op", "CPU:0", 1_030, 9),
    )
    (curve,) = (events for _, name, events in lines(*runs)[:-1] if name == "_counters_")
    assert [(start, stats) for _, start, _, stats in curve] == [
        (10_000, {"ops": 1}),
        (20_000, {"ops": 2}),
        (30_000, {"ops": 1}),
        (40_000, {"ops": 0}),
    ]


def test_what_a_step_leaves_between_its_ops_is_a_gap():
    runs = (OpRun(0, "a", "Op", CPU, 2_010, 10), OpRun(0, "b", "Op", CPU, 2_030, 10))
    session = lines(*runs, steps=(StepTime(0, 2_000, 50),))[1]
    assert session == (
        2,
        "session",
        [ns(BEFORE, 1, 10, {}), ns(GAPS, 21, 10, {}), ns(AFTER, 41, 10, {})],
    )


def test_an_op_within_the_time_of_another_has_a_lane_of_its_own():
    runs = (OpRun(0, "a", "Op", CPU, 2_000, 50), OpRun(0, "b", "Op", CPU, 2_010, 10))
    assert [line[1:] for line in lines(*runs)[:2]] == [
        ("CPU:0, lane 1", [ns(("a:Op", "a"), 1, 50, {"group_id": 0})]),
        ("CPU:0, lane 2", [ns(("b:Op", "b"), 11, 10, {"group_id": 0})]),
    ]


@pytest.mark.parametrize("device", ["/device:GPU:0/stream:", "/device:GPU:0/memcpy"])
def test_work_on_a_gpu_is_told_apart_from_its_launch(device):
    runs = tuple(OpRun(0, "a/b", "Op", device, start, 5) for start in (1_000, 2_000))
    plane = xplane.planes(xspace.encode(Capture("c", (), runs)))["/device:GPU:0"]
    _, (_, _, events) = xplane.lines(plane)
    about = {"group_id": 0, "tf_op": "gpu/a/b:Op"}
    name = ("gpu/a/b:Op", "b (a/b)")
    assert events == [
        ns(name, 1, 5, about | {"correlation_id": 0}),
        ns(name, 1_001, 5, about | {"correlation_id": 1}),
    ]


def test_each_gpu_has_a_plane_of_its_own_and_what_launches_its_work_is_the_hosts():
    devices = (f"{TASK}/device:GPU:1", "/device:GPU:1/stream:7", "/gpu:0/memcpy")
    runs = tuple(OpRun(0, "a", "Op", device, 1_000, 5) for device in devices)
    planes = xplane.planes(xspace.encode(Capture("c", (), runs)))
    host, *gpus = list(planes)[:3]
    assert (host, gpus) == ("/host:CPU", ["/device:GPU:0", "/device:GPU:1"])
    named = {name: [line[1] for line in xplane.lines(planes[name])] for name in (host, *gpus)}
    assert named["/device:GPU:0"] == ["Steps", "gpu:0/memcpy"]
    assert named["/device:GPU:1"] == ["Steps", "GPU:1/stream:7"]
    assert "GPU:1" in named["/host:CPU"]


def test_a_node_with_two_types_or_on_two_devices_has_a_name_for_each():
    runs = (
        OpRun(0, "a", "Op", "CPU:0", 1_000, 5),
        OpRun(0, "a", "Other", "CPU:0", 1_005, 5),
        OpRun(0, "a", "Op", "CPU:1", 1_000, 5),
    )
    first, second, *_ = lines(*runs)
    assert first[1:] == (
        "CPU:0",
        [ns(("a:Op", "a"), 1, 5, {"group_id": 0}), ns(("a-2:Other", "a"), 6, 5, {"group_id": 0})],
    )
    assert second[1:] == ("CPU:1", [ns(("a:Op", "a"), 1, 5, {"group_id": 0})])
