"""Graphs as text, DOT, JSON and tables."""

from collections.abc import Sequence

import msgspec

from rnnbench.domain.profile import Change
from rnnbench.graph.capture import CapturedGraphs, Graph
from rnnbench.text import Column, render_table

CHANGES: dict[Change, str] = {"batch": "new batch size", "steps": "new length"}


def as_text(answers: Sequence[CapturedGraphs]) -> str:
    """For each system: its graphs, when they are built, how many nodes of which kind; then the graphs themselves."""
    return "\n\n".join(_system_as_text(captured) for captured in answers)


def _system_as_text(captured: CapturedGraphs) -> str:
    case = captured.case
    lines = [f"{case.system} · {case.workload} · {case.phase} · {case.device} · {case.environment}"]
    if not captured.graphs:
        return "\n".join([*lines, f"{captured.outcome}: {captured.reason}"])
    if captured.retrace:
        lines += [f"{what}: {captured.effect_of(change)}" for change, what in CHANGES.items()]
    else:
        lines.append("new batch size, new length: not tried (give --reshape)")
    for graph in captured.graphs:
        lines += ["", f"{graph.form}: {graph.nodes:,} nodes, {graph.links:,} edges, built {graph.built}"]
        lines += [f"  {graph.note}"] if graph.note else []
        lines += [f"  {count:6,}  {kind}" for kind, count in graph.kinds().most_common()]
        lines += ["", graph.text.rstrip() or _listing(graph)] if graph.operators else []
    return "\n".join(lines)


def _listing(graph: Graph) -> str:
    """A line for each node with the nodes it reads, for graphs that their framework does not print."""
    lines: list[str] = []
    for title, part in graph.parts():
        reads: list[list[int]] = [[] for _ in part.operators]
        for source, target in part.edges:
            reads[target].append(source)
        lines.append(f"{title}:")
        for node, operator in enumerate(part.operators):
            name = f" {part.names[node]}" if part.names[node] else ""
            sources = f" ← {', '.join(map(str, reads[node]))}" if reads[node] else ""
            lines.append(f"  {node:5}  {operator}{name}{sources}")
    return "\n".join(lines)


def as_table(answers: Sequence[CapturedGraphs]) -> str:
    """A row for each graph of each system."""
    changes = list(CHANGES) if any(captured.retrace for captured in answers) else []
    columns = [
        Column("system"), Column("graph"), Column("built"), *(Column(CHANGES[change]) for change in changes),
        Column("nodes", right=True), Column("edges", right=True), Column("kinds", right=True), Column("most frequent"),
    ]  # fmt: skip
    cases = [captured.case for captured in answers]
    several = len({case.environment for case in cases}) > len({case.framework for case in cases})
    rows = [row for captured in answers for row in _table_rows(captured, changes, several)]
    headings = dict.fromkeys(f"{case.workload} · {case.device}" for case in cases)
    return "\n".join(headings) + "\n" + render_table(columns, rows)


def _table_rows(captured: CapturedGraphs, changes: Sequence[Change], several: bool) -> list[list[str]]:
    name = captured.case.system + (" (forward)" if captured.case.phase == "forward" else "")
    name += f" in {captured.case.environment}" if several else ""
    if not captured.graphs:
        return [[name, captured.outcome, "", *("" for _ in changes), "–", "–", "–", captured.reason]]
    rows = []
    for graph in captured.graphs:
        kinds = graph.kinds()
        frequent = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(3)) or graph.note
        counts = [f"{graph.nodes:,}", f"{graph.links:,}", str(len(kinds))]
        # A graph that is built at every call is built for any shape.
        effects = ["" if graph.built == "at every call" else captured.effect_of(change) for change in changes]
        rows.append([name, graph.form, graph.built, *effects, *counts, frequent])
    return rows


def as_json(answers: Sequence[CapturedGraphs]) -> str:
    """Everything, with the counts of nodes, edges and kinds."""
    fields = []
    for captured in answers:
        one = msgspec.to_builtins(captured)
        for graph, found in zip(one["graphs"], captured.graphs, strict=True):
            graph |= {"nodes": found.nodes, "links": found.links, "kinds": dict(found.kinds().most_common())}
        fields.append(one)
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


def as_dot(graphs: Sequence[Graph]) -> str:
    """In the DOT language of Graphviz."""
    lines = ["digraph {", "  node [shape=box, style=rounded]"]
    for number, (title, part) in enumerate(part for graph in graphs for part in graph.parts()):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(title)}"]
        for node, operator in enumerate(part.operators):
            label = operator if part.names[node] in ("", operator) else f"{operator}\n{part.names[node]}"
            lines.append(f"    n{number}_{node} [label={_quoted(label)}]")
        lines += [f"    n{number}_{source} -> n{number}_{target}" for source, target in part.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
