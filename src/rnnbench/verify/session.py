"""Verifying a whole plan: environments made, every case proved on the small version of its workload."""

import msgspec

from rnnbench.domain.case import LeftOut, Method
from rnnbench.domain.result import Verification
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.plan import Plan
from rnnbench.verify.proofs import proofs_for, verification_jobs
from rnnbench.verify.verifier import prove


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, in the plan's order; and what was left out, with the reason."""

    verifications: tuple[Verification, ...]
    left_out: tuple[LeftOut, ...]


def verify_plan(plan: Plan, method: Method, listener: Listener, *, jobs: int = 0, use_cache: bool = True) -> Session:
    ready = prepare(plan, listener)
    proofs = proofs_for(ready.cases, plan.workloads, plan.systems, ready.environments)
    order = {case.key: index for index, case in enumerate(case for proof in proofs for case in proof.cases)}
    listener.verifying(len(order))
    results = prove(proofs, method, jobs or verification_jobs(ready.cases), listener.verified, use_cache=use_cache)
    results.sort(key=lambda verification: order[verification.case.key])
    return Session(verifications=tuple(results), left_out=ready.left_out)
