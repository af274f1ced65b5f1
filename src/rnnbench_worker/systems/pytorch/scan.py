"""One layer in one direction as torch's own scan operator: the loop stays a loop in the compiled program."""

import torch
from torch import nn


class ScanDirection(nn.Module):
    """Takes the place of `stacks.Direction`, with the same call and the same cell."""

    def __init__(self, cell, hidden, reverse):
        super(ScanDirection, self).__init__()
        self.cell = cell
        self.hidden = hidden
        self.reverse = reverse

    def forward(self, xs, mask):
        from torch._higher_order_ops.scan import scan  # not in older versions

        zeros = torch.zeros(xs.size(1), self.hidden, dtype=xs.dtype, device=xs.device)

        # What the backward pass keeps of a step must not be the carry itself: inductor refuses it
        # ("scan might be aliasing the input or the output"), so the carry is copied on its way in and out.
        def step(state, x):
            h, c = self.cell(x, (state[0].clone(), state[1].clone()))
            return (h.clone(), c.clone()), h.clone()

        def masked_step(state, x_and_mask):
            x, here = x_and_mask
            old_h, old_c = state[0].clone(), state[1].clone()
            new_h, new_c = self.cell(x, (old_h, old_c))
            h = torch.where(here, new_h, old_h)
            c = torch.where(here, new_c, old_c)
            return (h.clone(), c.clone()), torch.where(here, h, torch.zeros_like(h))

        start = (zeros, zeros.clone())
        if mask is None:
            _, outputs = scan(step, start, xs, dim=0, reverse=self.reverse)
        else:
            _, outputs = scan(masked_step, start, (xs, mask), dim=0, reverse=self.reverse)
        return outputs
