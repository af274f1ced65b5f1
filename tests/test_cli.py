"""The commands: their help, what they print for people and for scripts, and how they refuse bad input."""

import json
import os
import subprocess
import sys

import pytest

from made_up import make_case, make_launch, make_run
from rnnbench.machine import allowed_cpus
from rnnbench.store import RECORDS_FILE, append, create_folder

TINY = "ce-short[batch=3,hidden=4,steps=4]"
QUICKLY = ("-w", TINY, "--device", "cpu", "--effort", "quick", "--protocol", "2019")
HONEST = "sabotage/packed/honest"


@pytest.fixture
def stored(tmp_path):
    """The folder of a run with one launch of a framework that is not installed here."""
    case = make_case()
    create_folder(tmp_path / "stored", make_run([case]))
    append(tmp_path / "stored", make_launch(case, 1.5))
    return tmp_path / "stored"


def lines_of(folder):
    return (folder / RECORDS_FILE).read_text().splitlines()


# --- help -----------------------------------------------------------------------------------------------

COMMANDS = [
    (), ("run",), ("show",), ("explain",), ("graph",), ("report",), ("compare",), ("check",), ("audit",),
    ("verify",), ("systems",), ("workloads",),
    ("env", "list"), ("env", "create"), ("env", "remove"), ("env", "use"), ("env", "doctor"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_an_example(call, command):
    answer = call(*command, "--help")
    assert answer.code == 0
    assert "Example" in answer.out
    assert f"rnnbench {' '.join(command)}".strip() in answer.out.partition("Example")[2]


def test_the_environments_have_their_own_help(call):
    answer = call("env", "--help")
    assert answer.code == 0
    for command in ("list", "create", "remove", "use", "doctor"):
        assert command in answer.out


def test_the_version_is_the_packages(call):
    import rnnbench

    assert call("--version").out == f"rnnbench {rnnbench.__version__}\n"


def test_the_module_is_the_same_program():
    answer = subprocess.run([sys.executable, "-m", "rnnbench", "--version"], capture_output=True, text=True)
    assert (answer.returncode, answer.stdout[:9]) == (0, "rnnbench ")


# --- listings -------------------------------------------------------------------------------------------


def test_systems_are_listed_for_people_and_for_scripts(call):
    assert "pytorch/stack/eager" in call("systems").out
    systems = {system["name"]: system for system in call("systems", "--json").json}
    stack = systems["pytorch/stack/eager"]
    assert (stack["framework"], stack["granularity"], stack["execution"]) == ("pytorch", "stack", "eager")
    assert (stack["phases"], stack["devices"]) == (["forward", "train"], ["cpu", "cuda"])
    assert stack["description"].startswith("torch.nn.LSTM")
    assert stack["seed_label"] == "PyTorch (CuDNN LSTM)"
    fields = {"name", "framework", "granularity", "execution", "phases", "devices", "description", "seed_label"}
    assert all(fields <= set(system) for system in systems.values())


def test_a_device_that_a_system_cannot_have_is_not_listed(call):
    devices = {system["name"]: system["devices"] for system in call("systems", "--json").json}
    assert devices["pytorch/fine/cudagraph"] == ["cuda"]
    assert devices["pytorch/fine/rnnfuse-cudagraph"] == ["cuda"]
    # Its system offers both, and its manifest excludes one of them for a reason.
    excluded = [name for name, found in devices.items() if not found]
    assert excluded == []


def test_systems_can_be_chosen(call):
    names = [system["name"] for system in call("systems", "pytorch/cell/*", "pytorch/stack/eager", "--json").json]
    assert names == ["pytorch/cell/eager", "pytorch/cell/script", "pytorch/cell/cudagraph", "pytorch/stack/eager"]


def test_workloads_are_listed_for_people_and_for_scripts(call):
    answer = call("workloads")
    for name in ("ptb-lm", "ce-short", "ce-long", "bi-ce-long", "bi-ctc-long"):
        assert name in answer.out
    assert "5,295,249" in answer.out
    (smaller,) = call("workloads", "ptb-lm[steps=25]", "--json").json
    assert (smaller["name"], smaller["steps"], smaller["batch"]) == ("ptb-lm[steps=25]", 25, 128)
    assert smaller["parameter_count"] == 5_295_249
    assert smaller["flops"] == {"forward": 25_613_107_200, "train": 76_839_321_600}
    assert set(smaller["bytes"]) == {"forward", "train"}


def test_a_users_workloads_are_listed_with_the_others(call, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[workload.mine]\nbatch = 1\nsteps = 2\nfeatures = 3\nhidden = 4\nclasses = 5\n")
    names = [workload["name"] for workload in call("workloads", "--workloads-from", str(path), "--json").json]
    assert names == ["ptb-lm", "ce-short", "ce-long", "bi-ce-long", "bi-ctc-long", "elman-step", "mine"]


# --- run and show ---------------------------------------------------------------------------------------


def test_a_run_prints_its_tables_and_show_prints_them_again(sabotage, call):
    ran = call("run", HONEST, *QUICKLY, "--out", "my run")
    assert ran.code == 0, ran.err
    assert "timing: 2 launches" in ran.err
    assert "saved in my run" in ran.out
    shown = call("show", "my run")
    assert shown.code == 0
    assert ran.out.startswith(shown.out)  # the answer included
    assert f"only {HONEST} is verified: " in shown.out
    for phase in ("forward", "train"):
        assert f"{TINY} · {phase} · cpu · fp32" in shown.out
    assert shown.out.count("1.00×") == 2
    assert "ratio       wall time over that of the best verified row" not in shown.out  # only on request
    assert "ratio       wall time over that of the best verified row" in call("show", "my run", "--legend").out


ROW = {
    "workload", "system", "phase", "device", "precision", "status", "reason", "wall_s", "wall_low_s", "wall_high_s",
    "elapsed_s", "batches", "sequences_per_s", "first_call_s", "peak_host_bytes", "peak_device_bytes", "ratio",
}  # fmt: skip


def test_rows_for_scripts_have_every_field_and_agree_with_themselves(sabotage, call):
    ran = call("run", HONEST, *QUICKLY, "--out", "run", "--json")
    shown = call("show", "run", "--json")
    assert ran.json == shown.json  # nothing else on standard output
    for row in shown.json:
        assert set(row) >= ROW
        assert (row["status"], row["reason"], row["batches"], row["ratio"]) == ("verified", "", 50, 1.0)
        assert row["wall_low_s"] <= row["wall_s"] <= row["wall_high_s"]
        assert row["elapsed_s"] == pytest.approx(50 * row["wall_s"], rel=1e-9)
        assert row["sequences_per_s"] == pytest.approx(3 / row["wall_s"], rel=1e-9)
        assert row["first_call_s"] > 0
        assert row["peak_host_bytes"] > 1e6
        assert row["peak_device_bytes"] is None


def test_what_failed_and_what_is_unsupported_stay_in_the_table_with_their_reason(sabotage, call):
    ctc = "bi-ctc-long[batch=3,hidden=4,labels=2,layers=1,steps=6]"
    systems = [f"sabotage/packed/{name}" for name in ("honest", "raise", "no-ctc")]
    answer = call("run", *systems, *QUICKLY, "-w", ctc, "--phase", "forward", "--no-verify", "--out", "run")
    assert answer.code == 0
    by_name = {
        row["system"].rpartition("/")[2]: row for row in call("show", "run", "--json").json if row["workload"] == ctc
    }
    assert by_name["honest"]["status"] == "unverified"
    assert by_name["raise"]["status"] == "failed"
    assert by_name["raise"]["reason"].startswith("ValueError: a message of its own")
    assert by_name["raise"]["wall_s"] is None
    assert by_name["no-ctc"]["status"] == "unsupported"
    assert by_name["no-ctc"]["reason"] == "declared: this one has no CTC"
    table = answer.out[answer.out.index(f"{ctc} ·") :]
    assert (
        table.index("honest") < table.index("failed: ValueError") < table.index("1 unsupported: sabotage/packed/no-ctc")
    )
    assert "declared: this one has no CTC" not in table
    assert "unsupported: declared: this one has no CTC" in call("show", "run", "--wide").out


def test_without_a_name_a_run_is_saved_by_date_and_time(sabotage, call):
    answer = call("run", HONEST, *QUICKLY, "--phase", "forward", "--no-verify")
    (folder,) = (sabotage / "runs").iterdir()
    assert f"saved in runs/{folder.name}" in answer.out
    assert sorted(path.name for path in folder.iterdir()) == ["launches.jsonl", "logs", "run.json"]


def test_a_dry_run_prints_the_plan_with_an_estimate_and_runs_nothing(sabotage, call):
    answer = call("run", "sabotage/packed/*", "-w", "bi-ctc-long", "--device", "cpu", "--dry-run", "--out", "run")
    assert answer.code == 0
    assert "sabotage/packed/crash" in answer.out
    assert "sabotage/packed/no-ctc: declared: this one has no CTC" in answer.out
    assert "3 launches each, 2 left out; about " in answer.out
    assert not (sabotage / "run").exists()
    assert not (sabotage / "runs").exists()


def test_a_dry_run_for_scripts(sabotage, call):
    plan = call("run", HONEST, "-w", TINY, "--device", "cpu", "--dry-run", "--launches", "5", "--json").json
    assert [case["phase"] for case in plan["cases"]] == ["forward", "train"]
    assert plan["method"]["launches"] == 5
    assert 0 < plan["estimate_s"] < plan["at_most_s"]


def test_damaged_lines_are_reported_with_their_number_and_the_rest_is_shown(stored, call):
    with (stored / RECORDS_FILE).open("a") as file:
        file.write("rubbish\n")
    shown = call("show", str(stored))
    assert shown.code == 0
    assert "damaged lines in launches.jsonl were skipped:\n  line 2: " in shown.out
    for_scripts = call("show", str(stored), "--json")
    assert "launches.jsonl, line 2: " in for_scripts.err
    assert [row["wall_s"] for row in for_scripts.json] == [1.5]


def test_a_reader_that_goes_away_is_no_reason_to_complain(stored):
    reading, writing = os.pipe()
    os.close(reading)  # `rnnbench show run | head -0`
    command = [sys.executable, "-m", "rnnbench", "show", str(stored)]
    answer = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert answer.stderr == ""


# --- resuming -------------------------------------------------------------------------------------------


def test_what_failed_is_not_tried_again_unless_asked(sabotage, call, monkeypatch):
    systems = [HONEST, "sabotage/packed/raise"]
    call("run", *systems, *QUICKLY, "--no-verify", "--phase", "forward", "--launches", "2", "--out", "run")
    before = lines_of(sabotage / "run")
    assert len(before) == 1 + 3  # the machine's limit, the honest one twice, the other once
    with monkeypatch.context() as patched:
        # Large inputs take seconds: none are made for finished cases.
        patched.setattr("rnnbench.session.write_timed_inputs", None)
        resumed = call("run", "--resume", "run")
    assert resumed.code == 0
    assert "timing: 0 launches" in resumed.err
    assert lines_of(sabotage / "run") == before
    again = call("run", "--resume", "run", "--retry-failed")
    added = lines_of(sabotage / "run")[len(before) :]
    assert [json.loads(line)["case"]["system"] for line in added] == ["sabotage/packed/raise"]
    assert "failed: ValueError" in again.out


def test_a_run_goes_on_with_what_is_missing(sabotage, call):
    call("run", HONEST, *QUICKLY, "--launches", "2", "--out", "run")
    whole = lines_of(sabotage / "run")
    assert len(whole) == 2 + 1 + 4  # two verifications, the machine's limit, two launches for each phase
    # as if it had been killed while it wrote the second launch
    (sabotage / "run" / RECORDS_FILE).write_text("\n".join(whole[:4]) + "\n" + whole[4][:40])
    answer = call("run", "--resume", "run")
    assert answer.code == 0
    assert "line 5: " in answer.err
    assert "timing: 3 launches" in answer.err
    assert lines_of(sabotage / "run")[:4] == whole[:4]
    assert [(row["status"], row["launches"]) for row in call("show", "run", "--json").json] == [("verified", 2)] * 2


def test_a_run_of_a_framework_that_is_gone_can_be_shown_but_not_gone_on_with(stored, call):
    assert call("show", str(stored)).code == 0
    answer = call("run", "--resume", str(stored))
    assert answer.code == 2
    assert "this run needs toy" in answer.err
    assert "RNNBENCH_SYSTEMS" in answer.err


# --- verify ---------------------------------------------------------------------------------------------


def test_verify_ends_well_when_everything_is_right(sabotage, call):
    answer = call("verify", HONEST, "-w", "ce-short", "--device", "cpu")
    assert answer.code == 0
    assert answer.out.endswith("2 verified\n")


def test_verify_ends_with_1_when_a_system_is_wrong_and_says_where(sabotage, call):
    systems = (HONEST, "sabotage/packed/scaled-gradient", "sabotage/packed/no-ctc")
    answer = call("verify", *systems, "-w", "bi-ctc-long", "--phase", "train", "--device", "cpu", "--json")
    assert answer.code == 1
    by_name = {one["system"].rpartition("/")[2]: one for one in answer.json}
    assert {one["workload"] for one in answer.json} == {"bi-ctc-long"}
    assert {name: one["status"] for name, one in by_name.items()} == {
        "honest": "verified",
        "scaled-gradient": "wrong",
        "no-ctc": "unsupported",
    }
    wrong = by_name["scaled-gradient"]
    assert wrong["largest_error"] == pytest.approx(0.01, rel=0.01)
    assert wrong["quantity"].startswith("gradient of ")
    assert by_name["honest"]["largest_error"] < 1e-4
    assert by_name["no-ctc"]["reason"] == "declared: this one has no CTC"


def test_verify_ends_with_1_when_a_system_fails(sabotage, call):
    answer = call("verify", "sabotage/packed/raise", "-w", "ce-short", "--phase", "forward", "--device", "cpu")
    assert answer.code == 1
    assert "1 failed" in answer.out


# --- bad input ------------------------------------------------------------------------------------------

BAD = {
    "an unknown system": (("run", "pytorch/stack/eagre"), "nearest: pytorch/stack/eager"),
    "an unknown system to list": (("systems", "pytorch/stck/*"), "no system matches 'pytorch/stck/*'"),
    "an unknown system to verify": (("verify", "pytorch/stack/eagre"), "nearest: pytorch/stack/eager"),
    "an unknown workload": (("run", "-w", "ce-shrt"), "nearest: ce-short"),
    "an unknown workload to list": (("workloads", "ce-shrt"), "nearest: ce-short"),
    "an impossible workload": (("run", "-w", "ce-short[batch=0]"), "batch must be at least 1"),
    "a number that is none": (("run", "-w", "ce-short[batch=x]"), "for example batch=16"),
    "a file of workloads that is not there": (("run", "--workloads-from", "nowhere.toml"), "No such file"),
    "an unknown phase": (("run", "--phase", "backward"), "allowed: forward, train"),
    "an unknown device": (("run", "--device", "tpu"), "allowed: cpu, cuda, auto"),
    "an unknown precision": (("run", "--precision", "fp64"), "allowed: fp32, tf32, bf16"),
    "an unknown effort": (("run", "--effort", "lazy"), "allowed: quick, standard, thorough"),
    "an unknown protocol": (("run", "--protocol", "2020"), "allowed: adaptive, 2018, 2019"),
    "an unknown timing": (("run", "--timing", "fast"), "allowed: throughput, latency"),
    "a version that is none": (
        ("run", "pytorch/*", "--versions", "latest"),
        "'latest' in 'pytorch==latest' is not a version",
    ),
    "negative launches": (("run", "--launches", "-1"), "at least 0"),
    "launches that are no number": (("run", "--launches", "many"), "'--launches'"),
    "no time": (("run", "--limit", "0"), "at least 1"),
    "a time that is no number": (("run", "--limit", "nan"), "at least 1"),
    "endless time": (("run", "--limit", "inf"), "time limit"),
    "negative memory": (("run", "--memory", "-1"), "at least 0"),
    "memory that is no number": (("run", "--memory", "nan"), "memory limit"),
    "a negative seed": (("run", "--seed", "-1"), "at least 0"),
    "too many threads": (("run", "--threads", "100000"), f"this process may use {len(allowed_cpus())}"),
    "negative threads": (("run", "--threads", "-1"), "at least 0"),
    "negative jobs": (("verify", "--jobs", "-1"), "at least 0"),
    "no such run to show": (("show", "nowhere"), "a run folder contains run.json"),
    "a folder that is not a run": (("show", "."), "a run folder contains run.json"),
    "a folder that is not a run to resume": (("run", "--resume", "."), "a run folder contains run.json"),
    "a retry of nothing": (("run", "--retry-failed"), "--resume"),
    "no launches for the rest": (("run", "--resume", ".", "--launches", "0"), "--launches is 0"),
    "a dry run of the rest": (("run", "--resume", ".", "--dry-run"), "--dry-run"),
    "a folder that is taken": (("run", "pytorch/stack/eager", "--out", "taken"), "--resume"),
    "a version that no manifest covers": (
        ("run", "pytorch/stack/eager", "--versions", "9.9.9", "--dry-run"),
        "the requirements of PyTorch 9.9.9 are unknown",
    ),
    "too many launches": (("run", "--launches", "100000"), "launches cannot be 100000: it is too large"),
    "a seed that is too large": (("run", "--seed", "1" + "0" * 400), "the seed cannot be so many: it is too large"),
    "a batch that is too large": (("run", "-w", "ce-short[batch=99999999999]"), "batch=99999999999 is too large"),
    "a folder within a file": (("run", "pytorch/stack/eager", "--out", "taken/something/run"), "Not a directory"),
    "a folder in /proc": (
        ("run", "pytorch/stack/eager", "--out", "/proc/foo"),
        "cannot write to /proc/foo: No such file or directory",
    ),
    "a run that is called last": (("run", "pytorch/stack/eager", "--out", "last"), "means the newest run"),
    "a drawing in /proc": (
        ("graph", "pytorch/fine/script", "--format", "svg", "--out", "/proc/x.svg"),
        "cannot write to /proc: No such file or directory",
    ),
    "a report in /proc": (("report", "taken", "--out", "/proc/foo"), "cannot write to /proc/foo"),
    "no last run": (("show", "last"), "there is no last run"),
    "a workload larger than the memory": (
        ("run", "pytorch/stack/eager", "-w", "ptb-lm[embedding=1000000,vocabulary=10000000]", "--phase", "train"),
        "it needs at least 160,",
    ),
    "a graph larger than the memory": (
        ("graph", "pytorch/fine/eager", "--full", "-w", "ptb-lm[embedding=1000000,vocabulary=10000000]"),
        "it needs at least 160,",
    ),
    "an unknown option": (("run", "--fast"), "--fast"),
    "an unknown command": (("walk",), "walk"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_ends_with_2_and_says_what_is_allowed(private_folders, call, monkeypatch, kind):
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # input that is not refused must not download a framework
    (private_folders / "taken").mkdir()
    (private_folders / "taken" / "something").touch()
    arguments, said = BAD[kind]
    answer = call(*arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.out == ""
    assert sorted(path.name for path in private_folders.iterdir()) == ["taken"]


def test_cuda_where_there_is_none_is_bad_input(private_folders, call, monkeypatch):
    monkeypatch.setattr("rnnbench.plan.find_gpus", lambda: ())
    answer = call("run", "--device", "cuda")
    assert (answer.code, "choose the device cpu" in answer.err) == (2, True)


def test_nothing_that_can_be_run_is_bad_input(sabotage, call):
    answer = call("run", "sabotage/packed/no-ctc", "-w", "bi-ctc-long", "--device", "cpu")
    assert answer.code == 2
    assert "declared: this one has no CTC" in answer.err
