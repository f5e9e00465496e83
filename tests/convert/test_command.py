"""Convert: recorded traces on the command line, into every format."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tflab.convert import __main__ as convert

pytestmark = pytest.mark.tensorflow

ROOT = Path(__file__).parents[2]
JOB = "/job:localhost/replica:0/task:0"
CPU, GPU, STREAM = f"{JOB}/device:CPU:0", f"{JOB}/device:GPU:0", "/device:GPU:0/stream:13"


def device(name: str, *rows: tuple[str, str, int, int]) -> str:
    """A device and its rows: node, label, start and duration in microseconds."""
    written = (
        f'node_stats {{ node_name: "{node}" timeline_label: "{label}" all_start_micros: {start} '
        f"all_end_rel_micros: {duration} }}"
        for node, label, start, duration in rows
    )
    return f'dev_stats {{ device: "{name}" {" ".join(written)} }}'


def trace(*devices: str) -> str:
    return f"step_stats {{ {' '.join(devices)} }}"


SOURCE = ("_SOURCE", "_SOURCE = NoOp()", 100, 0)
KERNEL = ("conv:Conv2D", "winograd regs:32", 150, 40)
ON_CPU = trace(device(CPU, SOURCE, ("x", "x = Const()", 100, 10), ("neg", "neg = Neg(x)", 120, 30)))
ON_GPU = trace(
    device(CPU, SOURCE, ("x", "x = Const()", 100, 10)),
    device(GPU, ("conv", "conv = Conv2D(x)", 120, 5)),
    device(STREAM, KERNEL),
    device("/device:GPU:0/stream:all", KERNEL),
)
GRAPH = """
node { name: "x" op: "Const" }
node { name: "neg" op: "Neg" input: "x" }
node { name: "conv" op: "Conv2D" input: "x" }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with traces of a CPU and a GPU and a graph."""
    monkeypatch.chdir(tmp_path)
    for name, content in {"cpu.pbtxt": ON_CPU, "gpu": ON_GPU, "graph.pb": GRAPH}.items():
        Path(name).write_text(content)
    return tmp_path


@pytest.fixture
def run(folder, capsys):
    """Runs a command line: its exit status, standard output and standard error."""

    def one(line: str) -> tuple[int, str, str]:
        status = convert.main(line.split())
        return (status, *capsys.readouterr())

    return one


def output(run, line: str) -> str:
    status, out, err = run(line)
    assert (status, err) == (0, "")
    return out


def words(text: str) -> list[str]:
    """The lines of a text, each with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


# JSON


def test_json_keeps_its_contract(run):
    found = json.loads(output(run, "gpu cpu.pbtxt gpu --to json"))
    assert found["steps"] == 3
    assert [tuple(one.values()) for one in found["devices"]] == [
        (CPU, "ops", 7, 60_000, 0),
        (GPU, "launches of GPU kernels", 2, 10_000, 0),
        (STREAM, "kernels of a stream", 2, 80_000, 0),
        ("/device:GPU:0/stream:all", "left out: repeats other rows", 0, 0, 2),
    ]
    assert list(found["devices"][0]) == ["device", "kind", "op_runs", "total_ns", "left_out"]
    assert len(found["runs"]) == sum(one["op_runs"] for one in found["devices"])
    assert found["runs"][1] == {
        "step": 0,
        "name": "x",
        "op": "Const",
        "device": CPU,
        "start_ns": 100_000,
        "duration_ns": 10_000,
        "requested_bytes": 0,
        "allocations": [],
    }


def test_the_ops_that_cost_most_are_told_apart_by_what_was_timed(run):
    found = json.loads(output(run, "gpu gpu --to json"))
    assert found["top_ops"] == [
        {
            "name": name,
            "op": op,
            "calls": 2,
            "total_ns": ns,
            "self_ns": ns,
            "mean_ns": ns / 2,
            "share": 1.0,
            "kind": kind,
        }
        for name, op, ns, kind in (
            ("conv", "Conv2D", 80_000, "kernels of a stream"),
            ("x", "Const", 20_000, "ops"),
            ("conv", "Conv2D", 10_000, "launches of GPU kernels"),
        )
    ]


