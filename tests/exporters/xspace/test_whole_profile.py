"""Whole profiles: every plane, line, event and stat, and their files. Times are in ns; of an
allocation, a release and the curve, `bytes_allocated` and `bytes` are what the allocator holds
then."""

import os

import pytest

from tests.approval import approve
from tests.exporters.xspace import xplane
from tflab.exporters import xspace
from tflab.records.timed import Capture, OpRun, StepTime

pytestmark = pytest.mark.tensorflow

TASK = "/job:localhost/replica:0/task:0"
CPU, GPU, STREAM = f"{TASK}/device:CPU:0", f"{TASK}/device:GPU:0", "/device:GPU:0/stream:13"

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


def test_two_steps_and_five_runs():
    """Times count from 49,999 ns: a nanosecond before the microsecond of the first step."""
    approve("xspace.txt", xplane.described(xspace.encode(CAPTURE, host="a-7")))


def of(*runs: tuple, steps: tuple[tuple[int, int, int], ...] = ()) -> Capture:
    """A capture of runs (name, device, start, duration, step if it is not 0) and of steps (number,
    start, wall time)."""
    ops = (
        OpRun(*(step or [0]), name, "Op", device, start, ns)
        for name, device, start, ns, *step in runs
    )
    return Capture("c", tuple(StepTime(*step) for step in steps), tuple(ops))


def holding(*allocated: tuple[int, tuple[tuple[int, int, str], ...]]) -> Capture:
    """A capture of runs that only allocate: the step of each, and (us, bytes, allocator)."""
    runs = (OpRun(step, "a", "Op", CPU, 10_000, 0, 0, rows) for step, rows in allocated)
    return Capture("c", (StepTime(0, 10_000, 99_000), StepTime(1, 10_000, 1)), tuple(runs))


CASES = {
    "nothing at all": of(),
    "an op before the first step": of(("a", CPU, 5_000, 3), steps=((0, 6_200, 100),)),
    "no step": of(("a", CPU, 5_000, 3)),
    "the first step ends last": of(steps=((0, 2_000, 900), (1, 2_100, 100))),
    "an op ends as another begins, and one takes no time": of(
        ("a", CPU, 1_009, 21), ("b", "CPU:1", 1_019, 10), ("c", "CPU:1", 1_029, 0),
        ("d", CPU, 1_030, 9),
    ),
    "a gap between ops": of(
        ("a", CPU, 2_010, 10), ("b", CPU, 2_030, 10), steps=((0, 2_000, 50),)
    ),
    "an op within the time of another": of(("a", CPU, 2_000, 50), ("b", CPU, 2_010, 10)),
    "a stream, copies, and two GPUs": of(
        ("a/b", "/device:GPU:0/stream:", 1_000, 5), ("a/b", "/device:GPU:0/stream:", 2_000, 5),
        ("a", "/gpu:0/memcpy", 1_000, 5), ("a", f"{TASK}/device:GPU:1", 1_000, 5),
        ("a", "/device:GPU:1/stream:7", 1_000, 5),
    ),
    "a node on two devices": of(("a", CPU, 1_000, 5), ("a", "CPU:1", 1_000, 5)),
    "a node with two types": Capture(
        "c", (), tuple(OpRun(0, "a", op, CPU, 1_000 + 5 * n, 5) for n, op in enumerate("AB"))
    ),
    "ops reach out of their step on both sides, others are of no step": of(
        ("a", CPU, 1_190, 20, 3), ("b", CPU, 1_230, 40, 3), ("c", CPU, 1_100, 50, 0),
        ("d", CPU, 1_020, 30, 7), ("e", CPU, 1_060, 5, 7), ("f", CPU, 1_070, 0, 7),
        steps=((7, 1_010, 100), (3, 1_200, 60)),
    ),
    "steps without ops, with one, and with one of no duration": of(
        ("a", CPU, 1_060, 5, 2), ("b", CPU, 1_100, 0, 3),
        steps=((1, 1_010, 30), (2, 1_050, 30), (3, 1_090, 30)),
    ),
    "of an op outside of its step only the side is known": of(
        ("a", CPU, 970, 10, 0), ("b", CPU, 2_130, 10, 1), steps=((0, 1_000, 100), (1, 2_000, 100))
    ),
    "six steps that took time stand between two that XProf leaves out": of(
        steps=tuple((n, 1_000 + 30 * n, 2) for n in range(6))
    ),
    "of five it leaves out none": of(steps=tuple((n, 1_000 + 30 * n, 2) for n in range(5))),
    "two allocators in two steps, which begin anew": holding(
        (0, ((10, 100, "cpu"), (12, 50, "cpu"), (14, -100, "cpu"), (12, 8, "gpu"))),
        (1, ((10, 5, "cpu"), (11, 1, 'x"é'))),
    ),
    "the older of two of one size is released first": holding(
        (0, ((15, 8, "cpu"), (13, 8, "cpu"), (16, -8, "cpu"), (14, -8, "cpu")))
    ),
    "of the same size, but of another allocator or run, and one that nobody allocated": holding(
        (0, ((11, 8, "cpu"), (12, 8, "gpu"), (13, -8, "gpu"), (14, -8, "cpu"), (15, -7, "cpu"))),
        (0, ((12, 8, "cpu"), (13, -8, "cpu"))),
    ),
}  # fmt: skip


