"""TorchScript of PyTorch 1.12 and 2.0: the backward pass of a scripted gate fails once it is optimised.

Run it with a Python that has PyTorch. The first calls collect profiles and are correct. Then the fuser takes over,
and the gradient of the bias, which was broadcast, is no longer summed to the size of the bias.
"""

import torch


@torch.jit.script
def gate(x, w, b):
    return torch.sigmoid(torch.matmul(x, w) + b) * x


x, w, b = torch.rand(3, 4), torch.rand(4, 4, requires_grad=True), torch.rand(4, requires_grad=True)
print("PyTorch", torch.__version__)
for call in range(4):
    try:
        gate(x, w, b).sum().backward()
        print(f"call {call}: a gradient of {list(b.grad.shape)} for a bias of {list(b.shape)}")
    except RuntimeError as error:
        print(f"call {call}: {str(error).strip().splitlines()[-1]}")
        break
