"""Tracing keeps only the branch that its example took; scripting keeps both.

Run it with a Python that has PyTorch; `rnnbench env create pytorch` prints the path of one.
"""

import torch


def clipped(h: torch.Tensor) -> torch.Tensor:
    if bool(h.norm() > 1):
        h = h / h.norm()
    return h


def show():
    short, long = torch.tensor([0.3, 0.4]), torch.tensor([3.0, 4.0])
    programs = {
        "traced with a short vector": torch.jit.trace(clipped, (short,), check_trace=False),
        "scripted": torch.jit.script(clipped),
    }
    for name, program in programs.items():
        kinds = [node.kind() for node in program.graph.nodes()]
        yield f"{name}: {len(kinds)} nodes, {kinds.count('prim::If')} prim::If"
        for h in (short, long):
            answer = [round(number, 2) for number in program(h).tolist()]
            right = torch.allclose(program(h), clipped(h))
            given = [round(number, 2) for number in h.tolist()]
            yield f"  given {given}: {answer}, {'right' if right else 'wrong, and says nothing'}"


if __name__ == "__main__":
    print("\n".join(show()))
