"""Spreads of many cases, each known from a few launches, made better by one another.

Three launches say little of how far launches of that case differ: by chance they lie close together or
far apart. The cases of a run say much more about it together. Each case's variance is drawn towards what
is usual in the run, as far as the cases are alike: how far is estimated from how much their variances
scatter beyond what chance alone would do. Where cases are truly unlike, each keeps its own. This is the
empirical Bayes estimate of variances of G. K. Smyth (2004), well tried in biology, where three
measurements of each of thousands of genes are common.
"""

import math
from collections.abc import Callable

import numpy as np

from rnnbench.stats.bootstrap import Floats


def moderate(variances: Floats, freedoms: Floats) -> tuple[Floats, Floats]:
    """Variances and degrees of freedom, moderated. Every freedom must be at least 1."""
    positive = variances > 0
    if positive.sum() < 2:
        return variances, freedoms
    pooled_freedom = float(freedoms.sum())
    prior, prior_freedom = _prior(variances[positive], freedoms[positive])
    if math.isinf(prior_freedom):  # they scatter no more than chance does: one variance for all
        common = float(freedoms @ variances) / pooled_freedom
        return np.full_like(variances, common), np.full_like(freedoms, pooled_freedom)
    moderated = (prior_freedom * prior + freedoms * variances) / (prior_freedom + freedoms)
    # However alike the cases look, together they know no more than was measured.
    return moderated, np.minimum(freedoms + prior_freedom, pooled_freedom)


def _prior(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The usual variance, and as how many degrees of freedom it counts: from the scatter of the logarithms."""
    halves = freedoms / 2
    logs = np.log(variances) - _each(_digamma, halves) + np.log(halves)
    beyond_chance = float(logs.var(ddof=1) - _each(_trigamma, halves).mean())
    if beyond_chance <= 1e-6:
        return math.exp(float(logs.mean())), math.inf
    half = _inverse_trigamma(beyond_chance)
    return math.exp(float(logs.mean()) + _digamma(half) - math.log(half)), 2 * half


def _each(function: Callable[[float], float], values: Floats) -> Floats:
    """The function of every value; most cases have the same few numbers of launches."""
    distinct, where = np.unique(values, return_inverse=True)
    computed: Floats = np.array([function(float(value)) for value in distinct])[where]
    return computed


def _digamma(x: float) -> float:
    """The derivative of log Γ: steps up to where the asymptotic series is good."""
    steps = 0.0
    while x < 8:
        steps, x = steps - 1 / x, x + 1
    over = 1 / (x * x)
    return steps + math.log(x) - 0.5 / x - over * (1 / 12 - over * (1 / 120 - over / 252))


def _trigamma(x: float) -> float:
    """The derivative of the digamma function."""
    steps = 0.0
    while x < 8:
        steps, x = steps + 1 / (x * x), x + 1
    over = 1 / (x * x)
    return steps + 1 / x + over / 2 + over / x * (1 / 6 - over * (1 / 30 - over / 42))


def _inverse_trigamma(y: float) -> float:
    """Where the trigamma function is y: it falls all the way, so halving finds it."""
    low, high = -20.0, 20.0  # of the logarithm
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _trigamma(math.exp(middle)) > y else (low, middle)
    return math.exp((low + high) / 2)
