"""What is set once per process: threads, precision, denormals; and what PyTorch says it then has."""

import torch

from .compat import allow_tf32, has_mkldnn, threads


def apply_settings(job):
    """Before any tensor is made: the thread pool starts with the first parallel operator."""
    torch.set_num_threads(job["threads"])
    if job["flush_denormals"]:
        # Vanishing gradients end as denormal numbers, which x86 handles very slowly. XLA and TensorFlow
        # flush them; so do we, for all. Threads of the pool inherit this from the one that starts them.
        torch.set_flush_denormal(True)
    allow_tf32(job["precision"] == "tf32")


def describe_device(job):
    device = job["device"]
    versions = {"torch": torch.__version__}
    if device == "cuda":
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch {} sees no CUDA device".format(torch.__version__))
        versions["cuda"] = str(torch.version.cuda)
        versions["cudnn"] = str(torch.backends.cudnn.version())
        name = torch.cuda.get_device_name(0)
    else:
        name = "mkldnn" if has_mkldnn() else "no mkldnn"
    return {
        "versions": versions,
        "device": device,
        "device_name": name,
        "threads": threads(),
    }
