"""Fuzz target: a graph from a file, up to what is told of its nodes and functions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from tools.fuzz import target

try:
    import atheris
except ImportError:  # seeds can be written without it
    from tflab.exporters import text
    from tflab.models import graph_file
    from tflab.records.stages import Frontend
    from tflab.runtime import functions, nodes
    from tflab.views import stages
else:
    with atheris.instrument_imports(include=["tflab"]):
        from tflab.exporters import text
        from tflab.models import graph_file
        from tflab.records.stages import Frontend
        from tflab.runtime import functions, nodes
        from tflab.views import stages


def seeds() -> Mapping[str, bytes]:
    from tempfile import TemporaryDirectory

    from tests import graphs

    graph = graphs.graph_def(graphs.functions)
    with TemporaryDirectory() as folder:
        saved = Path(graphs.saved_model_v1(Path(folder, "v1")), "saved_model.pb").read_bytes()
        meta = Path(graphs.meta_graph(Path(folder, "meta"))).read_bytes()
    return {
        "graph.pb": graph.SerializeToString(),
        "graph.pbtxt": str(graph).encode(),
        "saved_model.pb": saved,
        "model.meta": meta,
    }


def read(path: Path) -> None:
    file = graph_file.read(path)
    found = nodes.from_graph_def(file.graph_def, {}, {})
    called = functions.of_graph_def(file.graph_def)
    out = text.console(StringIO())
    stage = Frontend(None, found, (), None, called, (), ())
    for block in stages.blocks(stage):
        text.show_block(out, block)


if __name__ == "__main__":
    target.run(seeds, read)
