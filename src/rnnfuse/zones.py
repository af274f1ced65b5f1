"""When each operator of a step runs: once, ahead of the loop, in it, in the loop backwards, or after that.

What needs no state runs ahead, over all steps at once. What only the gradients of parameters or inputs need runs after
the backward loop, over all steps at once. What is left depends on the step before, and is the loop.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from enum import Enum

import torch
from torch import fx

from .rewriting import operands
from .rows import FILLED, Kind, find_kinds, is_cheap
from .tracing import Step

aten = torch.ops.aten


class Zone(Enum):
    GIVEN = "given"
    ANYWHERE = "wherever it is used: it depends on nothing"
    ONCE = "once for all steps"
    AHEAD = "ahead of the loop, over all steps at once"
    LOOP = "in the loop"
    BACK = "in the loop backwards"
    SUMS = "after the loop, added up over all sequences and steps, unless the loop is a kernel that adds up"
    AFTER = "after the loop, over all steps at once"


class Zones:
    """The zone and the kind of every operator."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.kinds = find_kinds(step)
        self._sources = self._find_sources()
        self.of: dict[fx.Node, Zone] = {}
        for node in step.graph.nodes:
            if node.op != "output":
                self.of[node] = self._forward_zone(node)
        self._sink()
        self._place_late_values()
        self._place_gradients()
        self._place_sums()

    def depends_on_gradient(self, node: fx.Node | None) -> bool:
        """A derivative that does not is zero: it is linear in the gradient it was given."""
        return node is not None and "gradient" in self._sources[node]

    def in_zone(self, zone: Zone) -> list[fx.Node]:
        return [node for node, found in self.of.items() if found is zone]

    # --- what a value depends on ---

    def _find_sources(self) -> dict[fx.Node, frozenset[str]]:
        ports = self.step.ports
        named = {
            **dict.fromkeys([*ports.sequences, *ports.random], "step"),
            **dict.fromkeys(ports.state, "state"),
            **dict.fromkeys([ports.d_output, *ports.d_state], "gradient"),
            **dict.fromkeys(ports.extras, "extras"),
        }
        found: dict[fx.Node, frozenset[str]] = {}
        for node in self.step.graph.nodes:
            own = frozenset([named[node]]) if node in named else frozenset()
            found[node] = own.union(*(found[one] for one in node.all_input_nodes))
        return found

    def _forward_zone(self, node: fx.Node) -> Zone:
        sources = self._sources[node]
        if node.op == "placeholder":
            return Zone.GIVEN
        if node.op == "get_attr" or node.target in FILLED or (node not in self.step.shapes and not sources):
            return Zone.ANYWHERE
        if "gradient" in sources:
            return Zone.BACK  # for now
        if not sources & {"step", "state"}:
            return Zone.ONCE
        if "state" in sources or not self._runs_over_all_steps(node):
            return Zone.LOOP
        return Zone.AHEAD

    def _runs_over_all_steps(self, node: fx.Node) -> bool:
        """Whether an operator may be given the rows of all steps: it treats them alike, and its inputs have them."""
        # A sum over the sequences may become one over all steps only as a part of a gradient, which is added up anyway.
        is_gradient = self.kinds[node] is Kind.SUMMED and self.depends_on_gradient(node)
        if self.kinds[node] is not Kind.ROWS and not is_gradient:
            return False
        return all(self._has_all_steps(one) for one in node.all_input_nodes)

    def _has_all_steps(self, node: fx.Node) -> bool:
        if self.of[node] is Zone.ANYWHERE:
            return True
        changes = bool(self._sources[node] & {"step", "state", "gradient"})
        # Without rows it must be the same at every step. With rows it must have them for every step: an extra input,
        # and what is made of it, has one for each sequence only.
        return not changes if self.kinds[node] is Kind.FIXED else changes and self.kinds[node] is not Kind.MIXED

    def _sink(self) -> None:
        """What is cheap and follows the last product ahead goes into the loop, where it is fused with the rest.

        Pieces of a product that is packed would otherwise be copied, and a bias would be one more pass over all steps.
        """
        for node in reversed(list(self.of)):
            if self.of[node] is Zone.AHEAD and is_cheap(node):
                users = [self.of[user] for user in node.users if user in self.of]
                if users and Zone.AHEAD not in users:
                    self.of[node] = Zone.LOOP

    # --- backwards ---

    def _place_late_values(self) -> None:
        """Values that no output needs, only the derivative: they are made where they are used."""
        needed = self._needed_for([self.step.ports.output, *self.step.ports.new_state])
        for node, zone in list(self.of.items()):
            if _is_one_of_several(node):
                self.of[node] = self.of[operands(node)[0]]
            elif zone in (Zone.LOOP, Zone.AHEAD) and node not in needed:
                self.of[node] = Zone.BACK

    def _place_gradients(self) -> None:
        ports = self.step.ports
        in_loop = self._needed_for([one for one in ports.d_old_state if one is not None])
        after: set[fx.Node] = set()
        for node, zone in self.of.items():
            if _is_one_of_several(node):
                if operands(node)[0] in after:
                    after.add(node)
            elif zone is Zone.BACK and node not in in_loop and self._runs_over_all_steps(node):
                inputs = [one for one in node.all_input_nodes if self.kinds[one] is not Kind.FIXED]
                # A sum over rows is complete only after the loop: nothing in the loop may hand one on.
                if all(self.kinds[one] is not Kind.SUMMED or one in after for one in inputs):
                    after.add(node)
        for node in after:
            self.of[node] = Zone.AFTER
        # A value that is used in the loop has to be made there.
        changed = True
        while changed:
            changed = False
            for node in list(after):
                parted = _is_one_of_several(node) and self.of[operands(node)[0]] is Zone.BACK
                if parted or any(self.of.get(user) is Zone.BACK for user in node.users):
                    self.of[node] = Zone.BACK
                    after.discard(node)
                    changed = True

    def _place_sums(self) -> None:
        """Sums over sequences, with the operators that only they need, of values that are known when the loop ends."""
        for node in self.in_zone(Zone.AFTER):
            if _adds_up(node):
                chain = self._only_for(node)
                inputs = {given for one in chain for given in one.all_input_nodes} - chain
                if all(self.of[given] is not Zone.AFTER for given in inputs if given in self.of):
                    chain |= {user for user in node.users if _is_one_of_several(user)}
                    self.of.update(dict.fromkeys(chain, Zone.SUMS))

    def _only_for(self, node: fx.Node) -> set[fx.Node]:
        """A node after the loop, with those there that nothing else needs."""
        found = {node}
        for one in reversed(list(self.of)):
            users = set(one.users)
            if self.of[one] is Zone.AFTER and users and users <= found and self.kinds[one] is Kind.ROWS:
                found.add(one)
        return found

    def _needed_for(self, ends: Iterable[fx.Node]) -> set[fx.Node]:
        needed: set[fx.Node] = set()
        waiting = list(ends)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += node.all_input_nodes
        return needed


def _adds_up(node: fx.Node) -> bool:
    """Over the sequences; the gradients of a layer norm's parameters are such sums, too."""
    if node.target is aten.native_layer_norm_backward.default:
        return not operands(node)[-1][0]
    return node.target is aten.sum.dim_IntList and list(operands(node)[1]) == [0]


def _is_one_of_several(node: fx.Node) -> bool:
    """One result of an operator that has several: it is where the operator is."""
    return node.target is operator.getitem
