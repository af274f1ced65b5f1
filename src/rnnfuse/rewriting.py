"""Small changes to a step's graph that make it easier to analyse, and the order of its nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import fx


def operands(node: fx.Node) -> Any:
    """What an operator is called with: its type depends on the operator, so nothing is said about it."""
    return node.args


class Draw(NamedTuple):
    """Random numbers of a step: the operator that draws them, and a number that it needs."""

    target: Any
    probability: float | None
    dtype: torch.dtype
    sizes: tuple[int | None, ...]  # None: the number of sequences


SPLITS = {
    torch.ops.aten.split.Tensor,
    torch.ops.aten.split_with_sizes.default,
    torch.ops.aten.unsafe_split.Tensor,
    torch.ops.aten.unsafe_split_with_sizes.default,
}


def cut_out(
    graph: fx.Graph, node: fx.Node, dimensions: dict[fx.Node, tuple[int, ...]], shapes: dict[fx.Node, tuple[int, ...]]
) -> None:
    """One piece of a split as a slice: an operator with a single result."""
    split, index = operands(node)
    source, sizes = operands(split)[:2]
    dimension = operands(split)[2] if len(operands(split)) > 2 else split.kwargs.get("dim", 0)
    if isinstance(sizes, fx.Node) or (
        isinstance(sizes, (list, tuple)) and any(isinstance(one, fx.Node) for one in sizes)
    ):
        return  # along the rows
    start = index * sizes if isinstance(sizes, int) else sum(sizes[:index])
    end = start + shapes[node][dimension]
    if dimension % len(shapes[node]) in dimensions[node]:
        return
    with graph.inserting_before(node):
        piece = graph.call_function(torch.ops.aten.slice.Tensor, (source, dimension, start, end))
    piece.meta = dict(node.meta)
    dimensions[piece], shapes[piece] = dimensions.pop(node), shapes.pop(node)
    node.replace_all_uses_with(piece)
    graph.erase_node(node)


#: New tensors whose size is that of another one, which they need for nothing else; with their value.
LIKE: dict[Any, int | None] = {
    torch.ops.aten.zeros_like.default: 0,
    torch.ops.aten.ones_like.default: 1,
    torch.ops.aten.full_like.default: None,
    torch.ops.aten.new_zeros.default: 0,
    torch.ops.aten.new_ones.default: 1,
    torch.ops.aten.new_full.default: None,
    torch.ops.aten.fill.Scalar: None,
}


def fill_by_size(
    graph: fx.Graph,
    node: fx.Node,
    rows: fx.Node,
    dimensions: dict[fx.Node, tuple[int, ...]],
    shapes: dict[fx.Node, tuple[int, ...]],
) -> None:
    """Name the size instead of the tensor, so that the value depends on nothing."""
    value = LIKE[node.target]
    if value is None:
        value = operands(node)[-1]
    size = [rows if k in dimensions[node] else length for k, length in enumerate(shapes[node])]
    example = node.meta["val"]
    with graph.inserting_before(node):
        filled = graph.call_function(
            torch.ops.aten.full.default, (size, value), {"dtype": example.dtype, "device": example.device}
        )
    filled.meta = dict(node.meta)
    dimensions[filled], shapes[filled] = dimensions.pop(node), shapes.pop(node)
    node.replace_all_uses_with(filled)
    graph.erase_node(node)


RANDOM = {
    torch.ops.aten.rand_like.default,
    torch.ops.aten.randn_like.default,
    torch.ops.aten.rand.default,
    torch.ops.aten.randn.default,
    torch.ops.aten.bernoulli.p,
}


def draw_ahead(
    graph: fx.Graph,
    node: fx.Node,
    number: int,
    dimensions: dict[fx.Node, tuple[int, ...]],
    shapes: dict[fx.Node, tuple[int, ...]],
) -> Draw:
    """Put a placeholder in the place of an operator that draws random numbers."""
    with graph.inserting_before(next(iter(graph.nodes))):
        drawn = graph.placeholder(f"random_{number}")
    drawn.meta = dict(node.meta)
    dimensions[drawn], shapes[drawn] = dimensions.pop(node), shapes.pop(node)
    probability = float(operands(node)[1]) if node.target is torch.ops.aten.bernoulli.p else None
    node.replace_all_uses_with(drawn)
    target, dtype = node.target, node.meta["val"].dtype
    graph.erase_node(node)
    sizes = tuple(None if k in dimensions[drawn] else size for k, size in enumerate(shapes[drawn]))
    return Draw(target, probability, dtype, sizes)


def sort(graph: fx.Graph) -> None:
    """Every node after all that it needs: rewriting may have put one before."""
    end = next(node for node in graph.nodes if node.op == "output")
    placed = {node for node in graph.nodes if node.op == "placeholder"}
    stack = [end]
    while stack:
        node = stack[-1]
        waiting = [one for one in node.all_input_nodes if one not in placed]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if node not in placed and node is not end:
            end.prepend(node)
            placed.add(node)
    for node in reversed(list(graph.nodes)):
        if node is not end and node not in placed:
            graph.erase_node(node)


def merge_duplicates(graph: fx.Graph) -> None:
    """The same operator on the same values, once. Random numbers are placeholders by now."""
    known: dict[Any, fx.Node] = {}
    for node in list(graph.nodes):
        if node.op == "call_function":
            key = (node.target, _hashable(operands(node)), _hashable(node.kwargs))
            if key in known:
                node.replace_all_uses_with(known[key])
                graph.erase_node(node)
            else:
                known[key] = node


def _hashable(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(one)) for name, one in sorted(value.items()))
    # 1 and 1.0 and True are equal, and not the same argument.
    return value if isinstance(value, fx.Node) else (type(value), repr(value))
