"""Calls that are alike: the first run in the ordinary way, later ones are replayed.

A recording has room for what the derivative needs of one call, the newest. So each call has a number, and the
derivative of an older one computes the forward pass again in the ordinary way. That is right and slow: where it has
happened once, calls of this kind are never replayed again. Random numbers are drawn as ever, outside of the graphs: no
result tells whether a call was replayed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from itertools import count
from typing import Any

import torch
from torch import Tensor

from . import private
from .chain import kept_by, run_backward, run_forward
from .links import Link, completed, derivative_by_loop, needs_input_gradients
from .passes import draw_numbers
from .recorded import RECORDERS, Recorded

_log = logging.getLogger(__name__)

CALLS = 3  # in the ordinary way, before there is a recording
LONGEST = 128  # steps: longer sequences keep a GPU busy, and their values take much memory
MOST_RECORDED = 8  # kinds of calls, for a chain: each holds its memory
MOST_KNOWN = 64


class Kind:
    """Calls of a chain that are alike."""

    def __init__(self, links: Sequence[Link], keep: bool) -> None:
        self._keep = keep
        self._above = [link.plan for link in links[1:]]  # held: the kind is known by their ids. The first one holds it
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._newest = 0
        self._ended = 0
        self._is_refused = False
        self.recorded: Recorded | None = None

    def begun(self) -> int:
        """The number of a call."""
        self._newest = next(self._numbers)
        return self._newest

    def ended(self, number: int) -> None:
        """A call in the ordinary way, with its derivative if there is one: nothing is left to compile for it."""
        self._ended += 1
        self._is_refused |= number != self._newest  # its values would have been gone

    def is_recorded(self, links: Sequence[Link], tensors: Sequence[Tensor]) -> bool:
        """Whether this call can be replayed. It is recorded now if it is time."""
        if not self._is_refused and self.recorded is None and self._ended >= CALLS:
            with self._lock:
                if self.recorded is None:
                    self._record(links, tensors)
        return self.recorded is not None and not self._is_refused

    def _record(self, links: Sequence[Link], tensors: Sequence[Tensor]) -> None:
        known = links[0].plan.kinds.values()
        try:
            if sum(kind.recorded is not None for kind in list(known)) >= MOST_RECORDED:
                raise RuntimeError(f"there are {MOST_RECORDED} others")
            self.recorded = Recorded(links, tensors, self._keep)
        except Exception as error:  # whatever CUDA or the memory raises: the ordinary way is open
            _log.debug("rnnfuse: calls of a kind are not replayed: %s", str(error))
            self._is_refused = True

    def forward(self, brought: Sequence[Tensor]) -> tuple[list[Tensor], int]:
        """The results of a call, and its number."""
        assert self.recorded is not None
        with self._lock:  # until all is on its way: what follows on this stream comes after it
            return self.recorded.forward(brought), self.begun()

    def backward(self, number: int, gradients: Sequence[Tensor | None]) -> list[Tensor | None] | None:
        """None if another call was begun since."""
        assert self.recorded is not None
        with self._lock:
            return self.recorded.backward(gradients) if number == self._newest else None

    def refuse(self) -> None:
        """From now on. Its graphs stay: others use what cuBLAS put into their memory."""
        self._is_refused = True


def kind_of(links: Sequence[Link], tensors: Sequence[Tensor], keep: bool) -> Kind | None:
    """None: such calls are never replayed."""
    (first, options, _), device = links[0], tensors[0].device
    if device.type not in RECORDERS or not (options.replay and options.compile) or len(tensors[0]) > LONGEST:
        return None
    if options.states or options.recompute or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return None
    key = _key(links, tensors, keep)
    kind: Kind | None = first.kinds.get(key)
    if kind is None:
        if len(first.kinds) >= MOST_KNOWN:  # parameters that are new at each call, or lengths that seldom come again
            for old in [old for old, one in first.kinds.items() if one.recorded is None]:
                del first.kinds[old]
        kind = first.kinds[key] = Kind(links, keep)
    return kind


def _key(links: Sequence[Link], tensors: Sequence[Tensor], keep: bool) -> tuple[Any, ...]:
    """All that a recording depends on: for what is copied, its shape; for parameters, where they are."""
    device, settings = tensors[0].device, torch.backends.cuda.matmul
    found: list[Any] = [
        keep,
        needs_input_gradients(links, tensors),
        torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0,
        settings.allow_tf32,
        settings.allow_fp16_reduced_precision_reduction,
        settings.allow_bf16_reduced_precision_reduction,
    ]
    start = 0
    for plan, options, counts in links:
        middle, end = start + sum(counts[:3]), start + sum(counts)
        found += [id(plan), options]
        found += [(one.shape, one.dtype) for one in tensors[start:middle]]
        found += [(one.data_ptr(), one.shape, one.stride()) for one in tensors[middle:end]]
        start = end
    return tuple(found)


def _brought(links: Sequence[Link], tensors: Sequence[Tensor], draws: Sequence[Tensor]) -> list[Tensor]:
    """What is copied into a recording."""
    found: list[Tensor] = []
    start = 0
    for link in links:
        found += tensors[start : start + sum(link.counts[:3])]
        start += sum(link.counts)
    return [*found, *draws]


def _drawn(links: Sequence[Link], tensors: Sequence[Tensor]) -> list[Tensor]:
    steps, rows = tensors[0].shape[:2]
    return [one for link in links for one in draw_numbers(link.plan, steps, rows, tensors[0].device)]


def run_replayed(links: Sequence[Link], kind: Kind, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Without gradients."""
    return kind.forward(_brought(links, tensors, _drawn(links, tensors)))[0]


class Replayed(torch.autograd.Function):
    """Returns what `Fused` returns."""

    @staticmethod
    def forward(ctx: Any, links: Sequence[Link], kind: Kind, *tensors: Tensor) -> tuple[Tensor, ...]:
        draws = _drawn(links, tensors)
        found, ctx.number = kind.forward(_brought(links, tensors, draws))
        ctx.links, ctx.kind, ctx.count = links, kind, len(tensors)
        ctx.save_for_backward(*tensors, *draws)
        ctx.set_materialize_grads(False)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        links: Sequence[Link] = ctx.links
        kind: Kind = ctx.kind
        saved = ctx.saved_tensors  # once: a checkpoint calls the layer again at each reading
        tensors, draws = saved[: ctx.count], saved[ctx.count :]
        found = None
        if not torch.is_grad_enabled() and not private.is_transformed() and kind_of(links, tensors, True) is kind:
            found = kind.backward(ctx.number, gradients)
        if found is None:
            assert kind.recorded is not None
            shapes = [(one.shape, one.dtype) for one in kind.recorded.results]
            complete = completed(gradients, shapes, tensors[0].device)
            if torch.is_grad_enabled():  # somebody wants the derivative of this derivative
                return (None, None, *derivative_by_loop(links, tensors, complete))
            kind.refuse()
            with private.no_autocast(tensors[0].device.type):
                kept, values = kept_by(links, run_forward(links, tensors, True, draws))
                to_inputs = any(ctx.needs_input_grad[2 : 2 + links[0].counts[0]])
                found = run_backward(links, kept, values, complete, to_inputs)
        return (None, None, *found)
