"""What a run ends with: the answer of each table, the next commands, and the name `last`; in lines that fit."""

import os

import pytest

from analysis_runs import MadeUpRow, contents_of
from made_up import make_case, make_launch, make_run
from rnnbench.analysis.rows import make_rows
from rnnbench.report.answer import next_commands, show_answer, succeeded
from rnnbench.report.terminal import show_run
from rnnbench.store import append, create_folder
from rnnbench.text import Column, fit_table, render_table
from test_cli import HONEST, QUICKLY, TINY

# --- the answer -----------------------------------------------------------------------------------------


def answer_of(*rows):
    return show_answer(make_rows(contents_of(*rows))).splitlines()


def test_it_names_the_fastest_those_level_with_it_and_what_the_loop_and_the_layer_cost():
    title, fastest, costs = answer_of(
        MadeUpRow("toy/packed/jit", 1.0),
        MadeUpRow("toy/fine/jit", 1.0),
        MadeUpRow("toy/fine/eager", 3.1),
        MadeUpRow("toy/stack/eager", 1.7),
    )
    assert title == "ce-short · train · cpu · fp32"
    assert fastest == "  fastest: toy/packed/jit, 1.00 s a batch; not distinguishable from it: toy/fine/jit"
    assert costs == "  your fine-grained loop costs 3.10× in toy; toy/stack/eager 1.70×"


def test_a_loop_that_is_not_seen_to_cost_anything_is_not_given_a_price():
    costs = answer_of(MadeUpRow("toy/fine/eager", 1.0), MadeUpRow("toy/packed/eager", 1.001))[-1]
    assert costs == "  no cost of a fine-grained loop is seen in toy"


def test_a_wrong_row_is_never_the_answer():
    fastest = answer_of(MadeUpRow("toy/fine/eager", 2.0), MadeUpRow("toy/stack/jit", 0.1, verdict="wrong"))[1]
    assert fastest == "  only toy/fine/eager is verified: 2.00 s a batch"
    nothing = answer_of(MadeUpRow("toy/stack/jit", 0.1, verdict="wrong"))[1]
    assert nothing == "  no row is verified, so nothing can be said about speed"


def test_only_a_time_that_may_be_believed_is_a_success():
    def measured(**fields):
        return make_rows(contents_of(MadeUpRow("toy/fine/eager", 1.0, **fields)))

    assert succeeded(measured())
    assert succeeded(measured(verdict=""))  # not verified on request
    assert not succeeded(measured(verdict="wrong"))


def test_the_next_commands_end_with_the_loop_that_costs_most():
    rows = make_rows(
        contents_of(
            MadeUpRow("toy/fine/eager", 3.0, workload="ce-short[batch=2]"),
            MadeUpRow("toy/stack/eager", 1.0, workload="ce-short[batch=2]"),
            MadeUpRow("toy/stack/eager", 9.0),
        )
    )
    lines = [line[line.index("rnnbench") :] for line in next_commands(rows, "my run").splitlines()[1:]]
    assert lines == [
        "rnnbench explain 'my run'",
        "rnnbench report 'my run' --out report",
        "rnnbench profile toy/fine/eager -w 'ce-short[batch=2]' --phase train --device cpu",
    ]


def test_a_run_ends_with_them_and_its_exit_code_is_1_when_nothing_succeeded(sabotage, call):
    ran = call("run", HONEST, *QUICKLY, "--phase", "forward", "--out", "good")
    assert ran.code == 0
    assert "\nnext:\n  what to do, in ten lines  rnnbench explain last\n" in ran.out
    assert f"rnnbench profile {HONEST} -w '{TINY}' --phase forward" in ran.out
    failed = call("run", "sabotage/packed/raise", *QUICKLY, "--phase", "forward", "--no-verify", "--out", "bad")
    assert failed.code == 1
    assert "no row succeeded" in failed.err
    assert "failed: ValueError" in failed.out
    assert call("run", "--resume", "bad").code == 1
    assert call("run", "--resume", "good").code == 0


# --- last -----------------------------------------------------------------------------------------------


