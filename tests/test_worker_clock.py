"""The worker's clock, with a fake program and fake time: what a block holds, and when warm-up and sampling stop."""

import pytest

from rnnbench_worker import clock
from rnnbench_worker.clock import Budget, Runner, Spread, block_size, sample, still_falling, student_95, warm_up
from rnnbench_worker.program import Program

ADAPTIVE = {
    "protocol": "adaptive", "timing": "throughput", "warm_seconds": 5.0, "sample_seconds": 10.0,
    "precision_target": 0.02,
}  # fmt: skip


class World(Program):
    """Time that passes only when the program works, and a note of everything it was asked to do."""

    def __init__(self, feed=0.0, call=0.0, sync=0.0):
        self.now = 100.0
        self.costs = {"feed": feed, "train": call, "forward": call, "sync": sync}
        self.slowness = lambda calls: 1.0  # of the n-th call
        self.notes = []
        self.calls = 0
        self.watch = None

    def _work(self, what, about):
        self.notes.append((what, about))
        self.now += self.costs[what] * self.slowness(self.calls)
        self.calls += what in ("train", "forward")
        return f"{what} of {about}"

    def feed(self, staged):
        return self._work("feed", staged)

    def train(self, fed):
        return self._work("train", fed)

    def forward(self, fed):
        return self._work("forward", fed)

    def sync(self, handle):
        self._work("sync", handle)

    def stopwatch(self):
        return self.watch

    def runner(self, phase="train", batches=3):
        return Runner(self, phase, [f"batch {index}" for index in range(batches)])

    def count(self, what):
        return sum(note[0] == what for note in self.notes)


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(clock.time, "perf_counter", lambda: made.now)
    return made


# --- a block --------------------------------------------------------------------------------------------


class Watch:
    """A device's clock that says of every block that it took two seconds."""

    def __init__(self, world):
        self._notes = world.notes

    def start(self):
        self._notes.append(("start", None))

    def stop(self):
        self._notes.append(("stop", None))

    def seconds(self):
        return 2.0


def test_a_devices_own_clock_goes_round_the_work_and_stops_before_the_wait(world):
    world.watch = Watch(world)
    runner = world.runner()
    runner.block(1)
    assert [note[0] for note in world.notes] == ["start", "feed", "train", "stop", "sync"]
    runner.block(1)
    assert runner.by_device == 4.0


def test_a_program_without_such_a_clock_has_no_second_time(world):
    runner = world.runner()
    runner.block(1)
    assert runner.by_device is None


def test_a_block_holds_feeding_computing_and_one_wait_at_its_end(world):
    world.costs = {"feed": 0.25, "train": 1.0, "sync": 16.0}
    assert world.runner().block(2) == 2 * 1.25 + 16.0
    assert [what for what, _ in world.notes] == ["feed", "train", "feed", "train", "sync"]


def test_each_call_gets_what_was_fed_and_the_wait_is_for_the_last_result(world):
    world.runner().block(2)
    assert world.notes == [
        ("feed", "batch 0"),
        ("train", "feed of batch 0"),
        ("feed", "batch 1"),
        ("train", "feed of batch 1"),
        ("sync", "train of feed of batch 1"),
    ]


def test_what_happens_between_blocks_is_not_in_them(world):
    world.costs["train"] = 1.0
    runner = world.runner()
    assert runner.block(1) == 1.0
    world.now += 50.0
    assert runner.block(1) == 1.0


def test_the_phase_says_what_is_called(world):
    world.runner("forward").block(2)
    assert (world.count("forward"), world.count("train")) == (2, 0)


def test_batches_go_round_in_order_from_block_to_block(world):
    runner = world.runner(batches=3)
    for size in (1, 4, 2, 7):
        runner.block(size)
    fed = [about for what, about in world.notes if what == "feed"]
    assert fed == [f"batch {index % 3}" for index in range(14)]


def test_one_batch_goes_round_too(world):
    world.runner(batches=1).block(3)
    assert [about for what, about in world.notes if what == "feed"] == ["batch 0"] * 3


