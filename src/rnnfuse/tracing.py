"""One step of a cell and its derivative, as one graph over flat lists of tensors.

The step is traced twice, with two numbers of sequences that no other size has. What differs between the two graphs is
what depends on the number of sequences: the rows. So rows are known by analysis, and a hidden size that happens to
equal the batch size confuses nothing. In the graph that is kept, every such number is the placeholder `rows`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn

from . import private
from .calling import Call, Held, masked, split_result
from .norms import separate_parameter_gradients
from .rewriting import LIKE, RANDOM, SPLITS, Draw, cut_out, draw_ahead, fill_by_size, merge_duplicates, operands, sort


class Untraceable(Exception):
    """The step cannot be taken apart, for this reason; it runs as a plain loop."""


class Ports(NamedTuple):
    """The places of a graph where a step's tensors go in and come out."""

    rows: fx.Node  # the number of sequences
    trained: list[fx.Node]
    fixed: list[fx.Node]
    sequences: list[fx.Node]  # what differs from step to step: the input, the mask of lengths
    random: list[fx.Node]  # numbers that the step draws; drawn ahead for all steps
    state: list[fx.Node]
    extras: list[fx.Node]
    d_output: fx.Node
    d_state: list[fx.Node]  # the gradients of the new state
    output: fx.Node
    new_state: list[fx.Node]
    d_trained: list[fx.Node | None]
    d_sequences: list[fx.Node | None]
    d_old_state: list[fx.Node | None]
    d_extras: list[fx.Node | None]

    @property
    def ends(self) -> list[fx.Node]:
        """All that comes out."""
        found = [self.output, *self.new_state, *self.d_trained, *self.d_sequences, *self.d_old_state, *self.d_extras]
        return [one for one in found if one is not None]


class Step(NamedTuple):
    module: fx.GraphModule  # holds the constants of the graph
    graph: fx.Graph
    ports: Ports
    row_dimensions: dict[fx.Node, tuple[int, ...]]  # the dimensions of a node whose size is that of the batch
    shapes: dict[fx.Node, tuple[int, ...]]
    draws: list[Draw]
    counts: tuple[int, ...]  # of trained and fixed tensors, sequences, states and extras

    def tidied(self) -> Step:
        """The same step after its graph was rewritten: in order, nothing twice, nothing that is not used."""
        sort(self.graph)
        merge_duplicates(self.graph)
        self.graph.eliminate_dead_code()
        self.graph.lint()
        return self._replace(ports=_ports(self.graph, self.counts))


def trace_step(cell: nn.Module, held: Held, call: Call) -> Step:
    """Raises Untraceable where the step depends on values, changes its buffers, or is not the same for every batch."""
    few, many = _two_counts(cell, call)
    try:
        first = _trace(cell, held, call, few)
        second = _trace(cell, held, call, many)
    except Exception as error:  # whatever a user's code raises on tensors without values
        raise Untraceable(_reason(error, cell)) from error
    return _compare(first, second, few, many, held, call)


def _two_counts(cell: nn.Module, call: Call) -> tuple[int, int]:
    """Two primes that are no size of any tensor, and of which no size is a multiple."""
    tensors = [*cell.parameters(), *cell.buffers(), *call.sequences, *call.state, *call.extras]
    sizes = {size for tensor in tensors for size in tensor.shape}
    primes = (n for n in range(5, 10_000) if all(n % k for k in range(2, int(n**0.5) + 1)))
    usable = (n for n in primes if all(size % n for size in sizes if size))
    return next(usable), next(usable)


