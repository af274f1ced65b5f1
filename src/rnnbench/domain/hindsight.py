"""Launches judged again by what is known of the machine at the end.

What full speed is must be found out from the launches themselves. On a rented host all processors took 2.0 ms for the
fixed computation in the first half minute of a run, and 1.25 ms from then on: the first launches had seen nothing
faster, and counted as quiet.
"""

from collections.abc import Sequence

import msgspec

from rnnbench.domain.result import Launch, was_slow


def in_hindsight(launches: Sequence[Launch], threshold: float) -> list[Launch]:
    """The same launches. Those are noisy, too, that were slow by the standard of their node's last one."""
    standards = {launch.node: launch.probe_best_s for launch in launches if launch.probe_best_s is not None}
    return [
        msgspec.structs.replace(launch, noisy=launch.noisy or _was_slow(launch, standards.get(launch.node), threshold))
        for launch in launches
    ]


def _was_slow(launch: Launch, standard: float | None, threshold: float) -> bool:
    if 2 * launch.device_paced_blocks >= len(launch.samples) > 0:
        return False  # the device had set its pace, not the processors
    return was_slow(msgspec.structs.replace(launch, probe_best_s=standard), threshold)