def test_a_step_is_taken_from_its_first_start_to_its_last_end(run):
    found = json.loads(output(run, "cpu.pbtxt --to json"))
    assert found["wall_ns"] == 50_000
    assert {one["owner"]: one["ns"] for one in found["time_ledger"] if one["ns"]} == {
        "at least one op running": 40_000,
        "no op running between ops (scheduling, waiting)": 10_000,
    }


def test_the_critical_path_of_a_gpu_is_that_of_its_kernels(run):
    found = json.loads(output(run, "gpu --graph graph.pb --to json"))
    assert found["critical_path"]["nodes"] == ["x", "conv"]
    assert found["critical_path"]["ns"] == 50_000
    assert json.loads(output(run, "gpu --to json"))["critical_path"] is None


# The other formats


def test_csv_has_a_line_for_each_op_run(run):
    rows = list(csv.DictReader(io.StringIO(output(run, "gpu cpu.pbtxt --to csv"))))
    assert [(row["step"], row["name"], row["kind"]) for row in rows] == [
        ("0", "_SOURCE", "ops"),
        ("0", "x", "ops"),
        ("0", "conv", "launches of GPU kernels"),
        ("0", "conv", "kernels of a stream"),
        ("1", "_SOURCE", "ops"),
        ("1", "x", "ops"),
        ("1", "neg", "ops"),
    ]
    assert rows[6] | {"device": ""} == {
        "step": "1",
        "name": "neg",
        "op": "Neg",
        "device": "",
        "kind": "ops",
        "start_ns": "120000",
        "duration_ns": "30000",
        "requested_bytes": "0",
    }


