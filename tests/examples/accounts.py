"""The account of a placement: every node of the user's graph has one fate."""

from collections import Counter

from tflab.analysis import fates
from tflab.views import words


def check(stage):
    """The account of a placement is closed."""
    passes = {step.name for step in stage.passes}
    assert [fate.name for fate in stage.ledger] == [node.name for node in stage.user_nodes]
    assert largest_count(fate.name for fate in stage.ledger) == 1
    assert {fate.fate for fate in stage.ledger} <= set(words.FATES)

    running = [node.name for node in stage.nodes]
    own = [fate.name for fate in stage.ledger if fate.fate == "executed"]
    made = [origin.name for origin in stage.origins]
    assert sorted(own + made) == sorted(running)
    assert largest_count(running) == 1

    others = (fate.into for fate in stage.ledger if fate.fate != "merged")
    assert {*others} <= {None, *running}
    assert {fate.by for fate in stage.ledger if fate.fate != "executed"} <= passes
    assert {fate.by for fate in stage.ledger if fate.fate == "executed"} <= {None, *passes}
    makers = {origin.origin.partition(", from ")[0] for origin in stage.origins}
    assert makers <= {*fates.ROLES.values(), *passes}
    check_counts(stage)


def largest_count(names):
    return max(Counter(names).values())


def check_counts(stage):
    """From the user's graph to the one that runs, no node comes or goes but by a pass."""
    counts = [len(stage.user_nodes), *(step.after for step in stage.passes)]
    assert [step.before for step in stage.passes] == counts[:-1]
    assert counts[-1] == len(stage.nodes)
    for step in stage.passes:
        assert step.before + len(step.added) - len(step.removed) == step.after
        gone = set(step.removed)  # others were taken out of computing, and stayed
        assert sorted(taken.name for taken in step.taken if taken.name in gone) == sorted(gone)
