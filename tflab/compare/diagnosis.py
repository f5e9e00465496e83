"""Diagnosis: why a step is slow, in at most three sentences.

They are ranked by the share of the step that they cost. `reasons` has the rules and their
sentences, `step_work` the measurements that they use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflab.compare import reasons
from tflab.compare.step_work import Evidence
from tflab.records.measured import ConfigTimes
from tflab.records.verdicts import Diagnosis, Experiments
from tflab.units import percent, time

MOST = 3  # sentences
LEAST_STEPS = 5  # traced; with fewer there is no diagnosis


def diagnose(
    evidence: Sequence[Evidence],
    configs: Sequence[ConfigTimes] = (),
    experiments: Mapping[int, Experiments] | None = None,
) -> tuple[Diagnosis, ...]:
    """The most expensive reasons, or that there is none.

    A reason that holds at several batch sizes is given for the one at which it costs most. If its
    ops were run once more, it includes what that added.
    """
    evidence = [batch for batch in evidence if batch.steps >= LEAST_STEPS]
    ranked = [reason for batch in evidence for rule in reasons.RULES for reason in rule(batch)]
    ranked += reasons.configurations(configs)
    ranked.sort(key=lambda reason: -reason.diagnosis.share)
    distinct: list[reasons.Reason] = []
    for reason in ranked:
        if not any(
            reason.subject == other.subject or reason.nodes & other.nodes for other in distinct
        ):
            distinct.append(reason)
    if distinct:
        return tuple(confirmed(reason, experiments or {}) for reason in distinct[:MOST])
    return tuple(nothing(max(evidence, key=lambda batch: batch.batch_size)) for _ in evidence[:1])


def confirmed(reason: reasons.Reason, experiments: Mapping[int, Experiments]) -> Diagnosis:
    """The diagnosis, with what its largest op added to a step when it was run once more."""
    diagnosis = reason.diagnosis
    of_size = experiments.get(diagnosis.batch_size)
    for row in of_size.ops if of_size else ():
        if row.name in reason.nodes:
            added = f"{time(row.once_more_ns)} [{time(row.low_ns)}, {time(row.high_ns)}]"
            sentence = f"{diagnosis.sentence} Running it again, {row.name} adds {added} to a step."
            return replace(diagnosis, sentence=sentence)
    return diagnosis


def nothing(batch: Evidence) -> Diagnosis:
    """A diagnosis that no rule applies, with the numbers closest to one."""
    node = max(batch.nodes, key=lambda node: node.ns, default=None)
    op = (
        f"the most expensive op, {node.name} ({node.op}), is "
        f"{percent(batch.cost_ns([node]) / batch.step_ns)} of it, and "
        if node
        else ""
    )
    sentence = (
        f"No single cause stands out: of a median step at batch {batch.batch_size} "
        f"({time(batch.step_ns)}), {op}{percent(batch.outside_ns / batch.step_ns)} is spent "
        f"outside of ops."
    )
    return Diagnosis(sentence, 0, 0, batch.batch_size, "none")
