"""How often Keras has made the function of a phase: once, at its first call. Another shape makes no other."""


def builds(program):
    return int(program.function is not None)