def stored_run(folder, seconds, when):
    case = make_case()
    create_folder(folder, make_run([case]))
    append(folder, make_launch(case, seconds))
    os.utime(folder / "run.json", (when, when))
    return folder


@pytest.mark.parametrize("command", ["show", "explain", "check", "audit", "history"])
def test_last_is_the_newest_run_for_every_command(private_folders, call, command):
    stored_run(private_folders / "runs" / "b-older", 1.0, 1_000)
    newest = stored_run(private_folders / "runs" / "a-newer", 2.0, 2_000)
    by_name, by_last = call(command, str(newest)), call(command, "last")
    assert (by_last.code, by_last.out) == (by_name.code, by_name.out.replace(str(newest), "runs/a-newer"))


def test_last_may_be_compared_reported_and_loaded(private_folders, call):
    import rnnbench

    before = stored_run(private_folders / "runs" / "before", 1.0, 1_000)
    stored_run(private_folders / "runs" / "after", 2.0, 2_000)
    assert "2.000×" in call("compare", str(before), "last").out
    assert call("report", "last", "--out", "page", "--format", "csv").code == 0
    assert rnnbench.load_run("last").rows[0].wall_s == 2.0


def test_last_is_also_a_run_with_a_folder_of_its_own(sabotage, call, monkeypatch):
    stored_run(sabotage / "runs" / "older", 1.0, 1_000)
    assert call("run", HONEST, *QUICKLY, "--phase", "forward", "--no-verify", "--out", "far/away").code == 0
    assert call("show", "last", "--json").json[0]["system"] == HONEST
    (sabotage / "elsewhere").mkdir()
    monkeypatch.chdir(sabotage / "elsewhere")
    assert call("show", "last", "--json").json[0]["system"] == HONEST


def test_a_profile_is_not_the_last_run(private_folders, call):
    stored_run(private_folders / "profiles" / "newest", 1.0, 3_000)
    assert "there is no last run" in call("show", "last").err


# --- lines that fit -------------------------------------------------------------------------------------

COLUMNS = [Column("name"), Column("a", drop=1), Column("b", drop=3), Column("c", drop=2), Column("words")]
ROWS = [["x" * 10, "1" * 10, "2" * 10, "3" * 10, "w" * 40]]


@pytest.mark.parametrize(
    ("width", "kept", "dropped"),
    [
        (200, "name a b c words", []),
        (68, "name a b c words", []),
        (67, "name a c words", ["b"]),
        (50, "name a words", ["b", "c"]),
        (30, "name words", ["a", "b", "c"]),
    ],
)
def test_the_least_important_columns_go_first_and_the_last_is_cut(width, kept, dropped):
    columns, rows, left_out = fit_table(COLUMNS, ROWS, width)
    assert ([column.heading for column in columns], left_out) == (kept.split(), dropped)
    assert len(render_table(columns, rows).splitlines()[2]) <= max(width, 32)
    assert rows[0][-1].endswith("w" if width == 200 else "…")


@pytest.mark.parametrize("width", [80, 100, 140])
def test_no_line_of_a_table_is_wider_than_the_terminal(call, private_folders, monkeypatch, width):
    contents = contents_of(
        MadeUpRow("toy/packed/with-a-long-execution-name", 1.0),
        MadeUpRow("toy/fine/eager", 2.0, verdict="wrong"),
    )
    create_folder(private_folders / "run", contents.run)
    for record in contents.records:
        append(private_folders / "run", record)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = call("show", "run").out
    tables = shown[: shown.index("--wide")] if "--wide" in shown else shown
    assert max(map(len, tables.splitlines())) <= width
    assert "1.00×" in tables
    wide = call("show", "run", "--wide").out
    assert "elapsed" in wide
    assert ("elapsed" in tables) is (width == 140)


def test_everything_is_shown_where_no_width_is_given():
    contents = contents_of(MadeUpRow("toy/fine/eager", 1.0))
    rows = make_rows(contents)
    assert "elapsed" in show_run(contents, rows)
    assert "--wide" not in show_run(contents, rows)
