"""rnnbench in a notebook: a real kernel runs the one of the documentation; hostile text stays text."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas
import pytest
from nbclient import NotebookClient

import rnnbench
from made_up import make_case, make_launch
from report_runs import cpu_run, hostile_run
from rnnbench.errors import UserError
from rnnbench.progress.notebook import NotebookProgress, in_notebook

NOTEBOOK = Path(__file__).parent.parent / "docs" / "notebook.ipynb"
SYSTEMS = ("pytorch/fine/eager", "pytorch/stack/eager")


@pytest.fixture
def results():
    return rnnbench.Results(cpu_run(), "made-up")


# --- the notebook of the documentation --------------------------------------------------------------------


class Heard(NotebookClient):
    """Keeps what the kernel draws again: the outputs have only the last state of it."""

    def process_message(self, message, cell, index):
        if message["msg_type"] == "update_display_data":
            self.drawn.append(message["content"]["data"]["text/html"])
        return super().process_message(message, cell, index)


def html_of(cell):
    return [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


def rows_of(html):
    """The first and the last cell of every row: system and status."""
    lines = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL)]
    return {line[0]: line[-1] for line in lines if line}


@pytest.mark.torch
@pytest.mark.slow
def test_the_notebook_runs_in_a_kernel_and_shows_progress_table_and_the_rest(pytorch, tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = Heard(notebook, timeout=400, resources={"metadata": {"path": str(tmp_path)}})
    client.drawn = []
    client.execute()
    _, run, explained, frame, report = (cell for cell in notebook.cells if cell.cell_type == "code")
    assert any("<progress" in html and SYSTEMS[0] in html for html in client.drawn)
    progress, table = html_of(run)
    assert "<progress" not in progress  # the bar goes when the run has ended
    assert set(rows_of(table)) == set(SYSTEMS)
    assert all(status.startswith("verified") for status in rows_of(table).values())
    assert explained.outputs[0]["data"]["text/plain"].startswith("ce-short[batch=4,hidden=16,steps=10] · train")
    assert set(rows_of(html_of(frame)[0])) == set(SYSTEMS)
    assert "'report.html'" in report.outputs[0]["data"]["text/plain"]


def test_the_notebook_is_kept_with_what_it_showed():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert set(rows_of(html_of(cells[1])[-1])) == set(SYSTEMS)
    assert not any(output["output_type"] == "error" for cell in cells for output in cell.outputs)


# --- results -----------------------------------------------------------------------------------------------


def test_results_are_a_line_at_a_prompt_and_tables_in_a_notebook(results):
    assert repr(results).startswith(f"<rnnbench.Results of 'made-up': {len(results.rows)} rows, ")
    html = results._repr_html_()
    assert html.count("<table>") == len({row.group for row in results.rows})
    assert all(row.system in html for row in results.rows)
    assert "fastest: " in html


def test_text_of_a_run_stays_text():
    html = rnnbench.Results(hostile_run())._repr_html_()
    assert "<script" not in html
    assert "<img" not in html


def test_rows_become_a_data_frame(results):
    frame = results.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["system"]) == [row.system for row in results.rows]


def test_without_pandas_the_message_says_what_to_do(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(UserError, match="pandas is not installed here") as caught:
        results.to_pandas()
    assert "to_dicts()" in caught.value.hint


def test_an_explanation_is_shown_as_its_text(results):
    text = results.explain()
    assert repr(text) == text
    assert "Use " in text
    assert len(results.explain(details=True)) > len(text)
    assert "TensorFlow Graph" in results.explain(claims=True)


def test_a_report_is_written_and_bad_input_is_refused_in_words_of_arguments(results, tmp_path):
    written = results.report(tmp_path / "report", formats=["md", "csv"])
    assert {path.name for path in written} == {"report.md", "results.csv"}
    assert all(path.exists() for path in written)
    (tmp_path / "file").touch()
    for arguments in ((tmp_path / "file",), (tmp_path / "other", "pdf")):
        with pytest.raises(UserError) as caught:
            results.report(*arguments)
        assert "--" not in str(caught.value)


def test_names_can_be_completed_before_anything_is_imported():
    assert set(dir(rnnbench)) >= {"make_plan", "run_plan", "Results"}


# --- progress ----------------------------------------------------------------------------------------------


@pytest.fixture
def drawn(monkeypatch):
    """A kernel's display, which keeps what it is given."""
    shown = []
    output = SimpleNamespace(update=shown.append)
    fake = SimpleNamespace(HTML=str, display=lambda content, display_id: shown.append(content) or output)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return shown


def test_progress_is_drawn_in_place_and_what_failed_stays(drawn):
    with NotebookProgress() as progress:
        progress.timing(2)
        progress.launched(make_launch(make_case(), 1.0))
        assert '<progress value="1" max="2">' in drawn[-1]
        progress.launched(make_launch(make_case("</script><script>"), reason="out of luck & time"))
    assert "1.00 s a batch" in drawn[1]
    assert "<progress" not in drawn[-1]
    assert "out of luck &amp; time" in drawn[-1]
    assert "1.00 s a batch" not in drawn[-1]
    assert "<script>" not in drawn[-1]


def test_a_terminal_is_no_notebook(monkeypatch):
    assert not in_notebook()
    for shell, answer in ((None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert in_notebook() is answer
