"""The workloads by name: those of the published sources, with any number overridden, and a user's own from TOML."""

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

import rnnbench_cells
from rnnbench.domain.workload import Workload
from rnnbench.errors import UserError, nearest

_SPEECH: dict[str, Any] = {"features": 123, "hidden": 320, "origin": "Braun 2018"}
CATALOG: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            name="ptb-lm",
            batch=128,
            steps=50,
            vocabulary=10001,
            embedding=128,
            layers=3,
            hidden=256,
            classes=10001,
            head_bias=True,
            head_on="every-step",
            origin="Carrot 2019",
        ),
        Workload(name="ce-short", batch=64, steps=100, classes=10, **_SPEECH),
        Workload(name="ce-long", batch=32, steps=1000, classes=10, **_SPEECH),
        Workload(name="bi-ce-long", batch=32, steps=1000, classes=10, layers=4, bidirectional=True, **_SPEECH),
        Workload(
            name="bi-ctc-long",
            batch=32,
            steps=1000,
            shortest=500,
            layers=4,
            bidirectional=True,
            classes=59,
            head_on="every-step",
            loss="ctc",
            labels=100,
            **_SPEECH,
        ),
        Workload(
            name="elman-step", batch=1, steps=1, features=10, hidden=20, classes=0, loss="sum", origin="Lazarus 2019"
        ),
    )
}

#: For a user's own cell: as ce-short, and with a loss on every step, so that every output of the cell takes part.
CE_STEPS = Workload(name="ce-steps", batch=64, steps=100, classes=10, head_on="every-step", **_SPEECH)

_OVERRIDABLE = (
    "batch", "steps", "hidden", "classes", "layers", "features", "vocabulary", "embedding", "shortest", "labels",
)  # fmt: skip
_CELL = "cell"
_NAME_PATTERN = re.compile(r"(?P<id>[^\[\]]+?)\s*(?:\[(?P<overrides>[^\[\]]*)\])?")


def parse_workload(text: str, catalog: dict[str, Workload] | None = None) -> Workload:
    """From `ptb-lm` or `ptb-lm[batch=16,steps=20]`; overridden numbers are checked."""
    known = CATALOG if catalog is None else catalog
    match = _NAME_PATTERN.fullmatch(text.strip())
    if match is None:
        raise UserError(f"cannot read the workload '{text}'", "write it like ptb-lm or ptb-lm[batch=16,steps=20]")
    base = known.get(match["id"])
    if base is None:
        raise UserError(f"no workload is named '{match['id']}'", nearest(match["id"], list(known)))
    overrides = _parse_overrides(match["overrides"] or "", text)
    return override(base, overrides) if overrides else base


def _parse_overrides(text: str, whole_text: str) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in (*_OVERRIDABLE, _CELL):
            allowed = ", ".join((*_OVERRIDABLE, _CELL))
            raise UserError(f"'{name}' in '{whole_text}' cannot be overridden", f"allowed: {allowed}")
        if name == _CELL and value in rnnbench_cells.NAMES and name not in numbers:
            numbers[name] = value
            continue
        if name == _CELL:
            raise UserError(f"'{part}' in '{whole_text}' names no cell", f"cells: {', '.join(rnnbench_cells.NAMES)}")
        if not equals or not re.fullmatch(r"[0-9]+", value):
            raise UserError(f"'{part}' in '{whole_text}' needs a whole number", f"for example {name}=16")
        if len(value.lstrip("0")) > _MOST_DIGITS:
            shown = value if len(value) < 40 else f"{value[:37]}…"
            raise UserError(f"{name}={shown} is too large", f"{name} can be at most {_LARGEST[name]:,}")
        if name in numbers:
            raise UserError(f"{name} is given twice in '{whole_text}'", "give each number once")
        numbers[name] = int(value)
    return numbers


def override(base: Workload, numbers: dict[str, Any]) -> Workload:
    """The workload with some numbers changed, or its cell, and with a name that lists them."""
    derived: dict[str, int] = {}
    if "steps" in numbers and base.shortest:
        # The lengths keep their share of the steps (half to all of them).
        derived["shortest"] = max(1, base.shortest * numbers["steps"] // base.steps)
    if "vocabulary" in numbers:
        derived["classes"] = numbers["vocabulary"]  # a language model predicts the words it reads
    # A number is also named if it only prevents a derived one: `[shortest=500,steps=800]` is not `[steps=800]`.
    changed = {
        name: value
        for name, value in numbers.items()
        if value != getattr(base, name) or value != derived.get(name, value)
    }
    if not changed:
        return base
    listed = ",".join(f"{name}={value}" for name, value in sorted(changed.items()))
    return validated(msgspec.structs.replace(base, name=f"{base.name}[{listed}]", **{**derived, **numbers}))


#: Far above what anyone computes. They stop a slip, such as layers=10000000, before anything is built from it.
_LARGEST = {
    "batch": 10**6, "steps": 10**6, "hidden": 10**6, "classes": 10**7, "layers": 1000, "features": 10**6,
    "vocabulary": 10**7, "embedding": 10**6, "shortest": 10**6, "labels": 10**6,
}  # fmt: skip
_MOST_DIGITS = len(str(max(_LARGEST.values())))
_WORKLOAD_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9._=,-]{0,200}\])?")


