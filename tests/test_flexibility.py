"""Speed over flexibility: the front, what the most flexible row costs, prices of abilities, the picture."""

import json
from xml.etree import ElementTree

import altair as alt
import msgspec
import pytest

from made_up import make_contents
from report_runs import case, complete, store, timed
from rnnbench.analysis.flexibility import find_flexibility
from rnnbench.domain.ability import ABILITIES, Entry
from rnnbench.known import write_entries
from rnnbench.report.charts import gallery, theme
from rnnbench.report.charts.flexibility import flexibility
from rnnbench.report.charts.gallery import draw_charts
from rnnbench.report.charts.theme import draw
from rnnbench.report.document import Document, analyse
from rnnbench.report.explanation import show_advice
from rnnbench.report.html import as_html
from rnnbench.report.markdown import as_markdown
from rnnbench.store import ABILITIES_FILE, read_folder

#: system -> seconds, number of abilities. Three are on the front; two have not been tried.
SYSTEMS = {
    "keras-jax/layer/jit": (0.100, 3),
    "jax/packed/jit-scan": (0.101, 9),
    "pytorch/stack/eager": (0.200, 2),
    "pytorch/packed/eager": (0.150, 10),
    "pytorch/fine/eager": (0.300, 10),
    "tensorflow/packed/graph": (0.120, 8),
    "equinox/cell/jit-scan": (0.090, None),
    "flax/cell/jit-scan": (0.095, None),
}


def entries_for(system, count, version="2.0"):
    return [
        Entry(
            system=system, device="cpu", environment="any", version=version, ability=ability,
            verdict="yes" if number < count else "no", reason="" if number < count else "it is <b>rigid</b>",
        )
        for number, ability in enumerate(ABILITIES)
    ]  # fmt: skip


def made_up_run(systems=SYSTEMS, workload="ce-short", more=()):
    walls = {case(name, workload=workload): wall for name, (wall, _) in systems.items()}
    walls |= dict(more)
    records = [record for one, wall in walls.items() for record in timed(one, wall)]
    entries = [entry for name, (_, count) in systems.items() if count is not None for entry in entries_for(name, count)]
    return msgspec.structs.replace(complete(make_contents(list(walls), *records)), abilities=tuple(entries))


@pytest.fixture(scope="module")
def document():
    return Document(["made up"], [made_up_run()])


def flexibility_of(document):
    return document.analysis.groups[0].flexibility


def test_the_front_has_the_rows_that_no_other_beats(document):
    found = flexibility_of(document)
    assert [one.row.system for one in found.front] == [
        "keras-jax/layer/jit", "jax/packed/jit-scan", "pytorch/packed/eager"
    ]  # fmt: skip
    for one in found.rows:
        beaten = any(other.count >= one.count and other.wall_s < one.wall_s for other in found.rows)
        assert one.on_front != beaten


def test_a_row_that_was_not_tried_is_no_row_without_abilities(document):
    found = flexibility_of(document)
    assert found.untried == 2
    assert {one.row.system for one in found.rows}.isdisjoint({"equinox/cell/jit-scan", "flax/cell/jit-scan"})
    # One ability that was not tried is enough: its number would be too small.
    contents = made_up_run()
    less = msgspec.structs.replace(contents, abilities=contents.abilities[1:])
    assert flexibility_of(Document(["less"], [less])).untried == 3


def test_entries_of_another_version_say_nothing():
    contents = made_up_run()
    others = tuple(msgspec.structs.replace(one, version="1.0") for one in contents.abilities)
    document = Document(["other"], [msgspec.structs.replace(contents, abilities=others)])
    assert flexibility_of(document) is None
    assert "flexibility" not in {chart.kind for chart in draw_charts(document, 1, lambda text: None)}


def test_the_answer_says_what_the_most_flexible_row_costs(document):
    analysis = analyse([made_up_run()])
    said = show_advice(analysis, analysis.groups, 200)
    assert "For all 10 abilities use pytorch/packed/eager: 1.67× the fastest, which was not tried." in said


@pytest.mark.parametrize(
    ("systems", "said"),
    [
        (
            {"jax/packed/jit-scan": (0.1, 10), "pytorch/stack/eager": (0.2, 2)},
            "The fastest, jax/packed/jit-scan, also has the most abilities: all 10 abilities.",
        ),
        (
            {"jax/packed/jit-scan": (0.1, 2), "pytorch/fine/eager": (0.2, 9)},
            "For 9 of 10 abilities use pytorch/fine/eager: 2.00× the fastest, which has 2. It lacks other-steps.",
        ),
        (
            {"jax/packed/jit-scan": (0.1, 2), "pytorch/fine/eager": (0.1001, 10)},
            "For all 10 abilities use pytorch/fine/eager: no difference seen from the fastest, which has 2.",
        ),
    ],
)
def test_other_answers(systems, said):
    analysis = analyse([made_up_run(systems)])
    assert any(said in advice.text for advice in analysis.groups[0].advice)


