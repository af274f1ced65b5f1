"""Drawing and writing graphs: layers, spacing, escaping, and graphs that are too large to draw."""

import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import make_case
from rnnbench.errors import UserError
from rnnbench.graph.capture import CapturedGraphs, Graph, InnerGraph
from rnnbench.graph.drawing import MOST_NODES, NODE_GAP, as_svg, lay_out
from rnnbench.graph.write import as_dot, as_json, as_table, as_text
from rnnbench_worker.shared.xla import hlo_graph

SVG = "{http://www.w3.org/2000/svg}"


def make_graph(operators, edges=(), **fields):
    names = fields.pop("names", [""] * len(operators))
    given = {"form": "a form", "built": "at the first call", **fields}
    return Graph(operators=list(operators), names=names, edges=list(edges), **given)


STEP = make_graph(
    ["input", "aten::mm", "prim::Loop", "aten::sum"],
    [(0, 1), (1, 2), (2, 3), (0, 3)],
    names=["x", "h2h", "", "loss"],
    bodies=[InnerGraph(of=2, role="body", graph=make_graph(["aten::tanh", "aten::tanh"], [(0, 1)]))],
)


@st.composite
def drawn(draw):
    count = draw(st.integers(1, 25))
    widths = draw(st.lists(st.floats(5, 200), min_size=count, max_size=count))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = {(min(pair), max(pair)) for pair in draw(st.lists(pairs, max_size=60)) if pair[0] != pair[1]}
    return widths, sorted(edges)


@settings(deadline=None)
@given(drawn())
def test_edges_go_down_and_no_node_covers_another(case):
    widths, edges = case
    layout = lay_out(widths, edges)
    rows = {}
    for place, (x, y) in enumerate(layout.centres):
        rows.setdefault(y, []).append((x - widths[place] / 2, x + widths[place] / 2))
        assert x - widths[place] / 2 >= -1e-6
        assert x + widths[place] / 2 <= layout.width + 1e-6
    for row in rows.values():
        for before, after in pairwise(sorted(row)):
            assert after[0] - before[1] >= NODE_GAP - 1e-6
    for (source, target), path in zip(edges, layout.paths, strict=True):
        assert path[0] == layout.centres[source]
        assert path[-1] == layout.centres[target]
        assert all(upper[1] < lower[1] for upper, lower in pairwise(path))


def test_nothing_is_drawn_as_nothing():
    assert lay_out([], []).height == 0


def test_a_drawing_has_every_node_and_edge_of_the_graph_and_of_what_is_inside():
    root = ElementTree.fromstring(as_svg([STEP]))
    titles = [node.findtext(f"{SVG}title") for node in root.iter(f"{SVG}g") if "node" in node.get("class", "")]
    assert titles == ["input x", "aten::mm h2h", "prim::Loop", "aten::sum loss", "aten::tanh", "aten::tanh"]
    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "edge"]) == 5
    assert "body of prim::Loop" in "".join(root.itertext())


def test_what_a_framework_calls_things_is_escaped():
    graph = make_graph(["<script>alert(1)</script>", 'a"b\\'], names=["&", "\n"])
    assert "<script>" not in as_svg([graph])
    ElementTree.fromstring(as_svg([graph]))
    assert '[label="a\\"b\\\\\\n\\n"]' in as_dot([graph])


def test_too_large_a_graph_is_refused_with_the_alternatives():
    with pytest.raises(UserError) as caught:
        as_svg([make_graph(["x"] * (MOST_NODES + 1))])
    assert "801 nodes are too many" in caught.value.what
    assert all(word in caught.value.hint for word in ("--full", "text", "json", "dot"))


def test_counts_hold_what_is_inside():
    assert STEP.nodes == 6
    assert STEP.links == 5
    assert STEP.kinds()["aten::tanh"] == 2


def test_text_table_json_and_dot_say_the_same():
    taken = CapturedGraphs(case=make_case(), graphs=[STEP])
    failed = CapturedGraphs(case=make_case("jit"), outcome="unsupported", reason="needs a GPU")
    text = as_text([taken, failed])
    assert "6 nodes, 5 edges, built at the first call" in text
    assert "       2  aten::tanh" in text
    assert "      3  aten::sum loss ← 2, 0" in text
    assert "unsupported: needs a GPU" in text
    row = next(line for line in as_table([taken, failed]).splitlines() if "a form" in line)
    cells = [cell.strip() for cell in row.split("  ") if cell.strip()]
    expected = ["toy/fine/eager", "a form", "at the first call", "6", "5", "5"]
    assert cells == [*expected, "aten::tanh 2, input 1, aten::mm 1"]
    assert "needs a GPU" in as_table([taken, failed])
    assert '"nodes": 6' in as_json([taken, failed])
    assert as_dot([STEP]).count("->") == 5


def test_a_graph_that_its_framework_prints_is_shown_in_its_words():
    assert "%3 = aten::mm" in as_text(
        [CapturedGraphs(case=make_case(), graphs=[make_graph(["a"], text="%3 = aten::mm(x)")])]
    )


HLO = """HloModule jit_step, entry_computation_layout={(f32[4]{0})->f32[]}

region_0.1 {
  a.1 = f32[] parameter(0)
  b.1 = f32[] parameter(1)
  ROOT add.1 = f32[] add(a.1, b.1)
}

%body (arg: (s32[], f32[4])) -> (s32[], f32[4]) {
  %arg = (s32[], f32[4]{0}) parameter(0)
  ROOT %t.1 = (s32[], f32[4]{0}) tuple(%arg), metadata={op_name="jit(f)/x(y)"}
}

ENTRY main.2 {
  x.1 = f32[4]{0} parameter(0)
  zero.1 = f32[] constant(0)
  while.1 = (s32[], f32[4]{0}) while(x.1), condition=nowhere, body=body
  two.1 = f32[4]{0} multiply(x.1, f32[4]{0} x.1)
  ROOT sum.1 = f32[] reduce(two.1, zero.1), dimensions={0}, to_apply=region_0.1
}
"""


def test_hlo_is_read_with_what_its_instructions_call():
    graph = hlo_graph(HLO, "once").fields
    assert graph["operators"] == ["parameter", "constant", "while", "multiply", "reduce"]
    assert graph["edges"] == [[0, 2], [0, 3], [0, 3], [3, 4], [1, 4]]
    assert [(body["of"], body["role"], body["graph"]["operators"]) for body in graph["bodies"]] == [
        (2, "body", ["parameter", "tuple"]),
        (4, "to_apply", ["parameter", "parameter", "add"]),
    ]
