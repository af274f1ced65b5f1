"""What the pages open on: the answer, in at most five sentences; and at every width nothing overlaps or is cut off.

The screenshots that the tests look at are kept in the folder that RNNBENCH_SCREENSHOTS names.
"""

import os
import re
from pathlib import Path

import msgspec
import pytest

from conftest import write_page
from made_up import make_contents
from page_checks import chart_fonts, cut_off, overlaps
from report_runs import case, complete, cpu_run, failed_run, gpu_run, large_run, small_run, timed
from rnnbench.analysis.history import make_history
from rnnbench.report.comparison import NamedRun
from rnnbench.report.document import Document
from rnnbench.report.history import write_history
from rnnbench.report.history_page import open_history
from rnnbench.report.html import _legend, as_html
from rnnbench.report.opening import first_group, make_cards, make_matrix
from rnnbench.store import read_folder
from test_flexibility import made_up_run
from test_nodes import spread_contents

RESULTS, ARCHIVE = (Path(__file__).parent.parent / name for name in ("results", "archive"))
WIDTHS = (1400, 400)
REPORTS = ("real", "large", "two", "small", "failed", "nodes", "flexible")


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """Replaces the two reports of other tests: what `open_page` opens."""
    folder = tmp_path_factory.mktemp("pages")
    runs = {
        "real": {"ce-short": read_folder(RESULTS / "cpu-2-cores-ce-short")},
        "large": {"large": large_run()},
        "two": {"cpu": cpu_run(), "gpu": gpu_run()},
        "small": {"small": small_run()},
        "failed": {"failed": failed_run()},
        "nodes": {"nodes": spread_contents(cpu="another")},
        "flexible": {"flexible": made_up_run()},
    }
    found = {name: write_page(folder / f"{name}.html", **contents) for name, contents in runs.items()}
    years = read_folder(ARCHIVE / "eight-years-ce-short")
    lines = make_history(["years"], [years])
    write_history(lines, [NamedRun("years", years.run)], folder / "history", ["html"])
    return {**found, "history": folder / "history" / "history.html"}


# --- the layout -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*REPORTS, "history"])
def test_nothing_covers_anything_and_nothing_is_cut_off(open_page, tmp_path, name, width):
    page = open_page(name, viewport={"width": width, "height": 900})
    picture = Path(os.environ.get("RNNBENCH_SCREENSHOTS", tmp_path)) / f"{name}-{width}.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.read_bytes()[:4] == b"\x89PNG"
    tabs = page.get_by_role("tab").all_inner_texts() or [""]
    fonts = set()
    for tab in tabs:
        if tab:
            page.get_by_role("tab", name=tab).click()
            page.locator("h1").hover()  # away from what shows a hint
        assert overlaps(page) == []
        assert cut_off(page) == []
        fonts |= set(chart_fonts(page))
    assert len(fonts) <= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_checks_find_what_they_look_for(open_page):
    page = open_page("large", viewport={"width": 400, "height": 900})
    page.evaluate("document.querySelector('.winner').style.cssText = 'white-space:nowrap;width:2000px'")
    page.evaluate("document.querySelector('.winner').textContent = 'x'.repeat(200)")
    assert ["x" * 200, "window"] in cut_off(page)
    page.evaluate("document.querySelector('.bars .figure').style.cssText = 'position:relative;left:-80px'")
    assert overlaps(page) != []
    page.evaluate("document.querySelector('.chart:not([hidden]) .slim svg').style.width = '200px'")
    page.evaluate("document.querySelector('.chart:not([hidden]) .slim svg text').style.fontSize = '30px'")
    assert len(chart_fonts(page)) > 1


@pytest.mark.parametrize("width", [400, 700, 1000, 1400, 2000])
def test_the_status_is_in_sight_at_every_width(open_page, width):
    page = open_page("real", viewport={"width": width, "height": 900})
    boxes = page.locator("#table td.status").evaluate_all(
        "cells => cells.map(cell => cell.getBoundingClientRect().right)"
    )
    assert len(boxes) == 34
    assert max(boxes) <= width
    page.get_by_label("All columns").check()
    assert page.locator("#table th:visible").count() == page.locator("#table th").count() == 11
    assert "columns=all" in page.url


def test_columns_come_back_when_the_window_grows(open_page):
    page = open_page("real", viewport={"width": 500, "height": 900})
    few = page.locator("#table th:visible").count()
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function(
        f"[...document.querySelectorAll('#table th')].filter(th => th.checkVisibility()).length > {few}"
    )


