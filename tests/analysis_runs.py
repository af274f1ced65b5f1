"""Whole runs with made-up times, for tests of the analysis."""

import msgspec

from made_up import ENVIRONMENT, WHEN, make_case, make_contents, make_launch, make_proof, make_system
from rnnbench.domain.case import Method
from rnnbench.domain.result import Limit, Timed

CPU = make_case()


class MadeUpRow:
    """One row: a system, and the time of a batch in each block of each launch. A number: all blocks are the same."""

    def __init__(self, system, *launches, environment="toy-1.0", verdict="verified", seed="", start=None, **case):
        self.system, self.environment, self.verdict, self.seed = system, environment, verdict, seed
        self.launches = [blocks for one in launches for blocks in ([one] if isinstance(one, list) else [[one] * 5] * 2)]
        self.start = start or {}  # of every launch: first_call_s, warm_batches, warm_seconds, peak_host_bytes, …
        self.case = msgspec.structs.replace(make_case(**case), system=system, environment=environment)

    def records(self):
        if self.verdict:
            yield make_proof(self.case, self.verdict, reason="" if self.verdict == "verified" else "it is off")
        for number, blocks in enumerate(self.launches):
            yield make_launch(self.case, *blocks, round=number, **self.start)


def contents_of(*rows, others=()):
    """A run of these rows, with other records."""
    records = [record for row in rows for record in row.records()]
    contents = make_contents([row.case for row in rows], *records, *others, method=Method(launches=1))
    systems = {row.system: make_system(row.system, seed=row.seed) for row in rows}
    environments = {name: environment_of(name) for name in dict.fromkeys(row.environment for row in rows)}
    run = msgspec.structs.replace(contents.run, systems=systems, environments=environments)
    return msgspec.structs.replace(contents, run=run)


def environment_of(name):
    framework, _, version = name.rpartition("-")
    return msgspec.structs.replace(ENVIRONMENT, id=name, framework=framework, version=version)


def make_limit(case=CPU, flops_per_s=1e11, bytes_per_s=1e10, **fields):
    """The limit of a machine with these rates, for the case's environment and device."""
    known = {"environment": case.environment, "device": case.device, "precision": case.precision}
    rates = {"products": (Timed(int(flops_per_s), 1.0),), "copies": (Timed(int(bytes_per_s), 1.0),)}
    return Limit(**{"started": WHEN, "outcome": "ok", **known, **rates, **fields})