def test_a_block_is_as_many_batches_as_fill_a_tenth_of_a_second():
    assert block_size(0.1) == 1
    assert block_size(3.0) == 1
    assert block_size(0.03) == 4
    assert block_size(0.001) == 100
    assert block_size(0.0) > 1000  # a clock that stood still


def test_a_block_of_other_batches_leaves_the_runners_own_where_they_were(world):
    runner = world.runner(batches=2)
    runner.block(1)
    runner.block(1, ["another"])
    runner.block(1)
    assert [about for what, about in world.notes if what == "feed"] == ["batch 0", "another", "batch 1"]
    assert (runner.batches, runner.handle) == (3, "train of feed of batch 1")


# --- warm-up --------------------------------------------------------------------------------------------


def warmed(world, limit=600.0, earlier=(), again=False, **method):
    return warm_up(world.runner(), {**ADAPTIVE, **method}, Budget(limit), earlier, again)


def test_a_steady_program_is_warm_after_three_blocks_and_not_before(world):
    world.costs["train"] = 1.0
    warm = warmed(world)
    assert (warm.batches, warm.seconds, warm.per_batch, warm.steady) == (3, 3.0, 1.0, True)
    assert world.count("sync") == 3


def test_batches_after_the_first_call_count_and_are_not_run_again(world):
    world.costs["train"] = 1.0
    warm = warmed(world, earlier=[1.0, 1.0])
    assert (warm.batches, warm.seconds, world.count("train")) == (3, 3.0, 1)


def test_a_slow_program_is_warmed_up_beyond_the_efforts_time_until_it_is_steady(world):
    """TorchScript compiles in its second to fourth call: with three batches its compiling was published as its time."""
    world.costs["train"] = 1.0
    world.slowness = lambda calls: [5.31, 1.8, 0.684, 1.1, 0.58][calls] if calls < 5 else 0.57
    warm = warmed(world, warm_seconds=1.0)
    assert (warm.batches, warm.per_batch, warm.steady) == (7, pytest.approx(0.57), True)


def test_small_gains_add_up(world):
    world.costs["train"] = 1.0
    world.slowness = lambda calls: max(0.5, 1.0 - 0.03 * calls)  # never 5 % at once
    warm = warmed(world)
    assert warm.per_batch < 0.55


def test_noise_is_not_taken_for_getting_faster(world):
    world.costs["train"] = 1.0
    world.slowness = lambda calls: 1.0 + 0.3 * (calls % 2)
    assert warmed(world).batches <= 5


def test_a_program_that_keeps_getting_faster_is_not_steady_when_its_time_is_up(world):
    world.costs["train"] = 1.0
    world.slowness = lambda calls: 0.93**calls
    warm = warmed(world, limit=14.0)
    assert warm.steady is False
    assert warm.batches > 5
    # What is still to come fits into the limit.
    assert warm.seconds + clock.BATCHES_TO_COME * warm.per_batch <= 14.0


def test_a_slow_program_that_was_warm_before_is_warm_again_after_one_batch(world):
    world.costs["train"] = 100.0
    assert warmed(world, again=True).batches == 1
    world.costs["train"] = 1.0
    assert warmed(world, again=True).batches == 3


def test_blocks_grow_once_it_is_known_how_short_a_batch_is(world):
    world.costs["train"] = 0.01
    warm = warmed(world)
    assert warm.batches in (1 + 10 + 10, 1 + 11 + 11, 1 + 10 + 11, 1 + 11 + 10)  # as floating point has it
    assert (warm.seconds, warm.per_batch) == (pytest.approx(0.01 * warm.batches), pytest.approx(0.01))


@pytest.mark.parametrize(
    ("times", "falling"),
    [
        ([5.31, 1.80, 0.684, 0.690, 0.750], True),
        ([5.31, 0.70, 0.684, 0.690, 0.750], True),
        ([0.70, 0.69, 0.684, 0.690, 0.750], False),
        ([0.70, 1.40, 0.684, 0.690, 0.750], False),
        ([0.90, 0.69, 0.684, 0.690, 0.750], False),
    ],
)
def test_first_samples_that_belong_to_the_warm_up_are_noticed(times, falling):
    assert still_falling([(1, seconds) for seconds in times]) is falling


