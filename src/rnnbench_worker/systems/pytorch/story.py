"""The single tanh step of Lazarus's slides (2019) in PyTorch, statement by statement, and its story.

Eagerly the graph grows with each statement; a scripted or traced step has its graph before it runs.
"""

import inspect
import re

import torch
from torch import Tensor, nn

from rnnbench_worker.story import BACKWARD, BEFORE, Story, describe_array, find_statements

from . import branch, loop_length
from .executions import EXECUTIONS
from .inspection import Autograd, ir_of, script_graph
from .network import ReadGradient, ReadValue
from .program import TorchProgram

TITLES = {"eager": "PyTorch, eager", "script": "PyTorch, torch.jit.script", "trace": "PyTorch, torch.jit.trace"}
SIXTH_STATEMENT = "loss.backward()"


class ElmanStep(nn.Module):
    """The first five statements of the slides; the sixth is `loss.backward()`."""

    def __init__(self, workload):
        super(ElmanStep, self).__init__()
        hidden, features = workload["hidden"], workload["features"]
        self.W_h = nn.Parameter(torch.empty(hidden, hidden))
        self.W_x = nn.Parameter(torch.empty(hidden, features))

    def forward(self, x: Tensor, prev_h: Tensor):
        h2h = torch.mm(self.W_h, prev_h.t())
        i2h = torch.mm(self.W_x, x.t())
        next_h = h2h + i2h
        next_h = next_h.tanh()
        loss = next_h.sum()
        return next_h, loss

    def assign(self, parameters):
        for name, parameter in self.named_parameters():
            parameter.data.copy_(torch.from_numpy(parameters[name]))


class ElmanProgram(TorchProgram):
    """The step returns its new state, which `forward` is asked for, and its loss, which is trained."""

    def forward(self, fed):
        with torch.no_grad():
            return self._call(self._arguments(fed))[0]

    def _loss(self, fed):
        return self._call(self._arguments(fed))[1]

    def _arguments(self, fed):
        return fed["inputs"], fed["state"]

    def gradients(self, fed):
        self._optimiser.zero_grad()
        self._loss(fed).backward()
        return self._read(ReadGradient())

    def parameters(self):
        return self._read(ReadValue())

    def _read(self, read):
        return {name: read(parameter).numpy() for name, parameter in self._network.named_parameters()}


def build_step(job, parameters, wrap):
    step = ElmanStep(job["workload"])
    step.assign(parameters)
    return ElmanProgram(job, step, wrap)


# --- the story ----------------------------------------------------------------------------------------


def story(job, parameters, batch):
    step = ElmanStep(job["workload"])
    step.assign(parameters)
    arguments = torch.from_numpy(batch["inputs"]), torch.from_numpy(batch["state"])
    tell = story_of_growing_graph if job["execution"] == "eager" else story_of_finished_graph
    collected = tell(TITLES[job["execution"]], step, arguments, EXECUTIONS[job["execution"]])
    if job["execution"] == "trace":
        collected.fields["programs"] = [run_program(loop_length), run_program(branch)]
    return collected


def run_program(program):
    """The source of a small program about what tracing fixes, and what it prints when it is run here and now."""
    return {
        "title": program.__doc__.splitlines()[0],
        "source": inspect.getsource(program),
        "said": list(program.show()),
    }


def story_of_growing_graph(title, step, arguments, wrap):
    """The statements in the step's own source, run one after the other."""
    _, code = find_statements(ElmanStep.forward)
    autograd = Autograd(parameter_names(step))
    collected = Story(title, autograd.graph, code + [SIXTH_STATEMENT])
    collected.note(BEFORE, "There is no graph. Only the tensors exist.")
    values = {"torch": torch, "self": step, "x": arguments[0], "prev_h": arguments[1]}
    for number, line in enumerate(code, 1):
        exec(line, values)
        result = line.split(" = ")[0]
        autograd.add_tensor(values[result])
        collected.mark(number, born=number)
        collected.show_value(number, describe_array(result, values[result].detach()))
    collected.note(
        1,
        "Running the product has also made its node. x and prev_h have none, because no gradients of them are needed.",
    )
    order = record_backward_order(autograd.places)
    values["loss"].backward()
    collected.fields["backward"] = list(order)
    collected.show_value(BACKWARD, describe_array("W_h.grad", step.W_h.grad))
    add_result(collected, step, values["loss"])
    text = "The graph that the statements have built is traversed backwards from the loss. "
    collected.note(BACKWARD, text + try_second_backward(values["loss"]))
    return collected


