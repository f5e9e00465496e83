"""Dump names: what the files are called into which the runtime dumps its graphs, pass by pass.

None of it is promised: tensorflow/core/util/debug_data_dumper.cc, core/util/dump_graph.cc and
core/grappler/optimizers/meta_optimizer.cc, TensorFlow 2.21.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tflab.errors import TflabError
from tflab.runtime import private

# Each pass is dumped from VLOG level 4 on.
DUMP_ENVIRONMENT = {
    "TF_DUMP_GRAPH_NAME_FILTER": "*",
    "TF_DUMP_GRAPH_GROUPS": "main,graph_opt_pass",
    "TF_DUMP_GRAPH_FMT": "BIN",
    "TF_CPP_VMODULE": "meta_optimizer=4",
    "TF_CPP_MIN_LOG_LEVEL": "2",  # else every trace logs a warning, and every missed dump another
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


@dataclass(frozen=True)
class DumpName:
    """What the name of a dumped graph says."""

    moment: str  # "before" or "after"
    group: str  # "grappler", or the phase of the runtime's own passes
    name: str | None  # of the pass; None at the beginning and at the end of a group
    iteration: int | None  # of Grappler
    partition: str | None  # once there are several graphs, one for each device
    address: str | None  # of Grappler's graph in memory


def dump_name(file: str) -> DumpName:
    """What the name of a dumped graph says; a TflabError where the runtime names them otherwise.

    tensorflow/core/grappler/optimizers/meta_optimizer.cc and
    tensorflow/core/util/debug_data_dumper.cc, TensorFlow 2.21.0.
    """
    if match := GRAPPLER.fullmatch(file):
        iteration = int(match["iteration"]) if match["iteration"] else None
        moment, name, address = match.group("moment", "name", "address")
        return DumpName(moment, "grappler", name, iteration, None, address)
    if match := OPT_PASS.fullmatch(file):
        moment, group, name, partition = match.group("moment", "group", "name", "partition")
        return DumpName(moment, group, name, None, partition, None)
    raise private.moved(
        "the moment of a graph dump",
        "tensorflow/core/util/debug_data_dumper.cc",
        "Placement works without the way through the passes.",
        f"a dump is called '{file}'",
    )


def no_dumps() -> TflabError:
    """What to say where the runtime wrote no graph although it was asked to."""
    return private.moved(
        "the graph dumps of the runtime",
        "tensorflow/core/util/debug_data_dumper.cc",
        "Placement works without the way through the passes.",
        "it wrote none",
    )
