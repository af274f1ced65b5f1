"""How a run was measured, in a line."""

from rnnbench.domain.result import Launch
from rnnbench.store.folder import Contents


def method_name(contents: Contents) -> str:
    method = contents.run.method
    launches = f"{method.launches} launch{'' if method.launches == 1 else 'es'} a case"
    threads = f"{method.threads} thread{'' if method.threads == 1 else 's'}"
    return f"{method.protocol} protocol, {method.timing}, {launches}, {threads}{_crowd(contents)}"


def _crowd(contents: Contents) -> str:
    """What a reader of first calls must know. Asked of the launches: a run may be gone on with in another way."""
    most = max((record.beside for record in contents.records if isinstance(record, Launch)), default=0)
    return f", up to {most + 1} workers at once: first call and warm-up too long" if most else ""
