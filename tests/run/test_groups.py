"""Groups of runs: what is kept of a million runs is of constant size, and its sums are exact."""

from types import SimpleNamespace

import pytest

from tests.examples.watched import RUNS
from tflab.run import groups

GRAPH = SimpleNamespace(version=17)


def group_of(first_ns, *others_ns, main=True, timed=True):
    group = groups.RunGroup(3, GRAPH, ("loss:0",), {"x:0": "(8,)"})
    for number, took_ns in enumerate((first_ns, *others_ns)):
        group.add(took_ns, SimpleNamespace(first=not number, timed=timed, failed=False), main)
    return group


def test_the_first_run_is_kept_apart_from_the_sum_of_the_others():
    group = group_of(900, 10, 30, 20)
    group.ops = {"y": (2, 70, 2, 40)}
    own = {"number": 3, "graph": 2, "fetches": ("loss:0",), "feeds": {"x:0": "(8,)"}, "calls": 4}
    spent = {"cold_ns": 900, "total_ns": 60, "main_ns": [900, 60], "traced_ns": 0}
    sample = {"times": [10, 30, 20], "ops": {"y": (2, 70, 2, 40)}}
    assert group.segment(["other", GRAPH]) == RUNS | own | spent | sample
    elsewhere = group_of(900, 10, main=False, timed=False)
    assert (elsewhere.main_ns, elsewhere.total_ns, elsewhere.times) == ([0, 0], 10, [])
    assert elsewhere.in_other_threads == 2
    assert groups.RunGroup(1, None, (), {}).segment([])["graph"] == 0


def test_a_run_that_failed_takes_time_but_does_not_count():
    group = group_of(900, 10, 30)
    for main in (True, False):
        group.add(500, SimpleNamespace(first=False, timed=False, failed=True), main)
    assert (group.calls, group.total_ns, group.main_ns) == (3, 1_040, [900, 540])
    assert (group.times, group.in_other_threads) == ([10, 30], 0)


def test_a_later_group_has_the_first_run_of_all_that_runs_in_it(monkeypatch):
    monkeypatch.setattr(groups, "MOST_BEGUN", 2)
    later = groups.RunGroup(101, None, (), {}, "step", later=True)
    for key, took_ns in (("a", 900), ("b", 800), ("a", 10), ("c", 30)):
        later.add(took_ns, SimpleNamespace(first=later.begin(key), timed=True, failed=False), True)
    assert (later.first_runs, later.cold_ns) == (2, 1_700)  # c is one too many to recognise
    assert (later.calls, later.total_ns, later.times) == (4, 40, [10, 30])
    other = groups.RunGroup(1, None, (), {})
    assert [other.begin(key) for key in "ab"] == [True, False]


def test_the_times_of_many_runs_are_a_random_sample(monkeypatch):
    """Each of 4,000 runs is in the sample of 100 with the same probability: of each half there are
    50, and 5 is the standard deviation."""
    monkeypatch.setattr(groups, "KEPT_TIMES", 100)
    group = group_of(1, *range(4_000))
    assert len(group.times) == 100
    assert 30 <= sum(took_ns < 2_000 for took_ns in group.times) <= 70


def test_the_usual_time_is_the_median_of_the_last_nine():
    assert group_of(700).usual_ns() == 700
    assert group_of(700, 1, 2, *range(100, 109)).usual_ns() == 104


def test_a_trace_is_affordable_if_its_cost_fits_into_the_share_since_the_last_one():
    group = group_of(500, *[100] * 20)
    # The first trace is assumed to cost half a step, 50 of 2,000 ns
    assert group.affords(0.025)
    assert not group.affords(0.024)
    group.traced_at_ns = 1_500
    assert group.affords(0.1)
    assert not group.affords(0.099)
    for cost_ns in (1, 1, 30, 30, 900, 20, 40):  # 30 is the median of the last five
        group.costs.append(cost_ns)
    assert group.affords(0.06)
    assert not group.affords(0.059)


def test_the_first_trace_of_a_long_step_does_not_wait_for_its_sixtieth_run():
    """19 runs of 1.29 s, 5 % / 6 of which may go to traces: 50 ms of 6 s."""
    seconds, share = 1_290_000_000, 5 / 600
    assert [group_of(seconds, *[seconds] * runs).affords(share) for runs in (4, 5)] == [False, True]


