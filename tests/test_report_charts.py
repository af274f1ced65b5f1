"""Charts: valid specifications, correct content, and colours that everyone can distinguish."""

import itertools
import json
import math
import re
from xml.etree import ElementTree

import altair as alt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report_runs import HOSTILE, cpu_run, gpu_run, hostile_run, large_run
from rnnbench.report.charts import gallery, theme
from rnnbench.report.charts.gallery import draw_charts
from rnnbench.report.charts.gap import gap
from rnnbench.report.charts.labels import Box, box_of, place_labels
from rnnbench.report.charts.marks import log_domain, log_ticks
from rnnbench.report.charts.theme import as_file, as_png, draw
from rnnbench.report.document import Document


@pytest.fixture(scope="module")
def document():
    return Document(["cpu"], [cpu_run()])


@pytest.fixture(scope="module")
def specifications(document):
    """kind -> the specification for ptb-lm in training, which has charts of all kinds."""
    looks = theme.looks(row.framework for row in document.analysis.rows[0])
    panel = next(one for one in document.panels if one.group.phase == "train")
    return dict(gallery._specifications(document, panel, looks))


def values(spec):
    return spec["datasets"]["rows"]


def texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


# --- specifications -------------------------------------------------------------------------------------


def test_all_kinds_are_there_and_valid(specifications):
    assert list(specifications) == ["gap", "bars", "compiling", "samples", "history"]
    for spec in specifications.values():
        alt.LayerChart.from_dict({key: value for key, value in spec.items() if key != "$schema"}, validate=True)
        alt.LayerChart.from_dict({**spec, "config": theme.CONFIG}, validate=True)


def test_the_schema_check_rejects_an_invalid_specification(specifications):
    with pytest.raises(Exception, match="rows"):
        alt.LayerChart.from_dict({**specifications["bars"], "width": "rows"}, validate=True)


def test_bars_show_every_time_with_interval_and_ratio_and_a_wrong_row_last_without_one(specifications):
    data = values(specifications["bars"])
    walls = [one["wall"] for one in data if not one["wrong"]]
    assert walls == sorted(walls)
    assert all(one["low"] <= one["wall"] <= one["high"] for one in data)
    assert data[0]["label"].endswith("· 1.00×")
    assert data[-1]["wrong"]
    assert data[-1]["label"] == "30.0 ms± · wrong"  # one launch: uncertain
    noisy = next(one for one in data if one["name"] == "pytorch/fine/eager @ pytorch-2.0")
    assert noisy["label"].endswith("4.00× ~")


def test_the_gap_shows_only_verified_rows_on_a_log_axis_with_the_limit(specifications, document):
    spec = specifications["gap"]
    data = values(spec)
    panel = next(one for one in document.panels if one.group.phase == "train")
    assert {one["wall"] for one in data} == {row.wall_s for row in panel.rows if row.status == "verified"}
    assert '"type": "log"' in json.dumps(spec)
    (limit,) = {layer["encoding"]["y"]["datum"] for layer in spec["layer"] if "datum" in layer["encoding"].get("y", {})}
    assert limit == panel.analysis.least.seconds
    columns = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert columns == ["fine", "packed", "cell", "stack"]


def test_the_gap_has_no_limit_where_none_was_measured():
    document = Document(["gpu"], [gpu_run()])
    (chart, *_) = draw_charts(document, 1, lambda text: None)
    assert chart.kind == "gap"
    assert not any(text.startswith("limit") for text in texts(chart.svg))


def test_a_point_lies_on_the_line_of_its_break_even(specifications, document):
    """A line is at cost / (1 - share) batches. For every row that is the break-even of the analysis."""
    panel = next(one for one in document.panels if one.group.phase == "train")
    (point,) = values(specifications["compiling"])
    (found,) = panel.analysis.break_evens
    eager = next(row for row in panel.rows if row.system == "pytorch/fine/eager" and row.environment == "pytorch-2.0")
    assert point["share"] == pytest.approx(found.against_eager.estimate)
    assert point["cost"] == pytest.approx(found.cost_s / eager.wall_s)
    assert point["cost"] / (1 - point["share"]) == pytest.approx(found.batches.estimate)
    data = specifications["compiling"]["datasets"]
    lines = [one for rows in data.values() for one in rows if "batches" in one]
    assert {one["batches"] for one in lines} >= {1.0, 10.0, 100.0}
    for one in lines:
        assert one["cost"] / (1 - one["share"]) == pytest.approx(one["batches"])


