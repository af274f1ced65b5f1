"""`rnnbench profile` and `run --profile`: what is stored, what is printed, and what never becomes a sample."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import msgspec
import pytest

from made_up import WHEN, make_case, make_contents, make_launch, make_proof
from profile_world import WORKLOAD, shapes  # noqa: F401  a fixture
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import Method
from rnnbench.domain.profile import Operator, Profile, Reshape, Retrace
from rnnbench.domain.result import Limit
from rnnbench.report.document import Document
from rnnbench.report.html import page_data
from rnnbench.report.markdown import as_markdown
from rnnbench.report.profiles import profiles_as_markdown, show_profiles
from rnnbench.report.terminal import show_run
from rnnbench.store import PROFILES_FILE, RECORDS_FILE, RUN_FILE, append, create_folder, read_folder

ONE = ("-w", WORKLOAD, "--device", "cpu", "--threads", "1")


def test_a_profile_is_counted_judged_and_kept_with_its_trace(shapes, call):  # noqa: F811
    answer = call("profile", "shapes/packed/growing", *ONE, "--phase", "forward", "--out", "found", "--format", "json")
    assert answer.code == 0, answer.err
    (found,) = answer.json
    profile = found["profile"]
    assert profile["outcome"] == "ok"
    # The layer calls the products, so it does not count; a copy on another thread overlaps with one of them.
    assert profile["operators"] == 3
    assert profile["operators_s"] == pytest.approx(0.6)
    assert [name for name, _, _ in profile["top"]] == ["matmul", "copy"]
    assert found["bottleneck"]["name"] == "matrix-multiply-bound"
    assert json.loads(gzip.decompress((shapes / "found" / profile["trace"]).read_bytes())) == []
    assert found["retrace"]["reshapes"][0]["outcome"] == "rebuilt"
    assert found["new_batch_s"] > 0
    contents = read_folder(shapes / "found")
    assert len(contents.profiles) == 2
    assert {type(record) for record in contents.records} == {Limit}  # nothing else was timed
    assert "growing" in (shapes / "found" / "profile.md").read_text()


def test_what_has_no_profiler_says_why_and_the_others_go_on(shapes, call):  # noqa: F811
    systems = ("shapes/packed/blind", "shapes/packed/hang", "shapes/packed/fixed")
    answer = call("profile", *systems, *ONE, "--phase", "forward", "--limit", "2", "--out", "found")
    assert answer.code == 0, answer.err
    assert "shapes/packed/blind forward: no profiler: nobody can look into it" in answer.out
    assert "shapes/packed/hang forward: timeout: over 2 s during first call" in answer.out
    assert "a new batch size needs a new program (ValueError: made for (3, 4)" in answer.out
    # Resuming prints the same, and nothing is done twice.
    again = call("profile", "--resume", "found")
    assert again.out == answer.out
    refused = call("run", "--resume", "found")
    assert refused.code == 2
    assert "found was only to be profiled" in refused.err
    assert len(read_folder(shapes / "found").profiles) == 6


def test_parts_can_be_had_alone(shapes, call):  # noqa: F811
    call("profile", "shapes/packed/kept", *ONE, "--phase", "forward", "--only", "shapes", "--out", "found")
    (record,) = read_folder(shapes / "found").profiles
    assert isinstance(record, Retrace)
    answer = call("profile", "--resume", "found", "--only", "operators")
    assert answer.code == 0
    assert {type(record) for record in read_folder(shapes / "found").profiles} == {Retrace, Profile}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "half"), "'half' is not a valid part"),
        (("--format", "pdf"), "'pdf' is not a valid format"),
        (("--retry-failed",), "--retry-failed needs --resume"),
        (("--resume", "nowhere"), "nowhere is not a run"),
        (("--resume", "nowhere", "--small"), "--resume profiles the cases of its folder"),
    ],
)
def test_bad_input_is_refused(private_folders, call, arguments, said):
    answer = call("profile", *arguments)
    assert answer.code == 2
    assert said in answer.err


def test_run_profiles_after_timing_and_keeps_it_apart(shapes, call):  # noqa: F811
    quick = ("--effort", "quick", "--no-verify", "--out", "run")
    answer = call("run", "shapes/packed/growing", *ONE, "--phase", "forward", *quick, "--profile")
    assert answer.code == 1, answer.err  # none of these programs is a network, so no row succeeds
    assert "operators" in answer.out
    assert "rebuilt" in answer.out
    timed = (shapes / "run" / RECORDS_FILE).read_text()
    assert '"kind":"profile"' not in timed
    assert '"kind":"retrace"' not in timed
    assert len((shapes / "run" / PROFILES_FILE).read_text().splitlines()) == 2
    plain = call("show", "run", "--json").json[0]
    (shapes / "run" / PROFILES_FILE).unlink()
    without = call("show", "run", "--json").json[0]
    changed = {name for name in plain if plain[name] != without[name]}
    assert changed == {
        "operators", "host_share", "bottleneck", "new_batch_s", "new_batch", "new_length_s", "new_length",
    }  # fmt: skip


def test_what_has_ended_is_kept_when_interrupted(shapes):  # noqa: F811
    command = [sys.executable, "-m", "rnnbench", "profile", "shapes/packed/kept", "shapes/packed/hang", *ONE]
    command += ["--phase", "forward", "--out", "found"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    stored = shapes / "found" / PROFILES_FILE
    deadline = time.monotonic() + 60
    while not (stored.exists() and stored.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline, process.kill() or process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "shapes/packed/kept" in out
    assert "rnnbench profile --resume found" in err


# --- in reports ------------------------------------------------------------------------------------------------


def profiled_run(*records):
    case = make_case()
    contents = make_contents([case, make_case("script")], make_proof(case), make_launch(case, 0.1, 0.1, 0.1))
    return case, type(contents)(run=contents.run, records=contents.records, profiles=records)


def some_profile(case):
    return Profile(
        case=case, started=WHEN, outcome="ok", batches=2, wall_s=0.1, host_s=0.1, profiled_s=0.2, operators=12345.0,
        operators_s=0.03, kinds={"product": 0.03},
    )  # fmt: skip


def some_retrace(case):
    reshapes = [
        Reshape(change="batch", outcome="rebuilt", calls=(3.5, 0.1), built=(1, 1)),
        Reshape(change="steps", outcome="anew", calls=(0.2, 0.1), build_s=1.0, reason="it refused"),
    ]
    return Retrace(case=case, started=WHEN, outcome="ok", reshapes=tuple(reshapes))


def test_a_row_has_what_its_profile_says_and_its_time_is_untouched():
    case = make_case()
    _, plain = profiled_run()
    _, profiled = profiled_run(some_profile(case), some_retrace(case))
    before, after = make_rows(plain)[0], make_rows(profiled)[0]
    assert before.operators is None
    assert before.bottleneck == ""
    assert after.operators == 12345
    assert after.host_share == pytest.approx(0.7)
    assert after.bottleneck.startswith("dispatch-bound: ")
    assert (after.new_batch_s, after.new_batch) == (pytest.approx(3.4), "rebuilt")
    assert (after.new_length_s, after.new_length) == (pytest.approx(1.1), "anew")
    assert (after.wall_s, after.batches, after.elapsed_s) == (before.wall_s, before.batches, before.elapsed_s)


def test_systems_are_shown_side_by_side_with_their_advice_in_lines_that_fit():
    contents, width = several_profiles(4), 90
    text = show_profiles(contents, width)
    tables = text[: text.index("toy/fine/system-0 train: ")]
    assert max(map(len, tables.splitlines())) <= width
    assert tables.count("products' rate") > 1  # too many for one table of this width
    assert "system-3" in tables
    assert text.count("  → ") == 4
    first = next(line for line in tables.splitlines() if line.strip().startswith("operators "))
    assert first.split()[1:3] == ["12,345", "12,345"]
    assert "bottleneck" in show_profiles(several_profiles(9), width)  # a line for each


def several_profiles(count):
    cases = [make_case(f"system-{number}") for number in range(count)]
    contents = make_contents(cases)
    return msgspec.structs.replace(contents, profiles=tuple(some_profile(case) for case in cases))


def test_no_share_is_above_the_whole_batch():
    case = make_case()
    top = (Operator("aten::mm", 10, 0.1), Operator("aten::add", 10, 0.062))  # as an earlier version stored them
    _, contents = profiled_run(msgspec.structs.replace(some_profile(case), operators_s=0.2, top=top))
    text = show_profiles(contents)
    assert "162 %" not in text
    assert "62 %" in text  # of aten::mm, and 38 % of aten::add
    assert "38 %" in text


def test_what_was_profiled_on_a_busy_machine_is_marked():
    case = make_case()
    for noisy in (True, False):
        _, contents = profiled_run(msgspec.structs.replace(some_profile(case), noisy=noisy))
        assert ("dispatch-bound~" in show_profiles(contents, legend=False)) is noisy
        assert ("dispatch-bound\\~" in profiles_as_markdown(contents)) is noisy


def test_a_launch_beside_another_load_is_called_noisy(monkeypatch):
    from rnnbench.launch import probe

    for seconds, best, busy in (([1.0, 1.0], 1.0, False), ([1.0, 1.5], None, True), ([1.5, 1.5], 1.0, True)):
        times = iter(seconds)
        monkeypatch.setattr(probe, "probe_seconds", lambda cpus, times=times: next(times))
        known = SimpleNamespace(seconds=best)
        monkeypatch.setattr(probe.BestProbe, "of_machine", classmethod(lambda cls, cpus, known=known: known))
        with probe.watched(Method()) as watch:
            pass
        assert watch.was_busy is busy


def test_columns_are_there_only_where_something_was_profiled():
    case = make_case()
    for records, there in (((), False), ((some_profile(case), some_retrace(case)), True)):
        _, contents = profiled_run(*records)
        text = show_run(contents, make_rows(contents))
        markdown = as_markdown(Document(["a run"], [contents]), []).decode()
        assert ("12,345" in text) is there
        assert ("new batch size" in text) is there
        assert ("3.40 s, rebuilt" in markdown) is there
        assert ("New Length" in markdown) is there
        assert ("dispatch-bound" in page_data(Document(["a run"], [contents]), [])) is there


def test_profiles_are_stored_apart_and_a_damaged_line_is_named(tmp_path):
    case, contents = profiled_run()
    create_folder(tmp_path / "run", contents.run)
    append(tmp_path / "run", some_profile(case))
    with (tmp_path / "run" / PROFILES_FILE).open("a") as file:
        file.write('{"kind": "pro')
    append(tmp_path / "run", some_retrace(case))
    found = read_folder(tmp_path / "run")
    assert found.profiles == (some_profile(case), some_retrace(case))
    assert found.records == ()
    assert len(found.damaged) == 1
    assert found.damaged[0].startswith("profiles.jsonl, line 2: ")


def test_the_page_has_the_columns_and_says_the_bottleneck(browser, tmp_path):
    from conftest import write_page

    case = make_case()
    _, contents = profiled_run(some_profile(case), some_retrace(case))
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(write_page(tmp_path / "page.html", run=contents).as_uri())
    headings = page.locator("#table thead th").all_inner_texts()
    assert {"operators", "no operator", "new batch size", "new length"} <= set(headings)
    row = page.locator("#table tbody tr").first
    assert "12,345" in row.inner_text()
    assert "3.40 s, rebuilt" in row.inner_text()
    row.click()
    assert "dispatch-bound: no operator runs in 70 % of a batch" in page.locator("#details").inner_text()
    page.close()


def change_environment(folder):
    """As if something had been installed since the run began."""
    stored = json.loads((folder / RUN_FILE).read_text())
    for environment in stored["environments"].values():
        environment["fingerprint"] = "another"
    (folder / RUN_FILE).write_text(json.dumps(stored))


@pytest.mark.parametrize("command", ["profile", "run"])
def test_neither_is_resumed_in_an_environment_that_has_changed(shapes, call, command):  # noqa: F811
    quick = () if command == "profile" else ("--effort", "quick", "--no-verify")
    answer = call(command, "shapes/packed/kept", *ONE, "--phase", "forward", *quick, "--out", "made")
    assert answer.code == (0 if command == "profile" else 1), answer.err  # its one row is no network
    change_environment(shapes / "made")
    refused = call(command, "--resume", "made")
    assert refused.code == 2
    assert "has changed since this run began" in refused.err


def test_a_run_without_results_is_not_profiled_in_a_changed_environment_either(shapes, call):  # noqa: F811
    assert call("profile", "shapes/packed/kept", *ONE, "--phase", "forward", "--out", "made").code == 0
    (shapes / "made" / PROFILES_FILE).unlink()
    change_environment(shapes / "made")
    assert "has changed since this run began" in call("profile", "--resume", "made").err
