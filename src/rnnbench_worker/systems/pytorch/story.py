"""Seed 003's story in PyTorch: eagerly the graph grows with each statement; scripted or traced it is there before."""

import inspect
import re

import torch

from rnnbench_worker.graph_story import BACKWARD, BEFORE, Story, described, statements

from .elman import ElmanStep
from .executions import EXECUTIONS
from .graph import Autograd, ir_of, script_graph
from .network import ReadGradient
from .programs import branch, loop_length

TITLES = {"eager": "PyTorch, eager", "script": "PyTorch, torch.jit.script", "trace": "PyTorch, torch.jit.trace"}
SIXTH = "loss.backward()"


def story(job, parameters, batch):
    step = ElmanStep(job["workload"])
    step.assign(parameters)
    arguments = torch.from_numpy(batch["inputs"]), torch.from_numpy(batch["state"])
    tell = grown if job["execution"] == "eager" else standing
    told = tell(TITLES[job["execution"]], step, arguments, EXECUTIONS[job["execution"]])
    if job["execution"] == "trace":
        told.fields["programs"] = [ran(loop_length), ran(branch)]
    return told


def ran(program):
    """What tracing bakes in: a program's source, and what it says when it is run here and now."""
    return {
        "title": program.__doc__.splitlines()[0],
        "source": inspect.getsource(program),
        "said": list(program.show()),
    }


def grown(title, step, arguments, wrap):
    """The statements of the step's own source, run one after the other."""
    _, code = statements(ElmanStep.forward)
    autograd = Autograd(names_of(step))
    told = Story(title, autograd.graph, code + [SIXTH])
    told.note(BEFORE, "There is no graph. The tensors exist, and that is all.")
    values = {"torch": torch, "self": step, "x": arguments[0], "prev_h": arguments[1]}
    for number, line in enumerate(code, 1):
        exec(line, values)
        result = line.split(" = ")[0]
        autograd.reach(values[result])
        told.mark(number, born=number)
        told.see(number, described(result, values[result].detach()))
    told.note(1, "Running the product has also made its node. x and prev_h have none: nobody wants their gradients.")
    order = watch_backward(autograd.places)
    values["loss"].backward()
    told.fields["backward"] = list(order)
    told.see(BACKWARD, described("W_h.grad", step.W_h.grad))
    finished(told, step, values["loss"])
    text = "The graph that the statements have left is walked from the loss back. "
    told.note(BACKWARD, text + again(values["loss"]))
    return told


def standing(title, step, arguments, wrap):
    """The whole graph first, then one call."""
    lines, code = statements(ElmanStep.forward)
    module = wrap(step, arguments)
    ir = ir_of(module)
    graph = script_graph(ir)
    told = Story(title, graph, code + [SIXTH])
    told.mark(BEFORE, born=BEFORE)
    nodes = list(ir.nodes())
    first = len(told.fields["of"]) - len(nodes)
    for place, node in enumerate(nodes, first):
        told.fields["of"][place] = statement_of(node, lines)
    seen = "read from the source, with no number known" if "script" in title else "recorded while the code ran once"
    told.note(BEFORE, "The whole graph is there before the call: " + seen + ".")
    told.note(1, "The call runs the graph, not the Python statements; between them there is nothing to look at.")
    loss = module(*arguments)[1]
    autograd = Autograd(names_of(step)).reach(loss)
    order = watch_backward(autograd.places)
    loss.backward()
    kinds, names = autograd.graph.fields["operators"], autograd.graph.fields["names"]
    told.fields["backward"] = walked([(kinds[place], names[place]) for place in order], graph.fields)
    told.see(5, described("loss", loss.detach()))
    told.see(BACKWARD, described("W_h.grad", step.W_h.grad))
    finished(told, step, loss)
    for _ in range(3):
        later = module(*arguments)[1]
    settled = [kind for kind in Autograd({}).reach(later).graph.fields["operators"] if kind != "AccumulateGrad"]
    text = "At the first call autograd records {} functions, as if it were eager; once the graph is optimised, {}: {}."
    first_call = sum(kind != "AccumulateGrad" for kind in kinds)
    told.note(BACKWARD, text.format(first_call, len(settled), ", ".join(settled)))
    return told


def names_of(step):
    return {id(parameter): name for name, parameter in step.named_parameters()}


def watch_backward(places):
    """A list that fills itself with the places of autograd's functions as they run."""
    order = []
    for function, place in places.items():
        function.register_hook(lambda *gradients, place=place: order.append(place))
    return order


def again(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        return "Then it is gone: a second backward fails ({}).".format(str(error).split(" (")[0])
    return "It can be walked a second time."


def finished(told, step, loss):
    gradients = {name: ReadGradient()(parameter) for name, parameter in step.named_parameters()}
    told.result(loss.detach(), gradients)


def statement_of(node, lines):
    found = re.search(r"\.py:(\d+):\d+", str(node))
    return lines.index(int(found.group(1))) + 1 if found and int(found.group(1)) in lines else BEFORE


def walked(functions, graph):
    """Which nodes of the IR the functions of autograd stand for: MmBackward0 for aten::mm, the last one first."""
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