def _trace(cell: nn.Module, held: Held, call: Call, count: int) -> fx.GraphModule:
    batch = call.xs.shape[1]

    def resized(tensor: Tensor) -> Tensor:
        """With `count` rows where it has one for each sequence."""
        has_rows = tensor.dim() > 0 and tensor.shape[0] == batch
        return tensor.detach().new_zeros((count, *tensor.shape[1:])) if has_rows else tensor.detach()

    arguments = [
        [one.detach() for one in held.trained.values()],
        [one.detach() for one in held.fixed.values()],
        [one.detach().new_zeros((count, *one.shape[2:])) for one in call.sequences],
        [resized(one) for one in call.state],
        [resized(one) for one in call.extras],
    ]
    joint = Joint(cell, held.names, call)
    with torch.no_grad():
        example, new_state = joint.step(*arguments)
    cotangents = [torch.zeros_like(example), [torch.zeros_like(one) for one in new_state]]
    for one in (example, *new_state):
        if not one.is_floating_point():
            raise Untraceable(f"outputs and states must be floating-point, and one is {one.dtype}")
    for old, new in zip(arguments[3], new_state, strict=True):
        if old.dtype != new.dtype or old.shape != new.shape:
            raise Untraceable(
                f"a state enters the step as {old.dtype} and leaves it as {new.dtype}: begin with a state of that type"
                if old.dtype != new.dtype
                else "a state has another size after the step"
            )
    return private.trace(joint, [*arguments, *cotangents])


class Joint:
    """A step and the gradients of its inputs, as one function of flat lists."""

    def __init__(self, cell: nn.Module, names: Sequence[str], call: Call) -> None:
        """`names`: of the cell's tensors, those that are trained and then the others."""
        self._cell, self._names, self._call = cell, names, call

    def step(
        self,
        trained: list[Tensor],
        fixed: list[Tensor],
        sequences: list[Tensor],
        state: list[Tensor],
        extras: list[Tensor],
    ) -> tuple[Tensor, list[Tensor]]:
        values = dict(zip(self._names, [*trained, *fixed], strict=True))
        given = private.unflatten(state, self._call.state_structure)
        more = private.unflatten(extras, self._call.extras_structure)
        result = torch.func.functional_call(self._cell, values, (sequences[0], given), more)
        output, new_state, _ = split_result(result, self._call.state_structure)
        return masked(sequences[1] if len(sequences) > 1 else None, output, new_state, state)

    def __call__(
        self,
        trained: list[Tensor],
        fixed: list[Tensor],
        sequences: list[Tensor],
        state: list[Tensor],
        extras: list[Tensor],
        d_output: Tensor,
        d_state: list[Tensor],
    ) -> list[Tensor | None]:
        everything = [*trained, *sequences, *state, *extras]
        ends = [len(trained), len(sequences), len(state)]
        chosen = [k for k, one in enumerate(everything) if one.is_floating_point()]

        def of_chosen(*values: Tensor) -> tuple[Tensor, ...]:
            now = list(everything)
            for k, value in zip(chosen, values, strict=True):
                now[k] = value
            a, b, c = ends[0], sum(ends[:2]), sum(ends)
            output, new_state = self.step(now[:a], fixed, now[a:b], now[b:c], now[c:])
            return (output, *new_state)

        found: Any = torch.func.vjp(of_chosen, *[everything[k] for k in chosen])
        results, pull_back = found
        gradients: list[Tensor | None] = [None] * len(everything)
        for k, gradient in zip(chosen, pull_back((d_output, *d_state)), strict=True):
            gradients[k] = gradient
        return [*results, *gradients]


