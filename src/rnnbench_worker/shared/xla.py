"""What XLA shows of a program, which JAX and TensorFlow share: its HLO as a graph, and its profiler's traces."""

import glob
import os
import re
from bisect import bisect_left

from rnnbench_worker.graph import Graph
from rnnbench_worker.profile import BATCHES
from rnnbench_worker.timeline import Timeline, operation, read_chrome

COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+)( \(.*\) -> .*)? \{$")
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
OPERATOR = re.compile(r"^([\w\-]+)\((.*)$")
CALLED = re.compile(r"\b(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")


def hlo_graph(text, built):
    """The entry computation of a printed HLO module; computations that its instructions call are their bodies."""
    computations, entry = read_computations(text)
    return add_computation(Graph("HLO", built, text), entry, computations, ())


def read_computations(text):
    """({name: [(instruction, operator, operands, [(role, computation)])]}, the name of the entry)."""
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
    """What follows the type in `f32[20,1]{1,0} dot(…` or `(f32[], s32[]) while(…`."""
    if text.startswith("("):
        return until_closed(text[1:])[1].lstrip()
    return text.split(" ", 1)[1] if " " in text else text


def until_closed(text):
    """(the text inside the parenthesis that has just been opened, the text after it)."""
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[:place], text[place + 1 :]
    return text, ""


def add_computation(graph, name, computations, callers):
    places = {}
    for instruction, operator, operands, called in computations.get(name, ()):
        place = graph.node(operator, instruction, [places[operand] for operand in operands if operand in places])
        places[instruction] = place
        for role, callee in called:
            if callee in computations and callee not in callers:
                body = Graph("HLO", graph.fields["built"])
                graph.body(place, role, add_computation(body, callee, computations, callers + (name,)))
    return graph


# --- traces -------------------------------------------------------------------------------------------

#: `dot.17` and `dot.18` are the same operator twice.
_NUMBERED = re.compile(r"([._]\d+|\.clone|\.remat\d*)+$")
#: An operator of TensorFlow as its executor calls it: `a/path/MatMul_1:MatMul`.
_EXECUTED = re.compile(r"^[^ :]*:([A-Z_]\w*)$")
#: On CPUs XLA marks the end of an operator with an event of this prefix, on any thread.
_ENDED = "end: "
#: These run other operators, which have events of their own.
_CONTROL = frozenset(["while", "conditional", "call"])


def find_profile(folder, ending):
    """The one file with this ending that the profiler left below the folder."""
    (found,) = glob.glob(os.path.join(folder, "plugins", "profile", "*", "*" + ending))
    return found


def xla_timeline(path):
    """The operators among the events of a Chrome trace."""
    events = extend_to_end_marks(list(read_chrome(path)))
    return Timeline(
        host=list(filter(None, map(host_operation, events))),
        device=list(filter(None, map(device_operation, events))),
        batches=BATCHES,
        file=path,
    )


def extend_to_end_marks(events):
    """An operator's event may end as soon as its work is passed to other threads; the work ends at its end mark.

    Such an operator gets a lane of its own, because its thread does unrelated things in the meantime.
    """
    marks = {}
    for event in events:
        if event["name"].startswith(_ENDED):
            marks.setdefault(event["name"][len(_ENDED) :], []).append(event["ts"])
    for times in marks.values():
        times.sort()
    for index, event in enumerate(events):
        times = marks.get(event["name"], [])
        place = bisect_left(times, event["ts"])
        # In a loop an operator ends before it begins again, so the next mark belongs to this event.
        if place < len(times) and times[place] > event["ts"] + event.get("dur", 0):
            event.update(dur=times[place] - event["ts"], tid="handed over {}".format(index))
    return events


def host_operation(event):
    """An event of XLA's names the operator in its program; one of TensorFlow's executor names instance and kind."""
    if not event["process"].startswith("/host:CPU"):
        return None
    args = event.get("args", {})
    executed = _EXECUTED.match(event["name"])
    if "hlo_op" in args:
        name = _NUMBERED.sub("", args["hlo_op"])
    else:
        name = args.get("kernel_of") or (executed.group(1) if executed else "")
    # Names of functions begin with two underscores: the operators in them have events of their own.
    return None if not name or name in _CONTROL or name.startswith("__") else operation(event, name)


def device_operation(event):
    """Kernels and copies are on the lines of streams; other lines repeat them by module and by operator."""
    if event["process"].startswith("/device:GPU") and event["thread"].startswith("Stream"):
        return operation(event, _NUMBERED.sub("", event["name"]))
    return None
