"""Proving systems: each on the small version of a workload, in a worker of its own, a few at a time."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.case import LeftOut, Method
from rnnbench.domain.result import Verification
from rnnbench.files import cache_folder, write_atomically
from rnnbench.launch.events import Arrays, Hello
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.launch.launcher import disobedience, outcome_of
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.schedule import in_parallel
from rnnbench.launch.worker import run_worker
from rnnbench.manifests import source_hash, system_sources
from rnnbench.plan import Plan
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs
from rnnbench.verify.compare import compare
from rnnbench.verify.proofs import Proof, proofs_for, verification_jobs

UPDATES = 3


class VerifiedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The verifications in the plan's order, and what was left out, with the reason."""

    verifications: tuple[Verification, ...]
    left_out: tuple[LeftOut, ...]


def verify_plan(
    plan: Plan, method: Method, listener: Listener, *, jobs: int = 0, use_cache: bool = True
) -> VerifiedPlan:
    """Make the environments, then verify every case on the small version of its workload."""
    prepared = prepare(plan, listener)
    proofs = proofs_for(prepared.cases, plan.workloads, plan.systems, prepared.environments)
    order = {case.key: index for index, case in enumerate(case for proof in proofs for case in proof.cases)}
    listener.verifying(len(order))
    results = prove(proofs, method, jobs or verification_jobs(prepared.cases), listener.verified, use_cache=use_cache)
    results.sort(key=lambda verification: order[verification.case.key])
    return VerifiedPlan(verifications=tuple(results), left_out=prepared.left_out)


def prove(
    proofs: Iterable[Proof],
    method: Method,
    jobs: int,
    on_result: Callable[[Verification], None],
    *,
    use_cache: bool = True,
) -> list[Verification]:
    """All of them, `jobs` at a time: nothing is being timed, so the cores may be shared."""
    method = msgspec.structs.replace(method, cpus=())  # pinned, they would all sit on the same few

    def one(proof: Proof) -> list[Verification]:
        places = {resolved.case.phase: cache_path(resolved, method) for resolved in proof.resolved_cases}
        kept = [load_kept(path) for path in places.values()] if use_cache else [None]
        if None not in kept:
            return [verification for verification in kept if verification is not None]
        found = verify_one(proof, method)
        for verification in found:
            keep_verdict(places[verification.case.phase], verification)
        return found

    results: list[Verification] = []

    def take(found: list[Verification]) -> None:
        for verification in found:
            results.append(verification)
            on_result(verification)

    in_parallel(one, proofs, jobs, take)
    return results


def verify_one(proof: Proof, method: Method) -> list[Verification]:
    """Run the system on the small workload and compare everything it computed, phase by phase."""
    start = time.monotonic()
    resolved = proof.resolved_cases[0]
    workload = resolved.workload
    parameters = make_parameters(workload, method.seed)
    batches = make_batches(workload, UPDATES, method.seed)
    phases = tuple(case.phase for case in proof.cases)
    results: list[Verification] = []
    with tempfile.TemporaryDirectory(prefix="rnnbench-verify-") as folder:
        inputs = Path(folder) / "inputs.npz"
        write_inputs(inputs, parameters, batches)
        job = make_job("verify", resolved, method, str(inputs), phases=phases, arrays=folder)
        result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds)
        hello = next((event for event in result.events if isinstance(event, Hello)), None)
        delivered = {event.phase: event.path for event in result.events if isinstance(event, Arrays)}
        for case in proof.cases:
            verification = Verification(
                case=case,
                verdict="failed",
                versions=hello.versions if hello else {},
                seconds=round(time.monotonic() - start, 3),
            )
            outcome, reason = outcome_of(case, method.threads, result)
            computed = None
            if case.phase in delivered and not disobedience(case, method.threads, result):
                try:
                    computed = _load(delivered[case.phase])
                except (OSError, ValueError, EOFError, BadZipFile) as error:
                    outcome, reason = "failed", f"its arrays cannot be read: {error}"
            if computed is not None:
                figures = compare(
                    workload, case.phase, case.precision, resolved.system.biases, parameters, batches, computed
                )
                results.append(_judged(msgspec.structs.replace(verification, figures=tuple(figures))))
            else:
                verdict = "timeout" if outcome == "timeout" else "failed"
                results.append(
                    msgspec.structs.replace(
                        verification,
                        verdict=verdict,
                        reason=reason or "it said it was done, but sent no arrays",
                        stage=result.stage,
                        log_tail=result.log.tail(),
                    )
                )
    return results


def _load(path: str) -> dict[str, NDArray[np.floating]]:
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def _judged(verification: Verification) -> Verification:
    """Right when every figure is within its tolerance; otherwise the worst one is the reason."""
    wrong = [figure for figure in verification.figures if not figure.passes]
    if not wrong:
        return msgspec.structs.replace(verification, verdict="verified")
    worst = max(wrong, key=lambda figure: figure.excess)
    reason = f"{worst}; {len(wrong)} of {len(verification.figures)} quantities are wrong"
    return msgspec.structs.replace(verification, verdict="wrong", reason=reason)


def cache_path(resolved: ResolvedCase, method: Method) -> Path:
    """Named by everything the result depends on: code of system, worker, reference and comparison too."""
    driver = Path(__file__).resolve().parent.parent
    judges = source_hash(driver / "reference", driver / "verify")
    case = resolved.case
    parts = (
        case.workload,
        case.system,
        case.device,
        case.precision,
        case.phase,
        str(resolved.system.biases),
        resolved.environment.fingerprint,
        system_sources(resolved.manifest),
        judges,
        str(method.threads),
        str(method.flush_denormals),
        str(method.seed),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return cache_folder() / "verified" / f"{digest}.json"


def load_kept(path: Path) -> Verification | None:
    """A kept result; a damaged file is no result."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Verification)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None
    return msgspec.structs.replace(kept, cached=True)


def keep_verdict(path: Path, verification: Verification) -> None:
    """Only judgements are kept: a crash or a timeout may have been the machine's fault."""
    if verification.verdict not in ("verified", "wrong"):
        return
    write_atomically(path, msgspec.json.encode(verification))
