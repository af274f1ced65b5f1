"""This machine: its processors, memory and GPUs, and the method that measures on it (threads, limits)."""

import contextlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec

from rnnbench.domain.case import EFFORTS, Effort, Method, Protocol, Timing
from rnnbench.domain.run import Gpu, Machine
from rnnbench.domain.system import Processor
from rnnbench.errors import UserError


def describe_machine() -> Machine:
    return Machine(
        cpu=_cpu_model(),
        cpus=len(allowed_cpus()),
        cores=len(physical_cpus()),
        caches=_caches(),
        memory_bytes=total_memory(),
        system=_system_name(),
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        gpus=find_gpus(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def allowed_cpus() -> list[int]:
    """The processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def physical_cpus() -> list[int]:
    """One allowed processor per physical core: processors of one core share its execution units."""
    seen: set[str] = set()
    chosen: list[int] = []
    for cpu in allowed_cpus():
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = _read_text(topology) or str(cpu)
        if core not in seen:
            seen.add(core)
            chosen.append(cpu)
    return chosen


@cache
def this_processor() -> Processor:
    """Architecture and features of the first core; no features if the kernel does not list them."""
    for line in _read_text(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return Processor(platform.machine(), frozenset(value.split()))
    return Processor(platform.machine(), frozenset())


def find_gpus() -> tuple[Gpu, ...]:
    """The GPUs that nvidia-smi lists; none if it is missing or does not answer."""
    if shutil.which("nvidia-smi") is None:
        return ()
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    gpus: list[Gpu] = []
    for line in answer.strip().splitlines():
        with contextlib.suppress(ValueError):  # "No devices were found"
            name, driver, memory = (field.strip() for field in line.split(","))
            memory_mib = 0 if memory.startswith("[") else int(memory)  # such as [N/A]
            gpus.append(Gpu(name=name, driver=driver, memory_mib=memory_mib))
    return tuple(gpus)


def total_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _cpu_model() -> str:
    for line in _read_text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    found: dict[str, str] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read_text(index / name) for name in ("level", "type", "size"))
        if level and size:
            found[f"L{level}{'' if kind == 'Unified' else kind[:1].lower()}"] = size
    return found


def _system_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform()


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def make_method(
    *,
    effort: str = "standard",
    protocol: str = "adaptive",
    timing: str = "throughput",
    launches: int = 0,
    limit_seconds: float = 600.0,
    memory_gb: float = 0.0,
    threads: int = 0,
    seed: int = 0,
    verify: bool = True,
    ahead: int = 1,
    **others: Any,
) -> Method:
    """A Method from checked options. 0 means the value of the effort or of the machine. `others` are more fields."""
    for value, allowed, what in (
        (effort, get_args(Effort), "effort"),
        (protocol, get_args(Protocol), "protocol"),
        (timing, get_args(Timing), "timing"),
    ):
        if value not in allowed:
            raise UserError(f"'{value}' is not a valid {what}", f"allowed: {', '.join(allowed)}")
    for number, least, what in (
        (launches, 0, "launches"),
        (limit_seconds, 1, "the time limit"),
        (memory_gb, 0, "the memory limit"),
        (threads, 0, "threads"),
        (seed, 0, "the seed"),
        (ahead, 1, "the number of parallel workers"),
    ):
        if not least <= number < float("inf"):  # written so that NaN is refused too
            raise UserError(f"{what} cannot be {number:g}", f"it must be at least {least}")
    if ahead > 1 and protocol != "adaptive":
        raise UserError(
            f"parallel workers cannot be combined with the protocol of {protocol}",
            "it fixes the number of discarded batches, but a worker that has waited must warm up again",
        )
    base = next(method for name, method in EFFORTS.items() if name == effort)
    count, cpus = pick_threads(threads)
    return msgspec.structs.replace(
        base,
        protocol=protocol,
        timing=timing,
        launches=launches or base.launches,
        limit_seconds=float(limit_seconds),
        memory_bytes=int(memory_gb * 1e9) or int(0.9 * total_memory()),
        threads=count,
        cpus=cpus,
        seed=seed,
        verify=verify,
        ahead=ahead,
        **others,
    )


def pick_threads(wanted: int) -> tuple[int, tuple[int, ...]]:
    """The number of threads, and the processors they are pinned to: on different cores, as long as there are enough."""
    cores, everything = physical_cpus(), allowed_cpus()
    count = wanted or len(cores)
    if count > len(everything):
        raise UserError(f"{count} threads are too many", f"this process may use {len(everything)} processors")
    order = cores + [cpu for cpu in everything if cpu not in cores]
    return count, tuple(sorted(order[:count]))
