"""The page of `graph --story`: the six statements of Lazarus (2019), with graphs built while or before they run.

Everything on it comes from the frameworks: each reports its part in a worker, and is shown only if its loss and
gradients agree with the reference. Jinja2 escapes the text, `drawing.py` the drawings. A content security policy
allows only the page's own script.
"""

import base64
import hashlib
import json
from html import escape
from importlib.resources import files

import msgspec
import numpy as np
from jinja2 import Environment, StrictUndefined

from rnnbench.domain.case import Method
from rnnbench.domain.catalog import CATALOG
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON
from rnnbench.graph.capture import Graph, run_graph_worker
from rnnbench.graph.drawing import MARKER, STYLE, draw
from rnnbench.launch.events import Hello
from rnnbench.launch.job import resolve_case
from rnnbench.launch.launcher import outcome_of
from rnnbench.launch.listener import Listener
from rnnbench.launch.prepare import prepare
from rnnbench.plan import Plan, Selection, make_plan
from rnnbench.reference.inputs import make_batches, make_parameters
from rnnbench.reference.network import loss_and_gradients
from rnnbench.text import script_json
from rnnbench.verify.compare import TOLERANCES, relative_error
from rnnbench.version import __version__

WORKLOAD = CATALOG["elman-step"]
SYSTEMS = (
    "pytorch/fine/eager",
    "tensorflow/fine/eager",
    "tensorflow/fine/graph",
    "pytorch/fine/script",
    "pytorch/fine/trace",
    "jax/fine/jit-unrolled",
)


class Program(msgspec.Struct):
    """A small program shown on the page: its source, and what it printed."""

    title: str
    source: str
    said: list[str]


class StoryPart(msgspec.Struct, kw_only=True):
    """What one system reports; the fields are those of the worker's `Story`."""

    title: str
    graph: Graph
    code: list[str]
    born: list[int]  # for every node: the statement that adds it to the graph; 0: before the first
    of: list[int]  # for every node: the statement it computes
    values: list[str]  # after each statement
    backward: list[int]  # the nodes that the backward pass visits, in order
    notes: dict[str, str]
    loss: float
    gradients: dict[str, list[list[float]]]
    programs: list[Program] = []
    system: str = ""
    versions: dict[str, str] = {}

    @property
    def is_built_before(self) -> bool:
        """Whether the graph is complete before the first statement runs."""
        return all(statement == 0 for statement in self.born)

    def nodes_after(self, statement: int) -> int:
        return sum(born <= statement for born in self.born)


def make_story(method: Method, listener: Listener) -> bytes:
    selection = Selection(systems=SYSTEMS, workloads=(WORKLOAD,), phases=("train",), device="cpu")
    plan = make_plan(selection)
    parts, missing = collect(plan, method, listener)
    if not parts:
        raise UserError("no framework could run the story", "; ".join(missing))
    return as_page(parts, missing)


def collect(plan: Plan, method: Method, listener: Listener) -> tuple[list[StoryPart], list[str]]:
    """The parts in the order of the page, and why others are missing."""
    prepared = prepare(plan, listener)
    cases = {case.system: case for case in prepared.cases}
    parts: list[StoryPart] = []
    missing = [f"{left.case.system}: {left.reason}" for left in prepared.left_out]
    for name in SYSTEMS:
        if name not in cases:
            continue
        resolved = resolve_case(cases[name], plan.workloads, plan.systems, prepared.environments)
        result, content = run_graph_worker(resolved, method, "story")
        outcome, reason = outcome_of(cases[name], method.threads, result)
        if outcome == "ok":
            try:
                part = msgspec.json.decode(content, type=StoryPart)
                part.system = name
                part.versions = next((event.versions for event in result.events if isinstance(event, Hello)), {})
                reason = disagreement(part, method.seed)
            except DAMAGED_JSON as error:
                reason = f"its graph cannot be read: {error}"
        if reason:
            missing.append(f"{name}: {reason}")
        else:
            parts.append(part)
        listener.note(f"{name}: {reason or 'done, loss and gradients verified'} ({result.seconds:.1f} s)")
    return parts, missing


def disagreement(part: StoryPart, seed: int = 0) -> str:
    """Which of its numbers differ from the reference's; empty when none does."""
    batch = make_batches(WORKLOAD, 1, seed)[0]
    loss, gradients = loss_and_gradients(WORKLOAD, make_parameters(WORKLOAD, seed), batch)
    pairs = {"loss": (np.asarray(part.loss), np.asarray(loss))}
    pairs |= {name: (np.asarray(part.gradients.get(name, [])), value) for name, value in gradients.items()}
    for name, (found, expected) in pairs.items():
        error = relative_error(found, expected)
        if error is None or error > TOLERANCES["fp32"]:
            return f"wrong: {name} differs from the reference"
    return ""


def as_page(parts: list[StoryPart], missing: list[str]) -> bytes:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    script = _read_page_file("story.js")
    data = [
        {name: getattr(part, name) for name in ("born", "of", "backward", "values", "notes")}
        | {"operators": part.graph.operators, "names": part.graph.names}
        for part in parts
    ]
    page = environment.from_string(_read_page_file("template.html")).render(
        parts=parts,
        drawings=[_part_as_svg(number, part) for number, part in enumerate(parts)],
        missing=missing,
        programs=[program for part in parts for program in part.programs],
        version=__version__,
        style=STYLE + _read_page_file("style.css"),
        marker=MARKER,
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=script_json(json.dumps(data, ensure_ascii=False)),
    )
    return page.encode()


def _part_as_svg(number: int, part: StoryPart) -> str:
    body, width, height = draw(part.graph, f"part{number}-")
    size = f'viewBox="-2 0 {width + 4:.0f} {height:.0f}" width="{width + 4:.0f}" height="{height:.0f}"'
    size += f' style="--own:{width + 4:.0f}px"'  # a narrow window may shrink it, but it stays readable
    label = escape(f"{part.title}: {part.graph.form}")
    return f'<svg class="graph" {size} role="img" aria-label="{label}">{body}</svg>'


def _read_page_file(name: str) -> str:
    return files("rnnbench.graph").joinpath("page", name).read_text(encoding="utf-8")
