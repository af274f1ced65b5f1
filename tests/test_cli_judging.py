"""The commands that judge results: compare, check and audit, by what they print and how they exit."""

import msgspec
import pytest

from made_up import make_case, make_launch, make_proof, make_run
from rnnbench.domain.case import Method
from rnnbench.store import append, create_folder

CASE = make_case()


@pytest.fixture
def stored(tmp_path):
    """Writes a run of three steady launches, its times multiplied."""

    def write(name, scale=1.0, **run):
        folder = tmp_path / name
        create_folder(folder, msgspec.structs.replace(make_run([CASE]), **run))
        append(folder, make_proof(CASE))
        for number in range(3):
            seconds = [scale * (0.1 + 0.0001 * (number + step)) for step in range(5)]
            good = {"probe_before_s": 0.003, "probe_after_s": 0.003, "checked": "forward only"}
            append(folder, make_launch(CASE, *seconds, round=number, **good))
        return str(folder)

    return write


# --- compare --------------------------------------------------------------------------------------------


def test_a_regression_is_printed_and_fails_only_where_that_is_asked_for(stored, call):
    a, b = stored("a"), stored("b", scale=1.2)
    answer = call("compare", a, b)
    assert answer.code == 0
    assert "1 slower" in answer.out
    assert call("compare", a, b, "--fail-above", "5%").code == 1
    assert call("compare", a, b, "--fail-above", "50%").code == 0
    assert call("compare", b, a, "--fail-above", "5%").code == 0
    assert "failed: toy/fine/eager ce-short train cpu fp32: slower" in call("compare", a, b, "--fail-above", "5%").out


def test_compare_answers_in_json_and_markdown(stored, call):
    a, b = stored("a"), stored("b", scale=1.2)
    fields = call("compare", a, b, "--json", "--fail-above", "5%").json
    assert fields["cases"][0]["verdict"] == "slower"
    assert len(fields["failures"]) == 1
    assert "| toy/fine/eager @ toy-1.0 |" in call("compare", a, b, "--markdown").out


def test_compare_goes_across_what_it_is_told_to(stored, call):
    a, b = stored("a"), stored("b", method=Method(threads=2))
    assert "1 not comparable" in call("compare", a, b).out
    assert "1 no difference seen" in call("compare", a, b, "--across", "method,source").out


def test_one_environment_of_a_run_can_be_named(stored, call):
    a = stored("a")
    assert "1 no difference seen" in call("compare", f"{a}@toy-1.0", a).out
    answer = call("compare", f"{a}@toy-9", a)
    assert answer.code == 2
    assert "it has: toy-1.0" in answer.err


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (["--across", "weather"], "environment, source, machine, method"),
        (["--fail-above", "5"], "write it like 5%"),
        (["--threshold", "-1%"], "write it like 5%"),
        (["--threshold", "nan%"], "write it like 5%"),
        (["--json", "--markdown"], "give one of them"),
    ],
)
def test_compare_refuses_what_it_cannot_read(stored, call, options, allowed):
    a = stored("a")
    answer = call("compare", a, a, *options)
    assert answer.code == 2
    assert allowed in answer.err


def test_what_is_no_run_is_refused(stored, call, tmp_path):
    for command in (("compare", stored("a")), ("check",)):
        answer = call(*command, str(tmp_path / "nowhere"))
        assert answer.code == 2
        assert "is not a run" in answer.err


def test_damaged_lines_are_told_beside_the_comparison(stored, call, tmp_path):
    a = stored("a")
    with (tmp_path / "a" / "launches.jsonl").open("a") as file:
        file.write("{torn\n")
    answer = call("compare", a, a, "--json")
    assert answer.json["counts"]["no difference seen"] == 1
    assert "line 5" in answer.err


# --- check ----------------------------------------------------------------------------------------------


def test_a_good_run_is_fit_and_a_bad_one_is_not(stored, call):
    good = call("check", stored("good"))
    assert (good.code, good.out.splitlines()[-1]) == (0, "fit to publish: 0 problems, 0 warnings")
    bad = call("check", stored("bad", method=Method(launches=8)))
    assert bad.code == 1
    assert "→ resume it: rnnbench run --resume RUN" in bad.out


def test_check_answers_in_json(stored, call):
    fields = call("check", stored("good"), "--json").json
    assert fields["fit"] is True
    assert {"about", "level", "what", "advice", "rows"} == set(fields["findings"][0])


# --- audit ----------------------------------------------------------------------------------------------


def test_the_seeds_tables_are_audited_by_default(call):
    answer = call("audit")
    assert answer.code == 1
    assert "66 rows checked, 5 contradict themselves by more than 2 %" in answer.out
    (table, _) = call("audit", "--json").json
    assert [suspect["line"] for suspect in table["suspects"]] == [2, 4, 65, 67, 72]
    assert {"figure", "printed", "expected", "off"} == set(table["suspects"][0]["contradictions"][0])


def test_a_run_that_agrees_with_itself_is_no_failure(stored, call):
    answer = call("audit", stored("a"), "--tolerance", "0.001%")
    assert answer.code == 0
    assert "1 rows checked, 0 contradict themselves" in answer.out


def test_audit_is_told_what_a_table_does_not_say(call, tmp_path):
    path = tmp_path / "table.md"
    path.write_text("| | Wall Time (s) | Elapsed Time (s) |\n|---|---|---|\n| a | 0.5 | 25 |\n")
    refused = call("audit", str(path))
    assert refused.code == 2
    assert "--batches" in refused.err
    assert call("audit", str(path), "--batches", "50").code == 0
    assert call("audit", str(path), "--batches", "40").code == 1
    assert call("audit", str(path), "--batches", "-1").code == 2
