"""PyTorch's threads, precision and denormals: what is set once per process, what it then reports, how fast it is."""

import torch

from .compat import allow_tf32, has_mkldnn, threads


def apply_settings(job):
    """To be called before any tensor is made: the thread pool starts with the first parallel operator."""
    torch.set_num_threads(job["threads"])
    if job["flush_denormals"]:
        # Vanishing gradients become denormals, which x86 handles very slowly. XLA and TensorFlow flush them to zero,
        # so all frameworks here do. Threads of the pool inherit this from the thread that starts them.
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


def rates(job):
    """PyTorch's fastest product and copy, for the machine's limit."""
    device = job["device"]
    precision = torch.bfloat16 if job["precision"] == "bf16" else torch.float32  # TF32 is a setting of the process

    def product(size):
        left, right = (torch.rand(size, size, device=device).to(precision) for _ in range(2))
        result = torch.empty_like(left)
        return lambda: torch.mm(left, right, out=result)

    def copy(count):
        source = torch.rand(count, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    def sync(handle):
        if device == "cuda":
            torch.cuda.synchronize()

    return {"product": product, "copy": copy, "sync": sync}
