"""The page in a real Chromium: choosing, sorting, filtering, details, permalinks, keys."""

import urllib.parse
from importlib.resources import files

from report_runs import cpu_run
from rnnbench import units
from rnnbench.analysis.rows import make_rows


def systems(page):
    return [name.split()[0] for name in page.locator("#table tbody td.system").all_inner_texts()]


def said_in_address(page):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlparse(page.url).fragment, keep_blank_values=True))


# --- the first view -----------------------------------------------------------------------------


def test_the_page_opens_on_its_first_group_in_training(open_page):
    page = open_page()
    assert page.title() == "What flexibility costs: A Processor 9000, A GPU 200"
    assert "A Processor 9000" in page.locator("header").inner_text()
    assert page.locator(".card:visible .winner").inner_text() == "pytorch/stack/eager @ pytorch-2.0"
    assert page.locator("figure.chart:visible").count() == 1
    assert page.locator("figure.chart:visible svg:visible").bounding_box()["width"] == 1100
    assert len(systems(page)) == 11


def test_ranked_rows_come_first_fastest_first_and_the_others_below_a_line(open_page):
    page = open_page()
    statuses = page.locator("#table tbody tr").evaluate_all("rows => rows.map(row => row.dataset.status)")
    assert statuses == ["verified"] * 7 + ["wrong", "failed", "timeout", "unsupported"]
    walls = page.evaluate("[...document.querySelectorAll('#table tbody tr')].slice(0, 7).map(row => row.row.wall_s)")
    assert walls == sorted(walls)
    assert page.locator("tr.line").count() == 1
    assert page.locator("tr.line").get_attribute("data-status") == "wrong"
    assert page.locator("tr.best td.system").inner_text().startswith("pytorch/stack/eager")


def test_the_numbers_are_those_of_the_rows(open_page):
    page = open_page()
    page.get_by_label("All columns").check()
    group = [row for row in make_rows(cpu_run()) if (row.workload, row.phase) == ("ptb-lm", "train")]
    for row in group:
        if row.status != "verified":
            continue
        place = page.locator("#table tbody tr", has_text=row.system).filter(has_text=units.seconds(row.wall_s))
        text = place.first.inner_text()
        for figure in (
            units.span(row.wall_low_s, row.wall_high_s, row.wall_s),
            f"{units.seconds(row.elapsed_s)} (×{row.batches})",
            units.figures(row.sequences_per_s),
            units.times(row.ratio),
            units.seconds(row.first_call_s),
            units.share(row.limit_share),
        ):
            assert figure in text


VALUES = [
    0,
    1e-7,
    0.5125,
    0.125,
    0.375,
    2.675,
    10.25,
    10.75,
    112.5,
    113.5,
    48.1e-6,
    999.4e-6,
    1e-3,
    0.0123456,
    0.312,
    0.99999,
    1,
    1.52,
    12.34,
    99.94,
    123.4,
    1234.5678,
    98765.4,
]


def test_numbers_are_written_as_the_terminal_writes_them(browser):
    """The page and the terminal format numbers by the same rules."""
    source = files("rnnbench.report").joinpath("page", "format.js").read_text(encoding="utf-8")
    ask = """return values.map(value => [seconds(value), times(value), share(value), figures(value),
        bytes(Math.round(value * 1e6)), span(0.9 * value, 1.1 * value, value)])"""
    page = browser.new_page()
    found = page.evaluate(f"values => {{ {source}; {ask} }}", VALUES)
    page.close()
    for value, said in zip(VALUES, found, strict=True):
        assert said == [
            units.seconds(value),
            units.times(value),
            units.share(value),
            units.figures(value),
            units.size(round(value * 1e6)),
            units.span(0.9 * value, 1.1 * value, value),
        ]


# --- choosing -------------------------------------------------------------------------------------------


def test_choosing_changes_table_summary_and_chart(open_page):
    page = open_page()
    page.get_by_label("Phase").select_option("forward")
    assert systems(page) == ["pytorch/stack/eager", "pytorch/fine/eager"]
    assert "forward" in page.locator(".card:visible").inner_text()
    assert page.locator("figure.chart:visible").get_attribute("data-group") == "1"
    assert said_in_address(page)["phase"] == "forward"


