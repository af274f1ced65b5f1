"""A plan: how a whole sequence runs, made once for a cell and the kind of its inputs, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, fx, nn

from .calling import Call, Held
from .packing import pack_products
from .parts import Part
from .rows import Kind
from .tracing import Joint, Step, trace_step
from .zones import Zone, Zones


@dataclass(frozen=True, eq=False)
class Form:
    """What a loop over time does, whatever the call."""

    part: Part
    carried: list[tuple[fx.Node, fx.Node | None]]  # what enters a step, and what leaves it for the next; None: zero
    added: list[fx.Node]  # of which only the sum over all steps is wanted
    kept: frozenset[fx.Node]  # which must be known for every step afterwards
    from_the_end: bool

    def keeps(self, number: int) -> bool:
        """Whether what is carried under this number must be known for every step."""
        return not self.stored.isdisjoint(self.carried[number])

    @cached_property
    def stored(self) -> set[fx.Node]:
        """The outputs that need memory for every step: what is kept, and what something that is kept lies within."""
        return {*self.kept, *(one.output for node, one in self.part.within.items() if node in self.kept)}


class Plan:
    """The parts of a step, and which values go from one to the other."""

    def __init__(self, cell: nn.Module, held: Held, call: Call) -> None:
        self.joint = Joint(cell, held.names, call)
        self.step, self.packed = pack_products(trace_step(cell, held, call))
        self.zones = Zones(self.step)
        self._dtypes = _found_dtypes(self.step)
        ports, of = self.step.ports, self.zones.of
        self.d_trained, self.d_sequences, self.d_extras, self.d_old_state = (
            [one if self.zones.depends_on_gradient(one) else None for one in some]
            for some in (ports.d_trained, ports.d_sequences, ports.d_extras, ports.d_old_state)
        )
        totals = [one for one in (*self.d_trained, *self.d_extras) if one is not None]
        for_inputs = [one for one in self.d_sequences if one is not None]
        old = [one for one in self.d_old_state if one is not None]

        # What a layer below waits for is a part of its own.
        self.after_for_inputs = Part(self.zones, Zone.AFTER, _only(for_inputs, of, Zone.AFTER))
        self.after = Part(self.zones, Zone.AFTER, _only(totals, of, Zone.AFTER))
        self.summed = [node for node in self.zones.in_zone(Zone.SUMS) if self.zones.kinds[node] is Kind.SUMMED]
        self._sums: dict[frozenset[fx.Node], Part] = {}
        late = [*self.after_for_inputs.inputs, *self.after.inputs, *self.sums_without(()).inputs]
        self.back = Part(self.zones, Zone.BACK, _only([*old, *totals, *for_inputs, *late], of, Zone.BACK), old)
        self._kept_backwards = frozenset([*late, *for_inputs, *_only(totals, of, Zone.GIVEN)])
        self._added = _only(totals, of, Zone.BACK)
        forward = [ports.output, *ports.new_state]
        saved = [*self.back.inputs, *late]
        self.saved = frozenset(saved)
        self.loop = Part(self.zones, Zone.LOOP, _only([*forward, *saved], of, Zone.LOOP), ports.new_state)
        self.loop_alone = Part(self.zones, Zone.LOOP, _only(forward, of, Zone.LOOP), ports.new_state)
        needed = [*forward, *self.loop.inputs]
        self.ahead = Part(self.zones, Zone.AHEAD, _only([*needed, *saved], of, Zone.AHEAD))
        self.ahead_alone = Part(self.zones, Zone.AHEAD, _only([*forward, *self.loop_alone.inputs], of, Zone.AHEAD))
        needed += self.ahead.inputs
        filled = _only(forward, of, Zone.ANYWHERE)
        self.once = Part(self.zones, Zone.ONCE, [*_only([*needed, *saved], of, Zone.ONCE), *filled])

        self._loops: dict[tuple[bool, ...], Form] = {}
        self._shapes: dict[tuple[fx.Node, int], tuple[int, ...]] = {}
        self.graphs: dict[tuple[Any, ...], Any] = {}  # loops of this plan that were captured, by `captured.py`
        self.graph_places: dict[int, Any] = {}  # by stream: their memory, and where they are captured
        self.kernels: dict[Any, Any] = {}  # loops as one kernel, by `persistent/choice.py`
        self.kinds: dict[tuple[Any, ...], Any] = {}  # of calls of chains that begin with it, by `replayed.py`

    def sums_without(self, known: Iterable[fx.Node]) -> Part:
        """What is added up over all sequences and steps, without those that a kernel has added up."""
        key = frozenset(known)
        if key not in self._sums:
            self._sums[key] = Part(self.zones, Zone.SUMS, [node for node in self.summed if node not in key])
        return self._sums[key]

    def forward_loop(self, keep: bool, states: bool, reverse: bool) -> Form:
        """`keep`: for the derivative. `states`: all states are wanted."""
        key, ports = (keep, states, reverse), self.step.ports
        if key in self._loops:
            return self._loops[key]
        kept = {ports.output, *(self.saved if keep else ()), *(ports.state if states else ())}
        carried: list[tuple[fx.Node, fx.Node | None]] = list(zip(ports.state, ports.new_state, strict=True))
        part = self.loop if keep else self.loop_alone
        return self._loops.setdefault(key, Form(part, carried, [], frozenset(kept), reverse))

    def backward_loop(self, reverse: bool) -> Form:
        carried = list(zip(self.step.ports.d_state, self.d_old_state, strict=True))
        form = Form(self.back, carried, self._added, self._kept_backwards, not reverse)
        return self._loops.setdefault((reverse,), form)

    @property
    def backward_loops(self) -> list[Form]:
        return [form for key, form in self._loops.items() if len(key) == 1]

    def shape(self, node: fx.Node, rows: int) -> tuple[int, ...]:
        """Of a node's value, with this many sequences."""
        key = (node, rows)
        if key not in self._shapes:
            traced = self.step.shapes[self.step.ports.sequences[0]][0]
            of_rows = self.step.row_dimensions[node]
            sizes = enumerate(self.step.shapes[node])
            self._shapes[key] = tuple(size // traced * rows if k in of_rows else size for k, size in sizes)
        return self._shapes[key]

    def changes(self, node: fx.Node) -> bool:
        """Whether a value is another one at each step."""
        ports, zone = self.step.ports, self.zones.of[node]
        if zone is Zone.GIVEN:
            return node not in {*ports.trained, *ports.fixed, *ports.extras}
        return zone not in (Zone.ONCE, Zone.ANYWHERE)

    def dtype(self, node: fx.Node) -> torch.dtype:
        return self._dtypes[node]

    @property
    def hands_on_its_outputs(self) -> bool:
        """Whether the loop makes the outputs, so that a layer above can begin before it is through."""
        output = self.step.ports.output
        return self.zones.of[output] is Zone.LOOP or output in self.step.ports.state

    def row_dimension(self, node: fx.Node) -> int:
        return self.step.row_dimensions[node][0]

    def has_rows(self, node: fx.Node) -> bool:
        return self.zones.kinds[node] is Kind.ROWS

    def explain(self) -> str:
        """What runs when, in words."""
        lines = [f"packed: {what}" for what in self.packed]
        for zone in (Zone.ONCE, Zone.AHEAD, Zone.LOOP, Zone.BACK, Zone.SUMS, Zone.AFTER):
            nodes = self.zones.in_zone(zone)
            products = sum("mm" in str(node.target) for node in nodes)
            lines.append(f"{len(nodes):4} operators, {products:2} of them products: {zone.value}")
        for node, kind in self.zones.kinds.items():
            if kind is Kind.MIXED and node.op == "call_function" and node in self.step.shapes:
                lines.append(f"     {node.target} stays in the loop: it is not known to treat every sequence alike")
        outside = [self.ahead, self.ahead_alone, self.after_for_inputs, self.after]
        lines += [f"     {said}" for part in outside if part.products for said in part.products.said]
        lines += [f"     {said}" for choice in self.kernels.values() if (said := getattr(choice, "said", ""))]
        return "\n".join(dict.fromkeys(lines))


def _found_dtypes(step: Step) -> dict[fx.Node, torch.dtype]:
    """The types of all values, by running the step once. Those that a trace tells are not always those of the device:
    the statistics of a layer norm in bfloat16 are float32 on one and not on another."""
    rows = step.shapes[step.ports.sequences[0]][0]
    found: dict[fx.Node, torch.dtype] = {}

    class Recorder(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            if n.op == "placeholder":
                value: Any = rows if n is step.ports.rows else _zeros_like(n.meta["val"])
            else:
                value = super().run_node(n)
            if isinstance(value, Tensor):
                found[n] = value.dtype
            return value

    with torch.no_grad():
        Recorder(fx.GraphModule(step.module, step.graph)).run()
    return found


def _zeros_like(example: Tensor) -> Tensor:
    return torch.zeros(example.shape, dtype=example.dtype, device=example.device)


def _only(nodes: Iterable[fx.Node], of: dict[fx.Node, Zone], zone: Zone) -> list[fx.Node]:
    return list(dict.fromkeys(node for node in nodes if of.get(node) is zone))
