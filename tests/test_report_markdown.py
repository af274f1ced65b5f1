"""`report.md`: its layout, numbers that agree with each other, and text without markup."""

import re

import pytest
from markdown_it import MarkdownIt

from report_runs import HOSTILE, cpu_run, gpu_run, hostile_run
from rnnbench.analysis.rows import make_rows
from rnnbench.report.document import Document
from rnnbench.report.markdown import HEADINGS, as_markdown
from rnnbench.text import escape_markdown, markdown_code, markdown_table


def report(**runs):
    return as_markdown(Document(list(runs), list(runs.values())), []).decode()


def cells(line):
    """A table's line split at its bars, but not at escaped ones."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def tables(text):
    """(headings above, rows) of every table, a row as heading -> cell."""
    path, found, head = [], [], None
    for line in text.splitlines():
        if line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            path = [*path[: level - 1], line.strip("# ")]
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = cells(line)
            found.append((list(path), []))
        elif not re.fullmatch(r"[|:\- ]+", line):
            found[-1][1].append(dict(zip(head, cells(line), strict=True)))
    return found


def result_tables(text):
    return [(path, rows) for path, rows in tables(text) if rows and "Wall Time (s)" in rows[0]]


# --- numbers --------------------------------------------------------------------------------------------


def test_elapsed_wall_and_throughput_agree_in_every_table():
    contents = {"cpu": cpu_run(), "gpu": gpu_run()}
    checked = 0
    for path, rows in result_tables(report(**contents)):
        batch = {"ptb-lm": 128, "ce-short": 64}[path[1]]
        for row in rows:
            if not row["Wall Time (s)"]:
                continue
            wall, elapsed, rate = (
                float(row[name]) for name in ("Wall Time (s)", "Elapsed Time (s)", "Sequence per Second")
            )
            assert elapsed == pytest.approx(int(row["Batches"]) * wall, rel=2e-5)
            assert rate == pytest.approx(batch / wall, rel=2e-5)
            low, high = map(float, row["95 % Interval (s)"].rstrip("±").split(" to "))
            assert low <= wall <= high
            checked += 1
    assert checked == sum(row.wall_s is not None for one in contents.values() for row in make_rows(one))


def test_every_row_of_the_store_is_in_one_table():
    shown = [(path[1], row[""]) for path, rows in result_tables(report(cpu=cpu_run())) for row in rows]
    assert len(shown) == len(set(shown)) + 1  # ce-short's stack is there in two precisions
    assert len(shown) == len(make_rows(cpu_run()))


# --- layout ---------------------------------------------------------------------------------------------


def test_the_layout_is_that_of_carrot_2019():
    text = report(cpu=cpu_run())
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[:9] == [
        "# Test Environment",
        "## CPU information",
        "## GPU information",
        "# Model: ptb-lm",
        "# Model: ce-short",
        "# Test Results",
        "## ptb-lm",
        "### LSTM Network Implemented by Fine-grained Operators",
        "#### CPU",
    ]
    assert "OS: An OS 1, Kernel 2" in text
    assert "Model name: A Processor 9000" in text
    assert "`vocab_size` = 10001" in text
    assert "`batch_size` = 128" in text


def test_granularities_are_under_their_class_and_device():
    places = {
        row[""]: (path[2], path[3])
        for path, rows in result_tables(report(cpu=cpu_run(), gpu=gpu_run()))
        for row in rows
        if path[1] == "ptb-lm"
    }
    fine, cell, whole = (
        "LSTM Network Implemented by Fine-grained Operators", "Static LSTM Cell", "CuDNN and Other Monolithic LSTM",
    )  # fmt: skip
    assert places["`pytorch/fine/script` (entire-training)"] == (fine, "CPU")
    assert places["`jax/packed/jit-scan` (entire-training)"] == (fine, "CPU")
    assert places["`pytorch/cell/eager` (entire-training)"] == (cell, "CPU")
    assert places["`pytorch/stack/eager` (forward-only)"] == (whole, "CPU")
    assert places["`pytorch/stack/eager` (entire-training)"] == (whole, "GPU")  # the CPU's have versions in their names


def test_the_columns_of_carrot_2019_come_first():
    (_, rows), *_ = result_tables(report(cpu=cpu_run()))
    assert list(rows[0]) == list(HEADINGS)
    assert HEADINGS[1:4] == ("Wall Time (s)", "Elapsed Time (s)", "Sequence per Second")


def test_another_precision_has_its_own_table():
    headings = [path[3] for path, _ in result_tables(report(cpu=cpu_run())) if path[1] == "ce-short"]
    assert headings == ["CPU, fp32", "CPU, fp32", "CPU, bf16"]


def test_failures_stay_in_the_tables_with_their_reasons():
    rows = {row[""]: row for _, rows in result_tables(report(cpu=cpu_run())) for row in rows}
    assert rows["`pytorch/fine/trace` (entire-training)"]["Status"] == "failed: it fell over"
    assert rows["`pytorch/fine/compile` (entire-training)"]["Status"].startswith("wrong: gradient")
    assert rows["`pytorch/stack/cudagraph` (entire-training)"]["Status"].startswith("unsupported: a CUDA graph")
    assert rows["`pytorch/fine/eager @ pytorch-2.0` (entire-training)"]["Status"] == r"verified\~"


def test_runs_are_named_if_there_are_several():
    assert "# Test Results: gpu" in report(cpu=cpu_run(), gpu=gpu_run())
    assert "# Test Results\n" in report(gpu=gpu_run())


# --- what the numbers say -------------------------------------------------------------------------------


def test_the_summary_and_the_claims_are_in_it():
    text = report(cpu=cpu_run(), gpu=gpu_run())
    assert "The price of flexibility" in text
    assert "# The Quick Conclusions of Carrot (2019)" in text
    measured = [rows for path, rows in tables(text) if path[0].startswith("The Quick") and rows]
    assert measured  # fine over cell on both devices was not run, but PyTorch over cuDNN was


def test_published_rows_are_next_to_the_measured_ones():
    (published,) = [rows for path, rows in tables(report(gpu=gpu_run())) if path[0].startswith("Published")]
    pair = next(row for row in published if row["measured row"] == "`pytorch/stack/eager @ pytorch-2.0`")
    assert pair["when and where"] == "2019, GeForce RTX 2080 Ti"
    assert pair["published"] == "23.6 ms"
    assert pair["measured"] == "10.3 ms"
    assert pair["times as fast"] == "2.30×"


def test_published_rows_that_contradict_themselves_are_marked():
    (published,) = [rows for path, rows in tables(report(cpu=cpu_run())) if path[0].startswith("Published")]
    assert sum(row["published"].endswith("†") for row in published) == 5


# --- escaping ------------------------------------------------------------------------------------


def test_markup_in_a_run_is_escaped():
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(report(hostile=hostile_run()))
    assert "owned" in page
    assert not re.search(r"<(script|img|a)\b", page)
    assert "&lt;script&gt;document.title='owned'&lt;/script&gt;" in page.replace("&#x27;", "'")


def test_markup_does_not_break_a_table():
    text = report(hostile=hostile_run())
    assert len(result_tables(text)) >= 3
    for _, rows in tables(text):  # `cells` is strict about their number
        assert rows


@pytest.mark.parametrize("text", [HOSTILE, "a|b", "line\nline", "``tick``", "\\", "#x", "![a](b)", "$x$", "~~a~~"])
def test_a_cell_shows_exactly_its_text(text):
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown_table(["a", "b"], [[escape_markdown(text), markdown_code(text)]]))
    shown, coded = [token for token in tokens if token.type == "inline"][2:]
    assert "".join(child.content for child in shown.children) == " ".join(text.split())
    assert [child.type for child in coded.children] == ["code_inline"]
    assert coded.children[0].content == " ".join(text.split()).replace("|", "¦")
