"""A workload: what is computed, as numbers; and the parameters, lengths, operations and bytes that follow from them."""

import math
from typing import Any, Literal

import msgspec

import rnnbench_cells

Phase = Literal["forward", "train"]
Loss = Literal["cross-entropy", "ctc", "sum"]
HeadOn = Literal["every-step", "last-step"]
Shape = tuple[int, ...]

FLOAT_BYTES = 4
ID_BYTES = 8


class OwnWeight(msgspec.Struct, frozen=True):
    """A weight of a user's cell: its name there, its shape, and between which numbers it begins."""

    name: str
    shape: Shape
    low: float = 0.0
    high: float = 0.0


class OwnCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell from a user's file: a step over the vocabulary, or a class of PyTorch, which a worker has looked at.

    A stored run is read without the file: what follows from it is here.
    """

    path: str
    digest: str  # of the file: a row must not be computed by another version of it
    class_name: str = ""  # "": the file is written over the vocabulary of rnnbench_cells
    arguments: dict[str, Any] = {}  # of the class, beside its two sizes
    weights: tuple[OwnWeight, ...] = ()
    output_width: int = 0  # 0: as wide as the hidden state
    products: tuple[int, int] = (0, 0)  # of a class: operations for one step of one sequence, forward and in training
    told: str = ""  # what was found out about how a class is called


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """Data shape, recurrent stack, head and loss. `name` lists every override: `ce-short[batch=8]`."""

    name: str
    batch: int
    steps: int
    hidden: int
    classes: int
    cell: str = "lstm"  # of rnnbench_cells, or the name of a user's own
    own: OwnCell | None = None
    layers: int = 1
    bidirectional: bool = False
    features: int = 0  # width of a real-valued input; 0 if the input is token ids
    vocabulary: int = 0  # number of token ids; 0 if the input is real-valued
    embedding: int = 0
    head_bias: bool = False
    head_on: HeadOn = "last-step"
    loss: Loss = "cross-entropy"
    shortest: int = 0  # lengths spread evenly over shortest..steps; 0: every sequence has all steps
    labels: int = 0  # CTC: labels per sequence
    origin: str = ""  # the source that it comes from

    @property
    def id(self) -> str:
        """The name without its overrides."""
        return self.name.partition("[")[0]

    @property
    def directions(self) -> tuple[str, ...]:
        return ("fwd", "bwd") if self.bidirectional else ("fwd",)

    @property
    def input_width(self) -> int:
        """The width of what the first layer reads at each step."""
        return self.embedding if self.vocabulary else self.features

    @property
    def variable_length(self) -> bool:
        return self.shortest > 0

    @property
    def own_class(self) -> OwnCell | None:
        """A user's cell that only PyTorch can run."""
        return self.own if self.own is not None and self.own.class_name else None

    @property
    def one_step(self) -> bool:
        """The single tanh step of Lazarus (2019), with summed outputs: for showing graphs, too small to be timed."""
        return self.loss == "sum"


def layer_input(workload: Workload, layer: int) -> int:
    """The width of what a layer reads: the data for the first, the outputs below for the others."""
    if layer == 0:
        return workload.input_width
    width = workload.own.output_width if workload.own else 0
    return (width or workload.hidden) * len(workload.directions)


def parameter_shapes(workload: Workload) -> dict[str, Shape]:
    """Every parameter in the canonical layout and order. Those of a layer are its cell's."""
    if workload.one_step:  # as in the slides of Lazarus (2019): the weights are the left factors
        return {"W_h": (workload.hidden, workload.hidden), "W_x": (workload.hidden, workload.features)}
    shapes: dict[str, Shape] = {}
    if workload.vocabulary:
        shapes["embedding"] = (workload.vocabulary, workload.embedding)
    for layer in range(workload.layers):
        for direction in workload.directions:
            own = cell_shapes(workload, layer)
            shapes |= {f"layer{layer}.{direction}.{name}": shape for name, shape in own.items()}
    shapes["head.w"] = (layer_input(workload, workload.layers), workload.classes)
    if workload.head_bias:
        shapes["head.b"] = (workload.classes,)
    return shapes


def cell_shapes(workload: Workload, layer: int) -> dict[str, Shape]:
    """The weights of a layer in one direction."""
    if workload.own is not None:  # its sizes are fixed, and so is that it has one layer
        return {weight.name: weight.shape for weight in workload.own.weights}
    found: dict[str, Shape] = rnnbench_cells.find(workload.cell).parameters(
        layer_input(workload, layer), workload.hidden
    )
    return found


def parameter_count(workload: Workload, biases: int = 1) -> int:
    """The number of trained values. `biases=2` also counts the second bias vector of systems that have one."""
    total = sum(math.prod(shape) for shape in parameter_shapes(workload).values())
    alone = workload.one_step or workload.own is not None
    per_unit = 0 if alone else rnnbench_cells.find(workload.cell).SECOND_BIAS
    second = per_unit * workload.hidden * workload.layers * len(workload.directions)
    return total + (biases - 1) * second


