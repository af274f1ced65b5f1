"""Keras on TensorFlow builds TensorFlow's graphs: of the tf.function inside what `fit` or `predict` calls."""

from rnnbench_worker.systems.tensorflow.graph import function_graphs


def graphs(job, make):
    program, fed = make()
    function, data = program.function_of(job["phase"], fed)
    if job["execution"].startswith("eager"):
        return function_graphs(function, ([data],), xla=False)
    program.call_of(job["phase"])(fed)
    (traced,) = [one for one in functions_in(function) if one.experimental_get_tracing_count()]
    return function_graphs(traced, (data,), job["execution"].startswith("xla"))


def functions_in(function, depth=4):
    """Every tf.function that a Python function has in its closure, or is."""
    if hasattr(function, "experimental_get_tracing_count"):
        return [function]
    cells = getattr(function, "__closure__", None) or ()
    inside = [cell.cell_contents for cell in cells] if depth else []
    return [found for one in inside if callable(one) for found in functions_in(one, depth - 1)]
