"""How often a network was exported and compiled: once, for the shapes it was traced with."""


def builds(program):
    return int(program._engine is not None)
