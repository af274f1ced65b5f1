"""What a run was asked to do, on which machine and with what: everything that `run.json` stores."""

import msgspec

from rnnbench.domain.case import Case, LeftOut, Method
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    driver: str
    memory_mib: int  # 0 where it does not tell: some share the host's


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Stored with every run."""

    cpu: str
    cpus: int  # that this process may use
    cores: int  # of these, distinct physical ones
    caches: dict[str, str]
    memory_bytes: int
    system: str
    kernel: str
    python: str
    gpus: tuple[Gpu, ...] = ()
    load: float | None = None  # one-minute load when the run began


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One interpreter that can run one framework."""

    id: str  # `pytorch-2.13.0`, `pytorch-2.13.0-cuda`, `pytorch-2.11.0-used`
    framework: str
    version: str  # of the framework's package, as installed
    python: str  # the interpreter to start
    python_version: str
    external: bool  # the user's own, by `env use`; not created here and never deleted
    folder: str  # "" when used
    distributions: dict[str, str]  # name -> version, all that is installed
    fingerprint: str  # the same for two results only if nothing above has changed between them


SCHEMA = 1


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """The rnnbench that made the run."""

    version: str
    revision: str = ""  # of its git checkout, with `+` when files were changed
    worker: str = ""  # hash of the worker package's source
    sources: dict[str, str] = {}  # framework -> hash of the code that computes its rows


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run but its results."""

    schema: int = SCHEMA
    created: str
    command: tuple[str, ...]
    tool: Tool
    machine: Machine
    method: Method
    data: str = ""  # the Penn Treebank folder, if one was given
    workloads: dict[str, Workload]
    proved_on: dict[str, str]  # workload -> the small version its systems were verified on
    systems: dict[str, System]
    environments: dict[str, Environment]
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...] = ()
    profile: bool = False  # each case is also profiled, after all have been timed


#: Fields that had another name in run folders of earlier versions.
_FORMER_NAMES = {b'"used":': b'"external":', b'"beside":': b'"concurrent_workers":'}


def current_names(encoded: bytes) -> bytes:
    """JSON of any version, with today's field names. Strings cannot hold these keys: their quotes are escaped."""
    for former, current in _FORMER_NAMES.items():
        encoded = encoded.replace(former, current)
    return encoded