def test_history_goes_from_old_to_new_and_has_only_systems_with_several_versions(specifications):
    spec = specifications["history"]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == ["pytorch-1.0", "pytorch-2.0"]
    assert {one["system"] for one in values(spec)} == {"pytorch/fine/eager", "pytorch/stack/eager"}
    assert [one["label"] for one in values(spec) if one["version"] == "pytorch-1.0"] == ["", ""]


def test_the_samples_of_the_best_row_are_in_the_order_they_were_taken(specifications, document):
    panel = next(one for one in document.panels if one.group.phase == "train")
    best = panel.verified[0]
    launches = document.launches(panel.group, best)
    shown = values(specifications["samples"])
    assert [one["time"] for one in shown] == [s.seconds / s.batches for launch in launches for s in launch.samples]
    assert shown[-1]["clock"] == pytest.approx(best.elapsed_s)
    assert {one["wall"] for one in shown} == {best.wall_s}


def test_a_group_has_only_charts_with_something_to_show(document):
    charts = draw_charts(document, len(document.panels), lambda text: None)
    kinds = {}
    for chart in charts:
        group = document.panels[chart.panel].group
        kinds.setdefault((group.workload, group.phase, group.precision), []).append(chart.kind)
    assert kinds["ce-short", "train", "fp32"] == ["gap", "bars", "samples"]
    assert kinds["ce-short", "train", "bf16"] == ["bars", "samples"]


# --- drawings -------------------------------------------------------------------------------------------


def test_a_drawing_names_systems_and_times(specifications):
    said = texts(draw(specifications["bars"]))
    assert "pytorch/stack/eager @ pytorch-2.0" in said
    assert any(text.startswith("103 ms · 1.00×") for text in said)
    assert {"jax", "pytorch"} <= set(said)  # the legend


def test_drawings_can_share_a_page(specifications):
    """Two of them must not share an id."""
    for spec in specifications.values():
        assert not re.search(r'\bid="', draw(spec))


def test_every_colour_of_a_drawing_has_a_dark_one(specifications):
    known = {tone.light for tone in theme.TONES} | {"none", "transparent"}
    for spec in specifications.values():
        used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', draw(spec)))
        assert used <= known


def test_a_file_follows_the_readers_choice_of_light_or_dark(specifications):
    file = as_file(draw(specifications["gap"]), "Some <words> & more.").decode()
    title, style, *_ = ElementTree.fromstring(file)
    assert title.text == "Some <words> & more."
    assert "prefers-color-scheme:dark" in style.text
    assert f'[fill="{theme.INK.light}"]{{fill:{theme.INK.dark}}}' in style.text


