"""Everything that is said of a watched program, as approved."""

from dataclasses import replace

from tests.approval import approve
from tests.examples.watched import (
    INIT,
    MADE_NAN,
    OTHER,
    SIX,
    STEP,
    TRAIN,
    VALUES,
    WATCHED,
    group,
    line,
)
from tests.shown import unlike, whole
from tflab.records import watched as records
from tflab.records.measured import Load
from tflab.records.timed import Owner
from tflab.run import sampler, view


def but(**fields):
    """The program with these fields instead of its own."""
    return replace(WATCHED, **fields)


def groups(*added):
    steps = tuple(Owner(f"steps of group {at}", 1_000) for at, _ in enumerate(added, 3))
    owners = (*WATCHED.process.owners[2:4], *steps)
    spent = records.Process(4_400 + 1_000 * len(added), owners)
    return but(groups=(INIT, TRAIN, *added), process=spent)


def process(*owners):
    owners = tuple(Owner(name, ns) for name, ns in owners)
    return records.Process(sum(owner.ns for owner in owners), owners)


LATER = group(*("all later runs", (), {}, 151, 9.0, 9, 9), traced=9, first_runs=150)
OF_STEP = replace(TRAIN, graph="function step", fetches=("step",))
UNTRACED = replace(TRAIN, traced=0, cold_ns=0, total_ns=1_000)
NUMBERED = tuple((f"owner {number}", number**3) for number in range(1, 10))
ALIKE = tuple((f"owner {number}", 100) for number in range(10))
EAGER = but(
    groups=(),
    process=process((sampler.EAGER, 200), ("end of Python", 9_800)),
    costliest=records.SampledLine("a.py:3", 500, 400),
)
CHANGED = tuple((name, "1", "2") for name in "abcde")
LITTLE = records.TracedFunction("little", "a.py:1", 1, 2, 300_002, 1, "a.py:1", CHANGED)
SAME = replace(LITTLE, functions=2, changed=())
THREE = replace(SAME, functions=3, tracings=3)
THREADS = but(groups=(INIT, replace(TRAIN, in_other_threads=3)))
# Of each, the lines are approved that are unlike those of WATCHED
CASES = {
    "a module": but(program=("-m", "package.train"), exit_status=3),
    "ended by a signal": but(exit_status=-15),
    "interrupted by --steps": but(stopped=True, notes=("A note.",)),
    "groups of other fetches": groups(LATER),
    "a growing graph": but(
        grown_graphs=(records.GrownGraph(1, 30, 182, 11, 10, {"a.py:3": 150, "a.py:4": 2}),)
    ),
    "a growing graph of four lines": but(
        grown_graphs=(
            records.GrownGraph(2, 1, 41, 11, 10, {f"a.py:{at}": 9 for at in range(4, 8)}),
        )
    ),
    "kept results": but(kept_results=(records.KeptResults("step", 1_024, 2_048, "a.py:3"),)),
    "growing memory": but(grown_memory=records.GrownMemory(2**29, 2**30, "")),
    "growing memory, at a line": but(
        grown_memory=records.GrownMemory(2**29, 2**30, "a.py:3 in main")
    ),
    "findings": but(findings=("Half of it is lost.", "Try less.")),
    "runs that wait for data": but(
        input_pipeline=records.InputPipeline(
            2, 4, 2_000, "Map", records.SampledLine("data.py:2 in load", 1_900, 900)
        )
    ),
    "a program that waits for data": but(
        input_pipeline=records.InputPipeline(0, 4, 2_000, "", None)
    ),
    "an eager program that waits for data": but(
        input_pipeline=records.InputPipeline(0, 0, 2_000, "", None)
    ),
    "a pipeline that keeps up": but(input_pipeline=records.InputPipeline(2, 4, 98, "Map", None)),
    "waits for children": but(for_children=records.SampledLine("a.py:9 in main", 4_925, 40)),
    "waits for children for less than half": but(
        for_children=records.SampledLine("a.py:9 in main", 4_924, 40)
    ),
    "nine types of ops": but(
        ops=tuple(records.WatchedOp(f"Op{at}", 9 - at, 0.1) for at in range(9))
    ),
    "many shapes": but(groups=(TRAIN, replace(TRAIN, feeds={"x:0": "(9, 4)"}), LATER)),
    "a function": but(groups=(INIT, OF_STEP)),
    "a function of three tracings": but(groups=(INIT, replace(OF_STEP, first_runs=3))),
    "steps that wait for data": but(
        process=process(("waiting for data in group 2", 6), ("steps of group 2", 4))
    ),
    "sessions and a function": groups(OF_STEP),
    "a group without names": groups(group("other graphs", calls=3, cold_ns=500)),
    "no traces": but(groups=(INIT, replace(TRAIN, traced=0))),
    "one traced run": but(groups=(INIT, replace(TRAIN, traced=1))),
    "two groups were not traced": but(groups=(UNTRACED, UNTRACED)),
    "lines without time": but(lines=(line("a.py", 1, "x", ("x",)),) * 2),
    "many owners": but(groups=(), process=process(*NUMBERED)),
    "steps are always shown": but(
        process=process(*ALIKE, ("steps of group 1", 5), ("steps of group 2", 7))
    ),
    "a line of less than a tenth": but(costliest=records.SampledLine("train.py:9", 469, 400)),
    "a line of a tenth": but(costliest=records.SampledLine("train.py:9", 470, 400)),
    "a line with runs": but(
        costliest=records.SampledLine("train.py:9", 470, 400),
        with_runs=records.SampledLine("train.py:9", 4_925, 1_000),
    ),
    "a line of few samples": but(costliest=records.SampledLine("train.py:9", 985, 100)),
    "a busy machine": but(load=Load(2, 0.6)),
    "a quiet machine": but(load=Load(2, 0.5)),
    "a run that did not end": but(
        process=process(("steps of group 2", 300), ("a run that did not end, of group 2", 700)),
        open_run=records.OpenRun(2, 700, "train.py:9"),
    ),
    "no line": but(costliest=None),
    "runs in other threads": replace(
        THREADS,
        process=process(
            *((sampler.BETWEEN, 300), ("steps of group 2", 3_000), (sampler.AFTER, 800))
        ),
    ),
    "runs in other threads alone": replace(
        THREADS,
        process=process(("end of Python", 5_000)),
        costliest=records.SampledLine("train.py:9", 100, 400),
    ),
    "eager": EAGER,
    "eager, but not seen to its end": replace(
        EAGER, process=process((sampler.EAGER, 200), ("not seen", 9_800))
    ),
    "eager, with a fault": replace(
        EAGER, notes=("tflab stopped watching because of this error: KeyError: 'x'",)
    ),
    "functions traced again": but(functions=(STEP, OTHER)),
    "a function traced once": but(functions=(OTHER,)),
    "a function traced again for less than 1 %": but(
        functions=(replace(STEP, ns=500_098),),
    ),
    "the longest to trace again": but(functions=(STEP, OTHER, LITTLE)),
    "two functions, each traced once": but(functions=(SAME,)),
    "new functions, each traced once": but(functions=(THREE,)),
    "traced again with the same arguments": but(functions=(replace(SAME, tracings=3),)),
}


