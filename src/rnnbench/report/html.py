"""`report.html`: one file with everything in it, that works from a disk without a network.

What comes from a run reaches the page in three ways, each of them escaped: as text of the template (Jinja2's
autoescape), as JSON that cannot end its element, and inside the drawings, whose text Vega escapes. What the
template marks as safe is these two and the page's own style and script. A content security policy allows that
script by its hash and nothing else, should an escape ever fail.
"""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from rnnbench import __version__
from rnnbench.published import SOURCES
from rnnbench.report import units
from rnnbench.report.beside import published_beside
from rnnbench.report.charts import theme
from rnnbench.report.charts.gallery import Chart
from rnnbench.report.document import Document
from rnnbench.report.gpus import describe_gpus
from rnnbench.report.method import method_name
from rnnbench.report.page_data import frameworks, page_data
from rnnbench.report.terminal import LEGEND
from rnnbench.store.folder import Contents

#: In the order in which they build on each other.
SCRIPTS = ("elements", "format", "data", "state", "samples", "hint", "details", "table", "main")


def as_html(document: Document, charts: list[Chart]) -> bytes:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"seconds": units.seconds, "times": units.times}
    script = '"use strict";\n(() => {\n' + "\n".join(read_part(f"{name}.js") for name in SCRIPTS) + "})();\n"
    published = published_beside(document)
    page = environment.from_string(read_part("template.html")).render(
        title=_title(document),
        version=__version__,
        several=document.several,
        runs=[_run(name, contents) for name, contents in zip(document.names, document.runs, strict=True)],
        charts=charts,
        legend=[(line[:12].strip(), line[12:]) for line in LEGEND.splitlines()],
        claims=document.analysis.claims,
        published=published,
        sources=list({id(one): one for one in (SOURCES[row.published.source] for row in published)}.values()),
        style=colours(frameworks(document)) + read_part("style.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=page_data(document, charts),
    )
    return page.encode()


def read_part(name: str) -> str:
    return files("rnnbench.report").joinpath("page", name).read_text(encoding="utf-8")


def _title(document: Document) -> str:
    machines = dict.fromkeys(
        contents.run.machine.gpus[0].name if contents.run.machine.gpus else contents.run.machine.cpu
        for contents in document.runs
    )
    return f"What flexibility costs: {', '.join(machines)}"


def _run(name: str, contents: Contents) -> dict[str, Any]:
    run = contents.run
    machine, method = run.machine, run.method
    caches = ", ".join(f"{level} {size}" for level, size in machine.caches.items())
    gpus = "; ".join(describe_gpus(contents))
    processor = f"{machine.cpu}, {machine.cores} cores, {machine.cpus} processors"
    facts = [
        ("processor", processor),
        ("caches", caches),
        ("memory", units.size(machine.memory_bytes)),
        ("GPU", gpus or "none"),
        ("system", f"{machine.system}, {machine.kernel}"),
        ("load at the start", "" if machine.load is None else f"{machine.load:.2f}"),
        ("method", f"{method_name(contents)}, seed {method.seed}, at most {method.limit_seconds:g} s a launch"),
        ("denormals", "flushed to zero" if method.flush_denormals else "kept"),
        ("made by", f"rnnbench {run.tool.version} {run.tool.revision}".strip()),
        ("command", " ".join(("rnnbench", *run.command))),
    ]
    return {
        "name": name,
        "created": run.created[:16].replace("T", " ") + " UTC",
        "machine": "; ".join(filter(None, (gpus, processor))),
        "system": machine.system,
        "method": method_name(contents),
        "facts": [(heading, value) for heading, value in facts if value],
        "environments": list(run.environments.values()),
        "damaged": contents.damaged,
    }


def colours(names: Iterable[str]) -> str:
    """The theme's colours for the page, its drawings and these frameworks; paper is always light."""
    roles = {"ink": theme.INK, "muted": theme.MUTED, "grid": theme.GRID, "line": theme.LINE}
    roles |= {"ground": theme.GROUND, "limit": theme.LIMIT}
    tones = [look.tone for look in theme.looks(names).values()]
    light = ":root{" + "".join(f"--{name}:{tone.light};" for name, tone in roles.items()) + "}"
    light += "".join(f".tone-{number}{{--tone:{tone.light}}}" for number, tone in enumerate(tones))
    dark = ":root{" + "".join(f"--{name}:{tone.dark};" for name, tone in roles.items()) + "}"
    dark += "".join(f".tone-{number}{{--tone:{tone.dark}}}" for number, tone in enumerate(tones))
    return f"{light}\n@media screen and (prefers-color-scheme:dark){{{dark}{theme.dark_css('.chart ')}}}\n"
