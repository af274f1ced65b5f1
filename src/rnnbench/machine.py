"""This machine, as far as it affects a time: processors, memory, GPUs, operating system."""

import contextlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

from rnnbench.domain.run import Gpu, Machine
from rnnbench.domain.system import Processor


def describe_machine() -> Machine:
    return Machine(
        cpu=describe_processor(),
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


def describe_processor() -> str:
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
