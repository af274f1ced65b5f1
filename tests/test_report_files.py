"""`rnnbench report`: the files it writes, their reproducibility, and its errors."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from made_up import make_case, make_contents
from report_runs import cpu_run, gpu_run, store
from rnnbench.analysis.row import Row
from rnnbench.analysis.rows import make_rows
from rnnbench.errors import UserError
from rnnbench.report import write
from rnnbench.report.document import run_names
from rnnbench.report.write import FORMATS, write_report


@pytest.fixture
def stored(tmp_path):
    return store(tmp_path / "cpu", cpu_run())


def contents_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_formats_are_written_unless_some_are_chosen(stored, tmp_path):
    written = write_report([stored], tmp_path / "all")
    names = set(contents_of(tmp_path / "all"))
    assert {str(path.relative_to(tmp_path / "all")) for path in written} == names
    assert names >= {"report.html", "report.md", "results.csv", "results.json"}
    kinds = {name.split("-")[0] for name in names if name.endswith(".svg")}
    assert kinds == {"charts/gap", "charts/bars", "charts/compiling", "charts/samples", "charts/history"}
    assert {name[:-4] for name in names if name.endswith(".svg")} == {
        name[:-4] for name in names if name.endswith(".png")
    }


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (["csv"], {"results.csv"}),
        (["md", "json"], {"report.md", "results.json"}),
        (["html"], {"report.html"}),
    ],
)
def test_only_the_chosen_formats_are_written(stored, tmp_path, chosen, expected):
    write_report([stored], tmp_path / "some", chosen)
    assert set(contents_of(tmp_path / "some")) == expected


def test_markdown_shows_charts_only_if_they_are_written(stored, tmp_path):
    write_report([stored], tmp_path / "with", ["md", "svg"])
    write_report([stored], tmp_path / "without", ["md"])
    text = (tmp_path / "with" / "report.md").read_text()
    shown = [part.partition(")")[0] for part in text.split("](charts/")[1:]]
    assert shown
    assert all((tmp_path / "with" / "charts" / name).is_file() for name in shown)
    assert "charts/" not in (tmp_path / "without" / "report.md").read_text()


def test_the_same_runs_give_the_same_bytes(stored, tmp_path):
    """In two processes, whose sets and dicts of strings are ordered differently."""
    gpu = store(tmp_path / "gpu", gpu_run())
    made = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        command = [sys.executable, "-m", "rnnbench", "report", str(stored), str(gpu), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed})
        made.append(contents_of(out))
    assert made[0].keys() == made[1].keys()
    assert [name for name in made[0] if made[0][name] != made[1][name]] == []


def test_a_report_contains_no_paths_of_the_machine(stored, tmp_path):
    write_report([stored], tmp_path / "out", [name for name in FORMATS if name != "png"])
    for name, content in contents_of(tmp_path / "out").items():
        assert str(tmp_path).encode() not in content, name


def test_files_have_the_permissions_of_the_umask(stored, tmp_path):
    before = os.umask(0o027)
    try:
        write_report([stored], tmp_path / "out", ["csv"])
    finally:
        os.umask(before)
    assert (tmp_path / "out" / "results.csv").stat().st_mode & 0o777 == 0o640


# --- tables for programs --------------------------------------------------------------------------------


def test_the_csv_has_every_field_of_every_row_and_reads_back_the_same(stored, tmp_path):
    gpu = store(tmp_path / "gpu", gpu_run())
    write_report([stored, gpu], tmp_path / "out", ["csv"])
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "results.csv").read_text())))
    rows = [("cpu", row) for row in make_rows(cpu_run())] + [("gpu", row) for row in make_rows(gpu_run())]
    assert len(lines) == len(rows)
    for line, (run, row) in zip(lines, rows, strict=True):
        assert line.pop("run") == run
        for name, value in msgspec.structs.asdict(row).items():
            text = line[name]
            assert text == "" if value is None else text == str(value), name
            if isinstance(value, float):
                assert float(text) == value


def test_the_json_has_the_rows_and_their_analysis(stored, tmp_path):
    write_report([stored], tmp_path / "out", ["json"])
    content = json.loads((tmp_path / "out" / "results.json").read_bytes())
    rows = [row for row in content["rows"] if row.pop("run") == "cpu"]
    assert [msgspec.convert(row, Row) for row in rows] == make_rows(cpu_run())
    assert content["schema"] == 1
    assert [one["name"] for one in content["runs"]] == ["cpu"]
    assert len(content["groups"]) == 4
    assert [claim["number"] for claim in content["claims"]] == [1, 2, 3, 4]
    best = next(group["best"] for group in content["groups"] if group["group"]["phase"] == "train")
    assert best["row"]["system"] == "pytorch/stack/eager"


# --- several runs ---------------------------------------------------------------------------------------


def test_runs_with_the_same_name_get_numbers(tmp_path):
    folders = [tmp_path / place / "run" for place in "abc"]
    assert run_names(folders) == ["run", "run (2)", "run (3)"]
    assert run_names([tmp_path / "cpu", tmp_path / "gpu"]) == ["cpu", "gpu"]


def test_charts_of_runs_with_the_same_cases_do_not_overwrite_each_other(tmp_path):
    folders = [store(tmp_path / place / "run", gpu_run()) for place in "ab"]
    write_report(folders, tmp_path / "out", ["svg"])
    names = set(contents_of(tmp_path / "out"))
    assert {"charts/bars-run-ptb-lm-train-cuda-fp32.svg", "charts/bars-run-2-ptb-lm-train-cuda-fp32.svg"} <= names


# --- errors -------------------------------------------------------------------------------------------


def test_an_unknown_format_is_refused_with_those_there_are(stored, tmp_path):
    with pytest.raises(UserError) as refused:
        write_report([stored], tmp_path / "out", ["html", "pdf"])
    assert "'pdf'" in refused.value.what
    assert all(name in refused.value.hint for name in FORMATS)
    assert not (tmp_path / "out").exists()


def test_no_format_at_all_is_refused(stored, tmp_path):
    with pytest.raises(UserError, match="no format"):
        write_report([stored], tmp_path / "out", [])


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"run\.json"):
        write_report([tmp_path], tmp_path / "out")


def test_a_file_in_place_of_the_folder_is_refused(stored, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match="is a file"):
        write_report([stored], tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_refused(stored, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        write_report([stored], tmp_path / "file" / "out", ["csv"])


def test_a_report_that_cannot_be_made_leaves_the_one_before_it(stored, tmp_path, monkeypatch):
    write_report([stored], tmp_path / "out", ["csv", "html"])
    before = contents_of(tmp_path / "out")
    monkeypatch.setattr("rnnbench.report.html.read_part", lambda name: "{{ nothing_of_this_name }}")
    with pytest.raises(Exception, match="nothing_of_this_name"):
        write_report([store(tmp_path / "gpu", gpu_run())], tmp_path / "out", ["csv", "html"])
    assert contents_of(tmp_path / "out") == before


def test_a_run_without_results_can_be_reported(tmp_path):
    folder = store(tmp_path / "empty", make_contents([make_case()]))
    written = write_report([folder], tmp_path / "out")
    assert {path.name for path in written} == {"report.html", "report.md", "results.csv", "results.json"}
    assert "not measured yet" in (tmp_path / "out" / "report.md").read_text()


def test_a_run_without_cases_can_be_reported(tmp_path):
    folder = store(tmp_path / "none", make_contents([]))
    assert len(write_report([folder], tmp_path / "out")) == 4


# --- many groups ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "groups"), [(None, 4), (0, 0), (2, 2), (100, 4)])
def test_charts_are_drawn_of_as_many_groups_as_asked_for(stored, tmp_path, wanted, groups):
    write_report([stored], tmp_path / "out", ["svg"], wanted)
    assert sum(name.startswith("charts/bars") for name in contents_of(tmp_path / "out")) == groups


def test_of_very_many_groups_only_the_first_are_drawn(monkeypatch):
    from rnnbench.report.charts import gallery

    class Many:
        panels = range(gallery.MOST_GROUPS)

    assert gallery.charted(Many, None) == gallery.MOST_GROUPS
    monkeypatch.setattr(Many, "panels", range(gallery.MOST_GROUPS + 1))
    assert gallery.charted(Many, None) == 1
    assert gallery.charted(Many, 1000) == gallery.MOST_GROUPS + 1


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_lists_its_files_and_shows_progress_only_in_a_terminal(stored, tmp_path):
    command = [
        sys.executable,
        "-m",
        "rnnbench",
        "report",
        str(stored),
        "--out",
        str(tmp_path / "out"),
        "--format",
        "md, svg",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stderr == ""
    first, last = answer.stdout.splitlines()
    assert first.startswith(str(tmp_path / "out" / "report.md"))
    assert last.startswith(str(tmp_path / "out" / "charts"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "pdf"], "'pdf' is not a format"),
        (["--format", ","], "no format is given"),
        (["--charts", "-1"], "--charts is -1"),
    ],
)
def test_the_command_ends_with_2_for_bad_input(stored, tmp_path, arguments, message):
    command = [sys.executable, "-m", "rnnbench", "report", str(stored), "--out", str(tmp_path / "out"), *arguments]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


def test_progress_is_reported_step_by_step(stored, tmp_path):
    heard = []
    write.write_report([stored], tmp_path / "out", ["svg"], say=heard.append)
    assert heard[0] == "reading and analysing"
    assert "charts: 4 of 4 groups" in heard
    assert heard[-1] == "writing"


def test_the_real_run_of_the_repository_can_be_reported(tmp_path):
    folder = Path(__file__).parent.parent / "results" / "cpu-2-cores-ce-short"
    write_report([folder], tmp_path / "out", ["md", "html"])
    assert "pytorch/stack/eager" in (tmp_path / "out" / "report.md").read_text()
