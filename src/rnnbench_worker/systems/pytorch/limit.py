"""PyTorch's fastest product and copy, for the machine's limit."""

import torch


def rates(job):
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
