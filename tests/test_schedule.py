"""The schedule, with a fake executor: rounds, their order, failures, noise, and resuming after an interruption."""

import threading
import time

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import make_case, make_launch
from rnnbench.domain.case import Method
from rnnbench.launch.schedule import launches_left, run_schedule, shuffled

CASES = [make_case(f"way-{number}", phase=phase) for number in range(6) for phase in ("forward", "train")]


class Fake:
    """Launches nothing. `fails` and `noisy` are the (case, round, attempt) that fail or are noisy."""

    def __init__(self, fails=(), noisy=()):
        self.fails = set(fails)
        self.noisy = set(noisy)
        self.asked = []

    def __call__(self, case, round_number, attempt):
        ask = (case, round_number, attempt)
        self.asked.append(ask)
        seconds = () if ask in self.fails else (1.0,)
        return make_launch(case, *seconds, round=round_number, attempt=attempt, noisy=ask in self.noisy)


def run(fake, cases=CASES, earlier=(), **method):
    return run_schedule(cases, Method(**method), earlier, fake)


def order(fake, round_number):
    return [case for case, number, _ in fake.asked if number == round_number]


def test_every_case_is_launched_once_in_every_round_and_rounds_do_not_mix():
    fake = Fake()
    launches = run(fake, launches=3)
    assert [number for _, number, _ in fake.asked] == sorted([0, 1, 2] * len(CASES))
    for number in range(3):
        assert sorted(case.key for case in order(fake, number)) == sorted(case.key for case in CASES)
    assert [(launch.case, launch.round, launch.attempt) for launch in launches] == fake.asked


def test_the_order_differs_from_round_to_round_and_from_seed_to_seed():
    orders = [tuple(shuffled(CASES, seed, number)) for seed in range(3) for number in range(3)]
    assert len(set(orders)) == 9
    assert tuple(CASES) not in orders


def test_the_same_seed_gives_the_same_order_again():
    one, two, other = Fake(), Fake(), Fake()
    run(one, seed=7)
    run(two, seed=7)
    run(other, seed=8)
    assert one.asked == two.asked
    assert one.asked != other.asked


def test_a_case_that_failed_is_not_launched_again_and_the_others_continue():
    broken = CASES[3]
    fake = Fake(fails={(broken, 1, 0)})
    run(fake, launches=4)
    assert [number for case, number, _ in fake.asked if case == broken] == [0, 1]
    assert len(fake.asked) == 4 * (len(CASES) - 1) + 2


def test_a_noisy_launch_is_repeated_at_the_end_of_its_round():
    busy = CASES[5]
    fake = Fake(noisy={(busy, 0, 0)})
    run(fake, launches=2, repeats=2)
    first_round = [(case, attempt) for case, number, attempt in fake.asked if number == 0]
    assert len(first_round) == len(CASES) + 1
    assert first_round[-1] == (busy, 1)
    assert len(order(fake, 1)) == len(CASES)


def test_a_launch_that_stays_noisy_is_repeated_no_more_than_allowed():
    busy = CASES[5]
    fake = Fake(noisy={(busy, number, attempt) for number in range(3) for attempt in range(9)})
    run(fake, launches=3, repeats=2)
    for number in range(3):
        assert [attempt for case, at, attempt in fake.asked if (case, at) == (busy, number)] == [0, 1, 2]


def test_no_repeats_means_that_noise_is_only_marked():
    fake = Fake(noisy={(case, 0, 0) for case in CASES})
    launches = run(fake, launches=1, repeats=0)
    assert len(launches) == len(CASES)
    assert all(launch.noisy for launch in launches)


def test_a_noisy_launch_that_fails_when_repeated_is_left_alone():
    case = CASES[0]
    fake = Fake(noisy={(case, 0, 0)}, fails={(case, 0, 1)})
    run(fake, launches=3, repeats=2)
    assert [(number, attempt) for one, number, attempt in fake.asked if one == case] == [(0, 0), (0, 1)]


class Slow(Fake):
    """Some launches take long, and the others no time. `at_once`: which began while which was under way."""

    def __init__(self, slow, **mishaps):
        super().__init__(**mishaps)
        self.slow = set(slow)
        self.under_way, self.at_once = [], set()
        self.lock = threading.Lock()

    def __call__(self, *ask):
        with self.lock:
            self.at_once |= {(one[:2], ask[:2]) for one in self.under_way}
            self.under_way.append(ask)
            launch = super().__call__(*ask)
        if ask in self.slow:
            time.sleep(0.3)
        with self.lock:
            self.under_way.remove(ask)
        return launch


def test_the_next_round_begins_while_the_last_launch_of_a_round_is_under_way_but_no_later_one():
    slow = CASES[0]
    fake = Slow({(slow, 0, 0)})
    run(fake, launches=4, ahead=3)
    beside = {number for (case, at), (other, number) in fake.at_once if (case, at) == (slow, 0)}
    assert beside == {0, 1}
    assert len(fake.asked) == len(set(fake.asked)) == 4 * len(CASES)