def test_a_png_is_an_image(specifications):
    assert as_png(draw(specifications["gap"]))[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def hostile_charts():
    return draw_charts(Document([f"../../{HOSTILE}", "other"], [hostile_run(), gpu_run()]), 1, lambda text: None)


def test_markup_in_names_is_escaped(hostile_charts):
    assert {chart.kind for chart in hostile_charts} == {"gap", "bars", "compiling", "samples", "history"}
    for chart in hostile_charts:
        root = ElementTree.fromstring(chart.svg)
        tags = {node.tag.rpartition("}")[2] for node in root.iter()}
        assert tags <= {"svg", "g", "path", "rect", "line", "text", "tspan"}
        attributes = {name.lower() for node in root.iter() for name in node.attrib}
        assert not any(name.startswith("on") or name.endswith("href") for name in attributes)
        assert any("<script>" in text for text in texts(chart.svg))


def test_file_names_have_only_safe_characters(hostile_charts):
    for chart in hostile_charts:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", chart.name)
        assert len(chart.name) < 200


# --- colours --------------------------------------------------------------------------------------------


def linear(code):
    parts = np.array([int(code[index : index + 2], 16) / 255 for index in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(first, second):
    """As defined by WCAG."""
    light, dark = sorted((float(linear(one) @ [0.2126, 0.7152, 0.0722]) for one in (first, second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    x, y, z = np.cbrt(np.clip(xyz / np.array([0.9505, 1.0, 1.089]), 1e-4, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


#: What eyes without one kind of cone see: Machado, Oliveira and Fernandes 2009, in linear light.
BLINDNESS = {
    "none": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("kind", BLINDNESS)
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_colours_of_frameworks_can_be_distinguished_by_everyone(kind, ground):
    """A difference of 2.3 is just visible side by side; these must be distinguished across a chart."""
    seen = {
        name: lab(np.clip(np.array(BLINDNESS[kind]) @ linear(getattr(tone, ground)), 0, 1))
        for name, tone in theme._FRAMEWORKS.items()
    }
    for (one, first), (other, second) in itertools.combinations(seen.items(), 2):
        assert np.linalg.norm(first - second) > 10, (one, other)


def test_red_and_green_would_fail_that_test():
    red, green = (lab(np.clip(np.array(BLINDNESS["deutan"]) @ linear(one), 0, 1)) for one in ("#b05030", "#708030"))
    assert np.linalg.norm(red - green) < 10


@pytest.mark.parametrize("tone", [theme.INK, theme.MUTED, theme.LIMIT])
def test_text_is_readable_on_both_backgrounds(tone):
    assert contrast(tone.light, theme.GROUND.light) >= 4.5
    assert contrast(tone.dark, theme.GROUND.dark) >= 4.5


def test_all_colours_differ():
    """The dark variant replaces colour codes, so no code may have two roles."""
    assert len({tone.light for tone in theme.TONES}) == len(theme.TONES)


def test_known_frameworks_look_the_same_in_every_report_and_others_differ():
    few, many = theme.looks(["pytorch"]), theme.looks(["pytorch", "jax", "abc", "xyz", "keras"])
    assert few["pytorch"].tone == many["pytorch"].tone
    assert len({look.tone for look in many.values()}) == 5
    assert len({look.shape for look in many.values()}) == 5
    assert len(theme.looks(f"new{number}" for number in range(30))) == 30


# --- labels and axes ------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0, 300)), max_size=70), st.integers(0, 30))
def test_no_label_covers_another_one_or_a_point_and_all_are_in_the_chart(points, letters):
    texts = ["x" * (1 + letters)] * len(points)
    sides = place_labels(points, texts, range(len(points)), width=400, height=300)
    boxes = [box_of(side, *point, text) for side, point, text in zip(sides, points, texts, strict=True) if side]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(box.left >= 0 and box.right <= 400 for box in boxes)
    dots = [Box(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    assert not any(box.overlaps(dot) for box in boxes for dot in dots)


def test_labels_are_given_in_order_of_importance_and_where_there_is_room():
    points = [(100.0, 100.0), (100.0, 100.0), (100.0, 100.0)]
    assert place_labels(points, ["one"] * 3, [2, 0, 1], width=400, height=300) == ["left", "above", "right"]
    assert place_labels([(395.0, 100.0)], ["a long label"], [0], width=400, height=300) == ["left"]
    assert place_labels([(50.0, 100.0)], ["a label as long as the chart is wide"], [0], width=100, height=300) == [""]
    assert place_labels([(50.0, 100.0)], ["taken"], [0], width=400, height=300, taken=[Box(0, 0, 400, 300)]) == [""]


@pytest.mark.parametrize("width", [theme.WIDE, theme.NARROW])
def test_where_there_are_many_rows_the_front_and_the_loops_are_named_and_the_others_on_demand(width):
    document = Document(["large"], [large_run()])
    looks = theme.looks(row.framework for row in document.analysis.rows[0])
    data = values(gap(document.panels[0], looks, "", None, width))
    assert len(data) == 70
    named = [one for one in data if one["side"]]
    assert 2 <= len(named) < 70
    assert all(one["about"].startswith(f"{one['framework']}/") for one in data)
    if width == theme.WIDE:
        best = min(data, key=lambda one: one["wall"])
        assert best["side"]
        slowest = max(data, key=lambda one: one["wall"])
        assert (slowest["label"], slowest["side"]) == ("tensorflow eager · 2.15 s", "right")


def test_a_chart_has_the_width_that_is_asked_for_and_one_font_size(document):
    charts = draw_charts(document, 1, lambda text: None)
    assert {chart.kind for chart in charts if chart.narrow} == {"gap", "compiling", "history"}
    for chart in charts:
        for svg, width in ((chart.svg, theme.WIDE), (chart.narrow, theme.NARROW)):
            if svg:
                assert ElementTree.fromstring(svg).attrib["width"] == str(width)
                assert set(re.findall(r'font-size="([^"]+)"', svg)) == {f"{theme.FONT_SIZE}px"}


def test_for_a_page_alone_no_files_are_drawn(document):
    charts = draw_charts(document, 1, lambda text: None, for_files=False)
    assert [chart.kind for chart in charts] == ["gap", "compiling", "history"]
    assert not any(chart.narrow for chart in draw_charts(document, 1, lambda text: None, for_page=False))


@given(st.floats(1e-6, 1e4), st.floats(1, 1e6))
def test_a_log_axis_has_ticks_inside_it(low, factor):
    bottom, top = log_domain([low, low * factor])
    ticks = log_ticks(bottom, top)
    assert bottom < low
    assert top > low * factor * 0.999
    assert len(ticks) >= 2
    assert all(bottom <= tick <= top for tick in ticks)
    assert all(math.isfinite(tick) for tick in ticks)
