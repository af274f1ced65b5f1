"""A run without its results: its cases, its method, the machine and the environments. `run.json` stores it."""

import re

import msgspec

from rnnbench.domain.bounds import Count, Quantity
from rnnbench.domain.case import Case, LeftOut, Method
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    driver: str
    memory_mib: Count  # 0 if it does not report it: some GPUs share the host's memory


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine that a run was measured on."""

    cpu: str
    cpus: Count  # that this process may use
    cores: Count  # the physical cores among them
    caches: dict[str, str]
    memory_bytes: Count
    system: str
    kernel: str
    python: str
    gpus: tuple[Gpu, ...] = ()
    load: Quantity | None = None  # of the minute before the run began
    probe_s: Quantity | None = None  # seconds of a fixed computation on its fastest processor, when the run began

    @property
    def load_share(self) -> float | None:
        """Of its processors, by the load; None if that is not known."""
        return None if self.load is None else self.load / self.cpus


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """One interpreter that can run one framework."""

    id: str  # `pytorch-2.13.0`, `pytorch-2.13.0-cuda`, `pytorch-2.11.0-used`
    framework: str
    version: str  # of the framework's package, as installed
    python: str  # the interpreter to start
    python_version: str
    external: bool  # provided by the user with `env use`; not created by rnnbench, and never deleted
    folder: str  # "" if external
    distributions: dict[str, str]  # name -> version of everything that is installed
    fingerprint: str  # changes with the interpreter and with every distribution


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """The rnnbench that made a run."""

    version: str
    revision: str = ""  # of its git checkout, with `+` if files were changed
    worker: str = ""  # hash of the worker package's source
    reference: str = ""  # hash of the source of the reference and of the comparison with it
    sources: dict[str, str] = {}  # framework -> hash of the code that computes its rows


SCHEMA = 1


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run except its results."""

    schema: int = SCHEMA
    created: str
    command: tuple[str, ...]
    tool: Tool
    machine: Machine  # that planned the run and, unless it was spread over nodes, measured it
    method: Method
    data: str = ""  # the folder of the Penn Treebank, if one was given
    workloads: dict[str, Workload]
    proved_on: dict[str, str]  # workload -> the small version that its systems were verified on
    systems: dict[str, System]
    environments: dict[str, Environment]
    cases: tuple[Case, ...]
    left_out: tuple[LeftOut, ...] = ()
    variables: dict[str, str] = {}  # environment variables that change what frameworks compute, when the run began
    profile: bool = False  # each case is also profiled, after all cases were timed
    machines: dict[str, Machine] = {}  # node -> its machine, where the run was spread over a cluster

    def machine_of(self, node: str) -> Machine:
        """The machine of a record, which says its node."""
        return self.machines.get(node, self.machine)


#: Fields that had another name in earlier versions. The kind of value tells them from a package of that name.
_FORMER_NAMES = (
    (re.compile(rb'"used"(?=:\s*(true|false))'), b'"external"'),
    (re.compile(rb'"beside"(?=:\s*\d)'), b'"concurrent_workers"'),
)


def current_names(encoded: bytes) -> bytes:
    """JSON written by any version, with today's field names. Strings cannot match: their quotes are escaped."""
    for former, current in _FORMER_NAMES:
        encoded = former.sub(current, encoded)
    return encoded
