"""A layer beside the plain loop: outputs, last states and every gradient."""

import torch

from rnnfuse import Recurrent
from rnnfuse.calling import flatten_call, initial_state
from rnnfuse.loop import run_loop
from rnnfuse.plan import Plan
from rnnfuse.private import flatten

torch.set_num_threads(1)


def both(cell, xs, state=None, lengths=None, extras=None, **options):
    """[(what, by the layer, by the loop)] for outputs, last states and the gradients of all that can have one."""
    extras = extras or {}
    state = initial_state(cell, xs[0]) if state is None else state
    leaves = [one for one in flatten((xs, state, extras))[0] if one.is_floating_point()]
    wanted = [one.requires_grad_() for one in leaves] + [one for one in cell.parameters() if one.requires_grad]
    inside = None if lengths is None else torch.arange(len(xs))[:, None] < lengths[None]
    outputs, last, _ = run_loop(cell, flatten_call(xs, state, extras, inside), options.get("reverse", False))
    expected = [outputs, *last, *gradients(outputs, last, wanted)]
    layer = Recurrent(cell, **options)
    outputs, end = layer(xs, state, lengths, **extras)
    last = flatten(end)[0]
    found = [outputs, *last, *gradients(outputs, last, wanted)]
    return layer, list(zip(found, expected, strict=True))


def gradients(outputs, last, wanted):
    generator = torch.Generator().manual_seed(1)  # of the CPU: the same numbers for every device
    loss = 0
    for one in (outputs, *last):
        if one.requires_grad:
            loss = loss + (one * torch.randn(one.shape, generator=generator, dtype=torch.float64).to(one)).sum()
    if not isinstance(loss, torch.Tensor):
        return [None] * len(wanted)  # it depends on nothing that can have a gradient
    return torch.autograd.grad(loss, wanted, allow_unused=True)


def check_unbounded_states(cell, **options):
    """Gates of an LSTM are bounded: what follows an infinite state is a number again."""
    device = next(cell.parameters()).device
    h, c = torch.randn(2, 4, 40, device=device)
    h[1, 3], h[2, 7], h[3, 20] = float("inf"), -float("inf"), float("nan")
    xs = torch.randn(3, 4, 5, device=device)
    with torch.no_grad():
        expected, _, _ = run_loop(cell, flatten_call(xs, (h, c), {}, None), False)
        found, _ = Recurrent(cell, **options)(xs, (h, c))
    assert expected[:, :3].isfinite().all()
    assert expected[:, 3].isnan().all()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def assert_same(pairs, tolerance=1e-10):
    for k, (found, expected) in enumerate(pairs):
        if found is None or expected is None:
            other = expected if found is None else found
            assert other is None or not other.any(), f"value {k} is missing"
            continue
        assert found.shape == expected.shape
        scale = max(1.0, float(expected.detach().abs().max())) if expected.numel() else 1.0
        worst = float((found - expected).detach().abs().max()) if expected.numel() else 0.0
        assert worst <= tolerance * scale, f"value {k} is off by {worst / scale:.1e}"


def doubles(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def plan_of(layer):
    (plan,) = layer._plans.values()
    assert isinstance(plan, Plan), plan
    return plan


def plain_loop(cell, xs):
    """All states of a cell whose state is a tensor."""
    h, ys = cell.initial_state(xs[0]), []
    for x in xs:
        h = cell(x, h)
        ys.append(h)
    return torch.stack(ys)