def lengths(workload: Workload) -> list[int]:
    """The sequence lengths of one batch, longest first: evenly from `steps` down to `shortest`."""
    if not workload.variable_length:
        return [workload.steps] * workload.batch
    span = workload.steps - workload.shortest
    gaps = max(1, workload.batch - 1)
    return [workload.steps - round(span * k / gaps) for k in range(workload.batch)]


def flops(workload: Workload, phase: Phase) -> int:
    """Floating-point operations of the matrix products that one batch needs at least.

    Element-wise work is left out: at these widths it is a few thousandths of the products. Padded steps
    do not count, nor do steps whose outputs are not used: below a head on the last step, the backward
    direction of the top layer needs one step only. Training adds two products of the same size for each
    forward one, for the gradients of weight and input. Real-valued data needs no gradient, so the first
    layer's input product adds only one there.
    """
    if workload.one_step:  # neither the input nor the previous state needs a gradient
        products = 2 * workload.hidden * (workload.hidden + workload.features) * workload.batch
        return products if phase == "forward" else 2 * products
    cells = sum(lengths(workload))
    head_cells = cells if workload.head_on == "every-step" else workload.batch
    forward = 2 * layer_input(workload, workload.layers) * workload.classes * head_cells
    if workload.own_class is not None:
        once, trained = workload.own_class.products
        return forward + cells * once if phase == "forward" else 3 * forward + cells * trained
    data_gradient = 0
    for layer in range(workload.layers):
        for direction in workload.directions:
            top = layer == workload.layers - 1
            needed = head_cells if top and direction == "bwd" else cells
            # A weight is a factor of one product a step; one whose name begins with w multiplies the input.
            sizes = {name: math.prod(shape) for name, shape in cell_shapes(workload, layer).items() if len(shape) == 2}
            forward += 2 * needed * sum(sizes.values())
            if layer == 0 and not workload.vocabulary:
                data_gradient += 2 * needed * sum(size for name, size in sizes.items() if name.startswith("w"))
    return forward if phase == "forward" else 3 * forward - data_gradient


def work_is_known(workload: Workload) -> bool:
    """Older versions of PyTorch do not count the products of a user's class."""
    return workload.own_class is None or all(workload.own_class.products)


def compulsory_bytes(workload: Workload, phase: Phase, precision: str = "fp32") -> int:
    """The fewest bytes that one batch must move through memory if the cache is unlimited.

    Forward: inputs and parameters are read, logits are written (in bf16 with half the bytes). An embedding
    is left out, because only the rows that occur are read. Training: inputs and targets are read, parameters
    and Adam's two moments are read and written. Activations can stay in the cache.
    """
    cells = sum(lengths(workload))
    inputs = cells * (ID_BYTES if workload.vocabulary else FLOAT_BYTES * workload.features)
    parameters = FLOAT_BYTES * parameter_count(workload)
    if workload.one_step:
        state = FLOAT_BYTES * workload.batch * workload.hidden  # read; forward also writes one of the same size
        return inputs + (2 * state + parameters if phase == "forward" else state + 6 * parameters)
    if phase == "train":
        return inputs + ID_BYTES * math.prod(target_shape(workload)) + 6 * parameters
    head_cells = cells if workload.head_on == "every-step" else workload.batch
    logits = head_cells * workload.classes * (FLOAT_BYTES // 2 if precision == "bf16" else FLOAT_BYTES)
    return inputs + parameters - FLOAT_BYTES * workload.vocabulary * workload.embedding + logits


_KEPT_STATES = 5  # for each unit and step, until its gradient is computed: four gates and the state


def least_memory(workload: Workload, phase: Phase, precision: str = "fp32") -> int:
    """The fewest bytes that must be held at once, by any system: what is larger than the memory cannot run.

    Forward: parameters, one batch of inputs, its logits. Training: also the gradients and Adam's two moments, and
    for each step what its gradient is computed from.
    """
    number = FLOAT_BYTES // 2 if precision == "bf16" else FLOAT_BYTES
    cells = sum(lengths(workload))
    inputs = cells * (ID_BYTES if workload.vocabulary else FLOAT_BYTES * workload.features)
    logits = number * workload.classes * (cells if workload.head_on == "every-step" else workload.batch)
    parameters = FLOAT_BYTES * parameter_count(workload)
    if phase == "forward":
        return inputs + parameters + logits
    units = workload.layers * len(workload.directions) * workload.hidden
    return inputs + 4 * parameters + logits + number * _KEPT_STATES * units * cells


def target_shape(workload: Workload) -> Shape:
    """The shape of the integers that the loss compares the logits with."""
    if workload.loss == "ctc":
        return (workload.batch, workload.labels)
    if workload.head_on == "every-step":
        return (workload.batch, workload.steps)
    return (workload.batch,)