def test_what_waits_for_data_is_scaled_to_all_runs():
    types = {"batch": "QueueDequeueManyV2", "y": "MatMul"}
    ops = [SimpleNamespace(name=name, type=op) for name, op in types.items()]
    group = groups.RunGroup(1, SimpleNamespace(get_operations=lambda: ops, version=2), (), {})
    group.calls, group.total_ns = 22, 20_000
    # Two dequeues at once, then one; `y` does not wait
    group.add_trace(900, ("batch", "batch", "y"), (0, 50, 400), (100, 150, 90))
    group.add_trace(900, ("batch",), (0,), (101,))
    assert group.waited_ns == 200 + 101
    assert group.all_waited_ns() == (3_160, 3_160)  # half of 301 * 21, in whole nanoseconds
    assert groups.RunGroup(1, None, (), {}).all_waited_ns() == (0, 0)


def test_the_ops_of_a_traced_run_are_added_up():
    group = group_of(900, 100, 100, 100, 100)
    group.data_nodes = frozenset()
    group.add_trace(90, ("y", "y", "z"), (0, 50, 20), (30, 10, 20))
    group.add_trace(90, ("y",), (7,), (35,))
    assert group.ops == {"y": (3, 75, 2, 40), "z": (1, 20, 1, 20)}
    assert group.covered == (50 + 35, 50)  # from 0 to 40 and from 50 to 60, and from 7 to 42
    assert group.scale() == 4 / 2


def test_ops_take_no_longer_than_the_runs_they_belong_to():
    """Three traced runs, before the program was warm, of 60 ns and more; a run takes 40 ns."""
    group = group_of(900, *[40] * 10)
    group.data_nodes = frozenset({"batch"})
    for longer_ns in (60, 70, 900):
        group.add_trace(longer_ns, ("batch", "y"), (0, 5), (longer_ns, 10))
    assert group.ops["batch"] == (3, 1_030, 3, 900)
    assert group.scale() == 400 / 195 < 10 / 3  # of the two shorter ones, and as long a third
    assert group.waited_ns == 1_030
    assert group.all_waited_ns() == (400, 400)


def test_of_a_few_runs_one_that_was_interrupted_does_not_stand_for_all():
    assert groups.without_longest(8, 1_070, 1_000) == 80  # seven of 10 ns
    assert groups.without_longest(3, 300, 100) == 300
    assert groups.without_longest(2, 1_020, 1_000) == 1_020  # too few to know


@pytest.mark.parametrize(
    ("waited_ns", "all_ns"),
    [
        (0, (0, 0)),
        (90, (900, 20_000 - 9_100)),
        (100, (20_000 - 9_000, 20_000 - 9_000)),
        (200, (20_000 - 8_000, 20_000 - 8_000)),
    ],
)
def test_a_profiled_call_of_a_function_waits_less_than_others(waited_ns, all_ns):
    """All that other calls take longer may be waiting: where a profiled one waits, it is."""
    group = groups.RunGroup(1, None, ("step",), {}, function="step")
    group.calls, group.total_ns = 11, 20_000
    group.add_trace(1_000, ("IteratorGetNext", "y"), (0, 300), (waited_ns, 500))
    assert group.all_waited_ns() == all_ns


class Tensor:
    """What a weak reference can be made to."""


@pytest.mark.parametrize(
    ("kept", "calls", "tensors"),
    [
        (lambda at: True, 256, 512),
        (lambda at: at % 20, 256, 488),  # 244 of 256 calls
        (lambda at: at % 8, None, None),  # seven of eight
        (lambda at: at <= 128, None, None),  # no more of the last calls
        (lambda at: False, None, None),
    ],
)
def test_results_are_kept_if_nine_of_ten_since_half_as_many_calls_are_alive(kept, calls, tensors):
    results, program = groups.Results(), []
    for at in range(1, 301):
        made = [Tensor(), Tensor()]
        results.add(made, lambda at=at: ("/a/train.py", at, "main"))
        if kept(at):
            program += made
    made = None
    expected = {"calls": calls, "tensors": tensors, "place": "train.py:256 in main"}
    assert results.found == (expected if calls else None)
    program.clear()
    assert not results.alive  # nothing is kept by counting


def test_the_first_results_of_a_call_are_counted_and_few_calls_are_not_told():
    results = groups.Results()
    program = [[Tensor() for _ in range(9)] for _ in range(64)]
    for made in program:
        results.add(made, lambda: None)
    assert len(results.alive) == 64 * groups.MOST_RESULTS
    assert results.found is None
    nothing = groups.Results()
    for _ in range(200):
        nothing.add([], lambda: None)
    assert nothing.found is None
