"""Convert: recorded traces on the command line, into every format."""

import json
from pathlib import Path

import pytest

from tests.approval import approve
from tests.examples.recordings import metadata, micros
from tflab.convert import __main__ as convert

pytestmark = pytest.mark.tensorflow

JOB = "/job:localhost/replica:0/task:0"
CPU, GPU, STREAM = f"{JOB}/device:CPU:0", f"{JOB}/device:GPU:0", "/device:GPU:0/stream:13"
SOURCE = micros("_SOURCE", 100, 0, "_SOURCE = NoOp()")
X = micros("x", 100, 10, "x = Const()")
KERNEL = micros("conv:Conv2D", 150, 40, "winograd regs:32")
FILES = {
    "cpu": metadata((CPU, [SOURCE, X, micros("neg", 120, 30, "neg = Neg(x)")])),
    "gpu": metadata(
        (CPU, [SOURCE, X]),
        (GPU, [micros("conv", 120, 5, "conv = Conv2D(x)")]),
        (STREAM, [KERNEL]),
        ("/device:GPU:0/stream:all", [KERNEL]),
    ),
    "graph.pb": b"""
node { name: "x" op: "Const" }
node { name: "neg" op: "Neg" input: "x" }
node { name: "conv" op: "Conv2D" input: "x" }
""",
    "later": metadata((CPU, [micros("x", 5 * 10**13, 1)])),
    "odd": metadata((CPU, [micros("x", 100, -1), micros("y", 100, 1)])),
    "empty": b"",
    "events.tfevents": b"",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with traces of a CPU and a GPU and a graph."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_bytes(content)
    Path("cut").write_bytes(b"\x0a\xff\xff\xff\xff\x07")
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


# Formats


@pytest.mark.parametrize(
    "to, suffix", [("text", "txt"), ("json", "json"), ("csv", "csv"), ("chrome", "trace.json")]
)
def test_each_format_of_steps_of_a_gpu_and_a_cpu(run, to, suffix):
    line = f"gpu cpu --graph graph.pb --to {to}"
    approve(f"convert-command.{suffix}", output(run, line))


def test_without_a_graph_there_is_no_critical_path(run):
    lines = output(run, "cpu").splitlines()
    assert any("unknown, the trace has no graph" in line for line in lines)
    assert not any("must not be added" in line for line in lines)  # and of a CPU, no kinds
    assert json.loads(output(run, "gpu --to json"))["critical_path"] is None


def test_an_xspace_goes_into_a_logdir(run, folder):
    assert "--logdir logs" in output(run, "cpu gpu --to xspace --out logs")
    (file,) = (folder / "logs").rglob("*.xplane.pb")
    assert file.parts[-4:-1] == ("plugins", "profile", "cpu-and-1-more")


def test_what_was_left_out_is_told_beside_the_result(run):
    status, out, err = run("odd --to json")
    assert (status, err) == (
        0,
        "tflab: In 'odd', 1 op run omitted because of impossible times or sizes, or a start an "
        "hour or more from the others.\n",
    )
    assert json.loads(out)["notes"] == [err.removeprefix("tflab: ").strip()]


# Where it goes


@pytest.mark.parametrize("to", ["text", "json", "csv", "chrome"])
def test_a_file_has_what_else_is_printed(run, folder, to):
    printed = output(run, f"cpu --to {to}")
    assert output(run, f"cpu --to {to} --out plain") == "plain\n"
    assert (folder / "plain").read_text() == printed


WRONG = (
    *("none.pb", ".", "graph.pb --out new", "graph.pb --to xspace --out new"),
    *("gpu --graph gpu", "gpu --graph none.pb"),
    *("cut", "empty", "events.tfevents", "cpu --to pdf"),
    *("cpu --to xspace", "cpu --to xspace --out graph.pb/logs"),
    *("cpu later --to chrome", "cpu later --to xspace --out new", ""),
    *(f"cpu --to {to} --out {name}" for to in convert.FORMATS for name in ("graph.pb", ".")),
)


def test_what_goes_wrong_is_told_in_a_sentence_and_leaves_nothing(run, folder):
    before, said = sorted(folder.iterdir()), []
    for line in WRONG:
        status, out, err = run(line)
        assert (status, out, err.count("\n")) == (2, "", 1)
        said.append(f"{line}: {err.rstrip()}")
    assert sorted(folder.iterdir()) == before
    assert (folder / "graph.pb").read_bytes() == FILES["graph.pb"]
    approve("convert-refused.txt", "\n".join(said))