def is_workload_name(text: str) -> bool:
    return _WORKLOAD_NAME.fullmatch(text) is not None


def validated(workload: Workload) -> Workload:
    """The workload itself, or a UserError that names the number that is wrong."""

    def require(condition: bool, what: str, hint: str) -> None:
        if not condition:
            raise UserError(f"workload {workload.name}: {what}", hint)

    if not is_workload_name(workload.name):
        raise UserError(f"a workload cannot be named {workload.name[:60]!a}", "use letters, digits, - . _")
    for name, most in _LARGEST.items():
        value = getattr(workload, name)
        shown = f"{value:,}" if value < 10**20 else "far more"
        require(
            value <= most, f"{name} is too large: {shown}, at most {most:,} are possible", "choose a smaller number"
        )
    for name in ("batch", "steps", "hidden", "layers", *(() if workload.one_step else ("classes",))):
        require(getattr(workload, name) >= 1, f"{name} must be at least 1", f"it is {getattr(workload, name)}")
    for name in ("features", "vocabulary", "embedding", "shortest", "labels"):
        require(getattr(workload, name) >= 0, f"{name} cannot be negative", f"it is {getattr(workload, name)}")
    require(
        workload.own is not None or workload.cell in rnnbench_cells.NAMES,
        f"there is no cell '{workload.cell}'",
        f"cells: {', '.join(rnnbench_cells.NAMES)}",
    )
    require(
        workload.own is None or (workload.layers, workload.bidirectional, workload.vocabulary) == (1, False, 0),
        "a cell of one's own has one layer, one direction and features as input",
        "rnnbench cell makes such a workload",
    )
    require(
        bool(workload.vocabulary) != bool(workload.features),
        "the input is either token ids or real numbers",
        "give vocabulary and embedding, or features, not both",
    )
    require(
        bool(workload.vocabulary) == bool(workload.embedding),
        "vocabulary and embedding belong together",
        "give both or neither",
    )
    if workload.vocabulary:
        require(
            workload.classes == workload.vocabulary and workload.head_on == "every-step",
            "a language model predicts the next token at every step",
            "set classes to the vocabulary and head_on to 'every-step'",
        )
    require(
        workload.shortest <= workload.steps,
        f"shortest ({workload.shortest}) is longer than steps ({workload.steps})",
        "lower shortest or raise steps",
    )
    require(
        not workload.variable_length or workload.loss == "ctc",
        "variable lengths are defined for the CTC loss only",
        "leave shortest at 0",
    )
    if workload.one_step:
        require(
            (workload.steps, workload.layers, workload.classes) == (1, 1, 0)
            and workload.features > 0
            and not (workload.bidirectional or workload.head_bias)
            and workload.head_on == "last-step",
            "the loss 'sum' is for a single step only: 1 step, 1 layer, features as input, no head",
            "only batch, features and hidden can be overridden; set classes to 0",
        )
    if workload.loss == "ctc":
        shortest = workload.shortest or workload.steps
        require(
            workload.head_on == "every-step" and workload.features > 0 and workload.classes >= 2,
            "CTC needs features as input, a head on every step and at least 2 classes",
            "class 0 is the blank",
        )
        # Repeated labels need a blank between them: 2·labels − 1 steps are always enough.
        require(
            workload.labels >= 1 and 2 * workload.labels - 1 <= shortest,
            f"{workload.labels} labels do not fit the shortest sequence ({shortest} steps)",
            f"labels may be 1 to {(shortest + 1) // 2}",
        )
    else:
        require(workload.labels == 0, "labels belong to the CTC loss", "leave labels at 0")
    return workload


def load_workloads(path: Path) -> dict[str, Workload]:
    """A user's workloads: TOML tables `[workload.NAME]` whose fields are those of a Workload."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("workload", {})
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "give a TOML file of workloads") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not TOML: {error}", "see docs/workloads.md for an example") from error
    if not isinstance(tables, dict) or not tables:
        raise UserError(f"{path} has no table [workload.NAME]", "see docs/workloads.md for an example")
    found: dict[str, Workload] = {}
    for name, fields in tables.items():
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
            raise UserError(f"{path}: '{name}' is not a workload name", "use lower-case letters, digits, - . _")
        if name in CATALOG:
            raise UserError(f"{path}: '{name}' is already a workload", "choose another name")
        if not isinstance(fields, dict):
            raise UserError(f"{path}: {name} is not a table", f"write it as [workload.{name}]")
        possible = [field for field in Workload.__struct_fields__ if field != "own"]
        unknown = sorted(set(fields) - set(possible))
        if unknown:
            allowed = ", ".join(field for field in possible if field != "name")
            raise UserError(f"{path}: {name} has unknown fields {', '.join(unknown)}", f"allowed: {allowed}")
        try:
            workload = msgspec.convert({"origin": path.name, **fields, "name": name}, Workload)
        except msgspec.ValidationError as error:
            raise UserError(f"{path}: {name}: {error}", "see docs/workloads.md for the fields") from error
        found[name] = validated(workload)
    return found
