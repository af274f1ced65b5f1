"""Tracing fixes the length of a loop in the program; scripting keeps the loop.

Run it with a Python that has PyTorch; `rnnbench env create pytorch` prints the path of one.
"""

import torch


def last_state(xs: torch.Tensor, W_h: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(W_h.size(0))
    for t in range(xs.size(0)):
        h = torch.tanh(xs[t] + torch.mv(W_h, h))
    return h


def kinds(block):
    """Of every node, those inside loops and branches too."""
    for node in block.nodes():
        yield node.kind()
        for inner in node.blocks():
            yield from kinds(inner)


def show():
    torch.manual_seed(0)
    W_h, three, five = torch.randn(4, 4), torch.randn(3, 4), torch.randn(5, 4)
    programs = {
        "traced with 3 steps": torch.jit.trace(last_state, (three, W_h), check_trace=False),
        "scripted": torch.jit.script(last_state),
    }
    for name, program in programs.items():
        found = list(kinds(program.graph))
        yield f"{name}: {found.count('aten::tanh')} aten::tanh, {found.count('prim::Loop')} prim::Loop"
        for xs in (three, five):
            right = torch.allclose(program(xs, W_h), last_state(xs, W_h))
            yield f"  given {len(xs)} steps: {'right' if right else 'wrong, and says nothing'}"
    early = torch.allclose(programs["traced with 3 steps"](five, W_h), last_state(five[:3], W_h))
    yield f"what the traced program gives for 5 steps is the state after 3: {early}"


if __name__ == "__main__":
    print("\n".join(show()))