def story_of_finished_graph(title, step, arguments, wrap):
    """First the whole graph, then one call."""
    lines, code = find_statements(ElmanStep.forward)
    module = wrap(step, arguments)
    ir = ir_of(module)
    graph = script_graph(ir)
    collected = Story(title, graph, code + [SIXTH_STATEMENT])
    collected.mark(BEFORE, born=BEFORE)
    nodes = list(ir.nodes())
    first = len(collected.fields["of"]) - len(nodes)
    for place, node in enumerate(nodes, first):
        collected.fields["of"][place] = statement_of(node, lines)
    origin = "read from the source, with no number known" if "script" in title else "recorded while the code ran once"
    collected.note(BEFORE, "The whole graph exists before the call: " + origin + ".")
    collected.note(1, "The call runs the graph, not the Python statements; nothing can be seen between them.")
    loss = module(*arguments)[1]
    autograd = Autograd(parameter_names(step)).add_tensor(loss)
    order = record_backward_order(autograd.places)
    loss.backward()
    kinds, names = autograd.graph.fields["operators"], autograd.graph.fields["names"]
    collected.fields["backward"] = ir_nodes_of([(kinds[place], names[place]) for place in order], graph.fields)
    collected.show_value(5, describe_array("loss", loss.detach()))
    collected.show_value(BACKWARD, describe_array("W_h.grad", step.W_h.grad))
    add_result(collected, step, loss)
    for _ in range(3):
        later = module(*arguments)[1]
    optimised = [kind for kind in Autograd({}).add_tensor(later).graph.fields["operators"] if kind != "AccumulateGrad"]
    text = "At the first call autograd records {} functions, as in eager mode; when the graph is optimised, {}: {}."
    first_call = sum(kind != "AccumulateGrad" for kind in kinds)
    collected.note(BACKWARD, text.format(first_call, len(optimised), ", ".join(optimised)))
    return collected


def parameter_names(step):
    return {id(parameter): name for name, parameter in step.named_parameters()}


def record_backward_order(places):
    """A list to which the place of each of autograd's functions is appended when it runs."""
    order = []
    for function, place in places.items():
        function.register_hook(lambda *gradients, place=place: order.append(place))
    return order


def try_second_backward(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        return "Then it is freed: a second backward fails ({}).".format(str(error).split(" (")[0])
    return "It can be traversed a second time."


def add_result(collected, step, loss):
    gradients = {name: ReadGradient()(parameter) for name, parameter in step.named_parameters()}
    collected.result(loss.detach(), gradients)


def statement_of(node, lines):
    found = re.search(r"\.py:(\d+):\d+", str(node))
    return lines.index(int(found.group(1))) + 1 if found and int(found.group(1)) in lines else BEFORE


def ir_nodes_of(functions, graph):
    """The nodes of the IR that autograd's functions belong to: MmBackward0 to aten::mm, the last one first."""
    left, order = list(range(len(graph["operators"])))[::-1], []
    for kind, name in functions:
        if kind == "AccumulateGrad":
            wanted = [place for place in left if graph["names"][place] == name]
        else:
            operator = "aten::" + kind.split("Backward")[0].lower()
            wanted = [place for place in left if graph["operators"][place] == operator]
        if wanted:
            order.append(wanted[0])
            left.remove(wanted[0])
    return order
