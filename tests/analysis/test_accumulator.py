"""The accumulator: exact sums and 1 % quantiles of runs that nobody keeps."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tflab.analysis import accumulator as sketch
from tflab.analysis import statistics
from tflab.analysis.accumulator import Accumulator
from tflab.records.measured import NodeStats
from tflab.records.timed import OpRun

WITHIN_1_PERCENT = 0.01 * (1 + 1e-9)  # a duration may lie on the very bound of its bucket

DURATIONS = st.one_of(*(st.integers(0, 2**bits) for bits in (2, 10, 20, 30, 42)))  # to an hour
RUNS = st.tuples(st.sampled_from("abcd"), st.integers(0, 2**20), DURATIONS)
STEPS = st.lists(st.lists(RUNS, max_size=8), max_size=8)


def accumulated(*steps) -> Accumulator:
    """Statistics of steps, each a list of runs: (node, start, duration)."""
    accumulator = Accumulator()
    for step in steps:
        names, starts, durations = zip(*step, strict=True) if step else ((), (), ())
        accumulator.add(list(names), list(starts), list(durations))
    return accumulator


def of_one_node(durations) -> Accumulator:
    return accumulated(*([("a", 0, duration)] for duration in durations))


def stats(accumulator: Accumulator) -> tuple[NodeStats, ...]:
    return accumulator.stats(dict.fromkeys("abcd", "Mul"), {}, {})


def exact(accumulator: Accumulator) -> tuple[NodeStats, ...]:
    return tuple(replace(node, median_ns=0, p95_ns=0, std_ns=0) for node in stats(accumulator))


def about(duration: float):
    """What the sketch may say where the truth is this; a duration of 0 counts as under 1 ns."""
    return pytest.approx(duration, rel=WITHIN_1_PERCENT, abs=0 if duration else 1)


@settings(max_examples=30)
@given(STEPS)
def test_kept_runs_and_an_accumulator_agree(steps):
    runs = [
        OpRun(step, name, "Mul", "", 10**18 + start, duration)
        for step, runs_of_step in enumerate(steps)
        for name, start, duration in [("", 0, 0), *runs_of_step]
    ]
    kept = [node for node in statistics.fold(runs) if node.name]
    for exactly, nearly in zip(kept, stats(accumulated(*steps)), strict=True):
        assert nearly == replace(
            exactly,
            mean_ns=pytest.approx(exactly.mean_ns),
            median_ns=about(exactly.median_ns),
            p95_ns=about(exactly.p95_ns),
            start_ns=pytest.approx(exactly.start_ns),
            std_ns=pytest.approx(exactly.std_ns, rel=1e-6, abs=1e-3),
        )


# Exactly


def test_the_runs_of_a_node_are_folded_into_one_record():
    accumulator = accumulated([("a", 5, 10), ("b", 20, 7)], [("a", 7, 30)])
    assert exact(accumulator) == (
        NodeStats("a", "Mul", "", 2, 40, 20, 0, 0, start_ns=6, requested_bytes=0, std_ns=0),
        NodeStats("b", "Mul", "", 1, 7, 7, 0, 0, start_ns=20, requested_bytes=0, std_ns=0),
    )
    assert (accumulator.steps, accumulator.total_ns()) == (2, 47)


def test_type_device_and_memory_are_looked_up_by_name():
    (a, b) = accumulated([("a", 0, 1), ("b", 0, 1)]).stats(
        {"a": "_FusedConv2D", "b": "Mul"}, {"a": "CPU:0"}, {"a": 64}
    )
    assert (a.op, a.device, a.requested_bytes) == ("_FusedConv2D", "CPU:0", 64)
    assert (b.op, b.device, b.requested_bytes) == ("Mul", "", 0)


def test_what_has_no_type_is_a_node_of_no_graph_and_left_out():
    accumulator = accumulated([("_SOURCE", 0, 1), ("a", 1, 2)])
    assert [node.name for node in stats(accumulator)] == ["a"]


def test_nodes_stand_in_the_order_in_which_they_were_first_seen():
    accumulator = accumulated([("c", 0, 1), ("a", 0, 1)], [("b", 0, 1), ("a", 0, 1)])
    assert [node.name for node in stats(accumulator)] == ["c", "a", "b"]


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS)
def test_counts_sums_extremes_and_means_are_those_of_numpy(steps):
    expected = []
    runs = [run for step in steps for run in step]
    for name in dict.fromkeys(name for name, _, _ in runs):
        starts, times = np.array([run[1:] for run in runs if run[0] == name]).T
        total, mean = int(times.sum()), times.mean()
        expected.append(
            NodeStats(name, "Mul", "", len(times), total, mean, 0, 0, starts.mean(), 0, 0)
        )
    accumulator = accumulated(*steps)
    assert exact(accumulator) == tuple(expected)
    assert (accumulator.steps, accumulator.total_ns()) == (len(steps), sum(run[2] for run in runs))


@pytest.mark.parametrize(
    "runs", [sketch.CHUNK - 1, sketch.CHUNK, sketch.CHUNK + 1, 2 * sketch.CHUNK]
)
def test_no_run_is_lost_or_counted_twice_at_the_border_of_a_chunk(runs):
    durations = range(1, runs + 1)
    (node,) = stats(of_one_node(durations))
    assert (node.calls, node.total_ns) == (runs, sum(durations))
    assert node.median_ns == about(nearest_rank(durations, 50))


def test_a_node_that_first_appears_late_has_only_its_own_runs():
    accumulator = of_one_node([50] * sketch.CHUNK)
    accumulator.add(["b", "a"], [3, 0], [2, 1])
    (a, b) = exact(accumulator)
    assert (a.calls, a.total_ns) == (sketch.CHUNK + 1, 50 * sketch.CHUNK + 1)
    assert b == NodeStats("b", "Mul", "", 1, 2, 2, 0, 0, start_ns=3, requested_bytes=0, std_ns=0)


def test_asking_in_between_changes_nothing():
    read_between, left_alone = accumulated([("a", 1, 2)]), accumulated([("a", 1, 2)])
    assert stats(read_between) == stats(read_between)
    for accumulator in (read_between, left_alone):
        accumulator.add(["b", "a"], [4, 5], [6, 7])
    assert stats(read_between) == stats(left_alone)


def test_ctrl_c_while_folding_counts_nothing_twice(monkeypatch):
    accumulator = accumulated([("a", 0, 5)])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(np, "unique", interrupted)
        accumulator.total_ns()
    assert accumulator.total_ns() == 5


# Deviations


def deviation(durations):
    """What NumPy says; both are sums of rounded numbers, so they agree to many digits, not all."""
    return pytest.approx(np.std(durations), rel=1e-9, abs=1e-12 * max(durations, default=0))


def steps_in(steps, names) -> list[int]:
    """The time that each step spends in some nodes."""
    return [sum(run[2] for run in step if run[0] in names) for step in steps]


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS)
def test_the_deviation_of_a_node_is_that_of_its_calls(steps):
    for node in stats(accumulated(*steps)):
        durations = [run[2] for step in steps for run in step if run[0] == node.name]
        assert node.std_ns == deviation(durations)


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS.filter(len), st.sets(st.sampled_from("abcd")))
def test_the_deviation_of_several_nodes_is_that_of_their_sum_in_a_step(steps, names):
    accumulator = accumulated(*steps)
    assert accumulator.step_std_ns([*names, *names]) == deviation(steps_in(steps, names))


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS.filter(len))
def test_deviations_are_the_same_however_often_they_are_asked_for(steps):
    read_between = Accumulator()
    for step in steps:
        read_between.add(*([run[at] for run in step] for at in range(3)))
        read_between.total_ns()  # folds
    assert read_between.step_std_ns("abcd") == deviation(steps_in(steps, "abcd"))
    for often, once in zip(stats(read_between), stats(accumulated(*steps)), strict=True):
        assert often.std_ns == pytest.approx(once.std_ns, rel=1e-9, abs=1e-12 * once.total_ns)


def test_deviations_grow_with_every_step_that_is_folded():
    steps = [
        [("a", 0, 10), ("b", 0, 7), ("c", 0, 2)],
        [("a", 0, 40)],
        [("a", 0, 25), ("b", 0, 100), ("b", 0, 3)],
        [("b", 0, 12)],
        [("a", 0, 90), ("b", 0, 1)],
    ]
    found = Accumulator()
    for folded, step in enumerate(steps, start=1):
        found.add(*([run[at] for run in step] for at in range(3)))
        if folded == 3:
            continue  # this step is folded together with the next one
        for names in ("a", "b", "ab", "abc"):
            assert found.step_std_ns(names) == deviation(steps_in(steps[:folded], names))
        for node in stats(found):
            calls = [run[2] for step in steps[:folded] for run in step if run[0] == node.name]
            assert node.std_ns == deviation(calls)


def test_nodes_that_are_slow_together_deviate_more_than_nodes_that_take_turns():
    together = accumulated([("a", 0, 10), ("b", 0, 10)], [("a", 0, 30), ("b", 0, 30)])
    in_turn = accumulated([("a", 0, 10), ("b", 0, 30)], [("a", 0, 30), ("b", 0, 10)])
    assert [node.std_ns for node in (*stats(together), *stats(in_turn))] == [10, 10, 10, 10]
    assert (together.step_std_ns("ab"), in_turn.step_std_ns("ab")) == (20, 0)


def test_a_small_deviation_of_long_runs_is_neither_lost_nor_overflowing():
    hour = 3_600 * 10**9
    durations = [hour + 1, hour - 1] * sketch.CHUNK
    accumulator = of_one_node(durations)
    (node,) = stats(accumulator)
    assert (node.std_ns, accumulator.step_std_ns("a")) == (1, 1)


def test_a_loop_deviates_by_call_and_by_step():
    accumulator = accumulated([("a", 0, 10), ("a", 10, 30)], [("a", 0, 10), ("a", 10, 30)])
    assert (stats(accumulator)[0].std_ns, accumulator.step_std_ns("a")) == (10, 0)


def test_of_too_many_nodes_only_each_has_a_deviation(monkeypatch):
    monkeypatch.setattr(sketch, "PAIRED", 1)
    accumulator = accumulated([("a", 0, 10)], [("a", 0, 30)])
    assert accumulator.step_std_ns("a") == 10
    accumulator.add(["b"], [0], [1])
    assert accumulator.step_std_ns("a") is None
    assert [node.std_ns for node in stats(accumulator)] == [10, 0]


def test_without_steps_there_is_no_deviation():
    assert Accumulator().step_std_ns("a") is None
    assert accumulated([], []).step_std_ns("a") == 0


# Quantiles


def nearest_rank(durations, percent: int) -> int:
    """The shortest that at least so many percent of all do not exceed."""
    return next(
        each
        for rank, each in enumerate(sorted(durations), start=1)
        if 100 * rank >= percent * len(durations)
    )


@pytest.mark.parametrize(
    "count, percent, rank",
    [(1, 95, 1), (2, 50, 1), (2, 95, 2), (19, 95, 19), (20, 95, 19), (21, 95, 20), (30, 10, 3)],
)
def test_a_quantile_is_the_run_of_the_nearest_rank(count, percent, rank):
    durations = [100 * at for at in range(1, count + 1)]
    assert of_one_node(durations).quantile(["a"], percent / 100) == about(100 * rank)


def test_the_p95_of_two_calls_is_the_longer_one():
    (node,) = stats(of_one_node([2_900, 11_000]))
    assert (node.median_ns, node.p95_ns) == (about(2_900), about(11_000))


def test_the_p95_of_twenty_calls_is_not_the_longest():
    (node,) = stats(of_one_node([100 * at for at in range(1, 21)]))
    assert node.p95_ns == about(1_900)


def test_a_quantile_is_of_the_nodes_that_were_asked_for_and_of_no_others():
    found = accumulated([("a", 0, 10), ("b", 0, 1_000), ("b", 0, 1_000)])
    assert found.quantile(["a"], 0.95) == about(10)
    with pytest.raises(ValueError, match=r"^without runs there is no quantile$"):
        found.quantile(["c"], 0.5)


def test_durations_beyond_the_whole_numbers_of_a_float_are_exact():
    (node,) = stats(of_one_node([2**53 + 1]))
    assert node.total_ns == 2**53 + 1


@pytest.mark.slow
@settings(max_examples=50)
@example([0], 50)
@example([1], 50)
@example([0, 1, 10**12], 50)
@given(st.lists(DURATIONS, min_size=1, max_size=60), st.integers(0, 100))
def test_a_quantile_is_within_1_percent_of_the_true_one(durations, percent):
    accumulator = of_one_node(durations)
    assert accumulator.quantile(["a"], percent / 100) == about(nearest_rank(durations, percent))


@pytest.mark.parametrize("durations", [[10**power] for power in range(13)])
def test_a_duration_of_any_magnitude_is_told_within_1_percent(durations):
    (node,) = stats(of_one_node(durations))
    assert (node.median_ns, node.p95_ns) == (about(durations[0]), about(durations[0]))


def test_quantiles_of_no_time_are_no_time():
    (node,) = stats(of_one_node([0, 0]))
    assert node == NodeStats("a", "Mul", "", 2, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS, st.sets(st.sampled_from("abcd")))
def test_the_quantile_of_several_nodes_is_that_of_all_their_runs(steps, names):
    durations = [run[2] for step in steps for run in step if run[0] in names]
    accumulator = accumulated(*steps)
    if durations:
        found_ns = accumulator.quantile([*names, *names], 0.95)
        assert found_ns == about(nearest_rank(durations, 95))
    else:
        with pytest.raises(ValueError, match="without runs there is no quantile"):
            accumulator.quantile(names, 0.5)


def test_the_inverted_distribution_function_of_many_runs_agrees():
    durations = np.random.default_rng(0).lognormal(10, 3, 20_000).astype(int)
    accumulator = of_one_node(durations.tolist())
    for q in (0.01, 0.5, 0.95, 0.999):
        expected = np.percentile(durations, 100 * q, method="inverted_cdf")
        assert accumulator.quantile(["a"], q) == about(expected)


# No runs


def test_without_runs_there_are_no_statistics():
    for accumulator in (Accumulator(), accumulated([], [])):
        assert (stats(accumulator), accumulator.total_ns()) == ((), 0)


def test_a_step_without_runs_is_a_step():
    assert accumulated([("a", 0, 1)], []).steps == 2


# Size


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_steps():
    names = [f"node{index}" for index in range(40)]
    durations = np.random.default_rng(0).lognormal(10, 1, (3_000, len(names))).astype(int)
    accumulator = Accumulator()

    def bytes_after(steps):
        for row in steps:
            accumulator.add(names, [0] * len(names), row.tolist())
        accumulator.total_ns()  # nothing waits any more
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before, after = bytes_after(durations[:1_000]), bytes_after(durations[1_000:])
    finally:
        tracemalloc.stop()
    assert after - before < 500_000  # the 80,000 runs themselves would be 5 MiB


def test_statistics_of_many_nodes_agree_with_their_quantiles():
    names = [f"node{index}" for index in range(3_000)]
    accumulator = Accumulator()
    for step in range(10):
        accumulator.add(names, [0] * len(names), [2**step] * len(names))
    stats = accumulator.stats(dict.fromkeys(names, "Mul"), {}, {})
    for node in (stats[0], stats[1_500], stats[-1]):
        assert node.median_ns == accumulator.quantile([node.name], 0.5)


def durations_of(*steps):
    accumulator = Accumulator()
    for durations in steps:
        accumulator.add([*durations], [0] * len(durations), [*durations.values()])
    return accumulator


def test_the_median_of_several_nodes_is_that_of_their_sum_in_a_step():
    accumulator = durations_of({"a": 1, "b": 9}, {"a": 5, "b": 5}, {"a": 30}, {"b": 4, "a": 8})
    assert accumulator.step_median_ns(["a", "b"]) == 10  # of 10, 10, 12, 30
    assert accumulator.step_median_ns(["a"]) == 5  # of 1, 5, 8, 30
    assert accumulator.step_median_ns(["b"]) == 4  # of 0, 4, 5, 9
    assert accumulator.step_median_ns([]) == 0


def test_the_median_of_many_steps_is_that_of_one_in_so_many(monkeypatch):
    monkeypatch.setattr(sketch, "SAMPLED", 8)
    monkeypatch.setattr(sketch, "CHUNK", 7)
    accumulator = durations_of(*({"a": number} for number in range(100)))
    accumulator.step_median_ns(["a"])
    assert accumulator._sample[:, 0].tolist() == [0, 16, 32, 48, 64, 80, 96]
    assert accumulator.step_median_ns(["a"]) == 48


def test_a_node_that_comes_late_took_no_time_before(monkeypatch):
    monkeypatch.setattr(sketch, "CHUNK", 1)
    accumulator = durations_of({"a": 1}, {"a": 1}, {"a": 1, "late": 7})
    assert accumulator.step_median_ns(["late"]) == 0
    assert accumulator.step_median_ns(["a", "late"]) == 1


def test_without_steps_or_with_too_many_nodes_there_is_no_median(monkeypatch):
    assert Accumulator().step_median_ns(["a"]) is None
    monkeypatch.setattr(sketch, "PAIRED", 1)
    assert durations_of({"a": 1, "b": 2}).step_median_ns(["a"]) is None
