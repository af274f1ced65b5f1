"""A user's own cell: what its file has, the workloads that it is timed on, and the plan of its rows.

A class of PyTorch is imported in a worker and nowhere else. A cell over the vocabulary is also the reference's, so it
is imported here; it may import nothing but `math`, which is checked before.
"""

import ast
import hashlib
import re
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import rnnbench_cells
from rnnbench.domain.case import Case, LeftOut, Method
from rnnbench.domain.catalog import CE_STEPS, override
from rnnbench.domain.run import Environment
from rnnbench.domain.system import MODULE
from rnnbench.domain.workload import OwnCell, OwnWeight, Phase, Workload
from rnnbench.environments.external import interpreter_of
from rnnbench.environments.holding import held
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.errors import UserError
from rnnbench.files import read_regular
from rnnbench.launch.events import Cell, Failed
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.launch.listener import Listener
from rnnbench.launch.worker import run_worker
from rnnbench.manifests import manifests
from rnnbench.plan import Plan, Selection, join_plans, make_plan, pick_device
from rnnbench.reference.tape import Operators, Value

FRAMEWORK = "pytorch"  # of classes
LOOP = "pytorch/packed/eager"  # the plain loop over time
VENDOR = "pytorch/stack/eager"  # torch.nn.LSTM, beside which every cell is shown
_NEEDED = ("STATES", "parameters", "step")

#: Executions that write out every step of a sequence, or compile for minutes in any case.
_UNROLLED = ("compile", "trace", "jit-unrolled", "xla")
_SLOW = ("scan-numba",)
_FEW_STEPS = 20


def read_cell(text: str) -> OwnCell:
    """From `my_cell.py:MyCell`, a class, or `my_cell.py`, a cell over the vocabulary. Nothing is imported yet."""
    name, colon, class_name = text.rpartition(":")
    if not colon or not name.endswith(".py"):
        name, class_name = text, ""
    path = Path(name).expanduser()
    if path.suffix != ".py":
        raise UserError(f"'{text}' is not a cell", "give a Python file and a class of it, such as my_cell.py:MyCell")
    try:
        content = read_regular(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "give the file that has the cell") from error
    own = OwnCell(path=str(path.resolve()), digest=hashlib.sha256(content).hexdigest(), class_name=class_name)
    _require_parts(path, content, class_name)
    return own


def _require_parts(path: Path, content: bytes, class_name: str) -> None:
    """What the text of the file shows."""
    try:
        tree = ast.parse(content, str(path))
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}: {(error.text or '').strip()}" if isinstance(error, SyntaxError) else ""
        raise UserError(f"{path.name} is not Python: {error.args[0]}{line}", "correct it and try again") from error
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    if class_name:
        return  # it may also come from an import: the worker finds out
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = [one for node in tree.body if isinstance(node, ast.Assign) for one in node.targets]
    named |= {one.id for one in targets if isinstance(one, ast.Name)}
    missing = [name for name in _NEEDED if name not in named]
    if missing and classes:
        choices = " or ".join(f"{path.name}:{name}" for name in classes)
        raise UserError(f"{path.name} is no cell over the vocabulary; name its class", f"for example {choices}")
    if missing:
        raise UserError(
            f"{path.name} has no {' and no '.join(missing)}",
            "docs/cells.md says what a cell over the vocabulary has; of a class, give its name: my_cell.py:MyCell",
        )
    foreign = sorted(_imported(tree) - {"math", "__future__"})
    if foreign:
        raise UserError(
            f"{path.name} imports {', '.join(foreign)}",
            "a cell over the vocabulary is for every framework: it uses the operators in `ops`, and at most math",
        )


def _imported(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or ".").partition(".")[0])
    return found


# --- the workloads ------------------------------------------------------------------------------------


def cell_name(own: OwnCell) -> str:
    """`my_cell.MyCell`, `my_cell.py`: the point tells it from the cells that come with rnnbench."""
    path = Path(own.path)
    name = f"{path.stem}.{own.class_name}" if own.class_name else path.name
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)[:60]


def vendor_workload(sizes: Mapping[str, int]) -> Workload:
    return override(CE_STEPS, dict(sizes))


def own_workload(own: OwnCell, sizes: Mapping[str, int]) -> Workload:
    return override(msgspec.structs.replace(CE_STEPS, own=own), {**sizes, "cell": cell_name(own)})


def with_vocabulary(own: OwnCell, features: int, hidden: int) -> OwnCell:
    """A cell over the vocabulary, run once in NumPy: its weights, or what is wrong with it."""
    file = Path(own.path).name
    try:
        cell = rnnbench_cells.find(own.path)
        shapes = {str(name): tuple(map(int, shape)) for name, shape in cell.parameters(features, hidden).items()}
        weights = {name: Value(np.full(shape, 0.1)) for name, shape in shapes.items()}
        state = {name: Value(np.zeros((3, hidden))) for name in cell.STATES}
        new = cell.step(Operators, weights, Value(np.zeros((3, features))), state)
        found = {name: one.array.shape for name, one in new.items()}
    except Exception as error:  # whatever a user's file raises is theirs to know
        raise UserError(f"{file}: {_with_line(error, own.path)}", "docs/cells.md has an example") from error
    wanted = dict.fromkeys(cell.STATES, (3, hidden))
    if found != wanted:
        raise UserError(f"{file}: a step returns {found}", f"a batch of 3 must give {wanted}")
    return msgspec.structs.replace(own, weights=tuple(OwnWeight(name, shape) for name, shape in shapes.items()))


