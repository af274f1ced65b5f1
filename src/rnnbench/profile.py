"""The two launches that explain why a case is slow; neither of them yields samples.

One runs a few batches under the framework's own profiler and sorts its operators into kinds. The other gives a warm
program new shapes and reports what was built again.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import asdict

from rnnbench.domain.case import Case, Method
from rnnbench.domain.profile import Change, Operator, Profile, Reshape, Retrace
from rnnbench.domain.workload import Workload
from rnnbench.files import file_name
from rnnbench.launch.events import Event, First, Hello, Profiled, Reshaped, Unprofiled
from rnnbench.launch.job import ResolvedCase, make_job, workload_fields, write_workload_inputs
from rnnbench.launch.launcher import outcome_of
from rnnbench.launch.probe import watched
from rnnbench.launch.worker import run_worker
from rnnbench.scratch import scratch_folder

BATCHES = 2  # distinct batches, fed in turn
CHANGES: tuple[Change, ...] = ("batch", "steps")


def launch_profile(
    resolved: ResolvedCase,
    method: Method,
    scratch: Path,
    folder: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Profile:
    """Profile one case. Inputs are written to `scratch`, the trace into `folder`/traces."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    case, variables = resolved.case, resolved.manifest.variables
    inputs = write_workload_inputs(resolved.workload, method.seed, scratch, BATCHES)
    with scratch_folder("trace") as trace_folder:
        job = make_job("profile", resolved, method, str(inputs), arrays=trace_folder)
        with watched(method) as watch:
            result = run_worker(resolved.environment, job, variables, method.limit_seconds, on_event)
        outcome, reason = outcome_of(case, method.threads, result)
        profile = Profile(
            case=case,
            started=started,
            outcome=outcome,
            reason=reason,
            stage=result.stage,
            noisy=watch.was_busy,
            versions=next((event.versions for event in result.events if isinstance(event, Hello)), {}),
            log_tail="" if outcome == "ok" else result.log.tail(),
        )
        found = next((event for event in result.events if isinstance(event, Profiled | Unprofiled)), None)
        if outcome != "ok":
            return profile
        if isinstance(found, Unprofiled):
            return msgspec.structs.replace(profile, outcome="none", reason=found.reason)
        if found is None:
            return msgspec.structs.replace(profile, outcome="failed", reason="it said it was done, but sent no profile")
        trace = _store_trace(found.trace, Path(trace_folder), case, folder)
        return msgspec.structs.replace(profile, trace=trace, **per_batch_fields(found, case.device == "cuda"))


def launch_retrace(
    resolved: ResolvedCase,
    method: Method,
    scratch: Path,
    on_event: Callable[[Event], None] = lambda event: None,
) -> Retrace:
    """Run one case with new shapes. Inputs are written to `scratch`, once for all cases of a workload."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    variants: list[dict[str, object]] = []
    for change in CHANGES:
        other = with_new_shape(resolved.workload, change)
        inputs = write_workload_inputs(other, method.seed, scratch, 1)
        variants.append({"change": change, "workload": workload_fields(other), "inputs": str(inputs)})
    inputs = write_workload_inputs(resolved.workload, method.seed, scratch, BATCHES)
    job = make_job("retrace", resolved, method, str(inputs), variants=variants)
    with watched(method) as watch:
        result = run_worker(resolved.environment, job, resolved.manifest.variables, method.limit_seconds, on_event)
    outcome, reason = outcome_of(resolved.case, method.threads, result)
    events = result.events
    return Retrace(
        case=resolved.case,
        started=started,
        outcome=outcome,
        reason=reason,
        stage=result.stage,
        noisy=watch.was_busy,
        first_call_s=next((event.seconds for event in events if isinstance(event, First)), None),
        reshapes=tuple(Reshape(**asdict(event)) for event in events if isinstance(event, Reshaped)),
        versions=next((event.versions for event in events if isinstance(event, Hello)), {}),
        log_tail="" if outcome == "ok" else result.log.tail(),
    )


def with_new_shape(workload: Workload, change: Change) -> Workload:
    """One sequence or one step more: a new shape with hardly more work."""
    return msgspec.structs.replace(workload, **{change: getattr(workload, change) + 1})


TRACES_FOLDER = "traces"


def _store_trace(trace: str, trace_folder: Path, case: Case, folder: Path) -> str:
    """Move the trace into `folder` and return its path there; empty when there is no file within `trace_folder`."""
    if not Path(trace).is_file() or trace_folder.resolve() not in Path(trace).resolve().parents:
        return ""
    stored = Path(TRACES_FOLDER) / file_name(f"{case.key}.json.gz")
    (folder / TRACES_FOLDER).mkdir(parents=True, exist_ok=True)
    shutil.move(trace, folder / stored)
    return str(stored)


TOP_OPERATORS = 12  # as many are stored by name


def per_batch_fields(found: Profiled, on_device: bool) -> dict[str, object]:
    """The fields of `Profile`: counts and times of one batch, and the operators that take longest by name."""
    totals = found.kernels if on_device else found.operators
    per_batch = [Operator(one.name, one.count / found.batches, one.seconds / found.batches) for one in totals]
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
        "kinds": seconds_by_kind(per_batch, busy_s),
        "counts": _counts_by_kind(per_batch),
        "top": tuple(_scaled(per_batch, busy_s)[:TOP_OPERATORS]),
    }


def _counts_by_kind(operators: Iterable[Operator]) -> dict[str, float]:
    counts: dict[str, float] = {}
    for one in operators:
        kind = kind_of(one.name)
        counts[kind] = counts.get(kind, 0.0) + one.count
    return counts


def seconds_by_kind(operators: Sequence[Operator], busy_s: float) -> dict[str, float]:
    """Seconds by kind; they sum to `busy_s`."""
    seconds: dict[str, float] = {}
    for one in _scaled(operators, busy_s):
        kind = kind_of(one.name)
        seconds[kind] = seconds.get(kind, 0.0) + one.seconds
    return seconds


def _scaled(operators: Sequence[Operator], busy_s: float) -> list[Operator]:
    """The operators with times that sum to `busy_s`, so that every share has one denominator: a batch as it is timed.

    A profiler adds time of its own to each operator, by which their sum can exceed the batch.
    """
    total = sum(one.seconds for one in operators)
    return (
        [Operator(one.name, one.count, one.seconds / total * busy_s) for one in operators] if total else list(operators)
    )


OperatorKind = Literal["product", "recurrent", "memory", "other"]

#: One operator for a whole layer or more, with its matrix products inside.
_RECURRENT = ("lstm", "rnn", "elman")
_PRODUCT = (
    "gemm", "gemv", "matmul", r"(^|::|_)(add|badd|b)?mm(_|$)", "^dot", "[^a-z]dot([^a-z]|$)", "linear",
    "fullyconnected", "einsum", "cutlass", "cublas", "xmma",
    "[xy]nn_fusion",  # XLA's name on CPUs for a product computed by a library
)  # fmt: skip

#: Hardly any arithmetic for each number that is read or written.
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

#: The first match counts. Names are those of framework operators, XLA operators or CUDA kernels.
_RULES: tuple[tuple[OperatorKind, re.Pattern[str]], ...] = (
    ("recurrent", re.compile("|".join(_RECURRENT), re.IGNORECASE)),
    ("product", re.compile("|".join(_PRODUCT), re.IGNORECASE)),
    ("memory", re.compile("|".join(_MEMORY), re.IGNORECASE)),
)


def kind_of(name: str) -> OperatorKind:
    """The kind of an operator by its name; `other` when no rule matches."""
    return next((kind for kind, pattern in _RULES if pattern.search(name)), "other")
