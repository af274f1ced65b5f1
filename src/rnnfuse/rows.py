"""Which operators treat every sequence of a batch alike: only those may run over all steps at once.

If an operator computes each row from the same row of its inputs, it may be given the rows of all steps together. If it
adds up over the rows, as the gradient of a weight does, then over all rows it adds up over all steps as well. Whatever
is not known to do one or the other stays in the loop, which is always right.
"""

from __future__ import annotations

import operator
from enum import Enum
from typing import Any

import torch
from torch import fx

from .rewriting import operands
from .tracing import Step

aten = torch.ops.aten


class Kind(Enum):
    FIXED = "the same for every batch"
    ROWS = "one result for each sequence, from that sequence alone"
    SUMMED = "added up over the sequences"
    MIXED = "anything else: only a step at a time"


#: Operators that only move or copy numbers, and keep the order of the rows.
_MOVES = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.expand.default, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.clone.default, aten.detach.default, aten.alias.default, aten._to_copy.default, aten.slice.Tensor,
    aten.select.int, aten.constant_pad_nd.default, aten.view_as.default,
}  # fmt: skip

#: New tensors that have the same value everywhere, of whatever size.
FILLED = {aten.full.default, aten.zeros.default, aten.ones.default, aten.scalar_tensor.default}

#: Operators for which a number of rows is a size, and not a value as in the derivative of a mean over the batch.
_SIZED = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.expand.default, aten.full.default,
    aten.zeros.default, aten.ones.default,
}  # fmt: skip

#: Reductions, with the place of their dimensions among the arguments.
_REDUCTIONS = {
    aten.sum.dim_IntList: 1, aten.mean.dim: 1, aten.amax.default: 1, aten.amin.default: 1, aten.prod.dim_int: 1,
    aten.any.dim: 1, aten.logsumexp.default: 1, aten.var.correction: 1, aten.argmax.default: 1, aten.argmin.default: 1,
}  # fmt: skip

#: Along one dimension, which must not be that of the rows; with its place among the arguments.
_ALONG = {aten._softmax.default: 1, aten._log_softmax.default: 1, aten.cumsum.default: 1, aten.flip.default: 1}

#: What keeps a sum over rows a sum over rows: linear in it, with coefficients that are the same at every step.
_LINEAR_MOVES = _MOVES | {aten.neg.default, aten.sum.dim_IntList, aten.cat.default, aten.sum.default}


def is_cheap(node: fx.Node) -> bool:
    """Whether an operator only moves numbers or treats them one by one."""
    return node.target in _MOVES or torch.Tag.pointwise in getattr(node.target, "tags", ())


def find_kinds(step: Step) -> dict[fx.Node, Kind]:
    kinds: dict[fx.Node, Kind] = {}
    for node in step.graph.nodes:
        if node.op != "output":
            kinds[node] = _kind(node, step, kinds)
    return kinds


def _kind(node: fx.Node, step: Step, kinds: dict[fx.Node, Kind]) -> Kind:
    dimensions = step.row_dimensions.get(node, ())
    if node is step.ports.rows or node not in step.shapes:
        return _of_several(node, step, kinds) if _inputs(node, step) else Kind.FIXED  # several tensors, or a number
    if node.target is operator.getitem:
        return _of_one_of_several(node, step, kinds)
    if len(dimensions) > 1:
        return Kind.MIXED
    if node.op == "placeholder":
        return Kind.ROWS if dimensions else Kind.FIXED
    if _counts_rows(node, step) and node.target not in _SIZED:
        return Kind.MIXED
    inputs = _inputs(node, step)
    of_inputs = {kinds[one] for one in inputs}
    if Kind.MIXED in of_inputs:
        return Kind.MIXED
    if node.target in FILLED:
        return Kind.ROWS if dimensions else Kind.FIXED
    if of_inputs <= {Kind.FIXED}:
        return Kind.MIXED if dimensions else Kind.FIXED
    if Kind.SUMMED in of_inputs:
        return Kind.SUMMED if not dimensions and _stays_summed(node, inputs, kinds) else Kind.MIXED
    return _of_rows(node, step, kinds)


def _counts_rows(node: fx.Node, step: Step) -> bool:
    """Whether the number of sequences itself is an argument."""
    return any(one not in step.shapes for one in node.all_input_nodes if one.target is not operator.getitem)


def _of_several(node: fx.Node, step: Step, kinds: dict[fx.Node, Kind]) -> Kind:
    """For an operator with several results. Layer norms are known: each row is normalised by itself."""
    if any(kinds[one] in (Kind.MIXED, Kind.SUMMED) for one in _inputs(node, step)):
        return Kind.MIXED
    if node.target is aten.native_layer_norm.default:
        source, normalised = operands(node)[:2]
    elif node.target is aten.native_layer_norm_backward.default:
        source, normalised = operands(node)[1:3]
    else:
        return Kind.MIXED
    rows = step.row_dimensions[source]
    return Kind.ROWS if rows and rows[0] < len(step.shapes[source]) - len(normalised) else Kind.MIXED


def _of_one_of_several(node: fx.Node, step: Step, kinds: dict[fx.Node, Kind]) -> Kind:
    if kinds[operands(node)[0]] is not Kind.ROWS:
        return Kind.MIXED
    return Kind.ROWS if step.row_dimensions[node] else Kind.SUMMED  # the gradients of a layer norm's parameters


def _inputs(node: fx.Node, step: Step) -> list[fx.Node]:
    """The tensors among the inputs: sizes that follow from the number of rows are no inputs."""
    return [one for one in node.all_input_nodes if one in step.shapes]