def test_a_choice_that_matches_nothing_changes_the_other_choices(open_page):
    page = open_page()
    page.get_by_label("Device").select_option("cuda")
    assert page.get_by_label("Run").input_value() == "gpu"
    assert systems(page) == ["pytorch/stack/eager", "pytorch/fine/eager"]
    assert "A GPU 200" in page.locator(".card:visible").inner_text()


def test_all_of_an_axis_can_be_shown_and_rows_are_then_named_in_full(open_page):
    page = open_page()
    page.get_by_label("Phase").select_option("")
    assert len(systems(page)) == 13
    assert "forward" in page.locator("#table tbody").inner_text()
    assert page.locator(".card:visible, .bars:visible").count() == 0  # rows of two groups are not compared
    assert "2 groups" in page.locator("#where").inner_text()


def test_a_group_without_charts_says_so(open_page):
    page = open_page(fragment="#workload=ce-short")
    assert page.locator("figure.chart:visible").count() == 0
    assert "--charts" in page.locator("#no-chart").inner_text()


def test_charts_are_chosen_by_tab_and_by_arrow(open_page):
    page = open_page()
    page.get_by_role("tab", name="Does compiling pay").click()
    assert page.locator("figure.chart:visible").get_attribute("data-kind") == "compiling"
    page.keyboard.press("ArrowRight")
    assert page.locator("figure.chart:visible").get_attribute("data-kind") == "history"
    page.keyboard.press("ArrowRight")
    assert page.locator("figure.chart:visible").get_attribute("data-kind") == "gap"
    page.keyboard.press("ArrowLeft")
    assert page.get_by_role("tab", selected=True).inner_text() == "From version to version"


# --- filtering and sorting ------------------------------------------------------------------------------


def test_the_filter_looks_at_names_versions_and_reasons(open_page):
    page = open_page()
    page.get_by_label("Filter").fill("stack 1.0")
    assert systems(page) == ["pytorch/stack/eager"]
    page.get_by_label("Filter").fill("CUDA graph")
    assert systems(page) == ["pytorch/stack/cudagraph"]
    assert page.locator("#count").inner_text() == "1 row"
    page.get_by_label("Filter").fill("no such thing")
    assert page.locator("#table tbody").inner_text() == "No row matches."


def test_rows_are_filtered_by_status(open_page):
    page = open_page()
    page.get_by_label("Status").select_option("failed")
    assert systems(page) == ["pytorch/fine/trace"]


def test_a_heading_sorts_and_sorts_the_other_way(open_page):
    page = open_page()
    page.get_by_role("button", name="seq/s").click()
    rates = page.evaluate("[...document.querySelectorAll('#table tbody tr')].map(row => row.row.sequences_per_s)")
    assert rates[:7] == sorted(rates[:7])
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="seq/s").click()
    rates = page.evaluate("[...document.querySelectorAll('#table tbody tr')].map(row => row.row.sequences_per_s)")
    assert rates[:7] == sorted(rates[:7], reverse=True)
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    statuses = page.locator("#table tbody tr").evaluate_all("rows => rows.map(row => row.dataset.status)")
    assert statuses[:7] == ["verified"] * 7  # unranked rows stay below in every order
    assert said_in_address(page)["sort"] == "rate"


def test_names_are_sorted_too(open_page):
    page = open_page()
    page.get_by_role("button", name="system").click()
    assert systems(page)[:7] == sorted(systems(page)[:7])


# --- hovering and opening -------------------------------------------------------------------------------


def test_pointing_at_a_row_shows_interval_samples_and_environment(open_page):
    page = open_page()
    page.locator("#table tbody tr").first.hover()
    hint = page.locator("#hint")
    assert hint.is_visible()
    assert "103 ms [103, 103] a batch; 24 batches in 2 launches" in hint.inner_text()
    assert "pytorch-2.0: pytorch 2.0, Python 3.11.0, 2 threads" in hint.inner_text()
    assert hint.locator("circle").count() == 8
    page.locator("h1").hover()
    assert not hint.is_visible()


def open_row(page, name):
    page.locator("#table tbody tr", has_text=name).first.click()
    return page.get_by_role("dialog")