def test_prices_are_of_rows_that_were_timed_with_both_cells():
    name, cell = "pytorch/packed/eager", "ce-short[cell=peephole]"
    more = {
        case(name, workload=cell): 0.30,
        case(name, workload="ce-short[cell=layernorm-lstm]"): 0.45,
        case(name, workload="ce-short[cell=gru]"): 0.10,  # a gru shows no ability
        case("jax/packed/jit-scan", workload="ptb-lm[cell=peephole]"): 1.0,  # no plain one of this size
    }
    prices = analyse([made_up_run(more=more)]).prices
    assert [(one.row.system, one.ability, one.cell, round(one.times.estimate, 3)) for one in prices] == [
        (name, "own-cell", "peephole", 2.0),
        (name, "normalisation", "layernorm-lstm", 3.0),
    ]
    assert {one.group.workload for one in prices} == {"ce-short"}
    assert analyse([made_up_run()]).prices == ()  # nothing timed, no price


def test_no_picture_of_a_single_point():
    rows = Document(["one"], [made_up_run({"pytorch/fine/eager": (0.2, 9)})])
    assert flexibility_of(rows) is None
    assert find_flexibility([], {}, made_up_run().run) is None


# --- the picture ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def specification(document):
    looks = theme.looks(row.framework for row in document.analysis.rows[0])
    kind, spec = next(iter(gallery._specifications(document, document.panels[0], looks)))
    assert kind == "flexibility"  # the first of all
    return spec


def test_the_picture_is_valid_and_has_a_point_for_each_system(specification):
    alt.LayerChart.from_dict({key: value for key, value in specification.items() if key != "$schema"}, validate=True)
    data = specification["datasets"]["rows"]
    assert len(data) == 6
    assert {round(one["place"]) for one in data} == {2, 3, 8, 9, 10}
    assert all(one["about"].split(": ")[0] in SYSTEMS for one in data)  # the page finds the row by it
    assert '"type": "log"' in json.dumps(specification)


def test_a_few_points_all_have_labels():
    document = Document(["few"], [made_up_run({f"pytorch/packed/{n}": (n / 10, 5 - n) for n in range(1, 5)})])
    data = flexibility(document.panels[0], flexibility_of(document), theme.looks(["pytorch"]), "")["datasets"]["rows"]
    assert sum(one["front"] for one in data) == 1
    assert all(one["side"] for one in data)


def test_only_the_front_has_labels_of_many(specification):
    svg = draw(specification)
    said = ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]
    labels = {text for text in said if " · " in text and "/" in text}
    assert labels == {
        "keras-jax/layer/jit · 103 ms", "jax/packed/jit-scan · 104 ms", "pytorch/packed/eager · 154 ms"
    }  # fmt: skip


@pytest.mark.parametrize("width", [theme.WIDE, theme.NARROW])
def test_labels_have_room_even_where_ten_rows_have_nearly_the_same_time(width):
    """And one more ability each. That drawn labels do not overlap is tested for all charts in a browser."""
    systems = {f"pytorch/packed/execution-{count}": (0.1 + count / 5000, count) for count in range(11)}
    document = Document(["close"], [made_up_run(systems)])
    found = flexibility_of(document)
    assert len(found.front) == 11
    looks = theme.looks(["pytorch"])
    data = flexibility(document.panels[0], found, looks, "", width)["datasets"]["rows"]
    named = sum(bool(one["side"]) for one in data)
    assert 1 <= named <= 11 if width == theme.WIDE else named <= 11


# --- in a report ----------------------------------------------------------------------------------------


def test_a_run_folder_keeps_its_entries(tmp_path):
    contents = made_up_run()
    folder = store(tmp_path / "run", contents)
    assert read_folder(folder).abilities == ()
    write_entries(folder / ABILITIES_FILE, contents.abilities)
    assert read_folder(folder).abilities == contents.abilities
    (folder / ABILITIES_FILE).write_text("[{")
    damaged = read_folder(folder)
    assert damaged.abilities == ()
    assert any("abilities.json" in line for line in damaged.damaged)


def test_the_report_has_the_matrix_and_escapes_its_reasons(document):
    page = as_html(document, draw_charts(document, 1, lambda text: None)).decode()
    assert "What each system can do" in page
    assert "it is &lt;b&gt;rigid&lt;/b&gt;" in page
    assert "<b>rigid" not in page
    markdown = as_markdown(document, []).decode()
    assert "# Abilities" in markdown
    (line,) = [line for line in markdown.splitlines() if line.startswith("| `pytorch/packed/eager`") and "yes" in line]
    assert line.count("yes") == 10
