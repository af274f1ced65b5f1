"""When two times count as different: the whole interval of their ratio lies beyond the noise."""

from typing import Literal

from rnnbench.stats.bootstrap import Interval

#: Two rows closer than this are not told apart, however many samples there are: moving a program in
#: memory, or starting it again, changes its time by as much.
NOISE = 0.02

Verdict = Literal["faster", "slower", "no difference seen"]


def judge(ratio: Interval, noise: float = NOISE) -> Verdict:
    """What a ratio of times says of its numerator. Turned upside down it says the opposite, never more."""
    if ratio.low > 1 + noise:
        return "slower"
    if ratio.high < 1 / (1 + noise):
        return "faster"
    return "no difference seen"
