"""Waiting to be timed: where several workers compile at once, the driver lets them be sampled one by one."""

import os

TURN_VARIABLE = "RNNBENCH_TURN"


def wait_for_turn():
    """Returns whether there was anything to wait for: a driver that runs one worker at a time hands over no pipe."""
    descriptor = os.environ.get(TURN_VARIABLE)
    if descriptor is None:
        return False
    os.read(int(descriptor), 1)
    return True