# --- the answer -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REPORTS)
def test_it_opens_on_at_most_five_sentences_and_the_rest_is_folded(open_page, name):
    page = open_page(name)
    said = " ".join(page.locator("header p:visible, main p:visible, footer p:visible").all_inner_texts())
    assert len(re.findall(r"[.](?=\s|$)", said)) + 1 <= 5  # the card's verdict has no full stop
    assert page.locator("details[open]:visible").count() == 0
    first_screen = page.locator("[data-kind=flexibility]:visible, .bars:visible").first
    if name != "failed":
        assert first_screen.bounding_box()["y"] < 900


def test_the_card_is_the_answer_of_the_group(open_page):
    page = open_page("real")
    said = page.locator(".card:visible").inner_text()
    assert "ce-short · train · cpu · fp32" in said
    assert "lowest time of 32 verified rows" in said
    assert "no difference seen to jax/packed/jit-scan, flax/cell/jit-scan and jax/fine/jit-scan" in said
    assert "pytorch: your loop costs 1.49×" in said
    bars = page.locator(".bars:visible li").all_inner_texts()
    assert len(bars) == 16
    assert bars[0].split("\n")[0].startswith("keras-jax/layer/jit")
    assert any(bar.startswith("pytorch/fine/eager your own loop") and "1.49×" in bar for bar in bars)
    assert any("torch.nn.LSTM" in bar and "1.97×" in bar for bar in bars)


def test_the_matrix_has_every_group_and_chooses_it(open_page):
    page = open_page("two")
    cells = page.locator("[data-choose]")
    assert cells.count() == 5
    assert page.locator("[data-choose][aria-pressed=true]").get_attribute("data-choose") == "0"
    assert "your loop 4.00×" in cells.first.inner_text()
    gpu = page.locator("[data-choose]", has_text="30.00×")
    gpu.click()
    assert "A GPU 200" in page.locator(".card:visible").inner_text()
    assert gpu.get_attribute("aria-pressed") == "true"
    assert "device=cuda" in page.url
    assert page.locator("#table tbody tr").count() == 2


def test_a_bar_and_a_point_show_and_open_their_row(open_page):
    page = open_page("large")
    page.locator(".bars:visible button").nth(2).hover()
    assert "batches in 2 launches" in page.locator("#hint").inner_text()
    point = page.locator("figure.chart:visible svg:visible [aria-label^='tensorflow/fine/eager: ']")
    point.hover()
    assert page.locator("#hint b").inner_text() == "tensorflow/fine/eager"
    point.click()
    assert page.get_by_role("dialog").locator("h2").inner_text() == "tensorflow/fine/eager"


def test_a_run_without_a_verified_row_has_no_winner(open_page):
    page = open_page("failed")
    said = page.locator(".card:visible").inner_text()
    assert "no row is verified" in said
    assert page.locator(".winner:visible").count() == 0
    assert page.locator(".bars:visible li").count() == 0
    assert "3 rows: " in page.locator("#bars-section").inner_text()


def test_speed_over_flexibility_is_the_first_picture(open_page):
    page = open_page("flexible")
    pictures = page.locator("figure.chart:visible")
    kinds = [pictures.nth(index).get_attribute("data-kind") for index in range(pictures.count())]
    assert kinds == ["flexibility", "gap"]
    assert pictures.first.bounding_box()["y"] < page.locator(".bars:visible").bounding_box()["y"]


def test_one_row_of_one_phase_is_the_only_one(open_page):
    page = open_page("small")
    assert "the only verified row" in page.locator(".card:visible").inner_text()
    assert page.locator(".matrix").count() == 0  # it would repeat the card


def test_every_column_of_the_table_is_explained(open_page):
    page = open_page("two")
    names = page.locator(".legend dt").all_text_contents()
    page.get_by_label("All columns").check()
    for heading in page.locator("#table th").all_inner_texts():
        assert heading == "system" or any(name and name in heading for name in names), heading


def test_columns_of_profiles_are_explained_where_there_are_profiles():
    profiled, plain = (
        dict(_legend(Document(["run"], [contents])))
        for contents in (read_folder(ARCHIVE / "cpu-2-cores-ptb-lm-profile"), small_run())
    )
    assert {"operators", "no operator", "new …", "compiling", "of limit"} <= set(profiled)
    assert "operators" not in plain


def test_the_answer_is_there_without_the_script(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["two"].as_uri())
    assert page.locator(".card:visible .winner").inner_text() == "pytorch/stack/eager @ pytorch-2.0"
    assert page.locator(".bars:visible li").count() == 7
    context.close()


# --- what it is made of ---------------------------------------------------------------------------------


