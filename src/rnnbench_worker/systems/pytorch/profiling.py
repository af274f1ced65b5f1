"""PyTorch under torch.profiler: operators on the host, kernels on the device by CUPTI."""

import os
import re

import torch

from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, leaves, operation, read_chrome

#: What the device does; `gpu_user_annotation` and the like only stand above these.
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


#: Views, memory, filling and copying: `aten::addmm` calls some of these, and still does the work itself.
HELPERS = frozenset("aten::" + name for name in [
    "alias", "as_strided", "chunk", "clone", "contiguous", "copy_", "detach", "detach_", "empty", "empty_like",
    "empty_strided", "expand", "expand_as", "fill_", "item", "_local_scalar_dense", "lift_fresh", "narrow", "new_empty",
    "new_zeros", "ones", "permute", "resize_", "resolve_conj", "resolve_neg", "reshape", "_reshape_alias", "select",
    "slice", "split", "squeeze", "t", "_to_copy", "to", "transpose", "unbind", "unsqueeze", "_unsafe_view", "view",
    "zero_", "zeros", "zeros_like",
])  # fmt: skip
#: These add up their two biases by an operator, and do all the rest themselves.
WHOLE = frozenset(["aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"])
#: What only stands above operators: nodes of the autograd graph, regions that were compiled.
WRAPPERS = re.compile(r"^autograd::|^torch::autograd|Backward\d*$|^Torch-Compiled|^Compiled|^TorchDynamo")


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


def is_operator(event):
    return event.get("cat") == "cpu_op" and not WRAPPERS.search(event["name"])


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
        host=leaves([operation(event) for event in events if is_operator(event)], HELPERS, WHOLE),
        device=[operation(event) for event in events if event.get("cat") in KERNELS],
        batches=BATCHES,
        file=path,
    )
