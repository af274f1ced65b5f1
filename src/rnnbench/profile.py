"""One launch under a framework's own profiler."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Change, Operator, Profile, Reshape, Retrace
from rnnbench.domain.workload import Workload
from rnnbench.files import file_name
from rnnbench.launch.events import Event, First, Hello, Profiled, Reshaped, Unprofiled
from rnnbench.launch.job import ResolvedCase, make_job, workload_fields, write_workload_inputs
from rnnbench.launch.launcher import outcome_of
from rnnbench.launch.worker import run_worker

BATCHES = 2  # distinct ones, fed in turn
TOP = 12  # operators that are kept by name
TRACES = "traces"


def launch_profile(
    resolved: ResolvedCase,
    method: Method,
    place: Path,
    folder: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Profile:
    """Inputs are written to `place`, the trace into the folder of traces below `folder`."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case, variables = resolved.case, resolved.manifest.variables
    inputs = write_workload_inputs(resolved.workload, method.seed, place, BATCHES)
    with tempfile.TemporaryDirectory(prefix="rnnbench-trace-") as scratch:
        job = make_job("profile", resolved, method, str(inputs), arrays=scratch)
        result = run_worker(resolved.environment, job, variables, method.limit_seconds, on_event)
        outcome, reason = outcome_of(case, method.threads, result)
        profile = Profile(
            case=case,
            started=started,
            outcome=outcome,
            reason=reason,
            stage=result.stage,
            versions=next((event.versions for event in result.events if isinstance(event, Hello)), {}),
            log_tail="" if outcome == "ok" else result.log.tail(),
        )
        found = next((event for event in result.events if isinstance(event, Profiled | Unprofiled)), None)
        if outcome != "ok":
            return profile
        if isinstance(found, Unprofiled):
            return msgspec.structs.replace(profile, outcome="none", reason=found.reason)
        if found is None:
            return msgspec.structs.replace(profile, outcome="failed", reason="it was done, but sent no profile")
        trace = _keep(found.trace, Path(scratch), case, folder)
        return msgspec.structs.replace(profile, trace=trace, **of_one_batch(found, case.device == "cuda"))


def of_one_batch(found: Profiled, on_device: bool) -> dict[str, object]:
    """What a worker sent, as a profile has it: counts and times of one batch, and only the longest by name."""
    chosen = found.kernels if on_device else found.operators
    each = [Operator(one.name, one.count / found.batches, one.seconds / found.batches) for one in chosen]
    busy_s = min(found.wall_s, found.kernels_s if on_device else found.operators_s)
    return {
        "batches": found.batches,
        "wall_s": found.wall_s,
        "host_s": found.host_s,
        "profiled_s": found.profiled_s,
        "operators": sum(one.count for one in found.operators) / found.batches,
        "operators_s": found.operators_s,
        "kernels": sum(one.count for one in found.kernels) / found.batches if on_device else None,
        "kernels_s": found.kernels_s if on_device else None,
        "kinds": seconds_by_kind(each, busy_s),
        "counts": counts_by_kind(each),
        "top": tuple(each[:TOP]),
    }


def _keep(trace: str, scratch: Path, case: Case, folder: Path) -> str:
    """The trace's new place, relative to the folder; empty where there is none in the scratch folder."""
    if not Path(trace).is_file() or scratch.resolve() not in Path(trace).resolve().parents:
        return ""
    kept = Path(TRACES) / file_name(f"{case.key}.json.gz")
    (folder / TRACES).mkdir(parents=True, exist_ok=True)
    shutil.move(trace, folder / kept)
    return str(kept)


CHANGES: tuple[Change, ...] = ("batch", "steps")


def reshaped(workload: Workload, change: Change) -> Workload:
    """One sequence more or one step more: as new a shape as any other, and hardly more work."""
    return msgspec.structs.replace(workload, **{change: getattr(workload, change) + 1})


