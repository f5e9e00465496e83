"""The chart of trace events, taken in by the importer of chrome://tracing itself.

It lies in xprof's trace viewer, which is a file and needs no server.
"""

import importlib.util
import io
from pathlib import Path

import pytest

from tests.graph_notation import graph as graph_of
from tflab.exporters import chrome_trace
from tflab.records.placed import Transfer
from tflab.records.timed import Capture, OpRun, StepTime

pytestmark = pytest.mark.browser

CPU, OTHER = "/device:CPU:0", "/device:CPU:1"
IMPORT = """content => {
    const model = new tr.Model();
    const options = Object.assign(new tr.importer.ImportOptions(), {shiftWorldToZero: false});
    new tr.importer.Import(model, options).importTraces([content]);
    return {
        warnings: model.importWarnings.map(warning => warning.message),
        arrows: model.flowEvents.map(flow => [flow.startSlice.args.node, flow.endSlice.args.node]),
        processes: model.getAllProcesses().map(process => [
            process.name,
            Object.values(process.threads).map(thread => thread.sliceGroup.topLevelSlices.length),
            Object.values(process.counters).map(counter => counter.name),
        ]),
    };
}"""


def imported(page, capture, **graph) -> dict:
    stream = io.StringIO()
    chrome_trace.write(stream, [capture], **graph)
    (xprof,) = importlib.util.find_spec("xprof").submodule_search_locations
    page.goto(Path(xprof, "static", "trace_viewer_index.html").as_uri())
    return page.evaluate(IMPORT, stream.getvalue())


def run(name: str, start: int, duration: int, device: str = CPU, allocations=()) -> OpRun:
    return OpRun(0, name, "Op", device, start, duration, 0, allocations)


def test_every_event_is_taken_in_and_every_arrow_fastened_to_its_runs(page):
    nodes = graph_of("a; b(a); c(a,b); c/_1=_Send(c); c/_2=_Recv; d(c/_2)")
    sent = Transfer("c", "c/_1", "c/_2", CPU, OTHER, "float32", (4,), 16)
    runs = (
        run("a", 1_000_000, 10, allocations=((1_001, 8, "cpu"),)),
        run("idle", 1_000_005, 30),
        run("b", 1_000_010, 1),
        run("short", 1_000_020, 0),
        run("c", 1_000_040, 5),
        run("d", 1_002_000, 5, OTHER),
    )
    capture = Capture("one", (StepTime(0, 999_000, 5_000),), runs)
    found = imported(page, capture, nodes=nodes, transfers=(sent,))
    assert found["warnings"] == []
    assert sorted(found["arrows"]) == [["a", "b"], ["a", "c"], ["b", "c"], ["c", "d"]]
    assert sorted(found["processes"]) == [[CPU, [4, 1], []], [OTHER, [1], []], ["steps", [1], []]]
