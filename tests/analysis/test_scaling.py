"""Scaling: speed-up, what a byte costs and Amdahl's law, from rows that were made to follow it."""

import pytest

from tflab.analysis import scaling
from tflab.records import Spread
from tflab.records.cluster import WireTensor
from tflab.records.scaling import Amdahl, Extrapolated, ScalingRow, WireCost


def row(tasks, ns, bytes_=0):
    return ScalingRow(tasks, 10, Spread(ns, ns, ns), 1.0, 1.0, None, None, 3, bytes_)


def tensor(bytes_, ns):
    return WireTensor("t", "task 0", "task 1", 1, bytes_, ns, 0.0)


def test_speed_up_is_against_this_process_alone_and_efficiency_by_task():
    rows = scaling.against_alone([row(0, 1000), row(1, 1250), row(4, 400)])
    assert [(r.speed_up, r.efficiency) for r in rows] == [(1.0, None), (0.8, 0.8), (2.5, 0.625)]


def test_a_message_has_a_fixed_cost_and_one_by_the_byte():
    # 100 ns and 2 ns a byte
    cost = scaling.wire_cost([tensor(0, 100), tensor(50, 200), tensor(200, 500)])
    assert cost == WireCost(pytest.approx(100), pytest.approx(2), 3)


def test_messages_of_one_size_do_not_say_what_a_byte_costs():
    assert scaling.wire_cost([tensor(4, 100), tensor(4, 300)]) is None
    assert scaling.wire_cost([]) is None


def test_where_larger_messages_were_faster_a_byte_costs_nothing():
    assert scaling.wire_cost([tensor(0, 300), tensor(100, 100)]) == WireCost(200, 0.0, 2)


# 600 ns serial and 1200 ns shared, and 1 ns a byte, 100 bytes a task
MADE = [row(0, 1500), row(1, 1900, 100), row(2, 1400, 200), row(4, 1300, 400)]


def test_amdahl_finds_the_serial_and_the_shared_part():
    fitted = scaling.amdahl(MADE, 1.0)
    assert fitted == Amdahl(pytest.approx(600), pytest.approx(1200), pytest.approx(0, abs=1e-9))
    assert fitted.serial_share == pytest.approx(1 / 3)


def further(tasks, ns, bytes_):
    """One that goes on along lines, which each version of Python fits in an order of its own."""
    return Extrapolated(tasks, *map(pytest.approx, (ns, 16e9 / ns, 1500 / ns, bytes_)))


def test_it_goes_on_with_the_bytes_of_more_tasks():
    fitted = Amdahl(600, 1200, 0.0)
    assert scaling.extrapolated(MADE, fitted, 1.0, 16) == (
        further(8, 1550, bytes_=800),
        further(16, 2275, bytes_=1600),
    )


def test_two_numbers_of_tasks_follow_no_law():
    assert scaling.amdahl(MADE[:3], 1.0) is None
    assert scaling.extrapolated(MADE, None, 1.0, 16) == ()


def test_the_same_number_of_tasks_twice_is_one_number():
    assert scaling.amdahl([row(2, 100), row(2, 110), row(2, 120)], 0.0) is None
    assert scaling.amdahl([row(1, 100), row(2, 110), row(2, 120)], 0.0) is None


def test_in_whatever_order_they_were_measured_it_goes_on_from_the_most_tasks():
    turned = [MADE[0], *MADE[:0:-1]]
    found = scaling.extrapolated(turned, Amdahl(600, 1200, 0.0), 1.0, 16)
    assert [row.tasks for row in found] == [8, 16]


def test_from_a_bad_fit_nothing_follows():
    assert scaling.extrapolated(MADE, Amdahl(600, 1200, 0.21), 1.0, 16) == ()


def test_where_tasks_only_cost_nothing_is_shared():
    fitted = scaling.amdahl([row(1, 100), row(2, 110), row(4, 120)], 0.0)
    assert fitted == Amdahl(110, 0.0, pytest.approx(0.1))


def test_no_part_is_negative():
    # 1000 / tasks fits with less than nothing serial
    fitted = scaling.amdahl([row(1, 1000), row(2, 450), row(4, 200)], 0.0)
    assert (fitted.serial_ns, fitted.serial_share) == (0.0, 0.0)
    assert fitted.parallel_ns == pytest.approx((1000 + 225 + 50) / (1 + 1 / 4 + 1 / 16))
