"""Dumps: the graphs that the runtime writes to files before and after each of its passes.

Environment variables request them, and the runtime reads most of these only once: they must be set
before TensorFlow is imported, by `prepare`.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tflab.cli import temporary
from tflab.errors import TflabError
from tflab.records.graph import Node
from tflab.records.placed import Snapshot
from tflab.runtime.private import graphs, sessions

DumpedNode = tuple[Node, str]  # with its XLA cluster


@functools.cache
def prepare() -> Path | None:
    """Make the runtime ready to dump graphs, and XLA its code; return the folder for XLA's dumps.
    None if TensorFlow is already loaded, or there is no temporary folder."""
    if "tensorflow" in sys.modules:
        return None
    from tflab.runtime import generated_code  # a program that tflab.run watches does not need it

    try:
        folder = temporary.process_folder() / "xla"
    except TflabError:  # which is raised again where a folder is needed
        return None
    folder.mkdir()
    for name, value in (DUMP_ENVIRONMENT | generated_code.environment(folder)).items():
        if name == "TF_CPP_MIN_LOG_LEVEL" and name in os.environ:
            continue  # the user sets how much TensorFlow logs
        # The user's own flags stay. A flag that a parent process has set is not repeated.
        user_flags = os.environ.get(name, "") if name.endswith("XLA_FLAGS") else ""
        os.environ[name] = user_flags if value in user_flags else f"{user_flags} {value}".strip()
    return folder


@contextmanager
def dump_into(folder: Path) -> Iterator[None]:
    """Let every graph that a session builds be dumped into the folder while this is open."""
    os.environ[DUMP_FOLDER] = str(folder)
    os.environ[DUMPED_NAMES] = DUMP_ENVIRONMENT[DUMPED_NAMES]
    sessions.read_dump_settings()
    try:
        yield
    finally:
        del os.environ[DUMP_FOLDER]
        pause()


def pause() -> None:
    """Stop the dumps until `dump_into`. Without a folder, the runtime would still make each graph
    to dump, and take more than twice as long to prepare a step of a large graph."""
    if DUMP_FOLDER not in os.environ and DUMPED_NAMES in os.environ and prepare():
        del os.environ[DUMPED_NAMES]
        sessions.read_dump_settings()


def read(folder: Path) -> list[Snapshot]:
    """Return the dumps of a folder in the order in which they were written. Raises TflabError if
    there are none, or if one is not as TensorFlow 2.21 writes it."""
    # If the clock of the file system is coarse, the inode decides: it grows within a folder.
    written = sorted(folder.iterdir(), key=lambda f: (f.stat().st_mtime_ns, f.stat().st_ino))
    files = [file for file in written if not OF_FUNCTION.fullmatch(file.name)]
    if not files:
        raise graphs.moved(
            "the graph dumps of the runtime",
            "tensorflow/core/util/debug_data_dumper.cc",
            "it wrote none",
        )
    names = [dump_name(file.name) for file in files]
    # After the graph, Grappler optimises the bodies of functions, with dumps of the same names. The
    # last dump of all without an iteration and a pass is of the graph again.
    whole = [at for name, at in names if at and name.iteration is None and not name.name]
    parsed: dict[bytes, tuple] = {}  # most passes change nothing, so most files are equal
    known: dict[bytes, DumpedNode] = {}
    snapshots = []
    for file, (snapshot, of_graph) in zip(files, names, strict=True):
        if of_graph and whole and of_graph != whole[-1]:
            continue
        content = file.read_bytes()
        if content not in parsed:
            parsed[content] = parse(file.name, content, known)
        nodes, clusters = parsed[content]
        snapshots.append(replace(snapshot, nodes=nodes, clusters=clusters))
    return snapshots


def parse(
    file: str, content: bytes, known: dict[bytes, DumpedNode]
) -> tuple[tuple[Node, ...], dict[str, str]]:
    """Return the nodes of a binary GraphDef, without lines and shapes, and their XLA clusters. A
    pass changes few nodes, so nodes of other dumps are `known` by their bytes."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    try:
        # In the wire format a message is bytes with a length, so the nodes of a GraphDef (its
        # field 1) are the values of a BytesList.
        parts = tf.train.BytesList.FromString(content).value
        for part in parts:
            if part not in known:
                node = tf.compat.v1.NodeDef.FromString(part)
                controls = tuple(name[1:] for name in node.input if name[0] == "^")
                data = tuple(name for name in node.input if name[0] != "^")
                cluster = node.attr["_XlaCluster"].s.decode() if "_XlaCluster" in node.attr else ""
                known[part] = Node(node.name, node.op, data, controls, node.device), cluster
    except DecodeError as error:
        raise TflabError(f"The graph dump '{file}' is not a GraphDef: {error}.") from error
    dumped = [known[part] for part in parts]
    clusters = {node.name: cluster for node, cluster in dumped if cluster}
    return tuple(node for node, _ in dumped), clusters


# Dump names: the names of the files into which the runtime dumps its graphs. They are no public
# interface. Source: tensorflow/core/util/debug_data_dumper.cc and dump_graph.cc,
# core/grappler/optimizers/meta_optimizer.cc, TensorFlow 2.21.0.

# Each pass is dumped from VLOG level 4 on.
DUMPED_NAMES = "TF_DUMP_GRAPH_NAME_FILTER"
DUMP_ENVIRONMENT = {
    DUMPED_NAMES: "*",
    "TF_DUMP_GRAPH_GROUPS": "main,graph_opt_pass",
    "TF_DUMP_GRAPH_FMT": "BIN",
    "TF_CPP_VMODULE": "meta_optimizer=4",
    # otherwise every trace logs a warning, and every missing dump another one
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
DUMP_FOLDER = "TF_DUMP_GRAPH_PREFIX"  # read at every dump, so it can be switched on and off

GRAPPLER = re.compile(
    r"(?P<moment>before|after)_MetaOptimizer(_iteration_(?P<iteration>\d+))?"
    r"(_(?P<name>[a-z]\w*?)(\{.*\})?)?_(?P<address>\d{6,})(_\d+)?\.pb"
)
OPT_PASS = re.compile(
    r".+?(?P<partition>_partition_.+)?\.(?P<number>\d+)\.(main|graph_opt_pass)"
    r"\.(?P<moment>before|after)_opt_group_(?P<group>[a-z_]+?)(_phase_\d+_(?P<name>\w+))?\.pb"
)
# The graph of a session has no name; a function that a step calls, as tf.data does, has its own
OF_FUNCTION = re.compile(r"(?!unknown_graph\b|unknown_graph_).+\.\d+\.(main|graph_opt_pass)\..+")


def dump_name(file: str) -> tuple[Snapshot, str | None]:
    """Return what the name of a dumped graph says, as a Snapshot without nodes, and the address of
    Grappler's graph in memory. Raises TflabError if the runtime names its dumps differently
    (meta_optimizer.cc and debug_data_dumper.cc in tensorflow/core, TensorFlow 2.21.0)."""
    if match := GRAPPLER.fullmatch(file):
        iteration = int(match["iteration"]) if match["iteration"] else None
        moment, name, address = match.group("moment", "name", "address")
        return Snapshot(moment, "grappler", name, iteration, None, (), {}), address
    if match := OPT_PASS.fullmatch(file):
        moment, group, name, partition = match.group("moment", "group", "name", "partition")
        return Snapshot(moment, group, name, None, partition, (), {}), None
    raise graphs.moved(
        "the moment of a graph dump",
        "tensorflow/core/util/debug_data_dumper.cc",
        f"a dump is called '{file}'",
    )