def test_a_case_is_never_launched_twice_at_a_time_and_not_again_when_it_has_failed():
    slow = CASES[0]
    fake = Slow({(slow, 0, 0)}, fails={(slow, 0, 0)})
    run(fake, launches=3, ahead=3)
    assert [ask for ask in fake.asked if ask[0] == slow] == [(slow, 0, 0)]
    assert all(one[0] != other[0] for one, other in fake.at_once)


def test_a_noisy_launch_that_ends_last_is_repeated_before_the_next_round_ends():
    busy = CASES[0]
    fake = Slow({(busy, 0, 0)}, noisy={(busy, 0, 0)})
    launches = run(fake, launches=2, repeats=1, ahead=3)
    assert [(launch.round, launch.attempt) for launch in launches if launch.case == busy] == [(0, 0), (0, 1), (1, 0)]


def test_a_finished_run_has_nothing_left_to_do():
    done = run(Fake(), launches=2)
    again = Fake()
    assert run(again, earlier=done, launches=2) == []
    assert again.asked == []
    assert len(launches_left(CASES, Method(launches=2), done)) == 0


def test_what_failed_before_an_interruption_is_not_tried_again():
    failed = make_launch(CASES[0], outcome="timeout")
    fake = Fake()
    run(fake, earlier=[failed], launches=2)
    assert CASES[0] not in {case for case, _, _ in fake.asked}
    assert len(fake.asked) == 2 * (len(CASES) - 1)


def test_launches_are_counted_before_they_are_made():
    assert len(launches_left(CASES, Method(launches=3), [])) == 3 * len(CASES)
    earlier = [make_launch(CASES[0], 1.0, round=0), make_launch(CASES[1])]
    assert len(launches_left(CASES, Method(launches=3), earlier)) == 3 * len(CASES) - 1 - 3
    noisy = [make_launch(CASES[0], 1.0, noisy=True)]
    assert len(launches_left(CASES[:1], Method(launches=1, repeats=1), noisy)) == 1
    assert len(launches_left(CASES[:1], Method(launches=1, repeats=0), noisy)) == 0


def test_earlier_launches_may_come_from_any_iterable():
    done = run(Fake(), launches=2)
    assert run(Fake(), earlier=iter(done[:-1]), launches=2) == done[-1:]
    broken = [make_launch(CASES[0])]
    fake = Fake()
    run(fake, earlier=iter(broken), launches=1)
    assert len(fake.asked) == len(CASES) - 1


FEW = CASES[:4]
MISHAPS = st.sets(st.tuples(st.sampled_from(FEW), st.integers(0, 2), st.integers(0, 2)), max_size=6)


@settings(deadline=None)
@given(fails=MISHAPS, noisy=MISHAPS, cut=st.integers(0, 40), launches=st.integers(1, 3), repeats=st.integers(0, 2))
def test_an_interrupted_run_and_its_continuation_do_what_an_uninterrupted_one_does(
    fails, noisy, cut, launches, repeats
):
    method = {"launches": launches, "repeats": repeats, "seed": 3}
    whole = run(Fake(fails, noisy), FEW, **method)
    before = whole[:cut]
    after = run(Fake(fails, noisy), FEW, earlier=before, **method)
    everything = [(launch.case, launch.round, launch.attempt) for launch in (*before, *after)]
    assert len(set(everything)) == len(everything)
    assert set(everything) == {(launch.case, launch.round, launch.attempt) for launch in whole}


@settings(deadline=None)
@given(fails=MISHAPS, noisy=MISHAPS, cut=st.integers(0, 40), repeats=st.integers(0, 2))
def test_the_count_is_right_for_the_rest_of_any_run_when_nothing_more_goes_wrong(fails, noisy, cut, repeats):
    method = Method(launches=3, repeats=repeats)
    before = run_schedule(FEW, method, [], Fake(fails, noisy))[:cut]
    after = run_schedule(FEW, method, before, Fake())
    assert len(launches_left(FEW, method, before)) == len(after)


def test_a_retried_failure_is_launched_in_the_rounds_it_lacks():
    """With `--retry-failed` the schedule is not given the failed launches."""
    broken = CASES[0]
    before = run(Fake(fails={(broken, 1, 0)}), launches=3)
    kept = [launch for launch in before if launch.outcome == "ok"]
    after = run(Fake(), earlier=kept, launches=3)
    assert [(launch.case, launch.round) for launch in after] == [(broken, 1), (broken, 2)]


def test_cases_are_distinguished_by_all_their_fields():
    variants = [
        msgspec.structs.replace(CASES[0], **{field: value})
        for field, value in (
            ("workload", "ce-long"), ("system", "toy/fine/other"), ("phase", "train"), ("device", "cuda"),
            ("precision", "bf16"), ("environment", "toy-2.0"),
        )
    ]  # fmt: skip
    fake = Fake()
    run(fake, [CASES[0], *variants], launches=1)
    assert len(fake.asked) == 7
