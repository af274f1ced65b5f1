"""The gradients of a layer norm's own parameters as sums of their own.

PyTorch's operator makes them together with the gradient of what is normalised. That one is needed at every step of the
loop backwards; the others only at the end, where they are added up over all steps at once.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from .rewriting import operands

aten = torch.ops.aten


def separate_parameter_gradients(
    graph: fx.Graph, dimensions: dict[fx.Node, tuple[int, ...]], shapes: dict[fx.Node, tuple[int, ...]]
) -> None:
    for node in list(graph.nodes):
        if node.target is aten.native_layer_norm_backward.default:
            _separate(graph, node, dimensions, shapes)


def _separate(
    graph: fx.Graph, node: fx.Node, dimensions: dict[fx.Node, tuple[int, ...]], shapes: dict[fx.Node, tuple[int, ...]]
) -> None:
    gradient, given, normalised, mean, inverse, *_ = operands(node)
    parts: dict[int, fx.Node] = {operands(user)[1]: user for user in node.users if user.target is operator.getitem}
    types = {one.meta["val"].dtype for one in (gradient, given, *parts.values())}
    if len(shapes[given]) != 2 or dimensions[given] != (0,) or len(normalised) != 1 or len(types) != 1:
        return
    if not {1, 2} & set(parts):
        return

    def write(target: Any, *arguments: Any) -> fx.Node:
        with graph.inserting_before(node):
            found = graph.call_function(target, arguments)
        found.meta["val"] = target(*fx.node.map_arg(arguments, lambda one: one.meta["val"]))
        shapes[found] = tuple(found.meta["val"].shape)
        dimensions[found] = () if target is aten.sum.dim_IntList else (0,)
        return found

    if 1 in parts:
        normal = write(aten.mul.Tensor, write(aten.sub.Tensor, given, mean), inverse)
        parts[1].replace_all_uses_with(write(aten.sum.dim_IntList, write(aten.mul.Tensor, gradient, normal), [0]))
    if 2 in parts:
        parts[2].replace_all_uses_with(write(aten.sum.dim_IntList, gradient, [0]))
    for number in {1, 2} & set(parts):
        graph.erase_node(parts[number])
        del shapes[parts[number]], dimensions[parts[number]]
    node.args = (*operands(node)[:-1], [True, False, False])
