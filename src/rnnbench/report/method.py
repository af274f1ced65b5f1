"""How a run was measured, in a line."""

from rnnbench.domain.case import Method
from rnnbench.store.run import Run


def method_name(run: Run) -> str:
    method = run.method
    launches = f"{method.launches} launch{'' if method.launches == 1 else 'es'} a case"
    threads = f"{method.threads} thread{'' if method.threads == 1 else 's'}"
    return f"{method.protocol} protocol, {method.timing}, {launches}, {threads}{beside(method)}"


def beside(method: Method) -> str:
    """What a reader of first calls must know, where workers compiled beside each other."""
    return f", {method.ahead} workers at once: first call and warm-up too long" if method.ahead > 1 else ""
