"""What PyTorch shows of a program: its graphs, and its operators and kernels under torch.profiler.

Autograd's graph is made at every call; those of TorchScript and FX are made once.
"""

import contextlib
import os
import re

import torch

from rnnbench_worker.graph import EVERY_CALL, FIRST_CALL, Graph, no_graph
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, leaves, operation, read_chrome

#: TorchScript profiles its first calls and then optimises: what autograd records is final from the third call on.
#: Optimising an unrolled network takes minutes, so a graph with more nodes is shown as it is at the first call.
CALLS, MOST_NODES_OPTIMISED = {"script": 3, "trace": 3}, 2000


def graphs(job, make):
    with record_graphs() as recorded:
        program, fed = make()
        recorded.names = {id(parameter): name for name, parameter in program._network.named_parameters()}
        for call in range(CALLS.get(job["execution"], 1)):
            program.call_of(job["phase"])(fed)
            if call == 0 and job["execution"] in CALLS:
                recorded.static.append(script_graph(ir_of(program._wrapped)))
                if len(recorded.static[0].fields["operators"]) > MOST_NODES_OPTIMISED:
                    if recorded.autograd:
                        recorded.autograd.fields["note"] = "as of the first call, before TorchScript has optimised"
                    break
    if job["execution"].endswith("cudagraph"):
        return [no_graph("a CUDA graph is a recording of kernels that PyTorch replays and does not show")]
    return recorded.as_list()


class RecordedGraphs(object):
    def __init__(self):
        self.static = []  # of TorchScript and FX
        self.autograd = None
        self.names = {}  # of the parameters, by their id

    def as_list(self):
        """All graphs; where there is none, the reason."""
        found = self.static + ([self.autograd] if self.autograd else [])
        return found or [no_graph("PyTorch runs operator by operator and, without gradients, keeps no graph")]


@contextlib.contextmanager
def record_graphs():
    """Record the graphs of what runs inside. What PyTorch would compile is recorded and then run uncompiled.

    The graphs are those that the compiler gets, after all its decompositions. Only code generation is left out, which
    takes minutes and adds no node.
    """
    recorded = RecordedGraphs()
    backward, compiler = torch.Tensor.backward, getattr(torch, "compile", None)

    def recording_backward(tensor, *arguments, **options):
        recorded.autograd = autograd_graph(tensor, recorded.names)
        return backward(tensor, *arguments, **options)

    def recording_compile(*arguments, **options):
        return compiler(*arguments, **dict(options, backend=recording_backend(recorded.static)))

    torch.Tensor.backward = recording_backward
    if compiler:
        torch.compile = recording_compile
    try:
        yield recorded
    finally:
        torch.Tensor.backward = backward
        if compiler:
            torch.compile = compiler


def recording_backend(found):
    """Inductor up to its code generation: Dynamo's graph, then forward and backward as AOTAutograd leaves them."""
    from torch._inductor.compile_fx import compile_fx

    def inner(module, example, **options):
        part = "backward" if options.get("is_backward") else "forward"
        found.append(fx_graph(module, "FX graph, {}, as the compiler gets it".format(part)))

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
    return Autograd(names).add_tensor(tensor).graph


class Autograd(object):
    """The graph that `backward` will traverse, from the parameters to the tensors that have been added so far."""

    def __init__(self, names):
        self.graph = Graph("autograd graph", EVERY_CALL)
        self.places = {}  # by function; it also keeps the functions alive, so that no identity is used twice
        self._names = names

    def add_tensor(self, tensor):
        """Add the functions behind a tensor, without recursion, because the graph may be very deep."""
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
    """The IR of a module with everything it calls inlined; older versions have only the outermost function."""
    return getattr(module, "inlined_graph", None) or module.graph


def script_graph(ir):
    return add_block(Graph("TorchScript IR", FIRST_CALL, str(ir)), ir)


def add_block(graph, block):
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
            graph.body(place, role, add_block(Graph("TorchScript IR", FIRST_CALL), inner))
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


# --- profile ------------------------------------------------------------------------------------------------

#: The categories of what the device does; `gpu_user_annotation` and others only group these.
KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")


#: Views, allocation, filling and copying: `aten::addmm` calls some of these and still does the work itself.
HELPERS = frozenset("aten::" + name for name in [
    "alias", "as_strided", "chunk", "clone", "contiguous", "copy_", "detach", "detach_", "empty", "empty_like",
    "empty_strided", "expand", "expand_as", "fill_", "item", "_local_scalar_dense", "lift_fresh", "narrow", "new_empty",
    "new_zeros", "ones", "permute", "resize_", "resolve_conj", "resolve_neg", "reshape", "_reshape_alias", "select",
    "slice", "split", "squeeze", "t", "_to_copy", "to", "transpose", "unbind", "unsqueeze", "_unsafe_view", "view",
    "zero_", "zeros", "zeros_like",
])  # fmt: skip
#: These add their two biases by an operator and do everything else themselves.
WHOLE = frozenset(["aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"])
#: What only groups operators: nodes of the autograd graph, and compiled regions.
WRAPPERS = re.compile(r"^autograd::|^torch::autograd|Backward\d*$|^Torch-Compiled|^Compiled|^TorchDynamo")


def profiler(job):
    if not hasattr(torch, "profiler"):
        return "torch.profiler came with PyTorch 1.8.1; this is {}".format(torch.__version__)
    if job["execution"].startswith("compile") and job["device"] == "cpu":
        record_compiled_kernels()
    return watch


def record_compiled_kernels():
    """The kernels that torch.compile makes for a CPU can be profiled only if they are compiled for that."""
    from torch._inductor import config

    config.cpp.enable_kernel_profile = True


def is_operator(event):
    return event.get("cat") == "cpu_op" and not WRAPPERS.search(event["name"])


def watch(program, block, folder):
    activities = [torch.profiler.ProfilerActivity.CPU]
    if program.device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities):
            block(1)  # the first profile of a process starts CUPTI, NVIDIA's profiling library, which takes seconds
    with torch.profiler.profile(activities=activities) as profile:
        block()
    path = os.path.join(folder, "trace.json.gz")
    profile.export_chrome_trace(path)
    events = list(read_chrome(path))
    return Timeline(
        host=leaves([operation(event) for event in events if is_operator(event)], HELPERS, WHOLE),
        device=[operation(event) for event in events if event.get("cat") in KERNELS],
        batches=BATCHES,
        file=path,
    )