def _compare(first: fx.GraphModule, second: fx.GraphModule, few: int, many: int, held: Held, call: Call) -> Step:
    """The first graph with `rows` in the place of all numbers that differ from the second."""
    graph = first.graph
    pairs = list(zip(graph.nodes, second.graph.nodes, strict=True))
    if len(graph.nodes) != len(second.graph.nodes) or any(a.op != b.op or a.target != b.target for a, b in pairs):
        raise Untraceable("the step does something else for another number of sequences")
    with graph.inserting_before(next(iter(graph.nodes))):
        rows = graph.placeholder("rows")
    scaled: dict[int, Any] = {1: rows}

    def replaced(a: Any, b: Any) -> Any:
        if isinstance(a, (list, tuple)):
            return type(a)(replaced(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, float) and a != b and not (a != a and b != b):
            raise Untraceable(f"a number depends on how many sequences there are: {a:g} became {b:g}")
        if isinstance(a, bool) or not isinstance(a, int) or a == b:
            return a
        factor = a // few
        if a != factor * few or b != factor * many:
            raise Untraceable(f"a size of {a} for {few} sequences became {b} for {many}")
        if factor not in scaled:
            with graph.inserting_after(rows):
                scaled[factor] = graph.call_function(operator.mul, (rows, factor))
        return scaled[factor]

    dimensions: dict[fx.Node, tuple[int, ...]] = {}
    shapes: dict[fx.Node, tuple[int, ...]] = {}
    for a, b in pairs:
        if a.op == "get_attr" and getattr(getattr(first, a.target), "requires_grad", False):
            raise Untraceable("the step uses a parameter that is not one of the cell's own parameters")
        if a.op == "call_function":
            a.args = replaced(operands(a), operands(b))
            a.kwargs = {name: replaced(value, b.kwargs[name]) for name, value in a.kwargs.items()}
            if a.target is torch.ops.aten.copy_.default:
                raise Untraceable("the step changes one of its buffers or inputs in place")
            if "as_strided" in str(a.target):  # which part of which tensor it is would be lost
                raise Untraceable("the step writes into a part of a tensor in place")
        value, other = a.meta.get("val"), b.meta.get("val")
        if isinstance(value, Tensor):
            shapes[a] = tuple(value.shape)
            dimensions[a] = tuple(k for k, (m, n) in enumerate(zip(value.shape, other.shape, strict=True)) if m != n)
    for node in list(graph.nodes):
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default  # the rows of all steps may lie in memory in another way
        if node.target in LIKE:
            fill_by_size(graph, node, rows, dimensions, shapes)
        elif node.target is operator.getitem and operands(node)[0].target in SPLITS:
            cut_out(graph, node, dimensions, shapes)
    separate_parameter_gradients(graph, dimensions, shapes)
    draws: list[Draw] = []
    for node in list(graph.nodes):
        if node.target in RANDOM:
            draws.append(draw_ahead(graph, node, len(draws), dimensions, shapes))
    counts = (len(held.trained), len(held.fixed), len(call.sequences), len(call.state), len(call.extras))
    return Step(first, graph, _ports(graph, counts), dimensions, shapes, draws, counts).tidied()


def _ports(graph: fx.Graph, counts: Sequence[int]) -> Ports:
    placeholders = {node.target: node for node in graph.nodes if node.op == "placeholder"}
    random = [name for name in placeholders if name.startswith("random_")]
    own = {"rows", *random}
    end = next(node for node in graph.nodes if node.op == "output")
    given = iter([node for name, node in placeholders.items() if name not in own])
    found = iter(operands(end)[0])

    def take(source: Any, count: int) -> list[Any]:
        return [next(source) for _ in range(count)]

    trained, fixed, sequences, states, extras = counts
    return Ports(
        rows=placeholders["rows"],
        trained=take(given, trained),
        fixed=take(given, fixed),
        sequences=take(given, sequences),
        random=[placeholders[name] for name in sorted(random, key=lambda name: int(name.partition("_")[2]))],
        state=take(given, states),
        extras=take(given, extras),
        d_output=next(given),
        d_state=take(given, states),
        output=next(found),
        new_state=take(found, states),
        d_trained=take(found, trained),
        d_sequences=take(found, sequences),
        d_old_state=take(found, states),
        d_extras=take(found, extras),
    )


def _reason(error: Exception, cell: nn.Module) -> str:
    """The first line of what went wrong, with the innermost line of the user's own code."""
    import inspect
    import traceback

    try:
        own = inspect.getsourcefile(type(cell))
    except TypeError:
        own = None
    where = [frame for frame in traceback.extract_tb(error.__traceback__) if own and frame.filename == own]
    line = f" ({where[-1].filename}, line {where[-1].lineno}: {where[-1].line})" if where else ""
    return f"{str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}{line}"
