"""The machine in front of us, as far as it matters to a time: processors, memory, GPU, system."""

import contextlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

import msgspec

from rnnbench.domain.system import Processor


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    driver: str
    memory_mib: int  # 0 where it does not tell: some share the host's


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Stored with every run."""

    cpu: str
    cpus: int  # that this process may use
    cores: int  # of these, distinct physical ones
    caches: dict[str, str]
    memory_bytes: int
    system: str
    kernel: str
    python: str
    gpus: tuple[Gpu, ...] = ()
    load: float | None = None  # one-minute load when the run began


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
    """One processor of each physical core among the allowed ones: siblings share what we measure."""
    seen: set[str] = set()
    chosen: list[int] = []
    for cpu in allowed_cpus():
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = _read(topology) or str(cpu)
        if core not in seen:
            seen.add(core)
            chosen.append(cpu)
    return chosen


@cache
def this_processor() -> Processor:
    """The features are those of the first core; none where the kernel does not list them."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return Processor(platform.machine(), frozenset(value.split()))
    return Processor(platform.machine(), frozenset())


def find_gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs by their own tool; none when it is not there or does not answer."""
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
            known = 0 if memory.startswith("[") else int(memory)  # such as [N/A]
            gpus.append(Gpu(name=name, driver=driver, memory_mib=known))
    return tuple(gpus)


def total_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _cpu_model() -> str:
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    found: dict[str, str] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(index / name) for name in ("level", "type", "size"))
        if level and size:
            found[f"L{level}{'' if kind == 'Unified' else kind[:1].lower()}"] = size
    return found


def _system_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.platform()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
