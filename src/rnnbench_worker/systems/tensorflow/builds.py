"""How often tf.function has traced."""


def builds(program):
    return tracings(program._forward) + tracings(program._train)


def tracings(function, depth=3):
    """Of a tf.function, or of those that a Python function has in its closure; 0 where nothing is traced."""
    if hasattr(function, "experimental_get_tracing_count"):
        return function.experimental_get_tracing_count()
    cells = getattr(function, "__closure__", None) or ()
    inside = [cell.cell_contents for cell in cells]
    return sum(tracings(one, depth - 1) for one in inside if callable(one) and depth)
