"""Whether a machine was busy while a launch was timed: by what is known when it ends, and at the end of a run.

What full speed is must be found out from the launches themselves. On a rented host all processors took 2.0 ms for the
fixed computation in the first half minute of a run, and 1.25 ms from then on: the first launches had seen nothing
faster, and counted as quiet. So launches are judged again, `in_hindsight`.
"""

import math
from collections.abc import Sequence

import msgspec

from rnnbench.domain.result import Launch

MOST_LOAD = 1.0  # for each processor, when a run begins: with more it is not fit to publish


def is_noisy(launch: Launch, threshold: float) -> bool:
    """Whether the machine was busy: its speed changed during the launch, or it was slow or crowded in all of it."""
    return (
        speed_changed(launch.probe_before_s, launch.probe_after_s, threshold)
        or clocks_changed(launch, threshold)
        or launch.quiet is False
        or was_slow(launch, threshold)
        or was_crowded(launch, threshold)
    )


def was_slow(launch: Launch, threshold: float, best_s: float | None = None) -> bool:
    """Whether the processors were slow before and after the samples, compared with the best that was known of them.

    `best_s`: what is known of them now, if it is more. Where the device had set the pace of most blocks, how fast
    processors were says nothing.
    """
    if 2 * launch.device_paced_blocks >= len(launch.samples) > 0:
        return False
    return speed_was_low(launch.probe_before_s, launch.probe_after_s, best_s or launch.probe_best_s, threshold)


def speed_was_low(before: float | None, after: float | None, best: float | None, threshold: float) -> bool:
    """Whether both times are far from the best known; False if one is not known.

    Twice the threshold: from one launch to the next, clock rates move more than within one, on an idle machine too.
    """
    if before is None or after is None or best is None:
        return False
    return min(before, after) > best * (1 + 2 * threshold)


#: Involuntary switches per processor second. On 2 processors, with a tick of 4 ms, a computing thread had 270 to 310
#: at loads of 3 to 7, also beside one burning process on its processor, and 38 to 52 where others kept to the other
#: processor. The longest tick, 10 ms, makes about 100.
_CROWDED_SWITCHES = 80.0


def was_crowded(launch: Launch, threshold: float) -> bool:
    """Whether others computed on the worker's processors, and it had to make room for them again and again.

    Neither is enough alone: a framework with more threads than processors interrupts itself, and others may have used a
    processor that the worker left idle.
    """
    wall, cpu, others, switches = launch.usage_s, launch.cpu_s, launch.others_cpu_s, launch.involuntary_switches
    if wall is None or cpu is None or others is None or switches is None:
        return False
    return others > threshold * max(wall, cpu) and switches > _CROWDED_SWITCHES * cpu


def clocks_changed(launch: Launch, threshold: float) -> bool:
    """Whether a clock of the GPU changed; False if its clocks are not known."""
    before, after = launch.gpu_before, launch.gpu_after
    return bool(before and after) and any(
        speed_changed(getattr(before, clock), getattr(after, clock), threshold) for clock in ("sm_mhz", "memory_mhz")
    )


def speed_changed(before: float | None, after: float | None, threshold: float) -> bool:
    """Whether two times or two clock rates differ by more than the threshold; False if one is not known."""
    if before is None or after is None:
        return False
    return max(before, after) > min(before, after) * (1 + threshold)


def in_hindsight(launches: Sequence[Launch], threshold: float, strictly: bool = False) -> list[Launch]:
    """The same launches. Those are noisy, too, that were slow by the standard of their node's last one.

    `strictly`: and those that had another speed than usual. `check` refuses a run if many of these count. So they are
    made again, and do not count where enough others do; where there are too few, the row is as good as it was.
    """
    standards = {launch.node: launch.probe_best_s for launch in launches if launch.probe_best_s is not None}

    def is_noisy_now(launch: Launch) -> bool:
        standard = standards.get(launch.node)
        return was_slow(launch, threshold, standard) or (strictly and was_unusual(launch, threshold, standard))

    return [
        msgspec.structs.replace(launch, noisy=True) if not launch.noisy and is_noisy_now(launch) else launch
        for launch in launches
    ]


def was_unusual(launch: Launch, threshold: float, usual_s: float | None) -> bool:
    """Whether watched processors were slower, or faster, than usual before and after, by more than half the threshold:
    so those that count differ by no more than all of it, as `check` wants.

    Of processors that were not watched only the best is known, from which an idle machine may be further. It matters
    also where the device had set the pace: `check` compares the processors of all launches that count.
    """
    before, after = launch.probe_before_s, launch.probe_after_s
    if launch.quiet is None or before is None or after is None or usual_s is None:
        return False
    most = math.sqrt(1 + threshold)
    return min(before, after) > usual_s * most or max(before, after) * most < usual_s
