"""Graphs as text, DOT, JSON and tables."""

from collections.abc import Sequence

import msgspec

from rnnbench.domain.profile import Change
from rnnbench.graph.taking import Graph, TakenGraphs
from rnnbench.text import Column, render_table

CHANGES: dict[Change, str] = {"batch": "new batch size", "steps": "new length"}


def as_text(answers: Sequence[TakenGraphs]) -> str:
    """What there is, when it is made, how many nodes of which kind; then the graph itself."""
    return "\n\n".join(_one_as_text(taken) for taken in answers)


def _one_as_text(taken: TakenGraphs) -> str:
    case = taken.case
    lines = [f"{case.system} · {case.workload} · {case.phase} · {case.device} · {case.environment}"]
    if not taken.graphs:
        return "\n".join([*lines, f"{taken.outcome}: {taken.reason}"])
    if taken.retrace:
        lines += [f"{what}: {taken.again(change)}" for change, what in CHANGES.items()]
    else:
        lines.append("new batch size, new length: not tried (--reshape does)")
    for graph in taken.graphs:
        lines += ["", f"{graph.form}: {graph.nodes:,} nodes, {graph.links:,} edges, built {graph.built}"]
        lines += [f"  {graph.note}"] if graph.note else []
        lines += [f"  {count:6,}  {kind}" for kind, count in graph.kinds().most_common()]
        lines += ["", graph.text.rstrip() or _listing(graph)] if graph.operators else []
    return "\n".join(lines)


def _listing(graph: Graph) -> str:
    """For graphs that their framework does not print: a line for each node, with what it reads."""
    lines: list[str] = []
    for title, part in graph.parts():
        reads: list[list[int]] = [[] for _ in part.operators]
        for source, target in part.edges:
            reads[target].append(source)
        lines.append(f"{title}:")
        for place, operator in enumerate(part.operators):
            name = f" {part.names[place]}" if part.names[place] else ""
            sources = f" ← {', '.join(map(str, reads[place]))}" if reads[place] else ""
            lines.append(f"  {place:5}  {operator}{name}{sources}")
    return "\n".join(lines)


def as_table(answers: Sequence[TakenGraphs]) -> str:
    """A row for each graph of each system."""
    asked = list(CHANGES) if any(taken.retrace for taken in answers) else []
    columns = [
        Column("system"), Column("graph"), Column("built"), *(Column(CHANGES[change]) for change in asked),
        Column("nodes", right=True), Column("edges", right=True), Column("kinds", right=True), Column("most frequent"),
    ]  # fmt: skip
    several = len({taken.case.environment for taken in answers}) > len({taken.case.framework for taken in answers})
    rows = [row for taken in answers for row in _rows(taken, asked, several)]
    places = dict.fromkeys(f"{taken.case.workload} · {taken.case.device}" for taken in answers)
    return "\n".join(places) + "\n" + render_table(columns, rows)


def _rows(taken: TakenGraphs, asked: Sequence[Change], several: bool) -> list[list[str]]:
    name = taken.case.system + (" (forward)" if taken.case.phase == "forward" else "")
    name += f" in {taken.case.environment}" if several else ""
    if not taken.graphs:
        return [[name, taken.outcome, "", *("" for _ in asked), "–", "–", "–", taken.reason]]
    rows = []
    for graph in taken.graphs:
        kinds = graph.kinds()
        frequent = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(3)) or graph.note
        counts = [f"{graph.nodes:,}", f"{graph.links:,}", str(len(kinds))]
        # What is made at every call is made for whatever shape comes.
        again = ["" if graph.built == "at every call" else taken.again(change) for change in asked]
        rows.append([name, graph.form, graph.built, *again, *counts, frequent])
    return rows


def as_json(answers: Sequence[TakenGraphs]) -> str:
    """Everything, with the counts ready made."""
    fields = []
    for taken in answers:
        one = msgspec.to_builtins(taken)
        for graph, found in zip(one["graphs"], taken.graphs, strict=True):
            graph |= {"nodes": found.nodes, "links": found.links, "kinds": dict(found.kinds().most_common())}
        fields.append(one)
    return msgspec.json.format(msgspec.json.encode(fields), indent=2).decode()


def as_dot(graphs: Sequence[Graph]) -> str:
    """For Graphviz, or whatever else reads its language."""
    lines = ["digraph {", "  node [shape=box, style=rounded]"]
    for number, (title, part) in enumerate(part for graph in graphs for part in graph.parts()):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(title)}"]
        for place, operator in enumerate(part.operators):
            label = operator if part.names[place] in ("", operator) else f"{operator}\n{part.names[place]}"
            lines.append(f"    n{number}_{place} [label={_quoted(label)}]")
        lines += [f"    n{number}_{source} -> n{number}_{target}" for source, target in part.edges]
        lines.append("  }")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
