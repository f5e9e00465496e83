"""From RunMetadata to records, tables and statistics, against the tools of TensorFlow itself.

    python -m benchmarks.peers

The traces are those of LeNet's training steps, many of them put together into one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks import report, turns
from tflab.records.blocks import Block, Column, Table

ROUNDS = {1_500: 5, 6_000: 5, 24_000: 5, 100_000: 3}  # op runs in a trace -> rounds
LIMIT = 60  # seconds, the time limit of a peer
BASE = "tflab: table"


@dataclass
class Attempts:
    """One tool on one trace. After a failure it is not tried again."""

    op_runs: int
    tool: str
    seconds: list[float] = field(default_factory=list)
    failure: str = ""

    def once(self, work: Callable[[], object]) -> None:
        if self.failure:
            return
        signal.alarm(LIMIT)
        try:
            self.seconds.append(turns.seconds(work))
        except Exception as error:  # any failure of a peer is reported in the table
            self.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        finally:
            signal.alarm(0)


def measure(quick: bool) -> list[Attempts]:
    from benchmarks import lenet

    def stop(*_: Any) -> None:
        raise TimeoutError(f"over {LIMIT} s")

    signal.signal(signal.SIGALRM, stop)
    rows = []
    with lenet.steps("training") as steps:
        for least_op_runs, rounds in ({1_500: 1} if quick else ROUNDS).items():
            metadata, op_runs = merged(steps, least_op_runs)
            works = tools(steps, metadata)
            attempts = {tool: Attempts(op_runs, tool) for tool in works}
            turns.take(
                {tool: partial(attempts[tool].once, works[tool]) for tool in works},
                rounds,
            )
            rows += attempts.values()
    return rows


def merged(steps: Any, least_op_runs: int) -> tuple[Any, int]:
    """Traced steps as one RunMetadata of at least this number of op runs, and the number."""
    import tensorflow.compat.v1 as tf1

    whole, devices, op_runs = tf1.RunMetadata(), {}, 0
    for values in steps.batches(1, least_op_runs):
        metadata = tf1.RunMetadata()
        steps.traced(*values, run_metadata=metadata)
        for device in metadata.step_stats.dev_stats:
            if device.device not in devices:
                devices[device.device] = whole.step_stats.dev_stats.add(device=device.device)
            devices[device.device].node_stats.extend(device.node_stats)
            op_runs += len(device.node_stats)
        if op_runs >= least_op_runs:
            break
    return whole, op_runs


def tools(steps: Any, metadata: Any) -> dict[str, Callable[[], object]]:
    import tensorflow.compat.v1 as tf1
    from tensorflow.python.client.timeline import Timeline

    from tflab.analysis import op_table
    from tflab.runtime import trace

    builder = tf1.profiler.ProfileOptionBuilder
    silent = builder(builder.time_and_memory()).with_empty_output().build()
    stats, content = metadata.step_stats, metadata.SerializeToString()

    def records() -> list[Any]:
        return list(trace.op_runs(0, stats, steps.types))

    def of_nodes() -> object:
        folded = op_table.Accumulator()
        folded.add(*trace.op_times(content, 0, lambda: metadata))
        return folded.stats(steps.types, {}, {})

    return {  # tables are made from records, statistics from an accumulator
        BASE: lambda: op_table.with_shares(
            op_table.rows(op_table.fold(records()), "node", 1, None)
        ),
        "tflab: records": records,
        "tflab: statistics": of_nodes,
        "Timeline": lambda: Timeline(stats).generate_chrome_trace_format(),
        "Timeline, show_memory": lambda: Timeline(stats).generate_chrome_trace_format(
            show_memory=True
        ),
        "profiler.profile, op": lambda: tf1.profiler.profile(
            steps.graph, metadata, cmd="op", options=silent
        ),
    }


def blocks(rows: list[Attempts]) -> Iterator[Block]:
    base = {row.op_runs: row.seconds for row in rows if row.tool == BASE}

    def rate(row: Attempts) -> str:
        return f"{row.op_runs / turns.median(row.seconds):,.0f}" if row.seconds else ""

    def ratio(row: Attempts) -> str:
        return turns.ratio(row.seconds, base[row.op_runs]) if row.seconds else ""

    yield Table(
        f"Op runs of LeNet's training, from RunMetadata: tflab and its peers ('{BASE}' is 1)",
        (
            Column("op runs", lambda row: f"{row.op_runs:,}", right=True),
            Column("tool", lambda row: row.tool),
            Column(
                "time",
                lambda row: row.failure or turns.duration(row.seconds),
                right=True,
                elastic=True,
            ),
            Column("a second", rate, right=True),
            Column("ratio", ratio, right=True),
        ),
        tuple(rows),
    )


if __name__ == "__main__":
    report.show("peers")
