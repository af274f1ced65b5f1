"""A plan: how a whole sequence runs, made once for a cell and the kind of its inputs, whatever the number of steps."""

from __future__ import annotations

from collections.abc import Iterable

from torch import fx, nn

from .calling import Call, Names
from .packing import pack_products
from .parts import Part
from .rows import Kind
from .tracing import Joint, trace_step
from .zones import Zone, Zones


class Plan:
    """The parts of a step, and which values go from one to the other."""

    def __init__(self, cell: nn.Module, names: Names, call: Call) -> None:
        self.joint = Joint(cell, names, call)
        self.step, self.packed = pack_products(trace_step(cell, names, call))
        self.zones = Zones(self.step)
        ports, of = self.step.ports, self.zones.of
        self.d_trained, self.d_sequences, self.d_extras, self.d_old_state = (
            [one if self.zones.depends_on_gradient(one) else None for one in some]
            for some in (ports.d_trained, ports.d_sequences, ports.d_extras, ports.d_old_state)
        )
        results = [one for one in (*self.d_trained, *self.d_sequences, *self.d_extras) if one is not None]
        old = [one for one in self.d_old_state if one is not None]

        self.after = Part(self.zones, Zone.AFTER, _only(results, of, Zone.AFTER))
        self.back = Part(self.zones, Zone.BACK, _only([*old, *results, *self.after.inputs], of, Zone.BACK))
        forward = [ports.output, *ports.new_state]
        saved = [*self.back.inputs, *self.after.inputs]
        self.loop = Part(self.zones, Zone.LOOP, _only([*forward, *saved], of, Zone.LOOP))
        self.loop_alone = Part(self.zones, Zone.LOOP, _only(forward, of, Zone.LOOP))
        needed = [*forward, *self.loop.inputs]
        self.ahead = Part(self.zones, Zone.AHEAD, _only([*needed, *saved], of, Zone.AHEAD))
        self.ahead_alone = Part(self.zones, Zone.AHEAD, _only([*forward, *self.loop_alone.inputs], of, Zone.AHEAD))
        needed += self.ahead.inputs
        filled = _only(forward, of, Zone.ANYWHERE)
        self.once = Part(self.zones, Zone.ONCE, [*_only([*needed, *saved], of, Zone.ONCE), *filled])

    def row_dimension(self, node: fx.Node) -> int:
        return self.step.row_dimensions[node][0]

    def has_rows(self, node: fx.Node) -> bool:
        return self.zones.kinds[node] is Kind.ROWS

    def explain(self) -> str:
        """What runs when, in words."""
        lines = [f"packed: {what}" for what in self.packed]
        for zone in (Zone.ONCE, Zone.AHEAD, Zone.LOOP, Zone.BACK, Zone.AFTER):
            nodes = self.zones.in_zone(zone)
            products = sum("mm" in str(node.target) for node in nodes)
            lines.append(f"{len(nodes):4} operators, {products:2} of them products: {zone.value}")
        for node, kind in self.zones.kinds.items():
            if kind is Kind.MIXED and node.op == "call_function" and node in self.step.shapes:
                lines.append(f"     {node.target} stays in the loop: it is not known to treat every sequence alike")
        return "\n".join(dict.fromkeys(lines))


def _only(nodes: Iterable[fx.Node], of: dict[fx.Node, Zone], zone: Zone) -> list[fx.Node]:
    return list(dict.fromkeys(node for node in nodes if of.get(node) is zone))
