"""A user's own cell: a class in a file, found, made and called as it is; and how it is called, found out by trying.

What is wrong with it is said in words for its author, with the line of the file where it happened.
"""

import importlib.util
import inspect
import linecache
import os
import sys
import traceback

import torch
from torch import nn

#: Not a number of states that anyone has: a state that is unpacked along the batch would pass for a tuple.
TRIED_BATCH = 7
#: A cell that wants a tensor fails with a tuple. The reverse does not hold: `state[0]` of a tensor is its first row.
TUPLES = (2, 3, 4, 1)


class CellError(Exception):
    """What is wrong with a user's cell."""


def load_class(path, name):
    """The class of this name in the file. The file's folder is on the path, as if it had been started there."""
    file = os.path.basename(path)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    stem = os.path.splitext(file)[0]
    module_name = stem if stem not in sys.modules else "own_cell_" + stem
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CellError("{} cannot be imported: {}".format(file, describe(error, path)))
    found = getattr(module, name, None)
    classes = [key for key, one in vars(module).items() if is_module_class(one) and one.__module__ == module_name]
    there = ", ".join(classes) or "no nn.Module"
    if found is None:
        raise CellError("{} has no class {}; it has {}".format(file, name, there))
    if not is_module_class(found):
        raise CellError("{} of {} is not a class of torch.nn.Module; the file has {}".format(name, file, there))
    return found


def is_module_class(one):
    return isinstance(one, type) and issubclass(one, nn.Module)


def make_cell(own, width, hidden):
    """The cell, with the same random numbers wherever it is made."""
    kind = load_class_once(own["path"], own["class_name"])
    arguments = own["arguments"]
    try:
        named = set(inspect.signature(kind.__init__).parameters)
    except (TypeError, ValueError):
        named = set()
    sizes = {"input_size": width, "hidden_size": hidden}
    torch.manual_seed(0)
    try:
        cell = kind(**dict(sizes, **arguments)) if set(sizes) <= named else kind(width, hidden, **arguments)
    except Exception as error:
        shown = ", ".join([str(width), str(hidden)] + ["{}={!r}".format(*pair) for pair in arguments.items()])
        wanted = [name for name in named if name != "self"]
        raise CellError(
            "{}({}) cannot be made: {}; its constructor takes {}: give what it needs with --arg NAME=VALUE".format(
                own["class_name"], shown, describe(error, own["path"]), ", ".join(sorted(wanted)) or "nothing"
            )
        )
    if not any(True for _ in cell.parameters()):
        raise CellError("{} has no parameters: there is nothing to train".format(own["class_name"]))
    return cell


_LOADED = {}


def load_class_once(path, name):
    if (path, name) not in _LOADED:
        _LOADED[path, name] = load_class(path, name)
    return _LOADED[path, name]


def trained(cell):
    """The parameters that are trained, by name."""
    return {name: one for name, one in cell.named_parameters() if one.requires_grad}


# --- how it is called -----------------------------------------------------------------------------------


class Form(object):
    """How a cell begins, what it returns, and what of that is its output: as source text of a loop around it."""

    def __init__(self, begin, step, output, width, words):
        self.begin = begin  # statements
        self.step = step
        self.output = output  # an expression
        self.width = width  # of the output
        self.words = words


def find_form(own, width, hidden):
    """Found by calling a cell once: with the state that it makes itself, or else with zeros of several forms."""
    cell = make_cell(own, width, hidden)
    parameter = next(cell.parameters())
    x = torch.zeros(TRIED_BATCH, width, dtype=parameter.dtype)
    zeros = torch.zeros(TRIED_BATCH, hidden, dtype=parameter.dtype)
    if hasattr(cell, "initial_state"):
        try:
            state = cell.initial_state(x)
        except Exception as error:
            raise CellError("initial_state(x) fails: {}".format(describe(error, own["path"])))
        return call_once(own, cell, x, state, "state = self.cell.initial_state(inputs[0])", "its own initial_state(x)")
    complaints = []
    for states in TUPLES + (0,):
        state = (zeros,) * states if states else zeros
        words = "zeros, as {}".format("a tuple of {}".format(states) if states else "a tensor")
        zero = "zeros = torch.zeros(xs.size(1), {}, dtype=xs.dtype, device=xs.device)".format(hidden)
        several = "(zeros, {})".format("torch.zeros_like(zeros), " * (states - 1))  # it may change them in place
        begin = "{}\n        state = {}".format(zero, several if states else "zeros")
        try:
            return call_once(own, cell, x, state, begin, words)
        except CellError as error:
            complaints.append((words, str(error)))
    if len({error for _, error in complaints}) == 1:  # it is not about the state
        raise CellError("{}: {}".format(own["class_name"], complaints[0][1]))
    # What a tensor and a tuple of two say is what nearly every author needs.
    raise CellError(
        "{} takes no state of zeros; give it a method initial_state(x), which gets the input of the first step\n"
        "{}".format(own["class_name"], "\n".join("with {}: {}".format(*complaints[k]) for k in (-1, 0)))
    )


