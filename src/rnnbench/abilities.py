"""Try the abilities of systems: each system's small programs in a worker, and their numbers against the reference.

Entries are cached under a hash of everything they depend on.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.ability import ABILITIES, Entry, Verdict, plain_version
from rnnbench.domain.case import Case, Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.result import Figure
from rnnbench.environments.environment import arithmetic_variables
from rnnbench.environments.holding import held
from rnnbench.errors import UserError, describe_os_error
from rnnbench.files import DAMAGED_JSON, cache_folder, read_regular, write_atomically
from rnnbench.launch.arrays import DamagedArrays, read_arrays
from rnnbench.launch.events import Event, Hello, Tried
from rnnbench.launch.job import ResolvedCase, make_job, resolve_case
from rnnbench.launch.launcher import deviation_from_request
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import Prepared, prepare
from rnnbench.launch.schedule import in_parallel
from rnnbench.launch.worker import run_worker
from rnnbench.manifests import may_offer, reference_sources, system_sources
from rnnbench.plan import Plan
from rnnbench.reference.abilities import Arrays, expected_arrays, is_dropout_mask, make_inputs
from rnnbench.scratch import scratch_folder, sweep
from rnnbench.verify.compare import TOLERANCES, relative_error
from rnnbench.verify.proofs import small_version, verification_jobs

_MOST_BYTES = 16 << 20  # of one ability: far more than any needs
TOLERANCE = TOLERANCES["fp32"]
WORKLOAD = small_version(CATALOG["ce-short"])  # whatever a plan's workloads are: it has the sizes of the reference


def try_abilities(
    plan: Plan,
    method: Method,
    listener: Listener,
    abilities: Sequence[str] = ABILITIES,
    *,
    jobs: int = 0,
    use_cache: bool = True,
) -> list[Entry]:
    """An entry for each system and ability, in the plan's order. `method.limit_seconds` is for one ability."""
    sweep()
    prepared = _prepared(plan, listener)
    order = list(plan.systems)
    chosen = {
        (case.system, case.environment): case for case in prepared.cases
    }  # the training phase, where there is one
    left_out = {
        (left.case.system, left.case.environment): left
        for left in prepared.left_out
        if (left.case.system, left.case.environment) not in chosen
    }
    entries = [
        _entry(left.case, "", ability, "not tried", left.reason) for left in left_out.values() for ability in abilities
    ]
    method = msgspec.structs.replace(method, cpus=())  # pinned workers would all run on the same cores
    resolved = [
        msgspec.structs.replace(
            resolve_case(case, plan.workloads, plan.systems, prepared.environments), workload=WORKLOAD
        )
        for case in chosen.values()
    ]
    listener.trying_abilities(len(resolved) * len(abilities))

    def run_or_load(one: ResolvedCase) -> list[Entry]:
        path = _cache_path(one, method)
        cached = _load_cached(path) if use_cache else []
        missing = [ability for ability in abilities if ability not in {entry.ability for entry in cached}]
        try:
            new = _try_system(one, method, missing, listener)
        except OSError as error:  # its interpreter is gone, or there is no room for it: others go on
            reason = f"it cannot be started: {describe_os_error(error)}"
            new = [_entry(one.case, one.environment.version, ability, "failed", reason) for ability in missing]
        _store_cached(path, [*cached, *new])
        return [entry for entry in (*cached, *new) if entry.ability in abilities]

    def report(found: list[Entry]) -> None:
        for entry in found:
            entries.append(entry)
            listener.ability_tried(entry)

    with held(prepared.environments.values()):
        in_parallel(run_or_load, resolved, jobs or verification_jobs(prepared.cases), report)
    return sorted(entries, key=lambda one: (order.index(one.system), one.environment, ABILITIES.index(one.ability)))


def _prepared(plan: Plan, listener: Listener) -> Prepared:
    """Where nothing can be run at all, everything is left out: what a matrix of entries shows as well."""
    if not plan.cases:
        return Prepared(cases=(), left_out=plan.left_out, environments={})
    return prepare(plan, listener)


def _entry(case: Case, version: str, ability: str, verdict: Verdict, reason: str = "") -> Entry:
    return Entry(
        system=case.system,
        device=case.device,
        environment=case.environment,
        version=plain_version(version),
        ability=ability,
        verdict=verdict,
        reason=reason,
    )


