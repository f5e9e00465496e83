"""The chart of trace events, taken in by the importer of chrome://tracing itself.

It lies in xprof's trace viewer, which is a file and needs no server.
"""

import importlib.util
import io
from pathlib import Path

import pytest

from tests.examples.recordings import CPU, GPU, RECORDED, STREAM
from tflab.exporters import chrome_trace

pytestmark = pytest.mark.browser

IMPORT = """content => {
    const model = new tr.Model();
    const options = Object.assign(new tr.importer.ImportOptions(), {shiftWorldToZero: false});
    new tr.importer.Import(model, options).importTraces([content]);
    return {
        warnings: model.importWarnings.map(warning => warning.message),
        processes: model.getAllProcesses().map(process => [
            process.name,
            Object.values(process.threads).map(thread => thread.sliceGroup.topLevelSlices.length),
            Object.values(process.counters).map(counter => counter.name),
        ]),
    };
}"""


def test_every_event_is_taken_in(page):
    """On the CPU, the executor's start, x, neg and y; on the GPU launches and kernels."""
    stream = io.StringIO()
    chrome_trace.write(stream, [RECORDED.capture()])
    (xprof,) = importlib.util.find_spec("xprof").submodule_search_locations
    page.goto(Path(xprof, "static", "trace_viewer_index.html").as_uri())
    found = page.evaluate(IMPORT, stream.getvalue())
    assert found["warnings"] == []
    assert sorted(found["processes"]) == [
        *([CPU, [7, 1, 1], []], [GPU, [3], []], [STREAM, [4], []], ["steps", [3], []])
    ]