def nan(at=TRAIN, number=2, **fields):
    """The program with recorded values, and with what its largest group fetched."""
    return but(groups=(INIT, at), values=replace(VALUES, **{"group": number} | fields))


W = replace(MADE_NAN, tensor="w", node="w", kind="variable")
FOUND = replace(TRAIN, not_finite={"loss:0": 7, "mean:0": 4})
LOOKED = replace(TRAIN, not_finite={})


CASES |= {
    "NaN from three nodes": nan(),
    "NaN from two nodes": nan(origins=VALUES.origins[:2]),
    "finite values": nan(values=(SIX,), origins=()),
    "NaN fetched in a later run": nan(FOUND),
    "NaN fetched in the recorded run": nan(FOUND, run=4),
    "NaN fetched by another group": nan(FOUND, 1),
    "no NaN fetched": nan(LOOKED),
    "NaN fetched, without recorded values": but(groups=(INIT, FOUND)),
    "NaN returned by a function": but(
        groups=(
            INIT,
            replace(OF_STEP, not_finite={"result 0": 12}),
        )
    ),
    "NaN of a function that ran op by op": nan(group=0, function="step", run=12, values=()),
    "NaN of a function that ran op by op, whose next call returned it": replace(
        nan(group=0, function="step", run=11, values=()),
        groups=(
            INIT,
            replace(OF_STEP, not_finite={"result 0": 12}),
        ),
    ),
    "no NaN in a function that ran op by op": nan(
        group=0, function="step", run=12, values=(), origins=()
    ),
    "the recorded run follows the one that fetched NaN": nan(FOUND, run=5),
    "the recorded run was finite, before the one that fetched NaN": nan(
        FOUND, values=(SIX,), origins=()
    ),
    "the recorded call was finite, before the one that returned NaN": replace(
        nan(group=0, function="step", run=11, values=(), origins=()),
        groups=(
            INIT,
            replace(OF_STEP, not_finite={"result 0": 12}),
        ),
    ),
    "a variable had NaN long before a run fetched some": nan(FOUND, run=2, origins=(W,)),
}


def test_everything_that_is_said():
    usual = [*whole(view.blocks(WATCHED, True))]
    told = list(usual)
    for name, seen in CASES.items():
        told += ["", f"# {name}", *unlike(usual, whole(view.blocks(seen, True)))]
    approve("run.txt", "\n".join(told))