def test_text_tells_what_was_recorded_and_what_it_cost(run):
    lines = words(output(run, "gpu --graph graph.pb"))
    assert "device its rows are op runs total left out" in lines
    assert any(line.endswith("device:CPU:0 ops 2 10.0 us 0") for line in lines)
    assert "/device:GPU:0/stream:13 kernels of a stream 1 40.0 us 0" in lines
    assert "/device:GPU:0/stream:all left out: repeats other rows 0 0 ns 1" in lines
    assert "0 gpu 90.0 us 55.0 us 4 1" in lines
    assert "conv Conv2D kernels of a stream 1 40.0 us 40.0 us 100.0 %" in lines
    assert "conv Conv2D 40.0 us 80.0 %" in lines[lines.index("The critical path") :]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_tables_are_as_wide_as_the_output_and_numbers_stay_whole(run, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = output(run, "gpu cpu.pbtxt --graph graph.pb").splitlines()
    assert max(map(len, lines)) <= width
    first, rule = lines.index("The steps") + 1, lines.index("The steps") + 2
    assert set(lines[rule].strip()) == {"─"}
    assert lines[first].split()[:5] == ["step", "file", "start", "to", "end"]
    assert "90.0 us" in lines[rule + 1]
    assert ("at most at once" in lines[first]) is (width >= 80)


@pytest.mark.slow
def test_a_terminal_without_our_signs_gets_plain_ones(folder):
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "COLUMNS": "80", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "tflab.convert", "gpu"],
        capture_output=True,
        env=os.environ | plain | {"PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "-----" in done.stdout.decode("ascii")
    assert "?" not in done.stdout.decode("ascii")


def test_text_of_a_cpu_says_nothing_of_kinds(run):
    lines = words(output(run, "cpu.pbtxt"))
    assert "node type that ran calls self mean share" in lines
    assert "neg Neg 1 30.0 us 30.0 us 75.0 %" in lines
    assert any(line.startswith("The trace has no graph") for line in lines)
    starts = "1 step with 3 op runs, 1 of them the executor's own (_SOURCE). "
    assert any(line.startswith(starts) for line in lines)
    assert not any("must not be added" in line for line in lines)


def test_a_chart_has_the_runs_and_with_a_graph_the_arrows(run):
    def phases(line: str) -> Counter[str]:
        events = json.loads(output(run, line))["traceEvents"]
        return Counter(event["ph"] for event in events if event["ph"] in "Xsf")

    assert phases("cpu.pbtxt --to chrome") == {"X": 4}
    assert phases("cpu.pbtxt --to chrome --graph graph.pb") == {"X": 4, "s": 1, "f": 1}


def test_an_xspace_goes_into_a_logdir(run, folder):
    assert "--logdir logs" in output(run, "cpu.pbtxt gpu --to xspace --out logs")
    (file,) = (folder / "logs").rglob("*.xplane.pb")
    assert file.parts[-4:-1] == ("plugins", "profile", "cpu-and-1-more")


# Where it goes


@pytest.mark.parametrize("to", ["text", "json", "csv", "chrome"])
def test_a_file_has_what_else_is_printed(run, folder, to):
    printed = output(run, f"cpu.pbtxt --to {to}")
    assert output(run, f"cpu.pbtxt --to {to} --out plain") == "plain\n"
    assert output(run, f"cpu.pbtxt --to {to} --out packed.gz") == "packed.gz\n"
    assert (folder / "plain").read_text() == printed
    assert gzip.decompress((folder / "packed.gz").read_bytes()).decode() == printed


@pytest.mark.parametrize("to", convert.FORMATS)
@pytest.mark.parametrize("existing", ["graph.pb", "."])
def test_nothing_is_ever_overwritten(run, folder, to, existing):
    before = sorted(folder.iterdir())
    status, out, err = run(f"cpu.pbtxt --to {to} --out {existing}")
    assert (status, out) == (2, "")
    assert err == f"tflab: '{existing}' exists already; give --out a new name.\n"
    assert sorted(folder.iterdir()) == before
    assert (folder / "graph.pb").read_text() == GRAPH


@pytest.mark.parametrize("to", ["json", "xspace"])
def test_a_failure_leaves_nothing_behind(run, folder, to):
    before = sorted(folder.iterdir())
    status, _, _ = run(f"graph.pb --to {to} --out new")
    assert status == 2
    assert sorted(folder.iterdir()) == before


# What goes wrong


@pytest.mark.parametrize(
    "line, status, sentence",
    [
        ("none.pb", 2, "There is no file 'none.pb'."),
        (".", 2, "'.' cannot be read: Is a directory."),
        ("graph.pb", 2, "'graph.pb' is a GraphDef, not a trace. Give it as --graph"),
        ("gpu --graph gpu", 2, "'gpu' is not a GraphDef"),
        ("cut", 2, "'cut' cannot be read as a RunMetadata, a StepStats, a GraphDef or an event "),
        ("empty", 2, "'empty' is empty; give the output of run_metadata.SerializeToString()"),
        ("cpu.pbtxt --to pdf", 2, "No format named 'pdf'. Choose from text, json, csv, xspace"),
        (
            "cpu.pbtxt --to columns",
            2,
            "columns: gone; write JSON, CSV, a Chrome trace or a",
        ),
        ("cpu.pbtxt --to xspace", 2, "An xspace goes into a logdir of TensorBoard; name one with"),
        (
            "cpu.pbtxt --to xspace --out graph.pb/logs",
            2,
            "The folder 'graph.pb/logs' cannot be written: 'graph.pb' is not a folder. Give --out ",
        ),
        ("cpu.pbtxt later --to chrome", 2, "The steps are 578 days apart, too far for one time"),
        ("", 2, "The following arguments are required: RUN_METADATA."),
    ],
)
def test_what_goes_wrong_is_told_in_a_sentence(run, folder, line, status, sentence):
    (folder / "cut").write_bytes(b"\x0a\xff\xff\xff\xff\x07")
    (folder / "empty").touch()
    (folder / "later").write_text(trace(device(CPU, ("x", "", 5 * 10**13, 1))))
    found, out, err = run(line)
    assert (found, out) == (status, "")
    assert err.startswith(f"tflab: {sentence}")
    assert err.count("\n") == 1


def test_steps_of_different_years_make_a_table_all_the_same(run, folder):
    (folder / "later").write_text(trace(device(CPU, ("x", "", 5 * 10**13, 1))))
    assert json.loads(output(run, "cpu.pbtxt later --to json"))["steps"] == 2


def test_what_was_left_out_is_told_beside_the_result(run, folder):
    (folder / "odd").write_text(trace(device(CPU, ("x", "", 100, -1), ("y", "", 100, 1))))
    status, out, err = run("odd --to json")
    assert (status, err) == (
        0,
        "tflab: In 'odd', 1 op run omitted because of impossible times or sizes, or a start an "
        "hour or more from the others.\n",
    )
    assert json.loads(out)["notes"] == [err.removeprefix("tflab: ").strip()]