def test_more_events_than_a_microsecond_has_nanoseconds_stay_within_it():
    held = xplane.planes(xspace.encode(holding((0, ((10, 1, "cpu"),) * 1_003))))["/host:CPU"]
    (events,) = (events for _, name, events in xplane.lines(held) if name == "memory")
    assert {start // 1_000_000 for _, start, *_ in events} == {0, 1}
    assert {about["bytes_allocated"] for *_, about in events} == {1_003}


def test_cases():
    shown = (f"# {name}\n\n{xplane.described(xspace.encode(CASES[name]))}\n" for name in CASES)
    approve("xspace-cases.txt", "\n".join(shown))


# Files: a new folder for each capture, whole or not at all


def one_op(name: str) -> Capture:
    return Capture(name, (), (OpRun(0, f"op of {name}", "Op", "CPU:0", 1_000, 1),))


def test_each_capture_is_a_file_in_a_folder_of_its_own_and_none_is_written_to_again(tmp_path):
    profiles = tmp_path / "new/plugins/profile"
    profiles.mkdir(parents=True)
    (profiles / "toy").write_text("kept")
    captures = [one_op("toy"), one_op("lenet-batch-16"), one_op(".."), one_op("toy")]
    paths = xspace.write(tmp_path / "new", captures, host="here")
    assert paths == [
        profiles / folder / "here.xplane.pb"
        for folder in ("toy-2", "lenet-batch-16", "profile", "toy-3")
    ]
    contents = [path.read_bytes() for path in paths]
    assert contents == [xspace.encode(one, host="here") for one in captures]
    assert (profiles / "toy").read_text() == "kept"


@pytest.mark.parametrize("host, file", [("my host", "my-host"), ("...", "localhost")])
def test_the_file_is_named_for_the_machine(tmp_path, monkeypatch, host, file):
    monkeypatch.setattr(xspace.socket, "gethostname", lambda: host)
    (path,) = xspace.write(str(tmp_path), [one_op("toy")])
    assert path == tmp_path / "plugins/profile/toy" / f"{file}.xplane.pb"
    assert list(xplane.read(path.read_bytes()).hostnames) == [file]


def test_a_name_never_becomes_a_path():
    names = {
        "my.models:build-batch-1": "my.models-build-batch-1",
        "../../x": "x",
        "a b/c": "a-b-c",
        "_größe-1.2_": "_größe-1.2_",
        "..": "other",
        "": "other",
    }
    assert {name: xspace.file_name(name, "other") for name in names} == names


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(xspace, "encode", fail)
    with pytest.raises(error):
        xspace.write(tmp_path, [one_op("toy")])
    assert os.listdir(tmp_path / "plugins/profile") == []
