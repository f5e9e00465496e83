"""Benchmarks: every one of them runs and fills its table. No time is asserted.

That of the live page is in tests/browser/test_explore.py, which has one."""

import contextlib
import io
import re
import runpy
import signal
import sys
from subprocess import CompletedProcess
from types import SimpleNamespace
from unittest import mock

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import exports, placement, run, scale, startup, turns
from tests.commands import in_one_process, run_here
from tflab import models
from tflab.convert import protos, reading
from tflab.lifecycle import __main__ as lifecycle

pytestmark = pytest.mark.tensorflow

RATIO = r"\d+(\.\d+)?( \(\d+(\.\d+)? to \d+(\.\d+)?\))?"


class InTurn:
    """Stands in for a pool: one work after the other, in the main thread."""

    def __init__(self, size):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def started(args):
    """A command of the benchmark of start-up, in this process."""
    option, code, *words = args
    if option == "-m":
        assert run_here(lifecycle.main, *words).returncode == 0
    else:
        with mock.patch.object(sys, "argv", ["-c", *words]), pytest.raises(SystemExit) as end:
            exec(f"{code}\nraise SystemExit(0)")
        assert end.value.code == 0


def once(start):
    """The program is started once, watched, and its output stands for all its runs: a processor of
    its own is for times, a small graph for memory, and both mean nothing here."""
    printed = start((sys.executable, "-m", "tflab.run"), run.SCRIPT, "small", 20)
    return lambda *_: printed