def call_once(own, cell, x, state, begin, words):
    try:
        with torch.no_grad():
            result = cell(x, state)
    except Exception as error:
        raise CellError("a step fails: {}".format(describe(error, own["path"])))
    if same_structure(result, state):
        new, output = result, None
    elif isinstance(result, (tuple, list)) and len(result) == 2 and torch.is_tensor(result[0]):
        output, new = result
        if not same_structure(new, state):
            raise CellError("a step returns {}, and was given the state {}".format(shape_of(result), shape_of(state)))
    else:
        raise CellError(
            "a step returns {}: it must return the new state, which is like {}, or a pair of output and new "
            "state".format(shape_of(result), shape_of(state))
        )
    if output is None:
        access = first_access(new)
        output, step, expression = first_tensor(new), "state = self.cell(x, state)", "state" + access
        returned = "the new state, whose first tensor is the output" if access else "the new state, which is the output"
    else:
        step, expression, returned = "output, state = self.cell(x, state)", "output", "output and new state"
    if output.dim() != 2 or output.size(0) != x.size(0):
        raise CellError("a step's output is {}: it must be [batch, width]".format(shape_of(output)))
    return Form(begin, step, expression, output.size(1), "state: {}; a step returns {}".format(words, returned))


def same_structure(one, other):
    """Whether two states have the same tuples, lists and dicts, and tensors of the same shape in them."""
    if torch.is_tensor(one) or torch.is_tensor(other):
        return torch.is_tensor(one) and torch.is_tensor(other) and one.shape == other.shape
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same_structure(one[key], other[key]) for key in one)
    both = isinstance(one, (tuple, list)) and type(one) is type(other) and len(one) == len(other)
    return both and all(same_structure(*pair) for pair in zip(one, other))


def first_access(state):
    """What follows `state` in an expression of its first tensor."""
    if torch.is_tensor(state):
        return ""
    key = next(iter(state)) if isinstance(state, dict) else 0
    return "[{!r}]{}".format(key, first_access(state[key]))


def first_tensor(state):
    if torch.is_tensor(state):
        return state
    return first_tensor(next(iter(state.values())) if isinstance(state, dict) else state[0])


def shape_of(value):
    """`([7, 320], [7, 320])`: in words, what a step takes or returns."""
    if torch.is_tensor(value):
        return str(list(value.shape))
    if isinstance(value, (tuple, list)):
        return "({})".format(", ".join(shape_of(one) for one in value))
    if isinstance(value, dict):
        return "{{{}}}".format(", ".join("{}: {}".format(key, shape_of(one)) for key, one in value.items()))
    return type(value).__name__


def describe(error, path):
    """The error, and the last line of the user's file that it passed through."""
    text = "{}: {}".format(type(error).__name__, (str(error).splitlines() or [""])[0][:300])
    file = os.path.basename(path)
    if isinstance(error, SyntaxError) and error.filename == path:
        return "{} ({}, line {}: {})".format(text, file, error.lineno, (error.text or "").strip())
    own = [one for one in traceback.extract_tb(error.__traceback__) if one[0] == path]
    if not own:
        return text
    number = own[-1][1]
    return "{} ({}, line {}: {})".format(text, file, number, linecache.getline(path, number).strip())


# --- what the driver asks -------------------------------------------------------------------------------


def inspect_cell(job):
    """What follows from the class: its weights and where they begin, the width of its output, its products and form."""
    workload = job["workload"]
    own, width, hidden = workload["own"], workload["features"], workload["hidden"]
    form = find_form(own, width, hidden)
    cell = make_cell(own, width, hidden)
    require_float64(own, width, hidden, form)
    weights = [
        {"name": name, "shape": list(one.shape), "low": low, "high": high}
        for name, one in trained(cell).items()
        for low, high in [spread(one.detach().double())]
    ]
    return {
        "weights": weights,
        "output_width": form.width,
        "products": list(count_products(own, width, hidden, form)),
        "told": form.words,
    }


def require_float64(own, width, hidden, form):
    """Two steps, as the loop will run them that says what is right."""
    from .own_loop import loop_class

    loop = loop_class(form)(make_cell(own, width, hidden)).double()
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        loop(torch.zeros(2, TRIED_BATCH, width), None).sum().backward()
    except Exception as error:
        raise CellError(
            "{} cannot be run and differentiated in float64, in which it is verified: {}".format(
                own["class_name"], describe(error, own["path"])
            )
        )
    finally:
        torch.set_default_dtype(before)


def spread(values):
    """Where a parameter begins: by mean and deviation, since outliers say little, and never beyond its extremes."""
    if not bool(torch.isfinite(values).all()):  # memory that nobody has initialised
        return 0.0, 0.0
    lowest, highest, mean = float(values.min()), float(values.max()), float(values.mean())
    reach = 3**0.5 * float(values.std()) if values.numel() > 1 else 0.0
    return max(lowest, mean - reach), min(highest, mean + reach)


def count_products(own, width, hidden, form):
    """Floating-point operations of the products of one step of one sequence: forward, and with the backward pass."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:  # it came in 2.1
        return 0, 0
    from .own_loop import loop_class

    loop = loop_class(form)(make_cell(own, width, hidden))
    counts = []
    for steps in (1, 2):  # the first step has a state that needs no gradient
        with FlopCounterMode(display=False) as forward, torch.no_grad():
            loop(torch.zeros(steps, TRIED_BATCH, width), None)
        with FlopCounterMode(display=False) as training:
            loop(torch.zeros(steps, TRIED_BATCH, width), None).sum().backward()
        counts.append((forward.get_total_flops(), training.get_total_flops()))
    return tuple((second - first) // TRIED_BATCH for first, second in zip(*counts))
