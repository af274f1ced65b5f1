"""PyTorch under torch.profiler: operators on the host, kernels on the device by CUPTI."""

import os

import torch

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, operation, read_chrome

OPERATORS = ("cpu_op",)
#: What the device does; `gpu_user_annotation` and the like only stand above these.
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


def profiler(job):
    if not hasattr(torch, "profiler"):
        return "torch.profiler came with PyTorch 1.8.1; this is {}".format(torch.__version__)
    if job["execution"].startswith("compile") and job["device"] == "cpu":
        record_compiled_kernels()
    return watch


def record_compiled_kernels():
    """What torch.compile makes of element-wise operators on a CPU is seen only when it is compiled to be."""
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True


def watch(program, block, folder):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if program.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities):
            block(1)  # the first profile of a process starts CUPTI, which takes seconds
    with torch.profiler.profile(activities=activities) as profile:
        block()
    path = os.path.join(folder, "trace.json.gz")
    profile.export_chrome_trace(path)
    events = list(read_chrome(path))
    return Timeline(
        host=[operation(event) for event in events if event.get("cat") in OPERATORS],
        device=[operation(event) for event in events if event.get("cat") in KERNELS],
        batches=BATCHES,
        file=path,
    )
