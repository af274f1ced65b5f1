"""PyTensor's graph: the one of symbols, after its rewrites, with the inner graphs of its scans."""

from rnnbench_worker.systems.theano.functions import function_graph


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [function_graph("PyTensor graph", program.function)]
