"""Steps by hand: what tests of reasons and of the diagnosis are made from.

In most of them a step takes 1 ms untraced, of which 800 us are between the first op and the last.
"""

from dataclasses import replace

from tests.records_by_hand import config_times, verdict
from tflab.compare import findings
from tflab.compare.findings import Evidence, Work
from tflab.records.verdicts import Diagnosis


def work(name: str, us: float, calls: float = 1, **said) -> Work:
    """A node of which a call takes so many us."""
    unsaid = {
        "op": "MatMul",
        "line": "",
        "bytes": None,
        "moves": False,
        "moves_channels": False,
        "hands_on": False,
    }
    return Work(name, calls=calls, call_ns=1_000 * us, **unsaid | said)


def step(*nodes: Work, **changes) -> Evidence:
    whole = Evidence(
        batch_size=16,
        steps=12,
        step_ns=1_000_000,
        ops_span_ns=800_000,
        traced_outside_ns=9_000_000,
        fed_bytes=4_096,
        nodes=nodes,
    )
    return replace(whole, **changes)


COMPUTING = (work("a", 250), work("b", 250))  # two that share what the others leave


def only(*batches: Evidence) -> Diagnosis:
    (reason,) = findings.diagnose(batches)
    return reason


def transposes(us: float = 100, line: str = "mine.py:19", **said) -> list[Work]:
    return [
        work(name, us, op="Transpose", line=line, moves=True, bytes=4_096, **said)
        for name in ("t1", "t2", "t3")
    ]


def config(name: str, size: int, median: float, ratio: float = 1, clear: bool = True):
    if name == "default":
        return config_times(name, size, median)
    return config_times(name, size, median, median / ratio, verdict(ratio, clear))
