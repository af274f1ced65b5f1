"""The worker's clock, with a fake program and fake time: what a block holds, and when warm-up and sampling stop."""

import pytest

from rnnbench_worker import clock
from rnnbench_worker.clock import Runner, block_size, half_width, sample, student_95, warm_up
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
        self.watch = None

    def _work(self, what, about):
        calls = sum(note[0] in ("train", "forward") for note in self.notes)
        self.notes.append((what, about))
        self.now += self.costs[what] * self.slowness(calls)
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


# --- warm-up --------------------------------------------------------------------------------------------


def test_a_steady_program_is_warm_after_three_blocks_and_not_before(world):
    world.costs["train"] = 1.0
    batches, seconds, per_batch = warm_up(world.runner(), ADAPTIVE)
    assert (batches, seconds, per_batch) == (3, 3.0, 1.0)
    assert world.count("sync") == 3


def test_three_blocks_even_when_the_first_took_all_the_time_there_is(world):
    world.costs["train"] = 100.0
    assert warm_up(world.runner(), ADAPTIVE)[0] == 3


def test_a_slow_program_that_was_warm_before_is_warm_again_after_one_batch(world):
    world.costs["train"] = 100.0
    assert warm_up(world.runner(), ADAPTIVE, again=True)[0] == 1
    world.costs["train"] = 1.0
    assert warm_up(world.runner(), ADAPTIVE, again=True)[0] == 3


def test_warm_up_goes_on_until_the_last_three_blocks_agree(world):
    world.costs["train"] = 0.5
    world.slowness = lambda calls: max(1.0, 1.5 - 0.1 * calls)  # faster and faster, for five calls
    batches, _, per_batch = warm_up(world.runner(), ADAPTIVE)
    assert batches == 8  # calls 5, 6 and 7 are the first three alike
    assert per_batch == 0.5


def test_a_program_that_never_settles_is_warm_when_its_time_is_spent(world):
    world.costs["train"] = 1.0
    world.slowness = lambda calls: 1.0 + calls % 2
    _, seconds, _ = warm_up(world.runner(), ADAPTIVE)
    assert ADAPTIVE["warm_seconds"] <= seconds < ADAPTIVE["warm_seconds"] + 2.0


def test_blocks_grow_once_it_is_known_how_short_a_batch_is(world):
    world.costs["train"] = 0.01
    batches, seconds, per_batch = warm_up(world.runner(), ADAPTIVE)
    assert batches in (1 + 10 + 10, 1 + 11 + 11, 1 + 10 + 11, 1 + 11 + 10)  # as floating point has it
    assert (seconds, per_batch) == (pytest.approx(0.01 * batches), pytest.approx(0.01))


# --- sampling -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("protocol", "discarded", "timed"), [("2018", 100, 400), ("2019", 10, 50)])
@pytest.mark.parametrize("timing", ["throughput", "latency"])
def test_the_seeds_protocols_have_their_numbers_of_batches(world, protocol, discarded, timed, timing):
    world.costs["train"] = 0.5
    method = {**ADAPTIVE, "protocol": protocol, "timing": timing}
    runner = world.runner()
    assert warm_up(runner, method) == (discarded, 0.5 * discarded, 0.5)
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
    assert len(sample(world.runner(), method, 1e-5)) == clock.MAX_SAMPLES


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
