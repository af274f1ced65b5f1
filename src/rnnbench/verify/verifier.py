"""Verify systems: each on the small version of a workload, in its own worker, several at a time.

Verdicts are cached under a hash of everything they depend on.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from rnnbench.domain.case import LeftOut, Method
from rnnbench.domain.result import Verification
from rnnbench.environments.environment import arithmetic_variables
from rnnbench.environments.holding import held
from rnnbench.errors import describe_os_error
from rnnbench.files import DAMAGED_JSON, cache_folder, read_regular, write_atomically
from rnnbench.launch.arrays import DamagedArrays, read_arrays
from rnnbench.launch.events import Arrays, Hello
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.launch.launcher import deviation_from_request, outcome_of
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.launch.schedule import in_parallel
from rnnbench.launch.worker import run_worker
from rnnbench.manifests import reference_sources, system_sources
from rnnbench.plan import Plan
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs
from rnnbench.scratch import scratch_folder, sweep
from rnnbench.verify.compare import compare
from rnnbench.verify.proofs import Proof, proofs_for, verification_jobs
from rnnbench.verify.reference import UnknownReference, reference_for

UPDATES = 3
MOST_BYTES = 256 << 20  # of one phase on a small version: far more than any needs


class VerifiedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The verifications in the plan's order, and the cases left out, with the reason."""

    verifications: tuple[Verification, ...]
    left_out: tuple[LeftOut, ...]


def verify_plan(
    plan: Plan, method: Method, listener: Listener, *, jobs: int = 0, use_cache: bool = True
) -> VerifiedPlan:
    """Create the environments, then verify every case on the small version of its workload."""
    sweep()
    prepared = prepare(plan, listener)
    proofs = proofs_for(prepared.cases, plan.workloads, plan.systems, prepared.environments)
    order = {case.key: index for index, case in enumerate(case for proof in proofs for case in proof.cases)}
    listener.verifying(len(order))
    with held(prepared.environments.values()):
        results = run_proofs(
            proofs, method, jobs or verification_jobs(prepared.cases), listener.verified, use_cache=use_cache
        )
    results.sort(key=lambda verification: order[verification.case.key])
    return VerifiedPlan(verifications=tuple(results), left_out=prepared.left_out)


def run_proofs(
    proofs: Iterable[Proof],
    method: Method,
    jobs: int,
    on_result: Callable[[Verification], None],
    *,
    use_cache: bool = True,
) -> list[Verification]:
    """Run all proofs, `jobs` at a time: nothing is being timed, so workers may share the cores."""
    method = msgspec.structs.replace(method, cpus=())  # pinned workers would all run on the same cores

    def run_or_load(proof: Proof) -> list[Verification]:
        paths = {resolved.case.phase: cache_path(resolved, method) for resolved in proof.resolved_cases}
        # A user's class may import what no hash here covers.
        known = use_cache and proof.resolved_cases[0].workload.own_class is None
        cached = [load_cached(path) for path in paths.values()] if known else [None]
        if None not in cached:
            # The same interpreter may have been known by another name then.
            pairs = zip(proof.cases, cached, strict=True)
            return [msgspec.structs.replace(one, case=case) for case, one in pairs if one is not None]
        try:
            verifications = run_proof(proof, method)
        except OSError as error:  # its interpreter is gone, or there is no room for it: others go on
            reason = f"it cannot be started: {describe_os_error(error)}"
            return [Verification(case=case, verdict="failed", reason=reason, stage="start") for case in proof.cases]
        except UnknownReference as error:
            return [Verification(case=case, verdict="failed", reason=error.what) for case in proof.cases]
        for verification in verifications:
            store_cached(paths[verification.case.phase], verification)
        return verifications

    results: list[Verification] = []

    def report(verifications: list[Verification]) -> None:
        for verification in verifications:
            results.append(verification)
            on_result(verification)

    in_parallel(run_or_load, proofs, jobs, report)
    return results


def run_proof(proof: Proof, method: Method) -> list[Verification]:
    """Run the system on the small workload and compare everything it computed, phase by phase."""
    start = time.monotonic()
    resolved = proof.resolved_cases[0]
    workload = resolved.workload
    parameters = make_parameters(workload, method.seed)
    batches = make_batches(workload, UPDATES, method.seed)
    phases = tuple(case.phase for case in proof.cases)
    reference = reference_for(resolved, method, phases)
    results: list[Verification] = []
    with scratch_folder("verify") as folder:
        inputs = Path(folder) / "inputs.npz"
        write_inputs(inputs, parameters, batches)
        job = make_job("verify", resolved, method, str(inputs), phases=phases, arrays=folder)
        result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds)
        hello = next((event for event in result.events if isinstance(event, Hello)), None)
        delivered = {event.name: event.path for event in result.events if isinstance(event, Arrays)}
        for case in proof.cases:
            verification = Verification(
                case=case,
                verdict="failed",
                versions=hello.versions if hello else {},
                seconds=round(time.monotonic() - start, 3),
            )
            outcome, reason = outcome_of(case, method.threads, result)
            computed = None
            if case.phase in delivered and not deviation_from_request(case, method.threads, result):
                try:
                    computed = read_arrays(delivered[case.phase], folder, expected_bytes=MOST_BYTES)
                except DamagedArrays as error:
                    outcome, reason = "failed", f"its arrays cannot be read: {error}"
            if computed is not None:
                figures = compare(
                    workload, case.phase, case.precision, resolved.system, parameters, batches, computed, reference
                )
                results.append(_with_verdict(msgspec.structs.replace(verification, figures=tuple(figures))))
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


def _with_verdict(verification: Verification) -> Verification:
    """Verified when every figure is within its tolerance. Otherwise wrong, and the worst figure is the reason."""
    wrong = [figure for figure in verification.figures if not figure.passes]
    if not wrong:
        return msgspec.structs.replace(verification, verdict="verified")
    worst = max(wrong, key=lambda figure: figure.excess)
    reason = f"{worst}; {len(wrong)} of {len(verification.figures)} quantities are wrong"
    return msgspec.structs.replace(verification, verdict="wrong", reason=reason)


def cache_path(resolved: ResolvedCase, method: Method) -> Path:
    """The cache file of a verdict, named by all it depends on.

    That is the workload with all its fields, the source of worker, system and reference, the versions of all that is
    installed, and the environment variables that change arithmetic.
    """
    case = resolved.case
    parts = (
        msgspec.json.encode(resolved.workload).decode(),
        case.system,
        case.device,
        case.precision,
        case.phase,
        str(resolved.system.biases),
        str(resolved.system.uncorrected_epsilon),
        resolved.environment.fingerprint,
        system_sources(resolved.manifest),
        reference_sources(),
        msgspec.json.encode([resolved.manifest.variables, arithmetic_variables()], order="sorted").decode(),
        str(method.threads),
        str(method.flush_denormals),
        str(method.seed),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return cache_folder() / "verified" / f"{digest}.json"


def load_cached(path: Path) -> Verification | None:
    """The cached verification; None when there is none or its file is damaged."""
    try:
        cached = msgspec.json.decode(read_regular(path), type=Verification)
    except (OSError, *DAMAGED_JSON):
        return None
    return msgspec.structs.replace(cached, cached=True)


def store_cached(path: Path, verification: Verification) -> None:
    """Only verdicts on numbers are cached: a crash or a timeout may have been the machine's fault."""
    if verification.verdict not in ("verified", "wrong"):
        return
    with suppress(OSError):  # a cache that cannot be written to costs time, and nothing else
        write_atomically(path, msgspec.json.encode(verification))