def _stays_summed(node: fx.Node, inputs: list[fx.Node], kinds: dict[fx.Node, Kind]) -> bool:
    summed = [one for one in inputs if kinds[one] is Kind.SUMMED]
    if any(kinds[one] is Kind.ROWS for one in inputs):
        return False
    if node.target in _LINEAR_MOVES or node.target in (aten.add.Tensor, aten.sub.Tensor):
        return len(summed) == len(inputs) and not _adds_a_number(node)
    if node.target in (aten.mul.Tensor, aten.mm.default, aten.bmm.default):
        return len(summed) == 1 and operands(node).count(summed[0]) == 1
    if node.target is aten.div.Tensor:
        return summed == [operands(node)[0]]
    if node.target in (aten.select_scatter.default, aten.slice_scatter.default):  # into zeros: the rest stays zero
        return summed == [operands(node)[1]] and _is_zero(operands(node)[0])
    return False


def _is_zero(node: fx.Node) -> bool:
    return node.target is aten.zeros.default or (node.target is aten.full.default and operands(node)[1] == 0)


def _adds_a_number(node: fx.Node) -> bool:
    return node.target in (aten.add.Tensor, aten.sub.Tensor) and not all(
        isinstance(one, fx.Node) for one in operands(node)
    )


def _of_rows(node: fx.Node, step: Step, kinds: dict[fx.Node, Kind]) -> Kind:
    """For an operator some of whose inputs have rows, and the others are fixed."""
    target, shapes, rows = node.target, step.shapes, step.row_dimensions
    ours = rows[node]
    if torch.Tag.pointwise in getattr(target, "tags", ()) or target is aten.where.self:
        aligned = {len(shapes[one]) - k for one in _inputs(node, step) for k in rows[one]}  # counted from the right
        return Kind.ROWS if ours and aligned == {len(shapes[node]) - ours[0]} else Kind.MIXED
    if target is aten.mm.default:
        left, right = (rows[one] for one in operands(node))
        if (left, right) in (((0,), ()), ((), (1,))):
            return Kind.ROWS
        return Kind.SUMMED if (left, right) == ((1,), (0,)) else Kind.MIXED
    if target is aten.bmm.default:
        left, right = (rows[one] for one in operands(node))
        return (
            Kind.ROWS if left in ((0,), ()) and right in ((0,), ()) and (left or right) and ours == (0,) else Kind.MIXED
        )
    if target in _REDUCTIONS:
        return _of_reduction(node, step, _listed(node, _REDUCTIONS[target]))
    if target is aten.sum.default:
        return Kind.SUMMED
    if target in _ALONG:
        along = _listed(node, _ALONG[target])
        size = len(shapes[node])
        return Kind.ROWS if ours and ours[0] not in {k % size for k in along} else Kind.MIXED
    if target is aten.cat.default:
        return _of_cat(node, step)
    if target is aten.slice_scatter.default:
        base, source = operands(node)[:2]
        dimension = (operands(node)[2] if len(operands(node)) > 2 else 0) % len(shapes[node])
        same = rows[source] == ours and kinds[base] in (Kind.ROWS, Kind.FIXED) and rows[base] == ours
        return Kind.ROWS if ours and same and dimension != ours[0] else Kind.MIXED
    if target is aten.embedding.default:
        table, index = operands(node)[:2]
        return Kind.ROWS if not rows[table] and rows[index] == ours else Kind.MIXED
    if target in _MOVES:
        return Kind.ROWS if _moves_whole_rows(node, step) else Kind.MIXED
    return Kind.MIXED


def _listed(node: fx.Node, place: int) -> list[int]:
    given: Any = operands(node)[place] if len(operands(node)) > place else node.kwargs.get("dim", ())
    if given is None:
        return []
    return [given] if isinstance(given, int) else list(given)


def _of_reduction(node: fx.Node, step: Step, over: list[int]) -> Kind:
    source = operands(node)[0]
    size = len(step.shapes[source])
    dimensions = {k % size for k in over} or set(range(size))
    (row,) = step.row_dimensions[source]
    if row not in dimensions:
        return Kind.ROWS if step.row_dimensions[node] else Kind.MIXED
    return Kind.SUMMED if node.target is aten.sum.dim_IntList and not step.row_dimensions[node] else Kind.MIXED


def _of_cat(node: fx.Node, step: Step) -> Kind:
    parts = list(operands(node)[0])
    along = (operands(node)[1] if len(operands(node)) > 1 else 0) % len(step.shapes[node])
    ours = step.row_dimensions[node]
    if ours and along != ours[0] and all(step.row_dimensions[one] == ours for one in parts):
        return Kind.ROWS
    return Kind.MIXED


def _moves_whole_rows(node: fx.Node, step: Step) -> bool:
    """Whether row k of the result holds the numbers of row k of the input."""
    source = operands(node)[0]
    before, after = step.shapes[source], step.shapes[node]
    if not step.row_dimensions[source] or not step.row_dimensions[node]:
        return False
    (old,), (new,) = step.row_dimensions[source], step.row_dimensions[node]
    if before[old] != after[new]:
        return False  # only some rows, or several dimensions in one
    if node.target in (aten.permute.default, aten.transpose.int, aten.t.default):
        return True
    if node.target in (aten.slice.Tensor, aten.select.int):
        dimension = operands(node)[1] if len(operands(node)) > 1 else 0
        return dimension % len(before) != old
    if node.target in (aten.view.default, aten._unsafe_view.default, aten.reshape.default):
        return _product(before[:old]) == _product(after[:new])
    if node.target is aten.expand.default:
        return len(before) - old == len(after) - new
    if node.target is aten.constant_pad_nd.default:
        padded = list(operands(node)[1])
        behind = len(before) - 1 - old
        return all(amount == 0 for amount in padded[2 * behind : 2 * behind + 2])
    return True


def _product(sizes: tuple[int, ...]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found
