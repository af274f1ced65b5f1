"""The story of Lazarus (2019): run by the real frameworks, checked against the reference, and shown in a browser."""

import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from rnnbench.graph import story
from rnnbench.graph.story import SYSTEMS, as_page, collect, disagreement
from rnnbench.launch.listener import Listener
from rnnbench.method import make_method
from rnnbench.plan import Selection, make_plan

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parent.parent / "docs"
EAGER, TAPE, FUNCTION, SCRIPT, TRACE, JIT = range(6)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Every framework's part, computed for this test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        selection = Selection(systems=SYSTEMS, workloads=(story.WORKLOAD,), phases=("train",), device="cpu")
        found, missing = collect(make_plan(selection), make_method(threads=1), Listener())
    assert missing == []
    return found


@pytest.fixture(scope="module")
def pages(parts, tmp_path_factory):
    """Replaces the report's pages: what `open_page` opens."""
    path = tmp_path_factory.mktemp("story") / "story.html"
    path.write_bytes(as_page(parts, []))
    return {"two": path}


def kinds(part, places):
    return [part.graph.operators[place] for place in places]


# --- the parts --------------------------------------------------------------------------------------------


def test_all_six_systems_are_there_in_order(parts):
    assert [part.system for part in parts] == list(SYSTEMS)
    assert [part.is_built_before for part in parts] == [False, False, True, True, True, True]
    for part in parts:
        assert [line.partition(" = ")[0] for line in part.code[:5]] == ["h2h", "i2h", "next_h", "next_h", "loss"]
        assert len(part.born) == len(part.of) == len(part.graph.operators)


def test_eagerly_pytorch_builds_the_graph_of_the_slides(parts):
    eager = parts[EAGER]
    assert [eager.nodes_after(statement) for statement in range(6)] == [0, 2, 4, 5, 6, 7]
    made = sorted(zip(eager.born, eager.graph.operators, eager.graph.names, strict=True))
    assert made == [
        (1, "AccumulateGrad", "W_h"), (1, "MmBackward0", ""), (2, "AccumulateGrad", "W_x"), (2, "MmBackward0", ""),
        (3, "AddBackward0", ""), (4, "TanhBackward0", ""), (5, "SumBackward0", ""),
    ]  # fmt: skip
    back = kinds(eager, eager.backward)
    assert back[:3] == ["SumBackward0", "TanhBackward0", "AddBackward0"]
    assert sorted(eager.backward) == list(range(7))
    assert "a second backward fails" in eager.notes["6"]


def test_tensorflows_tape_is_read_from_its_end(parts):
    tape = parts[TAPE]
    assert tape.nodes_after(0) == 4  # two variables, the input and the previous state
    assert kinds(tape, tape.backward) == ["Sum", "Tanh", "AddV2", "MatMul", "MatMul"]
    assert len(set(tape.backward)) == 5
    assert re.search(r"ran \d+ more operators: .*TanhGrad", tape.notes["6"])


def test_a_tf_function_has_forward_and_backward_pass_before_it_runs(parts):
    function = parts[FUNCTION]
    assert function.nodes_after(0) == len(function.graph.operators)
    assert "Tanh" in kinds(function, [place for place, of in enumerate(function.of) if of == 4])
    assert kinds(function, function.backward) == ["Reshape", "Tile", "TanhGrad", "MatMul", "MatMul"]
    assert function.values[1].startswith("Tensor(")  # a symbol, not a number


def test_scripted_and_traced_each_node_knows_its_statement(parts):
    for part in (parts[SCRIPT], parts[TRACE]):
        of = {operator: part.of[place] for place, operator in enumerate(part.graph.operators)}
        assert (of["aten::add"], of["aten::tanh"], of["aten::sum"]) == (3, 4, 5)
        back = kinds(part, part.backward)
        assert back[:3] == ["aten::sum", "aten::tanh", "aten::add"]
        assert back.count("aten::mm") == 2
        assert "DifferentiableGraphBackward" in part.notes["6"]


def test_a_jaxpr_has_forward_and_backward_pass_before_it_runs(parts):
    jit = parts[JIT]
    assert {1, 2, 3, 4, 5, 6} <= set(jit.of)
    assert len(jit.backward) >= 3
    assert "tanh" in kinds(jit, [place for place, of in enumerate(jit.of) if of == 4])


def test_wrong_numbers_are_not_shown(parts):
    part = parts[EAGER]
    assert disagreement(part) == ""
    assert "loss" in disagreement(msgspec.structs.replace(part, loss=part.loss * 1.01))
    assert "W_x" in disagreement(msgspec.structs.replace(part, gradients={**part.gradients, "W_x": [[0.0]]}))
    assert "W_h" in disagreement(msgspec.structs.replace(part, gradients={}))


def test_tracing_bakes_in_what_scripting_keeps(parts):
    length, branch = parts[TRACE].programs
    assert "traced with 3 steps: 3 aten::tanh, 0 prim::Loop" in length.said
    assert "scripted: 1 aten::tanh, 1 prim::Loop" in length.said
    assert [line for line in length.said if "given 5 steps" in line] == [
        "  given 5 steps: wrong, and says nothing",
        "  given 5 steps: right",
    ]
    assert length.said[-1].endswith("True")
    assert [line for line in branch.said if "[3.0, 4.0]:" in line] == [
        "  given [3.0, 4.0]: [3.0, 4.0], wrong, and says nothing",
        "  given [3.0, 4.0]: [0.6, 0.8], right",
    ]