def _with_line(error: Exception, path: str) -> str:
    text = f"{type(error).__name__}: {error}"
    lines = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == path]
    return f"{text} (line {lines[-1].lineno}: {lines[-1].line})" if lines else text


def with_class(own: OwnCell, workload_sizes: Mapping[str, int], environment: Environment, method: Method) -> OwnCell:
    """A class, as a worker in its environment finds it. Raises a UserError in the worker's words."""
    manifest = manifests()[FRAMEWORK]
    workload = own_workload(own, workload_sizes)
    system = next(one for one in manifest.system if one.name == LOOP)
    case = Case(
        workload=workload.name,
        system=LOOP,
        phase="forward",
        device="cpu",
        precision="fp32",
        environment=environment.id,
    )
    resolved = ResolvedCase(case=case, workload=workload, system=system, manifest=manifest, environment=environment)
    with held([environment]):
        result = run_worker(
            environment, make_job("cell", resolved, method, ""), manifest.variables, method.limit_seconds
        )
    for event in result.events:
        if isinstance(event, Cell):
            return msgspec.structs.replace(own, **msgspec.structs.asdict(event))
        if isinstance(event, Failed) and event.type == "CellError":
            what, _, more = event.message.partition("\n")
            raise UserError(what, more.replace("\n", "\n  "))
    raise UserError(
        f"{Path(own.path).name} could not be looked at: {result.reason}", result.log.tail(600).strip() or "see above"
    )


# --- the plan -----------------------------------------------------------------------------------------


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for."""

    own: OwnCell
    sizes: Mapping[str, int]  # batch, steps, features, hidden
    phases: tuple[Phase, ...]
    device: str = "auto"
    systems: tuple[str, ...] = ()  # globs; none: all that have a row for such a cell
    python: Path | None = None  # an interpreter of the user's with PyTorch


def plan_cell(request: Request, method: Method, listener: Listener) -> Plan:
    """The cell's rows, and torch.nn.LSTM of the same sizes. Of a class, its environment is created, and it is tried."""
    own, given = request.own, _given(request.python)
    if own.class_name:
        listener.note(f"looking at {own.class_name} of {Path(own.path).name}")
        environment = given.get(FRAMEWORK) or _environment(request.device, listener)
        own = with_class(own, request.sizes, environment, method)
        listener.note(own.told)
    else:
        own = with_vocabulary(own, request.sizes["features"], request.sizes["hidden"])
    workload = own_workload(own, request.sizes)
    wanted = request.systems or _all_for(own)

    def plan(systems: Sequence[str], workloads: Sequence[Workload]) -> Plan:
        selection = Selection(
            systems=tuple(systems), workloads=tuple(workloads), phases=request.phases, device=request.device
        )
        return make_plan(selection, given)

    made = plan(wanted, [workload])
    if not request.systems:
        made = _without_slow(made, request.sizes["steps"])
    if any(system.framework == FRAMEWORK for system in made.systems.values()):
        made = join_plans(made, plan([VENDOR], [vendor_workload(request.sizes)]))
    return made


def _given(python: Path | None) -> dict[str, Environment]:
    return {} if python is None else {FRAMEWORK: interpreter_of(FRAMEWORK, python)}


def _environment(device: str, listener: Listener) -> Environment:
    return resolve(parse_spec(FRAMEWORK, pick_device(device)), create_missing=True, report=listener.note)


def _all_for(own: OwnCell) -> list[str]:
    """Of every framework the rows that take such a cell."""
    kind = MODULE if own.class_name else "*"
    return [system.name for one in manifests().values() for system in one.system if kind in system.cells]


def _without_slow(plan: Plan, steps: int) -> Plan:
    """Without rows that take minutes to compile; they are there for those who name them."""

    def reason(case: Case) -> str:
        execution = case.system.rpartition("/")[2]
        if execution in _UNROLLED and steps > _FEW_STEPS:
            return f"it writes out all {steps} steps and takes minutes to compile: name {case.system} to have it"
        return f"it takes minutes to compile: name {case.system} to have it" if execution in _SLOW else ""

    slow = tuple(LeftOut(case=case, reason=why) for case in plan.cases if (why := reason(case)))
    return msgspec.structs.replace(
        plan,
        cases=tuple(case for case in plan.cases if not reason(case)),
        left_out=(*plan.left_out, *slow),
    )


def read_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """`heads=4` is a number, `bias=False` a truth value, `kind=soft` a word."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UserError(f"cannot read the argument '{text}'", "write it like --arg heads=4")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
        if not isinstance(found[name], str | int | float | bool | None):
            raise UserError(f"the argument '{text}' is neither a number nor a word", "use a default in the class")
    return found
