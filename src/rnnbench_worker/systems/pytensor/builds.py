"""How often PyTensor has compiled: a program has one function, with inputs of fixed shapes."""


def builds(program):
    return int(program._function is not None)
