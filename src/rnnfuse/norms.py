"""The gradients of a layer norm's own parameters by an operator of their own.

PyTorch's operator makes them together with the gradient of what is normalised. That one is needed at every step of the
loop backwards; the others only at the end, where they are added up over all steps at once.
"""

from __future__ import annotations

import operator

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
    gradient, given, normalised = operands(node)[:3]
    users = {operands(user)[1]: user for user in node.users if user.target is operator.getitem}
    types = {one.meta["val"].dtype for one in (gradient, given, *users.values())}
    if len(shapes[given]) != 2 or dimensions[given] != (0,) or len(normalised) != 1 or len(types) != 1:
        return
    of_parameters = [users[number] for number in (1, 2) if number in users]
    if not of_parameters:
        return
    wanted = [False, 1 in users, 2 in users]
    with graph.inserting_before(node):
        other = graph.call_function(aten.native_layer_norm_backward.default, (*operands(node)[:-1], wanted))
    other.meta = dict(node.meta)
    for user in of_parameters:
        user.replace_input_with(node, other)
    node.args = (*operands(node)[:-1], [True, False, False])