def test_a_row_opens_with_everything_about_it(open_page):
    page = open_page()
    box = open_row(page, "pytorch/stack/eager pytorch-2.0")
    text = box.inner_text()
    assert "2.46 s for 24 batches" in text
    assert "571,520" in text
    assert box.locator("svg.samples circle").count() == 8
    box.get_by_text("Seconds of each block").click()
    raw = box.locator("pre.raw").inner_text()
    assert "0.3  0.306  0.294  0.33" in raw
    assert "blocks of 3 batches" in raw
    assert "loss of batch 0" in box.locator("table.figures").inner_text()
    assert "1.0e-7" in box.locator("table.figures").inner_text()
    assert "passes" in box.locator("table.figures").inner_text()
    expected = "rnnbench run pytorch/stack/eager -w ptb-lm --phase train --device cpu --precision fp32 --versions 2.0"
    assert box.locator("pre.command").inner_text().startswith(expected)


def test_a_wrong_row_shows_which_figure_fails(open_page):
    page = open_page()
    box = open_row(page, "pytorch/fine/compile")
    assert "gradient of layer0.fwd.w is off by 0.5" in box.inner_text()
    assert box.locator(".fails").inner_text() == "fails"


def test_a_failure_shows_its_stage_and_the_end_of_its_log(open_page):
    page = open_page()
    box = open_row(page, "pytorch/fine/trace")
    assert "Failed during: building" in box.inner_text()
    assert box.locator("pre.log").inner_text() == "line 1\nline 2"
    assert "it does not build" in box.inner_text()


def test_an_unsupported_row_has_no_command(open_page):
    box = open_row(open_page(), "pytorch/stack/cudagraph")
    assert box.locator("pre.command").count() == 0


# --- permalinks -----------------------------------------------------------------------------------------


def test_the_address_restores_everything(open_page):
    page = open_page()
    page.get_by_label("Phase").select_option("")
    page.get_by_label("Filter").fill("stack")
    page.get_by_role("button", name="memory").click()
    page.get_by_role("tab", name="Does compiling pay").click()
    box = open_row(page, "forward")
    title = box.locator("h2").inner_text()
    again = open_page(fragment=f"#{urllib.parse.urlparse(page.url).fragment}")
    assert again.get_by_role("dialog").locator("h2").inner_text() == title
    again.keyboard.press("Escape")
    assert systems(again) == systems(page)
    assert again.get_by_label("Phase").input_value() == ""
    assert again.get_by_label("Filter").input_value() == "stack"
    assert again.get_by_role("tab", selected=True).inner_text() == "Does compiling pay"
    assert again.locator("th[aria-sort]").inner_text().startswith("memory")


def test_another_address_in_the_open_page_is_followed(open_page):
    page = open_page()
    page.evaluate("location.hash = '#run=gpu&device=cuda'")
    page.wait_for_function("document.querySelector('.card:not([hidden])').textContent.includes('A GPU 200')")
    page.evaluate("location.hash = '#run=nobody'")  # a link to a run that is not here: the first group
    page.wait_for_function("document.querySelector('.card:not([hidden])').textContent.includes('A Processor')")


# --- keys -----------------------------------------------------------------------------------------------


def test_the_table_can_be_used_with_keys_alone(open_page):
    page = open_page()
    page.get_by_label("Status").focus()
    for _ in range(20):  # past the headings
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "TR":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    name = page.evaluate("document.activeElement.row.system")
    assert name == systems(page)[2]
    assert page.locator("#hint").is_visible()  # focus shows the same hint as the pointer
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").locator("h2").inner_text() == name
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    assert page.evaluate("document.activeElement.row.system") == name
    assert "row" not in said_in_address(page)
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.row.system") == systems(page)[-1]


def test_a_heading_can_be_pressed_and_keeps_the_focus(open_page):
    page = open_page()
    page.get_by_role("button", name="ratio").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "ratio"
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"


def test_every_control_has_an_accessible_name(open_page):
    page = open_page()
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, input, a, dialog, [role=img], section')].filter(node =>
        !(node.labels && node.labels.length) && !node.textContent.trim() && !node.getAttribute('aria-label')
        && !node.getAttribute('aria-labelledby')).map(node => node.outerHTML)"""
    )
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.locator("h1").count() == 1


# --- below the table ---------------------------------------------------------------------------


def test_claims_and_published_rows_are_shown(open_page):
    page = open_page()
    assert page.locator(".claims > li").count() == 4
    assert not page.locator(".claims").is_visible()  # folded
    page.get_by_text("Then and now").click()
    table = page.locator("#published").inner_text()
    assert "2019, GeForce RTX 2080 Ti" in table
    assert "2.30×" in table