def launch_retrace(
    resolved: ResolvedCase,
    method: Method,
    place: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Retrace:
    """Its inputs are written to `place`, once for all rows of a workload."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    variants: list[dict[str, object]] = []
    for change in CHANGES:
        other = reshaped(resolved.workload, change)
        inputs = write_workload_inputs(other, method.seed, place, 1)
        variants.append({"change": change, "workload": workload_fields(other), "inputs": str(inputs)})
    own = write_workload_inputs(resolved.workload, method.seed, place, BATCHES)
    job = make_job("retrace", resolved, method, str(own), variants=variants)
    result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds, on_event)
    outcome, reason = outcome_of(resolved.case, method.threads, result)
    events = result.events
    return Retrace(
        case=resolved.case,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=result.stage,
        first_call_s=next((event.seconds for event in events if isinstance(event, First)), None),
        reshapes=tuple(_plain(event) for event in events if isinstance(event, Reshaped)),
        versions=next((event.versions for event in events if isinstance(event, Hello)), {}),
        log_tail="" if outcome == "ok" else result.log.tail(),
    )


def _plain(event: Reshaped) -> Reshape:
    return Reshape(**msgspec.structs.asdict(event))


OperatorKind = Literal["product", "recurrent", "memory", "other"]

#: One operator for a whole layer or more: products inside, with what belongs to them.
_RECURRENT = ("lstm", "rnn", "elman")
_PRODUCT = (
    "gemm", "gemv", "matmul", r"(^|::|_)(add|badd|b)?mm(_|$)", "^dot", "[^a-z]dot([^a-z]|$)", "linear",
    "fullyconnected", "einsum", "cutlass", "cublas", "xmma",
    "[xy]nn_fusion",  # XLA's name on CPUs for a product that it leaves to a library
)  # fmt: skip

#: Next to nothing is done with each number that is read or written.
_MEMORY = (
    "add", "sub", "mul", "div", "neg", "sigmoid", "tanh", "relu", "exp", "log", "sqrt", "pow", "abs", "max", "min",
    "sum", "mean", "reduc", "norm", "entropy", "nll", "where", "less", "greater", "equal", "compare", "elemwise",
    "elementwise", "eltwise", "vectorized", "fus", "cpp_", "triton_(poi|red|per)", "adam", "lerp", "foreach",
    "multi_tensor", "accumulate", "copy", "clone", "memcpy", "memset", "reorder", "cast", "convert", "::to$", "assign",
    "readvariable", "cat", "concat", "stack", "split", "slice", "select", "narrow", "index", "gather", "scatter",
    "embed", "unbind", "subtensor", "fill", "zero", "ones", "full", "empty", "alloc", "iota", "range", "broadcast",
    "expand", "tile", "pad", "view", "reshape", "transpose", "permute", "squeeze", "strided", "dimshuffle", "::t$",
    "detach", "identity", "const",
)  # fmt: skip

#: Looked through in this order. Names are operators of frameworks, operators of XLA, kernels of CUDA.
_RULES: tuple[tuple[OperatorKind, re.Pattern[str]], ...] = (
    ("recurrent", re.compile("|".join(_RECURRENT), re.IGNORECASE)),
    ("product", re.compile("|".join(_PRODUCT), re.IGNORECASE)),
    ("memory", re.compile("|".join(_MEMORY), re.IGNORECASE)),
)


def kind_of(name: str) -> OperatorKind:
    """`other` where the name tells nothing that is known here."""
    return next((kind for kind, pattern in _RULES if pattern.search(name)), "other")


def counts_by_kind(operators: Iterable[Operator]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in operators:
        kind = kind_of(one.name)
        found[kind] = found.get(kind, 0.0) + one.count
    return found


def seconds_by_kind(operators: Iterable[Operator], busy_s: float) -> dict[str, float]:
    """Their seconds by kind, brought to the time in which any of them ran: several may run at once."""
    found: dict[str, float] = {}
    for one in operators:
        kind = kind_of(one.name)
        found[kind] = found.get(kind, 0.0) + one.seconds
    total = sum(found.values())
    return {kind: seconds / total * busy_s for kind, seconds in found.items()} if total else {}
