"""Launches that were slow by a standard that only later ones could set: found, repeated, and left out of rows."""

import msgspec
import pytest

from made_up import make_case, make_contents, make_launch, make_proof
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import Method
from rnnbench.domain.noise import in_hindsight
from rnnbench.domain.result import Figure
from rnnbench.launch.schedule import launches_left, run_schedule

CASE = make_case(device="cuda")
CASES = [make_case(f"way-{number}") for number in range(4)]


def at_speed(probe_s, case=CASE, *seconds, best=None, **fields):
    probes = {"probe_before_s": probe_s, "probe_after_s": probe_s, "probe_best_s": best or probe_s}
    return make_launch(case, *(seconds or (1.0,)), **{**probes, **fields})


def noisy(*launches):
    return [launch.noisy for launch in in_hindsight(launches, 0.1)]


def test_the_last_launch_of_a_node_sets_the_standard():
    assert noisy(at_speed(2.0), at_speed(1.3), at_speed(1.1), at_speed(1.0)) == [True, True, False, False]
    assert noisy(at_speed(1.0), at_speed(2.0)) == [False, False]  # what it had seen first is no standard any more
    assert noisy(at_speed(2.0, node="a"), at_speed(1.0, node="b")) == [False, False]


def test_nothing_known_changes_nothing():
    unknown = make_launch(CASE, 1.0)
    assert noisy(unknown, msgspec.structs.replace(unknown, noisy=True)) == [False, True]
    assert noisy(unknown, at_speed(1.0)) == [False, False]
    assert in_hindsight([], 0.1) == []


@pytest.mark.parametrize(("paced", "slow"), [(0, True), (1, True), (2, False), (4, False)])
def test_a_slow_host_says_nothing_about_a_launch_whose_pace_the_device_had_set(paced, slow):
    launch = at_speed(2.0, CASE, 1.0, 1.0, 1.0, 1.0, device_paced_blocks=paced)
    assert noisy(launch, at_speed(1.0))[0] is slow


@pytest.mark.parametrize(("quiet", "probe_s", "strictly_noisy"), [
    (True, 1.15, True), (True, 1.04, False), (True, 0.96, False), (True, 0.9, True),
    (None, 1.15, False), (None, 0.9, False),
])  # fmt: skip
def test_strictly_another_speed_than_usual_is_too_much_on_watched_processors(quiet, probe_s, strictly_noisy):
    launches = [at_speed(probe_s, quiet=quiet), at_speed(1.0, quiet=quiet)]
    assert [launch.noisy for launch in in_hindsight(launches, 0.1, strictly=True)] == [strictly_noisy, False]
    assert noisy(*launches) == [False, False]


class Host:
    """Slow for the first few launches, then at full speed, which it tells each launch."""

    def __init__(self, slow, seconds=2.0, **fields):
        self.slow, self.seconds, self.fields = slow, seconds, fields
        self.asked = []

    def __call__(self, case, round_number, attempt):
        self.asked.append((case, round_number, attempt))
        seconds = self.seconds if len(self.asked) <= self.slow else 1.0
        return at_speed(seconds, case, round=round_number, attempt=attempt, **self.fields)


@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("slow", [{}, {"seconds": 1.15, "quiet": True}])
def test_launches_of_a_slow_beginning_are_repeated_after_all_rounds(ahead, slow):
    host = Host(slow=2, **slow)
    launches = run_schedule(CASES, Method(launches=3, ahead=ahead), [], host)
    slow = [(case, number) for case, number, _ in host.asked[:2]]
    assert len(launches) == len(host.asked) == 3 * len(CASES) + 2
    assert sorted((case.key, number, 1) for case, number in slow) == sorted(
        (case.key, number, attempt) for case, number, attempt in host.asked[-2:]
    )
    assert launches_left(CASES, Method(launches=3), launches) == []


