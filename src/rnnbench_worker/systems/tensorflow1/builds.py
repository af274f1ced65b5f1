"""How often a graph was built: once. Its placeholders have fixed shapes, and a session refuses any other."""


def builds(program):
    return int(program._fetches is not None)