# --- sampling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "discarded", "timed"), [("2018", 100, 400), ("2019", 10, 50)])
@pytest.mark.parametrize("timing", ["throughput", "latency"])
def test_the_seeds_protocols_have_their_numbers_of_batches(world, protocol, discarded, timed, timing):
    world.costs["train"] = 0.5
    method = {**ADAPTIVE, "protocol": protocol, "timing": timing}
    runner = world.runner()
    warm = warm_up(runner, method, Budget(600.0))
    assert (warm.batches, warm.seconds, warm.per_batch, warm.steady) == (discarded, 0.5 * discarded, 0.5, None)
    assert world.count("train") == discarded
    samples = sample(runner, method, 0.5)
    assert sum(size for size, _ in samples) == timed
    assert world.count("train") == discarded + timed
    assert all(seconds == 0.5 * size for size, seconds in samples)
    if timing == "latency":
        assert {size for size, _ in samples} == {1}


def test_latency_waits_after_every_batch(world):
    world.costs["train"] = 0.001
    samples = sample(world.runner(), {**ADAPTIVE, "timing": "latency"}, 0.001)
    assert {size for size, _ in samples} == {1}
    assert world.count("sync") == world.count("train") == len(samples)


def test_throughput_waits_once_a_block(world):
    world.costs["train"] = 0.001
    samples = sample(world.runner(), ADAPTIVE, 0.001)
    assert {size for size, _ in samples} == {100}
    assert world.count("sync") == len(samples)
    assert world.count("train") == 100 * len(samples)


def test_a_precise_measurement_stops_at_five_samples_and_not_before(world):
    world.costs["train"] = 0.2
    assert len(sample(world.runner(), ADAPTIVE, 0.2)) == 5


def test_five_samples_are_taken_even_when_one_takes_all_the_time(world):
    world.costs["train"] = 60.0
    assert len(sample(world.runner(), ADAPTIVE, 60.0)) == 5


def test_sampling_goes_on_until_the_target_is_met_and_no_longer(world):
    world.costs["train"] = 0.2
    world.slowness = lambda calls: 1.0 + 0.1 * (calls % 2)
    method = {**ADAPTIVE, "sample_seconds": 1e9}
    taken = [seconds for _, seconds in sample(world.runner(), method, 0.2)]
    assert len(taken) > 5
    assert half_width(taken) <= 0.02 < half_width(taken[:-1])


def test_sampling_stops_when_its_time_is_spent_though_the_target_is_not_met(world):
    world.costs["train"] = 1.0
    world.slowness = lambda calls: 1.0 + calls % 2
    taken = [seconds for _, seconds in sample(world.runner(), {**ADAPTIVE, "precision_target": 0.0}, 1.0)]
    assert sum(taken[:-1]) < ADAPTIVE["sample_seconds"] <= sum(taken)


def test_there_is_an_end_to_the_number_of_samples(world):
    world.costs["train"] = 1e-5
    world.slowness = lambda calls: 1.0 + calls % 2
    method = {**ADAPTIVE, "timing": "latency", "precision_target": 0.0}
    assert len(sample(world.runner(), method, 1e-5)) == clock.MAX_LATENCY_SAMPLES
    assert len(sample(world.runner(), {**method, "timing": "throughput"}, 1.0)) == clock.MAX_SAMPLES


def half_width(values):
    spread = Spread()
    for value in values:
        spread.add(value)
    return spread.half_width()


# --- precision ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("freedom", "point"), [(4, 2.776), (5, 2.571), (7, 2.365), (10, 2.228), (30, 2.042), (100, 1.984), (10**6, 1.960)]
)
def test_students_t_is_that_of_the_tables(freedom, point):
    assert student_95(freedom) == pytest.approx(point, rel=0.005)


def test_the_half_width_is_students_interval_as_a_share_of_the_mean():
    # mean 10, standard deviation 1, five values: 2.776 · 1 / √5 / 10
    values = [9.0, 9.0, 10.0, 11.0, 11.0]
    assert half_width(values) == pytest.approx(0.12415, rel=0.005)
    assert half_width([3.0] * 5) == 0.0
