"""XLA's HLO as a graph, read from its text: JAX and TensorFlow both print it."""

import re

from .graph import Graph

COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+)( \(.*\) -> .*)? \{$")
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
OPERATOR = re.compile(r"^([\w\-]+)\((.*)$")
CALLED = re.compile(r"\b(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")


def hlo_graph(text, built):
    """The entry computation, with what its instructions call as their bodies."""
    computations, entry = read_computations(text)
    return fill(Graph("HLO", built, text), entry, computations, ())


def read_computations(text):
    """(name -> list of (name, operator, operands, [(role, computation)]), the entry's name)."""
    computations, entry, current = {}, "", None
    for line in text.splitlines():
        heading = COMPUTATION.match(line)
        if heading:
            current = computations.setdefault(heading.group(2), [])
            entry = heading.group(2) if heading.group(1) else entry
            continue
        found = INSTRUCTION.match(line)
        if found is None or current is None:
            continue
        operator = OPERATOR.match(without_type(found.group(2)))
        if operator is None:
            continue
        operands, rest = until_closed(operator.group(2))
        sources = [part.strip().split(" ")[-1].lstrip("%") for part in operands.split(",")]
        current.append((found.group(1), operator.group(1), sources, CALLED.findall(rest)))
    return computations, entry


def without_type(text):
    """`f32[20,1]{1,0} dot(…` or `(f32[], s32[]) while(…`: what comes after the type."""
    if text.startswith("("):
        return until_closed(text[1:])[1].lstrip()
    return text.split(" ", 1)[1] if " " in text else text


def until_closed(text):
    """(what is inside the parenthesis that has been opened, what comes after it)."""
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:place], text[place + 1 :]
    return text, ""


def fill(graph, name, computations, inside):
    places = {}
    for own, operator, sources, called in computations.get(name, ()):
        place = graph.node(operator, own, [places[source] for source in sources if source in places])
        places[own] = place
        for role, other in called:
            if other in computations and other not in inside:
                body = Graph("HLO", graph.fields["built"])
                graph.body(place, role, fill(body, other, computations, inside + (name,)))
    return graph
