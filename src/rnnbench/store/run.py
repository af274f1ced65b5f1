"""What a run was asked to do and where: `run.json`, written once when the run begins."""

import msgspec

from rnnbench.domain.case import Case, LeftOut, Method
from rnnbench.domain.system import System
from rnnbench.domain.workload import Workload
from rnnbench.environments.environment import Environment
from rnnbench.machine import Machine

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