def forward_before_training():
    rows = {
        case("pytorch/stack/eager", "forward", workload="ce-long"): 0.1,
        case("pytorch/stack/eager", "forward"): 0.2,
        case("pytorch/stack/eager", "train"): 0.3,
    }
    return complete(make_contents(list(rows), *(record for one, wall in rows.items() for record in timed(one, wall))))


def test_training_comes_first():
    document = Document(["run"], [forward_before_training()])
    assert [(panel.group.workload, panel.group.phase) for panel in document.panels] == [
        ("ce-long", "forward"),
        ("ptb-lm", "train"),
        ("ptb-lm", "forward"),
    ]
    assert first_group(document) == 1
    matrix = make_matrix(document)
    assert [phase for _, phase in matrix.columns] == ["train", "forward"]
    assert [[len(cells) for cells in row.cells] for row in matrix.rows] == [[0, 1], [1, 1]]
    assert first_group(Document(["run"], [small_run()])) == 0


def test_two_runs_of_one_machine_share_a_cell_and_are_named_in_it():
    (row,) = make_matrix(Document(["a", "b"], [small_run(), small_run()])).rows
    assert [[cell.run for cell in cells] for cells in row.cells] == [["a", "b"]]
    (row,) = make_matrix(Document(["a"], [small_run()])).rows
    assert [[cell.run for cell in cells] for cells in row.cells] == [[""]]


def test_nodes_that_are_alike_share_a_column():
    alike, unlike = (make_matrix(Document(["run"], [spread_contents(**fields)])) for fields in ({}, {"cpu": "another"}))
    assert [name for name, _ in alike.machines] == ["cpu: a processor, 2 cores"]
    assert [name for name, _ in unlike.machines] == ["cpu: another, 2 cores", "cpu: a processor, 2 cores"]


def test_a_bar_that_would_hide_the_others_is_cut_and_says_so():
    rows = {case("pytorch/stack/eager"): 0.01, case("pytorch/cell/eager"): 0.02, case("pytorch/fine/eager"): 1.0}
    records = [record for one, wall in rows.items() for record in timed(one, wall)]
    document = Document(["run"], [complete(make_contents(list(rows), *records))])
    (card,) = make_cards(document)
    assert [(bar.length, bar.cut) for bar in card.bars] == [(10.0, False), (20.0, False), (100.0, True)]
    assert "a bar that fades is longer than drawn" in as_html(document, []).decode()


def test_all_pages_say_what_explain_and_show_say(call):
    """One decision on what is level and what a loop costs, in three places."""
    run = str(RESULTS / "cpu-2-cores-ce-short")
    shown, explained = call("show", run).out, call("explain", run).out
    assert "1.49× in pytorch, 4.12× in tensorflow" in " ".join(shown.split())
    assert "pytorch: your loop costs 1.49×" in explained
    assert "tensorflow/fine/eager takes 4.12 times" in " ".join(call("explain", run, "--details").out.split())
    card = make_cards(Document(["run"], [read_folder(RESULTS / "cpu-2-cores-ce-short")]))[0]
    assert card.sentences[0] in " ".join(explained.split())


# --- history --------------------------------------------------------------------------------------------


def test_history_opens_on_what_changed(open_page):
    page = open_page("history")
    said = page.locator(".card").inner_text()
    assert "4.79× as fast in keras-tensorflow 3.15.1 as in keras2-theano 2.1.6" in said
    assert "Of 11 systems, from the oldest to the newest version 9 became faster, 1 became slower" in said
    assert len(re.findall(r"[.](?=\s|$)", said)) <= 5
    assert page.locator("details[open]").count() == 0
    assert page.locator(".matrix").count() == 4
    assert page.locator(".matrix", has_text="pytorch · ce-short").locator("tbody tr").first.inner_text().split() == [
        "pytorch/fine/eager", "1.21×", "1.22×", "0.93×", "1.01×", "0.97×", "366", "ms",
    ]  # fmt: skip


def test_history_without_a_gain_says_so():
    years = read_folder(ARCHIVE / "eight-years-ce-short")
    lines = make_history(["years"], [years], systems=["pytensor/*"])
    opening = open_history(lines)
    assert (opening.name, opening.verdict) == ("", "no system is seen to have become faster")
    assert "which in lasagne 0.1 took 0.75× of its time in pytensor 3.0.7" in opening.sentences[1]
    points = [msgspec.structs.replace(point, ratio=None, newest=False) for point in lines[0].points]
    alone = open_history([msgspec.structs.replace(lines[0], points=tuple(points))])
    assert alone.sentences[0] == "No two versions could be compared."
    assert alone.sentences[-1].startswith("2 of 2 rows could not be compared")
