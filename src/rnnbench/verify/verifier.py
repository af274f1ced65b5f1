"""Proving systems: each on the small version of a workload, in a worker of its own, a few at a time."""

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from zipfile import BadZipFile

import msgspec
import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.case import Case, Method
from rnnbench.domain.result import Verification
from rnnbench.launch.events import Arrays, Hello
from rnnbench.launch.job import make_job
from rnnbench.launch.launcher import disobedience, judge
from rnnbench.launch.several import several
from rnnbench.launch.subject import Subject
from rnnbench.launch.worker import run_worker
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs
from rnnbench.verify.cache import cache_path, keep_verdict, load_kept
from rnnbench.verify.compare import compare

UPDATES = 3


class Proof(msgspec.Struct, frozen=True):
    """What one worker is to prove: subjects that differ in nothing but their phase, on a small workload."""

    subjects: tuple[Subject, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(subject.case for subject in self.subjects)


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
        places = {subject.case.phase: cache_path(subject, method) for subject in proof.subjects}
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

    several(one, proofs, jobs, take)
    return results


def verify_one(proof: Proof, method: Method) -> list[Verification]:
    """Run the system on the small workload and compare everything it computed, phase by phase."""
    start = time.monotonic()
    subject = proof.subjects[0]
    workload = subject.workload
    parameters = make_parameters(workload, method.seed)
    batches = make_batches(workload, UPDATES, method.seed)
    phases = tuple(case.phase for case in proof.cases)
    results: list[Verification] = []
    with tempfile.TemporaryDirectory(prefix="rnnbench-verify-") as folder:
        inputs = Path(folder) / "inputs.npz"
        write_inputs(inputs, parameters, batches)
        job = make_job("verify", subject, method, str(inputs), phases=phases, arrays=folder)
        ending = run_worker(subject.environment, job, subject.manifest.variables, method.limit_seconds)
        hello = next((event for event in ending.events if isinstance(event, Hello)), None)
        delivered = {event.phase: event.path for event in ending.events if isinstance(event, Arrays)}
        for case in proof.cases:
            verification = Verification(
                case=case,
                verdict="failed",
                versions=hello.versions if hello else {},
                seconds=round(time.monotonic() - start, 3),
            )
            outcome, reason = judge(case, method.threads, ending)
            computed = None
            if case.phase in delivered and not disobedience(case, method.threads, ending):
                try:
                    computed = _load(delivered[case.phase])
                except (OSError, ValueError, EOFError, BadZipFile) as error:
                    outcome, reason = "failed", f"its arrays cannot be read: {error}"
            if computed is not None:
                figures = compare(
                    workload, case.phase, case.precision, subject.system.biases, parameters, batches, computed
                )
                results.append(_judged(msgspec.structs.replace(verification, figures=tuple(figures))))
            else:
                verdict = "timeout" if outcome == "timeout" else "failed"
                results.append(
                    msgspec.structs.replace(
                        verification,
                        verdict=verdict,
                        reason=reason or "it said it was done, but sent no arrays",
                        stage=ending.stage,
                        log_tail=ending.log.tail(),
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