def grown(words, **_):
    """A size of the benchmark of growing graphs, in this process."""
    with (
        mock.patch.object(sys, "argv", ["", *words[-2:]]),
        mock.patch.dict(models.MODELS),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        runpy.run_path(placement.__file__, run_name="__main__")
    return CompletedProcess(words, 0, printed.getvalue())


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of all benchmarks, which run in this process as far as they can."""
    file = tmp_path_factory.mktemp("benchmarks") / "results.md"
    usual = signal.getsignal(signal.SIGALRM)
    with pytest.MonkeyPatch.context() as patch:
        in_one_process(patch)
        patch.setattr(benchmarks, "ThreadPoolExecutor", InTurn)
        patch.setattr(startup, "run", started)
        patch.setattr(run, "run", once(run.run))
        patch.setattr(placement, "subprocess", SimpleNamespace(run=grown))
        patch.setitem(sys.modules, "benchmarks.placement", placement)  # which is replaced meanwhile
        others = [name for name in benchmarks.BENCHMARKS if name != "explore"]
        patch.setattr(benchmarks, "BENCHMARKS", others)
        patch.setattr(sys, "argv", ["benchmarks", "--quick", "--output", str(file)])
        benchmarks.main()
    signal.signal(signal.SIGALRM, usual)
    assert list(file.parent.iterdir()) == [file]
    return file.read_text()


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table under this title, without its header."""
    table = re.search(rf"\*\*{title}.*\*\*\n\n\|.*\n\|.*\n((\|.*\n)+)", page)
    return [line.strip("| ").split(" | ") for line in table.group(1).splitlines()]


def test_start_up_is_held_against_the_import_of_tensorflow(page):
    table = rows(page, "Start-up")
    assert table[0][::2] == ["import tensorflow", "1.00"]
    assert len(table) == 3


def test_a_watched_program_is_compared_with_the_plain_one(page):
    plain, watched = rows(page, "Training LeNet in a plain script")
    assert (plain[0], plain[2], watched[0]) == ("python", "1.00", "tflab.run")
    assert re.fullmatch(RATIO, watched[2]) and re.fullmatch(RATIO, watched[3])
    assert len(plain) == len(watched) == 6
    targets = rows(page, "tflab.run against its targets")
    assert [row[2] for row in targets] == ["to 1.05", "to 1.05", "to 300 ms", "to 16.0 MiB"]
    assert {row[3] for row in targets} <= {"yes", "no"}


def test_op_runs_are_kept_and_summed_up(page):
    assert len(rows(page, "1,000 sampled op runs")) == 3


def test_a_pass_is_timed_untraced_and_with_all_and_some_of_its_steps_traced(page):
    table = rows(page, "50 images of .* through LeNet")
    assert [(row[0], row[3:]) for row in table] == [
        ("untraced", []),
        ("every step traced", ["to 1.15"]),
        ("one step in 10 traced", ["to 1.10"]),
    ]
    assert all(re.fullmatch(RATIO, row[2]) for row in table)
    assert "Resident memory grew by" in page


@pytest.mark.parametrize("title", ["A LeNet step", "Reading a trace and adding it up"])
def test_every_phase_and_batch_size_has_its_overhead(page, title):
    table = rows(page, title)
    phases = ("inference", "training")
    assert [row[:2] for row in table] == [[p, n] for p in phases for n in ("1", "16", "64")]
    assert all(re.fullmatch(RATIO, row[-1]) for row in table)


def test_every_peer_has_read_the_trace(page):
    table = rows(page, "Op runs of LeNet's training, from RunMetadata")
    assert len(table) == 6
    assert all(int(row[0].replace(",", "")) >= 1_500 for row in table)
    assert all(re.fullmatch(RATIO, row[-1]) for row in table)


def test_every_export_of_a_trace_is_compared_with_the_timeline(page):
    table = rows(page, "Op runs of LeNet's training, exported")
    assert len(table) == 8
    assert all(int(row[0].replace(",", "")) >= 1_500 for row in table)
    assert table[5][1::4] == ["Timeline", "1.00"]
    assert all(re.fullmatch(RATIO, row[-1]) for row in table)


def test_many_traces_are_converted_at_once_and_the_largest_table_was_predicted(page):
    table = rows(page, "Traces of a million op runs each")
    assert [row[1:3] for row in table] == [
        *(["1", to] for to in ("text", "columns", "chrome", "xspace")),
        ["2", "text"],
    ]
    assert re.search(r"predicted from [\d,]+ to [\d,]+, .+ and at most .+; measured, ", page)


def test_a_trace_is_moved_in_time_and_stays_the_same_otherwise(tmp_path):
    shared = tuple(tmp_path / name for name in ("one", "moved"))
    trace = protos.message("RunMetadata")()
    row = trace.step_stats.dev_stats.add(device=b"/cpu:0").node_stats.add(
        node_name=b"a",
        timeline_label=b"a = Op()",
        all_start_micros=1_700_000_000_000_000,
        all_start_nanos=1_700_000_000_000_000_000,
        all_end_rel_nanos=2,
    )
    record = {"alloc_micros": 1_700_000_000_000_000, "alloc_bytes": 8}
    row.memory.add(allocator_name=b"cpu").allocation_records.add(**record)
    shared[0].write_bytes(trace.SerializeToString())
    found = reading.read([exports.moved(*map(str, shared), 1)])
    first = 1_700_000_000_000_000_000 + exports.COPIES * 1_000_000
    assert [(run.name, run.start_ns, run.duration_ns, run.allocations) for run in found.runs] == [
        ("a", start, 2, ((start // 1000, 8, "cpu"),))
        for start in range(first, first + exports.COPIES * 1_000_000, 1_000_000)
    ]


def test_the_figure_has_the_times_and_the_memory(tmp_path):
    def converted(count: int, to: str) -> exports.Converted:
        return exports.Converted(
            count, count, to, exports.Measured(count / 5e5, count / 1e6, 400_000_000)
        )

    found = [converted(count, to) for count in (10**6, 10**7) for to in exports.FORMATS]
    nodes = [dict.fromkeys(("nodes", "mib", *placement.STAGES), size) for size in (1_000, 9_000)]
    scale.figure(found, nodes, tmp_path / "scale.png")
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_torch_is_measured_or_said_to_be_missing(page):
    assert "torch.profiler takes" in page or "torch is missing" in page


def test_an_epoch_is_held_against_that_of_keras(page):
    table = rows(page, "An epoch of LeNet")
    assert [row[0] for row in table] == ["tflab", "Keras fit"]
    assert re.search(rf"Keras' fit takes {RATIO} times as long as tflab", page)


def test_the_recipe_is_followed_with_several_seeds(page):
    table = rows(page, "LeNet on .* after 1 epochs")
    assert [row[0] for row in table] == ["1", "2", "3"]
    assert all(re.fullmatch(r"\d+\.\d\d %", row[1]) for row in table)


def test_no_benchmark_failed(page):
    assert "The benchmark" not in page
    assert "nodes   frontend" in page


def test_contestants_take_turns_and_the_order_is_turned_around():
    order = []
    turns.take({name: lambda name=name: order.append(name) for name in "ab"}, 3)
    assert "".join(order) == "abbaab"


def test_ratios_are_taken_round_by_round():
    assert turns.ratio([2, 30, 4], [1, 10, 4]) == "2.00 (1.00 to 3.00)"