@pytest.mark.torch
@pytest.mark.parametrize("program", ["loop_length", "branch"])
def test_the_programs_run_alone_and_the_documentation_shows_their_output(pytorch, program):
    path = DOCS / "graphs" / f"{program}.py"
    answer = subprocess.run([pytorch.python, str(path)], capture_output=True, text=True, check=True)
    assert f"```\n{answer.stdout}```" in (DOCS / "graphs.md").read_text(encoding="utf-8")


# --- the page -----------------------------------------------------------------------------------------------


def shown(page, number):
    """The number of visible nodes of a part, and the titles of the marked ones."""
    nodes = page.locator(f"#part{number} .node:not(.absent)")
    marked = page.locator(f"#part{number} .node.current title").all_text_contents()
    return nodes.count(), marked


def test_next_steps_through_the_statements_and_then_through_the_backward_pass(open_page, parts):
    page = open_page()
    total = len(parts[FUNCTION].graph.operators)
    assert page.locator("#where").inner_text() == "Statement 1 of 6"  # it opens on its first step
    assert shown(page, EAGER)[0] == 2
    page.get_by_role("button", name="First").click()
    assert shown(page, EAGER) == (0, [])
    assert shown(page, FUNCTION) == (total, [])
    assert page.locator("#where").inner_text() == "Before the first statement"
    counts = []
    for statement in range(1, 6):
        page.get_by_role("button", name="Next").click()
        count, marked = shown(page, EAGER)
        counts.append(count)
        assert marked
        assert shown(page, FUNCTION)[0] == total
        assert page.locator("#where").inner_text() == f"Statement {statement} of 6"
        assert page.locator(f"#part{EAGER} li.current").inner_text() == parts[EAGER].code[statement - 1]
    assert counts == [2, 4, 5, 6, 7]
    page.get_by_role("button", name="Next").click()
    assert shown(page, EAGER)[1] == ["SumBackward0"]
    assert page.locator(f"#part{EAGER} li.current").inner_text() == "loss.backward()"
    page.get_by_role("button", name="Next").click()
    assert shown(page, EAGER)[1] == ["TanhBackward0"]
    assert page.locator(f"#part{EAGER} .node.walked").count() == 1
    page.get_by_role("button", name="Last").click()
    assert page.get_by_role("button", name="Next").is_disabled()
    assert page.locator(f"#part{EAGER} .node.walked, #part{EAGER} .node.current").count() == 7
    assert "W_h.grad [20, 20]" in page.locator(f"#part{EAGER} .seen").inner_text()
    page.get_by_role("button", name="First").click()
    assert shown(page, EAGER) == (0, [])


def test_keys_and_the_slider_move_too_and_the_address_remembers(open_page):
    page = open_page()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
    assert page.locator("#where").inner_text() == "Statement 2 of 6"
    assert page.url.endswith("#at=2")
    page.keyboard.press("End")
    assert page.get_by_role("button", name="Next").is_disabled()
    page.keyboard.press("Home")
    assert page.get_by_role("button", name="Back").is_disabled()
    page.get_by_label("Position").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#where").inner_text() == "Statement 1 of 6"
    again = open_page(fragment="#at=4")
    assert again.locator("#where").inner_text() == "Statement 4 of 6"


def test_each_side_offers_its_systems(open_page, parts):
    page = open_page()
    grown, standing = page.get_by_label("System").all()
    assert grown.locator("option").all_inner_texts() == [parts[EAGER].title, parts[TAPE].title]
    assert standing.locator("option").count() == 4
    standing.select_option(label="JAX, jit")
    assert page.locator(f"#part{JIT}").is_visible()
    assert not page.locator(f"#part{FUNCTION}").is_visible()
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Next").click()
    assert shown(page, JIT)[1]


def test_it_can_be_used_by_all(open_page):
    page = open_page()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, input, figure, [role=img], section, pre, [role=region]')]
        .filter(node => !(node.labels && node.labels.length) && !node.textContent.trim()
        && !node.getAttribute('aria-label') && !node.getAttribute('aria-labelledby')).map(node => node.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1
    assert page.locator("[aria-live=polite]").count() >= 3
    doubled = page.evaluate(
        "[...document.querySelectorAll('[id]')].map(node => node.id).filter((id, k, all) => all.indexOf(id) !== k)"
    )
    assert doubled == []


def test_a_narrow_window_shows_one_side_below_the_other_and_does_not_scroll_sideways(open_page):
    page = open_page(viewport={"width": 360, "height": 700})
    left, right = (page.locator(f"#{side}").bounding_box() for side in ("grown", "standing"))
    assert right["y"] >= left["y"] + left["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Next").click()
    assert page.locator("#where").inner_text() == "Statement 2 of 6"


def test_what_was_found_by_running_programs_is_on_the_page(open_page):
    page = open_page()
    assert "wrong, and says nothing" in page.locator(".said").first.inner_text()
    assert page.locator(".missing").count() == 0


def test_hostile_names_stay_text(open_page, parts, pages, tmp_path):
    hostile = "</script><script>console.log('taken')</script>"
    graph = msgspec.structs.replace(parts[EAGER].graph, names=[hostile] * 7)
    part = msgspec.structs.replace(parts[EAGER], title=hostile, code=[hostile] * 6, graph=graph, values=[hostile] * 7)
    pages["hostile"] = tmp_path / "hostile.html"
    pages["hostile"].write_bytes(as_page([part, parts[FUNCTION]], [hostile]))
    page = open_page("hostile")
    page.get_by_role("button", name="Last").click()
    assert hostile in page.locator(".missing").inner_text()
    assert page.locator("script").count() == 2