def test_a_resumed_run_repeats_them_too_but_no_more_than_allowed():
    method = Method(launches=2, repeats=1)
    earlier = [at_speed(2.0, case, round=number) for case in CASES for number in range(2)]
    assert launches_left(CASES, method, earlier) == []
    fast = at_speed(1.0, CASES[0], round=1, attempt=1)
    assert len(launches_left(CASES, method, [*earlier, fast])) == 2 * len(CASES) - 1
    settled = [at_speed(2.0, case, round=number, attempt=1) for case in CASES for number in range(2)]
    assert launches_left(CASES, method, [*earlier, *settled, fast]) == []


def test_without_repeats_nothing_is_repeated():
    host = Host(slow=2)
    run_schedule(CASES, Method(launches=2, repeats=0), [], host)
    assert len(host.asked) == 2 * len(CASES)


def row_of(*launches, fewest=3):
    (row,) = make_rows(make_contents([CASE], make_proof(CASE), *launches, method=Method(launches=fewest)))
    return row


def test_a_row_is_made_of_rounds_at_full_speed_where_there_are_enough():
    slow = at_speed(2.0, CASE, 1.6, round=0)
    fast = [at_speed(1.0, CASE, 1.0, round=number) for number in (1, 2, 3)]
    row = row_of(slow, *fast)
    assert (row.launches, row.noisy, row.wall_s) == (3, False, 1.0)
    row = row_of(slow, *fast[:2])
    assert (row.launches, row.noisy) == (3, True)
    assert row.wall_s == pytest.approx(1.6 ** (1 / 3))  # of made-up times, the slow one among them


def test_a_little_slower_rounds_count_only_where_there_are_too_few_others():
    slower = at_speed(1.15, CASE, 1.3, round=0, quiet=True)
    usual = [at_speed(1.0, CASE, 1.0, round=number, quiet=True) for number in (1, 2, 3)]
    row = row_of(slower, *usual)
    assert (row.launches, row.noisy, row.wall_s) == (3, False, 1.0)
    row = row_of(slower, *usual[:2])
    assert (row.launches, row.noisy) == (3, False)
    assert row.wall_s == pytest.approx(1.3 ** (1 / 3))


def test_a_second_quiet_launch_of_a_round_counts_before_a_noisy_one_and_only_then():
    slower = at_speed(1.15, CASE, 1.3, round=0, quiet=True)  # repeated for that, and quiet all the same
    again = at_speed(1.0, CASE, 1.0, round=0, attempt=1, quiet=True)
    second, third = (at_speed(1.0, CASE, 1.0, round=number, quiet=True) for number in (1, 2))
    disturbed = msgspec.structs.replace(third, noisy=True)
    row = row_of(slower, second, disturbed, again)
    assert (row.launches, row.noisy) == (3, False)
    assert row.wall_s == pytest.approx(1.3 ** (1 / 3))
    row = row_of(slower, second, third, again)
    assert (row.launches, row.wall_s) == (3, 1.0)
    assert row_of(second, disturbed, again).noisy  # two quiet ones are too few
    failed = make_launch(CASE, round=3, reason="it died")
    assert row_of(slower, second, disturbed, again, failed).status == "failed"


def test_a_round_that_failed_counts_whatever_the_others_did():
    failed = make_launch(CASE, round=4, reason="it died")
    assert row_of(*[at_speed(1.0, CASE, round=number) for number in range(4)], failed).status == "failed"


def test_what_a_launch_computed_counts_also_where_its_time_does_not():
    checks = {"checks": (Figure("logits", 0.5, 1e-4),), "checked": "forward only"}
    slow = at_speed(2.0, CASE, 1.6, **checks)
    again = at_speed(1.0, CASE, 1.0, attempt=1)
    fast = [at_speed(1.0, CASE, 1.0, round=number) for number in (1, 2, 3)]
    for launches in ([slow, *fast], [slow, again, *fast]):
        row = row_of(*launches)
        assert (row.status, row.checked) == ("wrong", "forward only")
        assert "logits" in row.reason
