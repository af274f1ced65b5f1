"""The points of Student's t, and the functions of the gamma family that the moderation of variances needs."""

import math
from functools import lru_cache

import numpy as np

#: The two-sided 95 % points of Student's t for 1, 2, … 10 degrees of freedom.
_STUDENT_POINTS = (12.7062, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282)
_NORMAL_POINT = 1.959964


@lru_cache(maxsize=1024)
def student_95(freedom: float) -> float:
    """The two-sided 95 % point of Student's t for any degrees of freedom from 1 to infinity.

    Between whole numbers it is linear in 1/freedom: the curve is convex, so the interval is too wide rather than
    too narrow. Above 10 it is the expansion about the normal distribution's point, correct to four figures.
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom are too few to estimate a variance")
    if freedom <= len(_STUDENT_POINTS):
        known = [-1 / count for count in range(1, len(_STUDENT_POINTS) + 1)]
        return float(np.interp(-1 / freedom, known, _STUDENT_POINTS))
    z, over = _NORMAL_POINT, 1 / freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + over * (first + over * (second + over * third)))


def digamma(x: float) -> float:
    """The derivative of log Γ: recurrence up to where the asymptotic series is accurate."""
    steps = 0.0
    while x < 8:
        steps, x = steps - 1 / x, x + 1
    over = 1 / (x * x)
    return steps + math.log(x) - 0.5 / x - over * (1 / 12 - over * (1 / 120 - over / 252))


def trigamma(x: float) -> float:
    """The derivative of the digamma function."""
    steps = 0.0
    while x < 8:
        steps, x = steps + 1 / (x * x), x + 1
    over = 1 / (x * x)
    return steps + 1 / x + over / 2 + over / x * (1 / 6 - over * (1 / 30 - over / 42))


def inverse_trigamma(y: float) -> float:
    """Where the trigamma function is y: it decreases monotonically, so bisection finds it."""
    low, high = -20.0, 20.0  # of the logarithm
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(math.exp(middle)) > y else (low, middle)
    return math.exp((low + high) / 2)
