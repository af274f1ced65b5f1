"""Theano, and what PyTensor inherited from it: settings, a program of one compiled function, its graph and profile.

A compiled function is the same in both except for names. Neither is imported at the top: settings come first.
"""

import ctypes
import glob
import os
import platform

import numpy as np

from rnnbench_worker.canonical import as_int32, with_lengths
from rnnbench_worker.graph import FIRST_CALL, Graph
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.program import Program
from rnnbench_worker.timeline import Timeline, end_to_end

# --- settings -----------------------------------------------------------------------------------------


def describe_device(job):
    """Set Theano's BLAS before Theano is imported, then threads and denormals; say what it then has.

    NumPy's wheels contain an OpenBLAS. Theano is linked with that same library, so that nothing else has to be
    installed and both share one thread pool.
    """
    blas = blas_of_numpy()
    if blas is not None:
        folder, name = os.path.split(blas)
        flags = "blas.ldflags=-L{} -l:{}".format(folder, name)
        os.environ["THEANO_FLAGS"] = ",".join(filter(None, [os.environ.get("THEANO_FLAGS"), flags]))
    import theano

    if job["flush_denormals"]:
        flush_denormals()
    threads = None
    if blas is not None:
        # In a step only the matrix products use several threads, and BLAS runs them.
        library = ctypes.CDLL(blas)
        library.openblas_set_num_threads(job["threads"])
        threads = library.openblas_get_num_threads()
    return {
        "versions": {"theano": theano.__version__},
        "device": "cuda" if theano.config.device.startswith(("cuda", "gpu")) else "cpu",
        "device_name": os.path.basename(blas) if blas else theano.config.blas.ldflags or "BLAS of NumPy",
        "threads": threads,
    }


def blas_of_numpy():
    """The path of the OpenBLAS in NumPy's wheel; None where NumPy was built with another BLAS."""
    found = glob.glob(os.path.join(os.path.dirname(np.__file__), ".libs", "libopenblas*.so"))
    return found[0] if found else None


#: By architecture: the words of glibc's `fenv_t`, which of them is the control register, and the bits to set there.
#: x86-64 has MXCSR, with a bit for denormal results and one for operands. ARM has FPCR, where one bit does both.
CONTROL_REGISTERS = {"x86_64": (8, 7, 1 << 15 | 1 << 6), "aarch64": (2, 0, 1 << 24)}


def flush_denormals():
    """Neither framework has a setting for it. Vanishing gradients become denormals, which are very slow.

    It holds for this thread and for those it starts later. Without glibc, or on another architecture, nothing is done.
    """
    if platform.machine() not in CONTROL_REGISTERS or platform.libc_ver()[0] != "glibc":
        return
    words, register, bits = CONTROL_REGISTERS[platform.machine()]
    library = ctypes.CDLL("libm.so.6")
    environment = (ctypes.c_uint32 * words)()
    library.fegetenv(environment)
    environment[register] |= bits
    library.fesetenv(environment)


# --- programs -----------------------------------------------------------------------------------------


class FunctionProgram(Program):
    """A program of one function, that of its phase, compiled at its first call. A call is finished when it returns."""

    function = None

    def __init__(self, job):
        self._workload = job["workload"]

    def stage(self, batch):
        return as_int32(with_lengths(batch, self._workload))

    def feed(self, staged):
        """A function takes host arrays, and moves them to a device itself where it uses one."""
        return staged

    def loss(self, handle):
        return float(handle)


def host_copy(shared):
    """A copy of a shared variable's value on the host, wherever the variable is."""
    return np.array(shared.get_value(borrow=True))


# --- inspection ---------------------------------------------------------------------------------------


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [function_graph("Theano graph", compiled(program))]


def profiler(job):
    import theano  # after its settings

    # Before anything is compiled: without it functions keep no times.
    theano.config.profile = True
    return watch


def watch(program, block, folder):
    return watch_function(compiled(program), block)


def compiled(program):
    """Theano's own function; Keras wraps it in another object."""
    return getattr(program.function, "function", program.function)


def function_graph(form, function):
    """The graph of a compiled function after all rewriting, with the inner graphs of its scans."""
    return add_nodes(Graph(form, FIRST_CALL), function.maker.fgraph)


def add_nodes(graph, function):
    places = {}
    for value in function.inputs:
        places[value] = graph.node("input", str(value.name or ""))
    for node in function.toposort():
        sources = [places[value] for value in node.inputs if value in places]
        # A fused element-wise operator lists in its own name what it fuses.
        place = graph.node(type(node.op).__name__, str(node.op)[:60], sources)
        places.update((value, place) for value in node.outputs)
        inner = inner_graph(node.op)
        if inner is not None:
            graph.body(place, "body", add_nodes(Graph(graph.fields["form"], FIRST_CALL), inner))
    return graph


def inner_graph(op):
    """PyTensor's operators hold their inner graph; Theano's scan has it in the function that it has compiled."""
    if hasattr(op, "fgraph"):
        return op.fgraph
    return op.fn.maker.fgraph if is_scan(op) else None


def is_scan(op):
    return type(op).__name__ == "Scan"


def watch_function(function, block):
    """The function's own profile of a block; `config.profile` was on when it was compiled."""
    for profile in profiles_of(function):
        profile.reset()
    block()
    totals = [
        (type(node.op).__name__, count, stats.apply_time[key])
        for stats in profiles_of(function)
        for key, count in stats.apply_callcount.items()
        for node in [key[-1] if isinstance(key, tuple) else key]  # PyTensor's keys also name the graph
        # The operators in a loop are counted themselves, so the loop is not counted as well.
        if not is_scan(node.op)
    ]
    assert function.profile.fct_callcount == BATCHES
    return Timeline(host=end_to_end(totals), device=[], batches=BATCHES, file="")


def profiles_of(function):
    """The profile of a function and those of the loops in it."""
    yield function.profile
    for node in function.maker.fgraph.toposort():
        if is_scan(node.op):
            for profile in profiles_of(node.op.fn):
                yield profile
