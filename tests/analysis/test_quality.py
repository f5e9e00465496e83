"""Quality: which numbers say that a machine was busy, and the sentence made of them."""

from dataclasses import replace

import pytest

from tests.records_by_hand import BUSY
from tflab.analysis import quality
from tflab.records.timed import Spread
from tflab.records.verdicts import Load, Quality

QUIET = Load(cores=4, average=0.5, stolen_share=0.001)
AT_4 = quality.TakenTurns(
    batch_size=4,
    untraced=40,
    traced=20,
    untraced_ns=Spread(200_000, 100_000, 150_000),
    traced_ns=Spread(400_000, 300_000, 500_000),
    fed_bytes=4_096,
)
AT_16 = quality.TakenTurns(
    batch_size=16,
    untraced=40,
    traced=20,
    untraced_ns=Spread(900_000, 500_000, 1_000_000),
    traced_ns=Spread(1_200_000, 1_100_000, 1_300_000),
    fed_bytes=2**20,
)


def judged(load: Load = QUIET, at_16: quality.TakenTurns = AT_16) -> Quality:
    return quality.judge(load, [AT_4, at_16])


def test_a_quiet_machine_has_its_numbers_and_no_reason():
    assert judged() == Quality(
        quiet=True,
        reasons=(),
        cores=4,
        load_average=0.5,
        stolen_share=0.001,
        p90_to_p10=2.0,
        untraced_to_traced=0.75,
    )


@pytest.mark.parametrize("average, quiet", [(4.0, True), (4.01, False), (None, True)])
def test_more_load_than_cores_is_a_reason(average, quiet):
    judgement = judged(replace(QUIET, average=average))
    reasons = ("the load average before the measurement was 4.01 on 4 cores",)
    assert (judgement.quiet, judgement.reasons) == (quiet, () if quiet else reasons)
    assert judgement.load_average == average


def test_a_single_core_is_one():
    judgement = judged(Load(cores=1, average=1.5, stolen_share=None))
    assert judgement.reasons == ("the load average before the measurement was 1.50 on 1 core",)


@pytest.mark.parametrize("share, quiet", [(0.02, True), (0.035, False), (None, True)])
def test_stolen_time_is_a_reason(share, quiet):
    judgement = judged(replace(QUIET, stolen_share=share))
    reasons = ("during the measurement the host took 3.5 % of the processor time",)
    assert (judgement.quiet, judgement.reasons) == (quiet, () if quiet else reasons)
    assert judgement.stolen_share == share


@pytest.mark.parametrize(
    "p90, steps, quiet", [(15e5, 40, True), (16e5, 40, False), (16e5, 9, True)]
)
def test_steps_that_differ_widely_are_a_reason_where_they_are_many(p90, steps, quiet):
    spread = replace(AT_16.untraced_ns, p90=p90)
    judgement = judged(at_16=replace(AT_16, untraced=steps, untraced_ns=spread))
    reasons = ("p90 of the untraced steps at batch 16 is 3.2 x p10 (1.60 ms and 500 us)",)
    assert (judgement.quiet, judgement.reasons) == (quiet, () if quiet else reasons)
    assert judgement.p90_to_p10 == (p90 / 5e5 if steps == 40 else 1.5)


@pytest.mark.parametrize(
    "median, traced, quiet", [(1.26e6, 20, True), (1.32e6, 20, False), (1.32e6, 9, True)]
)
def test_untraced_steps_that_take_longer_than_traced_ones_are_a_reason(median, traced, quiet):
    spread = replace(AT_16.untraced_ns, median=median)
    judgement = judged(at_16=replace(AT_16, traced=traced, untraced_ns=spread))
    reasons = (
        "at batch 16 the untraced step took 1.10 x as long as the traced step (1.32 ms and 1.20 "
        "ms), though tracing only adds work",
    )
    assert (judgement.quiet, judgement.reasons) == (quiet, () if quiet else reasons)
    assert judgement.untraced_to_traced == (median / 1.2e6 if traced == 20 else 0.5)


def test_of_no_steps_nothing_is_known():
    assert quality.judge(QUIET, []) == Quality(True, (), 4, 0.5, 0.001, None, None)


def test_all_reasons_are_one_sentence():
    busy = judged(Load(2, 3.5, 0.1))
    assert quality.sentence(busy) == (
        "This machine was busy: the load average before the measurement was 3.50 on 2 cores; "
        "during the measurement the host took 10.0 % of the processor time. Conclusions are "
        "withheld; measure again on a quiet machine."
    )


def test_steps_that_only_differ_widely_may_do_so_by_themselves():
    wide = replace(AT_16, untraced_ns=replace(AT_16.untraced_ns, p90=16e5))
    assert quality.sentence(judged(at_16=wide)).startswith(
        "This machine was busy, or its step times vary naturally: p90 of the untraced steps"
    )
    loaded = judged(replace(QUIET, average=5.0), wide)
    assert quality.sentence(loaded).startswith("This machine was busy: the load average")


def test_short_steps_may_differ_widely():
    spread = Spread(99_000, 20_000, 110_000)
    judgement = judged(at_16=replace(AT_16, untraced_ns=spread))
    assert (judgement.quiet, judgement.p90_to_p10) == (True, 1.5)
    judgement = judged(at_16=replace(AT_16, untraced_ns=replace(spread, median=100_000)))
    assert (judgement.quiet, judgement.p90_to_p10) == (False, 5.5)


def test_steps_that_are_fed_more_than_a_cache_holds_say_nothing():
    spread = Spread(1_400_000, 100_000, 1_600_000)
    slow = replace(AT_16, untraced_ns=spread, fed_bytes=2**20 + 1)
    judgement = judged(at_16=slow)
    assert (judgement.quiet, judgement.p90_to_p10, judgement.untraced_to_traced) == (True, 1.5, 0.5)
    assert len(judged(at_16=replace(slow, fed_bytes=2**20)).reasons) == 2


@pytest.mark.parametrize(
    "judgement, disturbed", [(None, False), (judged(), False), (judged(Load(1, 2.0, None)), True)]
)
def test_where_nobody_looked_nothing_is_withheld(judgement, disturbed):
    assert quality.disturbed(judgement) is disturbed


def test_the_verdict_of_a_quiet_machine_has_its_numbers():
    known = Quality(True, (), 1, 0.25, 0.004, 1.5, 0.9)
    assert quality.verdict(known) == (
        "This machine was quiet enough: the load average before was 0.25 on 1 core; the host took "
        "0.4 % of the processor time; p90 of untraced steps is 1.5 x p10."
    )
    unknown = Quality(True, (), 1, None, None, None, None)
    assert quality.verdict(unknown) == "This machine was quiet enough: no sign of other load."


def test_the_verdict_of_a_busy_machine_is_the_sentence_that_stands_above_it():
    busy = Quality(False, ("this",), 1, 2.0, None, None, None)
    assert quality.verdict(busy) == quality.sentence(busy)


def test_even_if_busy_conclusions_are_shown_and_marked():
    busy = replace(BUSY, even_if_busy=True)
    assert not quality.disturbed(busy) and quality.disturbed(BUSY)
    assert quality.mark(busy) == " (the machine was busy)"
    assert quality.mark(replace(busy, quiet=True)) == quality.mark(None) == ""
    assert quality.sentence(busy).endswith(
        ". Conclusions are shown because of --even-if-busy; they may be wrong."
    )
    assert quality.judge(Load(2, 9.0, None), (), even_if_busy=True).even_if_busy
