"""Replicates for conclusions, from launches and Student's t, because the bootstrap of a few launches undercovers.

The tables' bootstrap of three launches has three values, and its 95 % intervals cover the truth about three times
in four. Sentences therefore rest on the same intervals as `rnnbench compare`: the log means of the launches are
independent draws from a normal distribution, with a variance moderated by the other rows of the run. A single
launch says nothing about how launches differ, so such a row may be off by an allowance in either direction.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from rnnbench.analysis.row import MeasuredRow
from rnnbench.stats.intervals import REPLICATES, Floats, Series
from rnnbench.stats.launch_means import launch_mean, moderate


def with_launch_intervals(rows: Sequence[MeasuredRow], allowance: float) -> list[MeasuredRow]:
    """The rows of one run with these replicates in place of the bootstrap's."""
    several = [index for index, row in enumerate(rows) if len(row.series) > 1]
    means = [
        launch_mean([(series.batches.sum(), series.seconds.sum()) for series in rows[index].series])
        for index in several
    ]
    freedoms = np.array([float(mean.freedom) for mean in means])
    variances, freedoms = moderate(np.array([mean.squares for mean in means]) / freedoms, freedoms)
    errors = {
        index: (math.sqrt(variance * mean.share), float(freedom))
        for index, mean, variance, freedom in zip(several, means, variances, freedoms, strict=True)
    }
    return [
        row
        if row.draws is None
        else msgspec.structs.replace(row, draws=_draw(row, index, errors.get(index), allowance))
        for index, row in enumerate(rows)
    ]


def _draw(row: MeasuredRow, index: int, error: tuple[float, float] | None, allowance: float) -> Floats:
    """The row's index is the random seed: rows are independent, and the same run gives the same replicates."""
    generator = np.random.default_rng((index, 3))
    if error is not None:
        scale, freedom = error
        logs = scale * generator.standard_t(freedom, REPLICATES)
    else:
        # Only the two ends of the allowance are drawn: the interval of a ratio then widens by the full allowances.
        logs = _sample_errors(row.series[0], generator) + math.log1p(allowance) * generator.choice((-1, 1), REPLICATES)
    draws: Floats = row.wall.estimate * np.exp(logs)
    return draws


def _sample_errors(series: Series, generator: np.random.Generator) -> Floats:
    """Errors of the mean of one launch's blocks, on the log scale."""
    count = len(series.seconds)
    if count < 2:
        return np.zeros(REPLICATES)
    error = float(np.log(series.seconds / series.batches).std(ddof=1)) / math.sqrt(count)
    errors: Floats = error * generator.standard_t(count - 1, REPLICATES)
    return errors
