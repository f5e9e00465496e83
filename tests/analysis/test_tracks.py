"""Tracks: what rows stand for, and which of them repeat others."""

import pytest

from tflab.analysis import tracks
from tflab.analysis.op_runs import of
from tflab.records.timed import OpRun

GPU = "/device:GPU:0"


@pytest.mark.parametrize(
    "device, kind",
    [
        ("/job:localhost/replica:0/task:0/device:CPU:0", tracks.OPS),
        ("/job:localhost/replica:0/task:0/cpu:0", tracks.OPS),
        ("/cpu:0", tracks.OPS),
        ("/device:XLA_CPU:0", tracks.OPS),
        ("/device:TPU:0", tracks.OPS),
        ("", tracks.OPS),
        ("/job:worker/replica:0/task:3/device:GPU:1", tracks.LAUNCHES),
        ("/job:localhost/replica:0/task:0/gpu:0", tracks.LAUNCHES),
        ("/gpu:0", tracks.LAUNCHES),
        ("/device:XLA_GPU:0", tracks.LAUNCHES),
        ("/device:GPU:0/stream:13", tracks.KERNELS),
        ("/gpu:0/stream:7", tracks.KERNELS),
        ("/device:GPU:0/stream:3<Kernel>", tracks.KERNELS),
        ("/device:GPU:0/stream:all", tracks.KERNELS),
        ("/device:GPU:0/stream:14<MemcpyH2D>", tracks.COPIES),
        ("/device:GPU:0/memcpy", tracks.COPIES),
        ("/gpu:0/memcpy", tracks.COPIES),
        ("/device:GPU:0/stream:", tracks.OTHERS),
        ("/device:GPU:0/sync", tracks.WAITS),
        ("/host:CPU", tracks.REPEATS),
    ],
)
def test_the_name_of_a_device_tells_what_its_rows_are(device, kind):
    assert tracks.track_kind(device) == kind


@pytest.mark.parametrize(
    "name, label, expected",
    [
        ("conv1/Conv2D:Conv2D", "void cudnn::winograd<float> regs:32", ("conv1/Conv2D", "Conv2D")),
        ("conv1/Conv2D:Conv2D", "", ("conv1/Conv2D", "Conv2D")),  # as in 2016
        ("x:Const:MEMCPYHtoD", "MEMCPYHtoD 4 bytes (Pageable to Device)", ("x", "MEMCPYHtoD")),
        ("unknown:MEMCPYDtoH", "MEMCPYDtoH 8 bytes", ("unknown", "MEMCPYDtoH")),
        ("x:_Send", "MemcpyD2H bytes:40 async", ("x", "MemcpyD2H")),
        ("edge_7", "Kernel@@conv1/Conv2D:Conv2D#id=3#", ("conv1/Conv2D", "Conv2D")),  # of ROCm
        ("void fill<int, ns::kind>(int)", "", ("void fill<int, ns::kind>(int)", "unknown")),
        ("unknown", "", ("unknown", "unknown")),
        ("", "", ("", "unknown")),
    ],
)
def test_a_kernel_and_a_copy_belong_to_an_op(name, label, expected):
    assert tracks.node_and_op(name, label) == expected


def run(name: str, start: int, device: str = "", op: str = "Op") -> OpRun:
    return OpRun(0, name, op, device, start, 5)


def kept_letters(**groups: str) -> dict[str, str]:
    """The runs that are kept, by track; a run is a letter, and a track has a short name."""
    kept = tracks.without_repeats(
        {
            device.format(gpu=GPU): of([run(letter, ord(letter)) for letter in letters])
            for device, letters in ((NAMES[name], groups[name]) for name in groups)
        }
    )
    short = {NAMES[name].format(gpu=GPU): name for name in groups}
    return {short[device]: "".join(run.name for run in runs) for device, runs in kept.items()}


NAMES = {
    "cpu": "/job:a/device:CPU:0",
    "launches": "/job:a/device:GPU:0",
    "s7": "{gpu}/stream:7",
    "s8": "{gpu}/stream:8",
    "h2d": "{gpu}/stream:8<MemcpyH2D>",
    "all": "{gpu}/stream:all",
    "memcpy": "{gpu}/memcpy",
    "sync": "{gpu}/sync",
    "host": "/host:CPU",
}


def test_kernels_count_in_their_stream():
    assert kept_letters(s7="ab", all="abc", s8="c") == {"s7": "ab", "all": "", "s8": "c"}


def test_copies_count_in_the_track_of_copies():
    assert kept_letters(memcpy="xy", s7="axb", s8="y", all="ab") == {
        "memcpy": "xy",
        "s7": "ab",
        "s8": "",
        "all": "",
    }
    assert kept_letters(h2d="x", memcpy="x") == {"h2d": "", "memcpy": "x"}


def test_a_run_without_repetition_is_kept():
    assert kept_letters(all="ab") == {"all": "ab"}
    assert kept_letters(s7="a", all="ab") == {"s7": "a", "all": "b"}
    assert kept_letters(h2d="x") == {"h2d": "x"}


def test_a_row_removes_one_repetition():
    assert kept_letters(memcpy="x", s7="xx") == {"memcpy": "x", "s7": "x"}
    assert kept_letters(s7="aa", s8="a", all="aaa") == {"s7": "aa", "s8": "a", "all": ""}


def test_an_op_with_the_name_of_a_kernel_is_no_repetition():
    assert kept_letters(cpu="a", launches="a", sync="a", s7="a") == {
        "cpu": "a",
        "launches": "a",
        "sync": "a",
        "s7": "a",
    }


def test_the_threads_of_a_profiler_repeat_the_ops():
    assert kept_letters(host="abc", cpu="ab") == {"host": "", "cpu": "ab"}


def test_one_gpu_does_not_repeat_another():
    zero, first = of([run("a", 1)]), of([run("a", 1)])
    kept = tracks.without_repeats(
        {"/device:GPU:0/stream:all": zero, "/device:GPU:1/stream:7": first}
    )
    assert kept == {"/device:GPU:0/stream:all": zero, "/device:GPU:1/stream:7": first}


def test_a_nodes_work_on_a_gpu_is_what_its_kernels_took():
    launch, kernel = run("a", 0, "/gpu:0"), run("a", 9, "/gpu:0/stream:7")
    shape, wait = run("shape", 0, "/gpu:0"), run("wait", 0, "/gpu:0/sync")
    assert tracks.work_runs([launch, kernel, shape, wait]) == [kernel, shape]
