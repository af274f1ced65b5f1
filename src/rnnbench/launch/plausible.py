"""Whether the times that a worker reports can be true, judged by what the driver sees itself.

A worker measures its own times. These checks find mistakes that make them wrong: a clock that something replaced, work
that goes on after the clock was stopped, results that are only looked up because their batch was seen before.
"""

from collections.abc import Sequence

from rnnbench.launch.events import Event, Samples, Sampling, Unseen

#: How far the driver's clock may be from the sum of the samples: 2 %, and what lies between the samples.
CLOCK_SHARE = 0.02
CLOCK_SECONDS = 0.05  # the driver may be woken late on a busy machine
CLOCK_PER_SAMPLE = 2e-4

#: How much slower an unseen batch may be than the slowest sample, or than one that was seen and is as alone: without
#: neighbours it overlaps with nothing, and it comes after a reading. After that of 256 MB on a GPU, JAX took 11 to
#: 22 ms for a batch instead of 2 to 4. A seen one is timed before and after, for a machine that becomes busy meanwhile.
UNSEEN_FACTOR = 2.0
UNSEEN_SECONDS = 0.005
READING_SECONDS = 0.02


def implausible(events: Sequence[Event], arrivals: Sequence[float]) -> str:
    """Why the samples cannot be believed; empty if they can. `arrivals` are the times of the events, by the driver."""
    samples = next((event for event in events if isinstance(event, Samples)), None)
    if samples is None:
        return ""
    unseen = next((event for event in events if isinstance(event, Unseen)), None)
    return _clock_disagrees(samples, events, arrivals) or (_unseen_disagrees(samples, unseen) if unseen else "")


def _clock_disagrees(samples: Samples, events: Sequence[Event], arrivals: Sequence[float]) -> str:
    begun = [at for event, at in zip(events, arrivals, strict=True) if isinstance(event, Sampling)]
    ended = [at for event, at in zip(events, arrivals, strict=True) if isinstance(event, Samples)]
    if not begun or not ended:
        return ""
    passed, reported = ended[0] - begun[-1], sum(sample.seconds for sample in samples.samples) + samples.set_aside_s
    allowed = CLOCK_SHARE * passed + CLOCK_SECONDS + CLOCK_PER_SAMPLE * len(samples.samples)
    if abs(passed - reported) <= allowed:
        return ""
    return f"its samples add up to {reported:.3g} s, but {passed:.3g} s passed while it took them"


def _unseen_disagrees(samples: Samples, unseen: Unseen) -> str:
    slowest = max(sample.seconds / sample.batches for sample in samples.samples)
    if unseen.left_over_s > 2 * unseen.read_s + slowest + READING_SECONDS:
        return (
            f"work was left over when its clock stopped: reading the last result took {unseen.left_over_s:.3g} s, "
            f"and {unseen.read_s:.3g} s where nothing was left"
        )
    fastest, seen = min(unseen.seconds), max(slowest, unseen.seen_s)
    if fastest > UNSEEN_FACTOR * seen + UNSEEN_SECONDS:
        return f"a batch that it had never seen took {fastest:.3g} s, and those it had seen {seen:.3g} s at most"
    return ""
