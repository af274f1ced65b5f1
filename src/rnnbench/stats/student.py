"""Student's t: how far a mean of few values may be off, when their spread is known from those few alone."""

from functools import lru_cache

import numpy as np

#: The two-sided 95 % points for 1, 2, … 10 degrees of freedom.
_FEW = (12.7062, 4.3027, 3.1825, 2.7765, 2.5706, 2.4470, 2.3647, 2.3061, 2.2622, 2.2282)
_NORMAL = 1.959964


@lru_cache(maxsize=1024)
def student_95(freedom: float) -> float:
    """The two-sided 95 % point for any degrees of freedom from 1 up, infinity included.

    Between whole numbers a straight line in 1/freedom: the curve bends upwards, so it errs to the wide
    side. From 10 up the expansion about the normal's point, right to four figures.
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom say nothing of a spread")
    if freedom <= len(_FEW):
        return float(np.interp(-1 / freedom, [-1 / count for count in range(1, len(_FEW) + 1)], _FEW))
    z, over = _NORMAL, 1 / freedom
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return float(z + over * (first + over * (second + over * third)))
