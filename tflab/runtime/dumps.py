"""Dumps: the graphs that the runtime itself writes down before and after each of its passes.

The runtime writes them where environment variables tell it to, and it reads most of these only
once: they have to be there before TensorFlow is imported. `prepare` sets them while there is
time; where TensorFlow is loaded already, `child` has to look in a process of its own.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tflab import xla
from tflab.errors import TflabError
from tflab.records import Node, Snapshot

# Checked with TensorFlow 2.21 (core/util/debug_data_dumper.cc, core/util/dump_graph.cc and
# core/grappler/optimizers/meta_optimizer.cc, which dumps each pass from VLOG level 4 on).
ENVIRONMENT = {
    "TF_DUMP_GRAPH_NAME_FILTER": "*",
    "TF_DUMP_GRAPH_GROUPS": "main,graph_opt_pass",
    "TF_DUMP_GRAPH_FMT": "BIN",
    "TF_CPP_VMODULE": "meta_optimizer=4",
    "TF_CPP_MIN_LOG_LEVEL": "2",  # else every trace logs a warning, and every missed dump another
}
FOLDER = "TF_DUMP_GRAPH_PREFIX"  # read at every dump, so it can be switched on and off

GRAPPLER = re.compile(
    r"(?P<moment>before|after)_MetaOptimizer(_iteration_(?P<iteration>\d+))?"
    r"(_(?P<name>[a-z]\w*?)(\{.*\})?)?_(?P<address>\d{6,})(_\d+)?\.pb"
)
OPT_PASS = re.compile(
    r".+?(?P<partition>_partition_.+)?\.(?P<number>\d+)\.(main|graph_opt_pass)"
    r"\.(?P<moment>before|after)_opt_group_(?P<group>[a-z_]+?)(_phase_\d+_(?P<name>\w+))?\.pb"
)


@functools.cache
def prepare() -> Path | None:
    """Make the runtime ready to dump graphs, and XLA its code; None when TensorFlow is loaded.

    Returns the folder in which XLA will leave what it generates. It goes with the process.
    """
    if "tensorflow" in sys.modules:
        return None
    folder = tempfile.mkdtemp(prefix="tflab-xla-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, value in (ENVIRONMENT | xla.environment(Path(folder))).items():
        # Flags of the user's own stay; neither kind does anything until XLA is asked for.
        own = os.environ.get(name, "") if name.endswith("XLA_FLAGS") else ""
        os.environ[name] = f"{own} {value}".strip()
    return Path(folder)


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@contextmanager
def into(folder: Path) -> Iterator[None]:
    """While this is open, every graph that a session builds is dumped into the folder."""
    os.environ[FOLDER] = str(folder)
    try:
        yield
    finally:
        del os.environ[FOLDER]


def read(folder: Path) -> list[Snapshot]:
    """The dumps of a folder in the order in which they were written.

    Raises TflabError when there are none, or when one is not what TensorFlow 2.21 writes.
    """
    # The inode decides where the clock of the file system is coarse: it grows within a folder.
    files = sorted(folder.iterdir(), key=lambda f: (f.stat().st_mtime_ns, f.stat().st_ino))
    if not files:
        raise TflabError(
            "The runtime wrote no graph dumps: this version of TensorFlow may have moved them "
            "(tflab knows those of 2.21)."
        )
    address = address_of_graph(file.name for file in files)
    parsed: dict[bytes, tuple] = {}  # most passes change nothing, so most files are the same
    snapshots = []
    for file in files:
        match = GRAPPLER.fullmatch(file.name)
        if match and address and match["address"] != address:
            continue
        content = file.read_bytes()
        if content not in parsed:
            parsed[content] = parse(file.name, content)
        snapshots.append(labelled(file.name, *parsed[content]))
    return snapshots


def address_of_graph(files: Iterable[str]) -> str | None:
    """Where in memory Grappler keeps the graph, which it notes in the names of its dumps.

    It optimises the bodies of functions one by one after the graph, in dumps of the same names.
    The last dump of all, the one of no iteration and no pass, is of the graph again.
    """
    matches = filter(None, map(GRAPPLER.fullmatch, files))
    whole = [match["address"] for match in matches if not (match["iteration"] or match["name"])]
    return whole[-1] if whole else None


def labelled(file: str, nodes: tuple[Node, ...], clusters: dict[str, str]) -> Snapshot:
    """A snapshot, by the name of its file."""
    if match := GRAPPLER.fullmatch(file):
        moment, group, name, partition = match["moment"], "grappler", match["name"], None
        iteration = int(match["iteration"]) if match["iteration"] else None
    elif match := OPT_PASS.fullmatch(file):
        moment, group, name, partition = match.group("moment", "group", "name", "partition")
        iteration = None
    else:
        raise TflabError(
            f"The runtime wrote a graph dump called '{file}', which tflab does not know "
            "(it knows those of TensorFlow 2.21)."
        )
    return Snapshot(moment, group, name, iteration, partition, nodes, clusters)


def parse(file: str, content: bytes) -> tuple[tuple[Node, ...], dict[str, str]]:
    """The nodes of a binary GraphDef, without lines and shapes, and their XLA clusters."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.framework import graph_pb2

    try:
        graph = graph_pb2.GraphDef.FromString(content)
    except DecodeError as error:
        raise TflabError(f"The graph dump '{file}' is not a GraphDef: {error}.") from error
    nodes, clusters = [], {}
    for node in graph.node:
        inputs = list(node.input)
        controls = tuple(name[1:] for name in inputs if name[0] == "^")
        data = tuple(name for name in inputs if name[0] != "^") if controls else tuple(inputs)
        nodes.append(Node(node.name, node.op, data, controls, node.device))
        if "_XlaCluster" in node.attr:
            clusters[node.name] = node.attr["_XlaCluster"].s.decode()
    return tuple(nodes), clusters
