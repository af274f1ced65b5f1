"""Replicates for whoever draws a conclusion: not surer of themselves than a few launches allow.

The tables' bootstrap of three launches knows three values, and its intervals hold the truth three times
in four. What is said in words rests on the intervals that `rnnbench compare` has: launches are draws from
a normal law on the log scale, their variance moderated by the other rows of the run, the law of the mean
Student's. A row of one launch knows nothing of how launches differ: it may be off by an allowance, either way.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from rnnbench.analysis.row import MeasuredRow
from rnnbench.stats.intervals import REPLICATES, Floats, Series
from rnnbench.stats.launch_means import launch_mean, moderate


def with_launch_intervals(rows: Sequence[MeasuredRow], allowance: float) -> list[MeasuredRow]:
    """The rows of one run with such replicates in place of the bootstrap's."""
    several = [index for index, one in enumerate(rows) if len(one.series) > 1]
    levels = [
        launch_mean([(series.batches.sum(), series.seconds.sum()) for series in rows[index].series])
        for index in several
    ]
    freedoms = np.array([float(one.freedom) for one in levels])
    variances, freedoms = moderate(np.array([one.squares for one in levels]) / freedoms, freedoms)
    errors = {
        index: (math.sqrt(variance * one.share), float(freedom))
        for index, one, variance, freedom in zip(several, levels, variances, freedoms, strict=True)
    }
    return [
        one
        if one.draws is None
        else msgspec.structs.replace(one, draws=_draw(one, index, errors.get(index), allowance))
        for index, one in enumerate(rows)
    ]


def _draw(one: MeasuredRow, index: int, error: tuple[float, float] | None, allowance: float) -> Floats:
    """Each row has random numbers of its own, always the same ones."""
    generator = np.random.default_rng((index, 3))
    if error is not None:
        scale, freedom = error
        logs = scale * generator.standard_t(freedom, REPLICATES)
    else:
        # Both ends of the allowance, not a law within it: a quotient's interval then is wider by all of them.
        logs = _of_samples(one.series[0], generator) + math.log1p(allowance) * generator.choice((-1, 1), REPLICATES)
    draws: Floats = one.wall.estimate * np.exp(logs)
    return draws


def _of_samples(series: Series, generator: np.random.Generator) -> Floats:
    """How far the mean of one launch's blocks may be off, on the log scale."""
    count = len(series.seconds)
    if count < 2:
        return np.zeros(REPLICATES)
    error = float(np.log(series.seconds / series.batches).std(ddof=1)) / math.sqrt(count)
    off: Floats = error * generator.standard_t(count - 1, REPLICATES)
    return off
