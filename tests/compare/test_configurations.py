"""Race: which configurations share a process, in which order they run, and what is made of it."""

from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import pytest

from tflab.compare import configurations
from tflab.compare.configurations import Process
from tflab.runtime import measure

pytestmark = pytest.mark.tensorflow
SHARED = {"TF_OVERRIDE_GLOBAL_THREADPOOL": "1"}
NO_ONEDNN = {"TF_ENABLE_ONEDNN_OPTS": "0"}
PROCESSES = [Process({}, ["default", "control", "xla"]), Process(NO_ONEDNN, ["no-onednn"])]


def test_settings_of_a_process_and_what_the_environment_decides_have_their_default_and_control():
    """The one beside them in their process, the other each in a process of its own."""
    assert configurations.processes_of(["default", "no-onednn", "xla", "one-thread"]) == [
        Process({}, ["default"]),
        Process({"TFLAB_CONTROL": "1"}, ["control"]),
        Process(NO_ONEDNN, ["no-onednn"]),
        Process({}, ["default", "control", "xla"]),
        Process(SHARED, ["default", "control", "one-thread"]),
    ]
    alone = configurations.processes_of(["default", "xla"])
    assert alone == [Process({}, ["default", "control", "xla"])]


def test_each_configuration_is_compared_with_the_default_of_its_own_process_or_one_alone():
    processes = configurations.processes_of(["default", "no-onednn", "xla", "one-thread"])
    assert configurations.opponents(processes) == {
        "default": ((0, "default"), (0, "default"), (1, "control")),
        "no-onednn": ((2, "no-onednn"), (0, "default"), (1, "control")),
        "xla": ((3, "xla"), (3, "default"), (3, "control")),
        "one-thread": ((4, "one-thread"), (4, "default"), (4, "control")),
    }


def test_what_changes_nothing_is_not_measured(monkeypatch, capsys):
    configs = ("default", "no-onednn", "one-thread", "xla")
    for is_on, names in ((True, configs), (False, ("default", "xla"))):
        monkeypatch.setattr(configurations.graphs, "onednn_is_on", lambda is_on=is_on: is_on)
        monkeypatch.setattr("os.sched_getaffinity", lambda _, n=is_on: range(n + 1), raising=False)
        assert configurations.changing(configs) == names
    assert capsys.readouterr().err == (
        "tflab: `no-onednn` is not measured, because oneDNN is off here anyway.\n"
        "tflab: `one-thread` is not measured, because there is one processor anyway.\n"
    )


@pytest.fixture
def processes(monkeypatch):
    """The processes that were started, each by its jobs, and the turns that they took: a step
    takes 100 ns in the first turn, 101 in the second, and so on."""
    log = SimpleNamespace(started=[], turns=[])

    @contextmanager
    def untraced(environment, jobs, rows, batch_sizes, rounds, turns):
        log.started.append(jobs)

        def process():
            yield [{size: [] for size in batch_sizes} for _ in jobs]
            for ns in count(100):
                log.turns.append(sorted(jobs))
                yield [{size: [ns] * rounds for size in batch_sizes} for _ in jobs]

        yield process()

    monkeypatch.setattr(measure, "untraced", untraced)
    monkeypatch.setattr(configurations, "TURNS", 4)
    return log


JOBS = {name: name for name in ("default", "control", "xla", "no-onednn")}
PLACES = {(0, "default"), (0, "control"), (0, "xla"), (1, "no-onednn")}


def test_every_process_takes_a_turn_before_one_takes_its_next(processes):
    observed = list(configurations.observations(JOBS, PROCESSES, [], [4], range(3)))
    assert [{*times} for times in observed] == [PLACES] * 3
    assert len(processes.started) == 2 * 3
    rounds = [tuple(map(tuple, processes.turns[at : at + 2])) for at in range(0, 24, 2)]
    a, b = ("control", "default", "xla"), ("no-onednn",)
    assert len(processes.turns) == 24
    assert set(rounds) == {(a, b), (b, a)}


def test_the_times_of_all_turns_are_kept_in_their_order(processes):
    (observed,) = configurations.observations(JOBS, PROCESSES, [], [4], range(1), rounds=2)
    assert observed == {place: {4: [100, 100, 101, 101, 102, 102, 103, 103]} for place in PLACES}


def test_when_the_time_of_an_observation_is_over_no_further_turn_begins(processes):
    (observed,) = configurations.observations(JOBS, PROCESSES, [], [4], range(1), -1)
    assert observed[0, "xla"] == {4: [100] * configurations.ROUNDS}


def test_no_configuration_is_always_the_first_whose_session_is_made(processes):
    list(configurations.observations(JOBS, PROCESSES, [], [4], range(9)))
    assert {names[0] for names in processes.started} == {*JOBS}


AGAINST = configurations.opponents(PROCESSES[:1])


def times(default, control, xla):
    return {(0, "default"): {4: default}, (0, "control"): {4: control}, (0, "xla"): {4: xla}}


def test_an_observation_is_the_median_ratio_of_its_rounds_and_so_is_its_control():
    observed = [
        times([100, 110, 900], [110, 110, 1], [200, 220, 1]),
        times([100, 100, 100], [99, 99, 99], [201, 201, 201]),
        times([50, 100, 100], [98, 98, 98], [199, 199, 250]),
    ]
    default, xla = configurations.judged(observed, AGAINST, [4])
    assert (default.config, default.batch_size, default.verdict) == ("default", 4, None)
    spread = default.untraced_ns
    assert (spread.median, spread.p10, spread.p90) == pytest.approx((100, 90, 268))
    # The medians of 2, 2 and 1 / 900, of three times 2.01, and of 3.98, 1.99 and 2.5
    ratio = (2 * 2.01 * 2.5) ** (1 / 3)
    assert xla.verdict.ratio == pytest.approx(ratio)
    # The control's mean is that of 1 (of 1.1, 1 and 1 / 900), 0.99 and 0.98
    middle = (xla.verdict.control_low * xla.verdict.control_high) ** 0.5
    assert middle == pytest.approx((1.0 * 0.99 * 0.98) ** (1 / 3))
    assert (xla.verdict.observations, xla.untraced_ns.median) == (3, 201)
    # The times beside the ratio are those of its turns
    default_ns = (110 * 100 * 100) ** (1 / 3)
    assert (xla.default_ns, xla.step_ns) == pytest.approx((default_ns, default_ns * ratio))


def test_a_configuration_that_differs_no_more_than_the_control_is_not_called_slower():
    still = [times([100], [100 + number], [200]) for number in (0, 1, 0)]
    assert [
        row.verdict and row.verdict.word for row in configurations.judged(still, AGAINST, [4])
    ] == [None, "slower"]
    wild = [times([100], [number], [200]) for number in (100, 220, 180)]
    (_, xla) = configurations.judged(wild, AGAINST, [4])
    assert (xla.verdict.low, xla.verdict.word) == (pytest.approx(2.0), "cannot tell")


def test_a_disturbance_of_one_step_in_a_round_does_not_move_the_observation():
    # Half of the steps of either are disturbed, and the ratios are 2, 20, 2, 0.2, 2
    observed = times([100, 100, 100, 1000, 100], [100] * 5, [200, 2000, 200, 200, 200])
    _, xla = configurations.judged([observed] * 3, AGAINST, [4])
    assert xla.verdict.ratio == pytest.approx(2)
