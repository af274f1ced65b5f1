"""The order of a worker's events: every true one is accepted, and nothing out of order, doubled or left out."""

import itertools

import pytest

from rnnbench.domain.result import Sample, Timed
from rnnbench.launch.events import (
    Arrays,
    Built,
    Delivered,
    Done,
    Failed,
    First,
    Hello,
    Memory,
    Profiled,
    Rates,
    Reshaped,
    Samples,
    Sampling,
    Tried,
    Unprofiled,
    Warm,
)  # fmt: skip
from rnnbench.launch.order import ORDERS, EventOrder, name_of

HELLO, BUILT, FIRST, WARM = Hello(0, {}, "cpu"), Built(0, 1, "cpu"), First(1), Warm(1, 1)
SAMPLING, SAMPLES, MEMORY, DONE = Sampling(), Samples((Sample(1, 1.0),)), Memory(), Done()
ARRAYS, FILE, ERROR = Arrays("forward", "x"), Delivered("x"), Failed("ValueError", "x")
RATES = Rates((Timed(1, 1.0),), (Timed(1, 1.0),))
RESHAPED = Reshaped(change="batch", outcome="kept", calls=(1.0, 1.0))
TRIED = Tried("reset", "cannot")
PROFILED = Profiled(1, 1.0, 1.0, 1.0, (), 0.0, (), 0.0)

MEASURED = (HELLO, BUILT, FIRST, WARM, SAMPLING, SAMPLES, MEMORY, DONE)

#: What the worker's modes really send.
TRUE = [
    ("start", (HELLO, DONE)),
    ("abilities", (HELLO, TRIED, TRIED, DONE)),
    ("measure", MEASURED),
    ("measure", (HELLO, BUILT, ARRAYS, FIRST, ARRAYS, WARM, SAMPLING, SAMPLES, ARRAYS, ARRAYS, MEMORY, ARRAYS, DONE)),
    ("verify", (HELLO, BUILT, ARRAYS, DONE)),
    ("verify", (HELLO, BUILT, ARRAYS, BUILT, ARRAYS, ARRAYS, DONE)),
    ("limit", (HELLO, RATES, DONE)),
    ("limit", (HELLO, DONE)),
    ("graph", (HELLO, BUILT, BUILT, FILE, DONE)),
    ("graph", (HELLO, FILE, DONE)),
    ("graph", (HELLO, DONE)),
    ("story", (HELLO, FILE, DONE)),
    ("profile", (HELLO, BUILT, FIRST, WARM, PROFILED, DONE)),
    ("profile", (HELLO, Unprofiled("none"), DONE)),
    ("retrace", (HELLO, BUILT, FIRST, WARM, RESHAPED, RESHAPED, DONE)),
]


def fault(mode, events):
    order = EventOrder(mode)
    return next(filter(None, map(order.fault, events)), "")


@pytest.mark.parametrize(("mode", "events"), TRUE)
def test_what_workers_send_is_accepted(mode, events):
    assert fault(mode, events) == ""


@pytest.mark.parametrize(("mode", "events"), TRUE)
def test_an_error_may_come_at_any_time(mode, events):
    for count in range(len(events)):
        assert fault(mode, (*events[:count], ERROR)) == ""


def test_every_mode_of_the_worker_has_an_order():
    from rnnbench_worker.__main__ import MODES

    assert set(MODES) == set(ORDERS)


def test_a_measurement_with_any_one_event_left_out_doubled_or_swapped_is_refused():
    count = len(MEASURED)
    assert all(fault("measure", MEASURED[:at] + MEASURED[at + 1 :]) for at in range(count - 1))
    # Only sampling may begin again, where the first samples were still warm-up.
    doubled = [at for at in range(count) if not isinstance(MEASURED[at], Sampling)]
    assert all(fault("measure", MEASURED[: at + 1] + MEASURED[at:]) for at in doubled)
    for one, other in itertools.combinations(range(count), 2):
        swapped = list(MEASURED)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert fault("measure", swapped)


@pytest.mark.parametrize(
    ("mode", "events", "reason"),
    [
        ("measure", (BUILT,), "it sent 'built' first, where 'hello' was due"),
        ("measure", (HELLO, ARRAYS), "it sent 'arrays' after 'hello', where 'built' was due"),
        ("measure", (HELLO, BUILT, FIRST, WARM, WARM), "it sent 'warm' after 'warm', where 'sampling' was due"),
        ("measure", (*MEASURED[:4], SAMPLES), "it sent 'samples' after 'warm', where 'sampling' was due"),
        ("measure", (*MEASURED[:4], DONE), "it said it was done, but sent no 'sampling'"),
        ("measure", (*MEASURED[:5], DONE), "it said it was done, but sent no 'sampling' or 'samples'"),
        ("verify", (HELLO, BUILT, DONE), "it said it was done, but sent no 'arrays'"),
        ("verify", (HELLO, DONE), "it said it was done, but sent no 'built'"),
        ("start", (HELLO, SAMPLES), "it sent 'samples' after 'hello', where 'done' was due"),
        ("story", (HELLO, DONE), "it said it was done, but sent no 'file'"),
        ("profile", (HELLO, BUILT, FIRST, WARM, DONE), "it said it was done, but sent no 'profiled'"),
        ("retrace", (HELLO, BUILT, FIRST, WARM, DONE), "it said it was done, but sent no 'reshaped'"),
        ("limit", (HELLO, RATES, RATES), "it sent 'rates' after 'rates', where 'done' was due"),
    ],
)
def test_the_reason_names_what_came_and_what_was_due(mode, events, reason):
    assert fault(mode, events) == reason


def test_names_are_those_of_the_protocol():
    assert (name_of(Failed), name_of(Delivered), name_of(Sampling)) == ("error", "file", "sampling")
