"""What the frameworks on Theano show of the function that their program has compiled: its graph, its profile."""

from .functions import function_graph, watch_function


def graphs(job, make):
    program, fed = make()
    program.call_of(job["phase"])(fed)
    return [function_graph("Theano graph", compiled(program))]


def profiler(job):
    import theano  # whose settings come first

    # Before anything is compiled: functions without it keep no times.
    theano.config.profile = True
    return watch


def watch(program, block, folder):
    return watch_function(compiled(program), block)


def compiled(program):
    """Keras has wrapped it."""
    return getattr(program.function, "function", program.function)