def _try_system(resolved: ResolvedCase, method: Method, abilities: Sequence[str], listener: Listener) -> list[Entry]:
    """One worker for all abilities. If it dies in one, that one has failed, and another worker does the rest."""
    case, version = resolved.case, resolved.environment.version
    if not may_offer(resolved.manifest, "prove"):
        reason = f"there are no programs for {resolved.manifest.title} yet"
        return [_entry(case, version, ability, "not tried", reason) for ability in abilities]
    inputs = make_inputs(method.seed)
    remaining, entries = list(abilities), []
    with scratch_folder("abilities") as folder:
        path = Path(folder) / "inputs.npz"
        np.savez(path, **inputs)  # type: ignore[arg-type]
        while remaining:
            job = make_job("abilities", resolved, method, str(path), arrays=folder, abilities=remaining)
            limit = method.limit_seconds * len(remaining)
            waiting = iter(remaining)

            def follow(event: Event, waiting: Iterator[str] = waiting) -> None:
                if isinstance(event, Hello | Tried) and (ability := next(waiting, "")):
                    listener.trying(case, ability)

            result = run_worker(resolved.environment, job, resolved.manifest.variables, limit, follow)
            elsewhere = deviation_from_request(case, method.threads, result)
            if elsewhere:
                return [_entry(case, version, ability, "failed", elsewhere) for ability in abilities]
            tried = [event for event in result.events if isinstance(event, Tried)]
            entries += [_entry(case, version, event.ability, *_judge(event, inputs, folder)) for event in tried]
            remaining = remaining[len(tried) :]
            if remaining:
                culprit, *remaining = remaining
                entries.append(_entry(case, version, culprit, "failed", result.reason or "it sent nothing"))
    return entries


# --- judging ----------------------------------------------------------------------------------------------


def _judge(event: Tried, inputs: Arrays, folder: str) -> tuple[Verdict, str]:
    if event.outcome != "computed":
        return "no", event.reason
    try:
        computed = read_arrays(event.path, folder, expected_bytes=_MOST_BYTES)
    except DamagedArrays as error:
        return "failed", f"its arrays cannot be read: {error}"
    wrong = [figure for figure in compare_arrays(event.ability, inputs, computed) if not figure.passes]
    if wrong:
        worst = max(wrong, key=lambda figure: figure.excess)
        return "wrong", _shape_difference(event.ability, inputs, computed) or str(worst)
    if event.ability == "other-steps" and event.built:
        return "no", f"something is built again ({event.built})"
    return "yes", event.note


def compare_arrays(ability: str, inputs: Arrays, computed: Mapping[str, NDArray[Any]]) -> list[Figure]:
    """A figure for each array that the ability must give; one that is missing fails."""
    if ability == "recurrent-dropout" and "mask" in computed:  # the layer has drawn its own
        if not is_dropout_mask(computed["mask"]):
            return [Figure("dropout mask", None, TOLERANCE)]
        inputs = {**inputs, "mask": computed["mask"]}
    looked_at = inputs["looked_at"] if ability == "variable-lengths" else 1.0
    figures = []
    for name, expected in expected_arrays(ability, inputs).items():
        found = computed.get(name)
        if name == "h":  # beyond the end of a sequence only its last state counts
            expected = expected * looked_at
            found = found * looked_at if found is not None and found.shape == expected.shape else found
        figures.append(Figure(name.replace("/", " of "), relative_error(found, expected), TOLERANCE))
    return figures


def _shape_difference(ability: str, inputs: Arrays, computed: Mapping[str, NDArray[Any]]) -> str:
    """A program that was made for another number of steps gives that number, and no error says so."""
    found, expected = computed.get("h"), expected_arrays(ability, inputs).get("h")
    if found is None or expected is None or found.shape == expected.shape:
        return ""
    return f"its result has the shape {list(found.shape)} instead of {list(expected.shape)}"


# --- the cache --------------------------------------------------------------------------------------------


def _cache_path(resolved: ResolvedCase, method: Method) -> Path:
    """Named by the source of worker, system and reference, all that is installed, and what changes arithmetic."""
    parts = (
        msgspec.json.encode(resolved.workload).decode(),
        resolved.case.system,
        resolved.case.device,
        resolved.environment.fingerprint,
        system_sources(resolved.manifest),
        reference_sources(),
        msgspec.json.encode([resolved.manifest.variables, arithmetic_variables()], order="sorted").decode(),
        str(method.seed),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return cache_folder() / "abilities" / f"{digest}.json"


def _load_cached(path: Path) -> list[Entry]:
    try:
        return msgspec.json.decode(read_regular(path), type=list[Entry])
    except (OSError, *DAMAGED_JSON):
        return []


def _store_cached(path: Path, entries: Sequence[Entry]) -> None:
    """A crash or a timeout may have been the machine's fault: it is tried again."""
    settled = [entry for entry in entries if entry.verdict in ("yes", "no", "wrong")]
    if settled:
        with suppress(OSError):  # a cache that cannot be written to costs time, and nothing else
            write_atomically(path, msgspec.json.encode(settled))


def require_abilities(names: Sequence[str]) -> tuple[str, ...]:
    """These abilities in the order of the table; all if none is named."""
    for name in names:
        if name not in ABILITIES:
            raise UserError(f"'{name}' is not an ability", f"there are: {', '.join(ABILITIES)}")
    return tuple(ability for ability in ABILITIES if not names or ability in names)
