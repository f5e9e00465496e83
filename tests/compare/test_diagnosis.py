"""Diagnosis: every rule with its whole sentence, from steps made by hand, and silence short of it.

In most of them a step takes 1 ms untraced, of which 800 us are between the first op and the last.
"""

from dataclasses import replace

import pytest

from tests.approval import approve
from tflab.analysis import slow_steps
from tflab.analysis.slow_steps import Evidence, WholeTable, Work


def diagnose(evidence):
    return slow_steps.costliest(evidence, 3)


def work(name: str, us: float, calls: float = 1, **said) -> Work:
    """A node of which a call takes so many us."""
    unsaid = dict.fromkeys(("moves", "hands_on"), False)
    unsaid |= {"op": "MatMul", "line": ""}
    return Work(name, calls=calls, call_ns=1_000 * us, **unsaid | said)


def step(*nodes: Work, **changes) -> Evidence:
    whole = Evidence(
        batch_size=16,
        steps=12,
        step_ns=1_000_000,
        quick_ns=1_000_000,
        ops_span_ns=800_000,
        traced_outside_ns=9_000_000,
        fed_bytes=4_096,
        copied_bytes=0,
        tables=(),
        nodes=nodes,
    )
    return replace(whole, **changes)


AB = (work("a", 250), work("b", 250))  # two that share what the others leave


def moved(us: float = 100, line: str = "mine.py:19", **said) -> list[Work]:
    return [
        work(name, us, op="Transpose", line=line, **{"moves": True} | said)
        for name in ("t1", "t2", "t3")
    ]


def loop(us: float = 1.0, calls: int = 100, **said) -> list[Work]:
    return [
        work("Tanh", us, calls, op="Tanh", line="mine.py:7"),
        work("Mul", us, calls, op="Mul", line="mine.py:8"),
        work("Add", us, calls, op="Add", line="mine.py:7"),
        work("Switch", 0.5, calls, **{"op": "Switch", "hands_on": True} | said),
    ]


def many(count: int, us: float, **said) -> list[Work]:
    return [work(f"n{n}", us, op="Add", **said) for n in range(count)]


BIG = work("big", 700, op="Conv2D", line="mine.py:5")
# 1.6 ms are left of an untraced step
SLOW = step(*AB, step_ns=2_400_000, quick_ns=1_400_000)

SAID = {
    "ops of a line that only move data: 300 of 800 us of all ops, in 800 us of a step": [
        step(*AB, *moved())
    ],
    "without lines, ops of a type, and how often they run": [
        step(*AB, *moved(50, "", calls=2), work("s", 20, op="Slice", moves=True))
    ],
    "a loop: 350 of 850 us, of 800 us": [step(*AB, *loop())],
    "one op": [step(BIG, work("a", 100))],
    "one op that only moves data": [step(replace(BIG, moves=True), work("a", 100))],
    "a session": [SLOW],
    "a function, whose arguments have no size": [replace(SLOW, fed_bytes=0)],
    "a session takes longer by an untraced step": [
        step(*AB, ops_span_ns=500_000, traced_outside_ns=400_000)
    ],
    "large feeds": [replace(SLOW, fed_bytes=2**20 + 1)],
    "feeds that are copied": [
        replace(SLOW, fed_bytes=2**22, copied_bytes=2**21, ops_span_ns=2_100_000)
    ],
    "all rows of a table": [
        step(
            work("read", 50),
            work("scaled", 450),
            tables=(WholeTable("emb", "m.py:5", 60_000, 128, frozenset(("scaled",))),),
        )
    ],
    "a step without ops": [step(ops_span_ns=0)],
    "an op of a disturbed step, at most its share of a traced one": [
        step(BIG, work("a", 100), step_ns=1_200_000, traced_outside_ns=100_000)
    ],
    "the batch size where it costs most": [
        step(*AB, *moved(us), batch_size=size) for size, us in ((1, 50), (16, 150), (64, 100))
    ],
    "no node is blamed twice": [
        step(
            *AB, *many(100, 2.0, moves=True), work("arg", 1.0, hands_on=True), ops_span_ns=1_000_000
        )
    ],
    "no reason": [step(*AB, work("c", 300), batch_size=64), step(*AB, batch_size=4)],
    "a median between quick and slow steps": [replace(SLOW, quick_ns=1_100_000)],
    "an untraced step that was disturbed": [replace(SLOW, traced_outside_ns=240_000)],
    "too few steps": [step(*AB, *moved(), steps=4)],
}


def test_what_is_said():
    said = {name: diagnose(evidence) for name, evidence in SAID.items()}
    lines = []
    for name, reasons in said.items():
        lines += [name]
        for reason in reasons:
            lines += [
                f"  {reason.kind}, batch {reason.batch_size}: {reason.cost_ns:.1f} ns, "
                f"{reason.share:.6f}",
                f"  {reason.sentence}",
            ]
    approve("diagnosis.txt", "\n".join(lines))


TWENTY = (work("a", 20), work("b", 20))
HALF = 400  # of 800 us of ops, which are half of a step of 1 ms


@pytest.mark.parametrize(
    ("evidence", "kind"),
    [
        # 100 of 800 us are an eighth of the ops and a tenth of the step
        (step(work("a", 350), work("b", 350), work("t", 100, moves=True, line="x.py:1")), "none"),
        (
            step(work("a", 350), work("b", 350), work("t", 101, moves=True, line="x.py:1")),
            "movement",
        ),
        (step(*AB, *loop(1.5, 100)), "small ops"),
        (step(*AB, *loop(1.6, 100)), "none"),  # more than three times as long as handing on
        (step(*AB, *loop(1.5, 12)), "none"),  # 48 calls
        (step(*AB, *loop(0.5, 60)), "none"),  # 120 us are less than a fifth
        (step(*AB, *loop(hands_on=False)), "none"),  # nobody knows what is small
        (step(*TWENTY, *many(49, 1), work("c", 1, hands_on=True)), "small ops"),  # 50 are many
        (step(*TWENTY, *many(48, 1), work("c", 1, hands_on=True)), "none"),
        *(
            (step(work("big", us), work("a", HALF - us / 2), work("b", HALF - us / 2)), kind)
            for us, kind in ((400, "none"), (500, "none"), (510, "one op"))
        ),
        (step(work("a", 0), work("t", 0, moves=True, line="x.py:1")), "none"),  # took no time
        (replace(SLOW, quick_ns=1_140_000), "none"),  # of a quick step
        (replace(SLOW, step_ns=1_140_000), "none"),  # less than three tenths are outside
        (replace(SLOW, step_ns=1_150_000), "session"),
        (replace(SLOW, step_ns=700_000), "none"),
        (step(*AB, *moved(), steps=5), "movement"),
    ],
)
def test_from_where_on_a_reason_is_told(evidence, kind):
    assert [reason.kind for reason in diagnose([evidence])] == [kind] * (kind != "none")


def test_reasons_are_ranked_by_their_share_of_a_step_and_three_are_told():
    copies = work("c", 150, op="Slice", line="mine.py:30", moves=True)
    less = work("d", 130, op="Slice", line="mine.py:31", moves=True)
    nodes = (less, copies, *moved(), work("a", 110), work("b", 110))
    reasons = diagnose([step(*nodes, step_ns=1_250_000, quick_ns=1_250_000)])
    assert [(reason.kind, reason.share) for reason in reasons] == [
        ("session", 0.36),
        ("movement", 0.24),
        ("movement", 0.12),
    ]
