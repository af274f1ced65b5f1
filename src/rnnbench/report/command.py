"""How to run just one row again, as a command line."""

import shlex

from rnnbench.analysis.rows import Row
from rnnbench.domain.case import EFFORTS, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.store.run import Run


def command(run: Run, row: Row) -> str:
    """The same case, measured in the same way; what a run does by itself is not said."""
    words = ["rnnbench", "run", row.system, "-w", row.workload]
    if run.workloads[row.workload].id not in CATALOG:
        words += ["--workloads-from", "FILE.toml"]  # the user's own, which a run does not keep
    words += ["--phase", row.phase, "--device", row.device, "--precision", row.precision]
    words += _version(run, row)
    words += _method(run.method)
    if run.data and run.workloads[row.workload].vocabulary:
        words += ["--data", "FOLDER"]
    return shlex.join(words)


def _version(run: Run, row: Row) -> list[str]:
    """A used environment is found by `env use`, not by its version."""
    environment = run.environments.get(row.environment)
    if environment is None or environment.used:
        return []
    return ["--versions", row.environment.removeprefix(f"{row.framework}-").removesuffix("-cuda")]


def _method(method: Method) -> list[str]:
    effort, usual = EFFORTS[method.effort], Method()
    options = (
        ("--effort", method.effort, usual.effort),
        ("--protocol", method.protocol, usual.protocol),
        ("--timing", method.timing, usual.timing),
        ("--launches", method.launches, effort.launches),
        ("--limit", f"{method.limit_seconds:g}", f"{usual.limit_seconds:g}"),
        ("--threads", method.threads, None),
        ("--seed", method.seed, usual.seed),
    )
    words = [word for name, value, plain in options if value != plain for word in (name, str(value))]
    return words if method.verify else [*words, "--no-verify"]
