"""rnnbench as a library: make plans, run them and load results as typed objects.

>>> import rnnbench
>>> plan = rnnbench.make_plan(["pytorch/stack/eager"], workloads=["ce-short[batch=4,steps=5]"], device="cpu")
>>> results = rnnbench.run_plan(plan, "my-run", effort="quick")  # doctest: +SKIP
>>> results.rows[0].wall_s  # doctest: +SKIP
>>> pandas.DataFrame(results.to_dicts())  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

from rnnbench.version import __version__ as __version__

if TYPE_CHECKING:
    from rnnbench.api import (
        Results,
        analyse_runs,
        check_run,
        compare_runs,
        join_plans,
        load_run,
        make_plan,
        run_plan,
        try_abilities,
        verify_plan,
        version_history,
    )

__all__ = [
    "Results",
    "analyse_runs",
    "check_run",
    "compare_runs",
    "join_plans",
    "load_run",
    "make_plan",
    "run_plan",
    "try_abilities",
    "verify_plan",
    "version_history",
]


def __getattr__(name: str) -> Any:
    """Import the API when it is first used: the command line starts faster without it."""
    if name in __all__:
        from rnnbench import api

        return getattr(api, name)
    raise AttributeError(f"module 'rnnbench' has no attribute '{name}'")
