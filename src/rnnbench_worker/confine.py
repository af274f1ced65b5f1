"""What must be settled before a framework is imported: processors, memory, and dying with the driver."""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def confine(job):
    """Pin the process, limit its memory, and tie its life to the driver's."""
    if job["cpus"] and hasattr(os, "sched_setaffinity"):
        # Thread pools size themselves by this mask when a framework starts (XLA's follows nothing else).
        os.sched_setaffinity(0, job["cpus"])
    if job["memory_bytes"]:
        # The data segment, not the address space: CUDA reserves far more addresses than it uses.
        limit = job["memory_bytes"]
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    if sys.platform.startswith("linux"):
        # A driver that is killed cannot stop its worker: the kernel does it.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
