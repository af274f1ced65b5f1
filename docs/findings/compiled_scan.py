"""Two scans in a row, compiled: the gradients of the first layer and of both biases are wrong.

Run it with a Python that has PyTorch 2.13, and a C++ compiler on the PATH. It prints the relative error of each
gradient, compared with the same recurrence run eagerly in a plain loop.
"""

import torch
from torch._higher_order_ops.scan import scan

torch.manual_seed(0)
STEPS, BATCH, WIDTH = 7, 5, 12


def parameters():
    generator = torch.Generator().manual_seed(1)
    shapes = ((WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,))
    return [torch.randn(shape, generator=generator).mul(0.3).requires_grad_() for shape in shapes * 2]


def layer_by_loop(xs, w, u, b):
    h, hs = torch.zeros(BATCH, WIDTH), []
    for x in xs:
        h = torch.tanh(x @ w + h @ u + b)
        hs.append(h)
    return torch.stack(hs)


def layer_by_scan(xs, w, u, b):
    def step(h, x):
        new = torch.tanh(x @ w + h.clone() @ u + b)
        return new.clone(), new.clone()

    return scan(step, torch.zeros(BATCH, WIDTH), xs, dim=0)[1]


def gradients(layer, compiled, layers):
    values = parameters()

    def loss(xs):
        for index in range(layers):
            xs = layer(xs, *values[3 * index : 3 * index + 3])
        return (xs * xs).sum()

    run = torch.compile(loss, fullgraph=True) if compiled else loss
    run(torch.randn(STEPS, BATCH, WIDTH, generator=torch.Generator().manual_seed(2))).backward()
    return [value.grad for value in values[: 3 * layers]]


print("torch", torch.__version__)
for layers in (1, 2):
    expected = gradients(layer_by_loop, False, layers)
    for compiled in (False, True):
        try:
            found = gradients(layer_by_scan, compiled, layers)
        except Exception as error:
            print(f"{layers} layers, {'compiled' if compiled else 'eager'} scan: {type(error).__name__}")
            continue
        errors = [
            f"{name}{index // 3} {float((got - want).norm() / want.norm()):.1e}"
            for index, (name, got, want) in enumerate(zip("wub" * layers, found, expected, strict=True))
        ]
        print(f"{layers} layers, {'compiled' if compiled else 'eager'} scan: {'  '.join(errors)}")
