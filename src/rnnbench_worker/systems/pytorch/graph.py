"""PyTorch's graphs: autograd's, made anew at every call; TorchScript's and FX's, made once."""

import contextlib

import torch

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph

#: TorchScript watches its first calls and then optimises: what autograd sees is settled by the third. To optimise
#: an unrolled network takes it minutes, so a graph larger than this is shown as of its first call.
CALLS, LARGEST = {"script": 3, "trace": 3}, 2000


def graphs(job, make):
    with watching() as seen:
        program, fed = make()
        seen.names = {id(parameter): name for name, parameter in program._network.named_parameters()}
        for call in range(CALLS.get(job["execution"], 1)):
            program.call_of(job["phase"])(fed)
            if call == 0 and job["execution"] in CALLS:
                seen.static.append(script_graph(ir_of(program._wrapped)))
                if len(seen.static[0].fields["operators"]) > LARGEST:
                    if seen.autograd:
                        seen.autograd.fields["note"] = "as of the first call, before TorchScript has optimised"
                    break
    if job["execution"] == "cudagraph":
        return [no_graph("a CUDA graph is a recording of kernels that PyTorch replays and does not show")]
    return told(seen)


def told(seen):
    """What was seen; where that is nothing, why."""
    found = seen.static + ([seen.autograd] if seen.autograd else [])
    return found or [no_graph("PyTorch runs operator by operator and, without gradients, keeps no graph")]


class Seen(object):
    def __init__(self):
        self.static = []
        self.autograd = None
        self.names = {}


@contextlib.contextmanager
def watching():
    """What PyTorch makes of whatever runs in here. What it would compile is read, and then run uncompiled.

    The graphs are those the compiler is given, after all its own decompositions; only its code generation is
    left out, which takes minutes and adds no node.
    """
    seen = Seen()
    backward, compiler = torch.Tensor.backward, getattr(torch, "compile", None)

    def watched_backward(tensor, *arguments, **options):
        seen.autograd = autograd_graph(tensor, seen.names)
        return backward(tensor, *arguments, **options)

    def short_compile(*arguments, **options):
        return compiler(*arguments, **dict(options, backend=reading_backend(seen.static)))

    torch.Tensor.backward = watched_backward
    if compiler:
        torch.compile = short_compile
    try:
        yield seen
    finally:
        torch.Tensor.backward = backward
        if compiler:
            torch.compile = compiler


def reading_backend(found):
    """Inductor up to its code generation: Dynamo's graph, then forward and backward as AOTAutograd leaves them."""
    from torch._inductor.compile_fx import compile_fx

    def inner(module, example, **options):
        way = "backward" if options.get("is_backward") else "forward"
        found.append(fx_graph(module, "FX graph, {}, as the compiler gets it".format(way)))

        def run(arguments):
            return module(*arguments)

        run._boxed_call = True
        return run

    def backend(module, example):
        found.append(fx_graph(module, "FX graph, as Dynamo records it"))
        return compile_fx(module, example, inner_compile=inner)

    return backend


# --- autograd -----------------------------------------------------------------------------------------------


def autograd_graph(tensor, names):
    return Autograd(names).reach(tensor).graph


class Autograd(object):
    """What `backward` will walk, from the parameters to the tensors that have been reached so far."""

    def __init__(self, names):
        self.graph = Graph("autograd graph", EVERY_CALL)
        self.places = {}  # also keeps the functions alive, and with that what they are called here
        self._names = names

    def reach(self, tensor):
        """Without recursion: it may be very deep."""
        stack = [tensor.grad_fn]
        while stack:
            function = stack[-1]
            sources = [source for source, _ in function.next_functions if source is not None]
            waiting = [source for source in sources if source not in self.places]
            if function in self.places or waiting:
                stack.pop() if function in self.places else stack.extend(waiting)
                continue
            stack.pop()
            name = self._names.get(id(getattr(function, "variable", None)), "")
            inputs = [self.places[source] for source in sources]
            self.places[function] = self.graph.node(kind_of(function), name, inputs)
        return self


def kind_of(function):
    return function.name().split("::")[-1]


# --- TorchScript --------------------------------------------------------------------------------------------


def ir_of(module):
    """With everything it calls in place; older versions have only the outermost."""
    return getattr(module, "inlined_graph", None) or module.graph


def script_graph(ir):
    return fill_script(Graph("TorchScript IR", FIRST_CALL, str(ir)), ir)


def fill_script(graph, block):
    places = {}
    for value in block.inputs():
        places[value.debugName()] = graph.node("input", value.debugName())
    for node in block.nodes():
        outputs = [value.debugName() for value in node.outputs()]
        sources = [places[value.debugName()] for value in node.inputs() if value.debugName() in places]
        place = graph.node(node.kind(), outputs[0] if outputs else "", sources)
        places.update((name, place) for name in outputs)
        for number, inner in enumerate(node.blocks()):
            role = "body" if node.kind() == "prim::Loop" else "block {}".format(number)
            graph.body(place, role, fill_script(Graph("TorchScript IR", FIRST_CALL), inner))
    return graph


# --- FX -----------------------------------------------------------------------------------------------------


def fx_graph(module, form):
    graph = Graph(form, FIRST_CALL, str(module.graph))
    places = {}
    for node in module.graph.nodes:
        places[node] = graph.node(fx_operator(node), node.name, [places[source] for source in node.all_input_nodes])
    for node in module.graph.nodes:
        inner = getattr(module, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(inner, torch.fx.GraphModule):
            for user in node.users:
                graph.body(places[user], "body", fx_graph(inner, form))
    return graph


def fx_operator(node):
    if node.op == "placeholder":
        return "input"
    if node.op == "call_function":
        target = node.target
        return str(target) if hasattr(target, "overloadpacket") else getattr(target, "__name__", str(target))
    return str(node.target) if node.op in ("call_method", "call_module") else node.op
