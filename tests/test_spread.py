"""Spread runs without a cluster: visits, collecting, the queue, the driver, a node's work, bad input."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from made_up import ENVIRONMENT, make_case, make_launch, make_proof, make_run
from rnnbench.analysis.rows import make_rows
from rnnbench.errors import UserError
from rnnbench.last_run import newest_run
from rnnbench.launch.listener import Listener
from rnnbench.plan import Selection, count_groups
from rnnbench.session import profile_run
from rnnbench.spread import driver, slurm
from rnnbench.spread import node as nodes
from rnnbench.spread.collect import collect
from rnnbench.spread.folder import (
    Request,
    Resuming,
    Spread,
    complete,
    complete_on,
    create_spread,
    groups_of,
    part_folder,
    part_name,
    read_spread,
    reopen,
    visit_folder,
)
from rnnbench.spread.state import find_state
from rnnbench.store import append, create_folder, read_folder, write_log

SPREAD = Spread(name="rnnbench-abc", request=Request(selection=Selection(), method={}), groups=2)
MACHINE = make_run([]).machine
CASES = [make_case(execution, phase=phase) for phase in ("train", "forward") for execution in ("eager", "script")]


def machine(**fields):
    return msgspec.structs.replace(MACHINE, **fields)


@pytest.fixture
def folder(tmp_path):
    """A run of two groups whose plan was made on n9."""
    create_spread(tmp_path / "run", SPREAD)
    visit(tmp_path / "run", 0, "n9", CASES, *map(make_proof, CASES))
    complete(tmp_path / "run", 0, "n9")
    return tmp_path / "run"


def visit(folder, part, node, cases, *records, **machine_fields):
    run = msgspec.structs.replace(make_run(cases), machine=machine(**machine_fields))
    create_folder(visit_folder(folder, part, node), run)
    for record in records:
        append(visit_folder(folder, part, node), record)
    return visit_folder(folder, part, node)


# --- visits ---------------------------------------------------------------------------------------------


def test_of_many_visits_that_complete_at_once_exactly_one_counts(tmp_path):
    names = [f"n{number}" for number in range(40)]
    with ThreadPoolExecutor(20) as pool:
        first = list(pool.map(lambda node: complete(tmp_path, 3, node), names))
    assert sum(first) == 1
    assert complete_on(tmp_path, 3) == names[first.index(True)]
    assert os.listdir(part_folder(tmp_path, 3)) == ["complete"]


def test_a_visit_that_counts_says_so_again_and_a_reopened_part_has_none(tmp_path):
    assert complete(tmp_path, 1, "n1")
    assert complete(tmp_path, 1, "n1")
    assert not complete(tmp_path, 1, "n2")
    reopen(tmp_path, 1)
    assert complete_on(tmp_path, 1) is None
    assert complete(tmp_path, 1, "n2")


@pytest.mark.parametrize("text", ["", "../elsewhere", "n1\nn2"])
def test_a_damaged_mark_is_an_error_that_says_what_to_do(tmp_path, text):
    complete(tmp_path, 1, "n1")
    (part_folder(tmp_path, 1) / "complete").write_text(text)
    with pytest.raises(UserError, match="damaged"):
        complete_on(tmp_path, 1)


# --- collecting -----------------------------------------------------------------------------------------


def test_the_visit_that_counts_is_collected_and_others_are_kept(folder):
    first = [make_launch(case, 1.0) for case in CASES[:2]]
    visit(folder, 1, "n1", CASES[:2], *first, cpu="one")
    late = visit(folder, 1, "n2", CASES[:2], *(make_launch(case, 2.0) for case in CASES[:2]))
    assert complete(folder, 1, "n1")
    assert not complete(folder, 1, "n2")
    contents = collect(folder, Listener())
    launches = [record for record in contents.records if hasattr(record, "samples")]
    assert launches == [msgspec.structs.replace(launch, node="n1") for launch in first]
    assert contents.run.machine_of("n1").cpu == "one"
    assert set(contents.run.machines) == {"n9", "n1"}
    assert len(read_folder(late).records) == 2
    assert [row.status for row in make_rows(contents)] == ["verified", "verified", "unverified", "unverified"]


def test_verdicts_of_the_plan_are_not_doubled_and_newer_ones_of_a_part_count(folder):
    again = make_proof(CASES[0], "wrong", reason="it is off")
    place = visit(folder, 1, "n1", CASES[:2], make_proof(CASES[0]), make_proof(CASES[1]), again)
    for case in CASES[:2]:
        append(place, make_launch(case, 1.0))
    complete(folder, 1, "n1")
    contents = collect(folder, Listener())
    assert len(contents.records) == 4 + 1 + 2
    assert [row.status for row in make_rows(contents)][:2] == ["wrong", "verified"]


def test_collected_logs_are_found(folder):
    launch = make_launch(CASES[0], 1.0, log="logs/it.log")
    place = visit(folder, 1, "n1", CASES[:2], launch)
    write_log(place, "logs/it.log", "printed")
    complete(folder, 1, "n1")
    (collected,) = (record for record in collect(folder, Listener()).records if hasattr(record, "samples"))
    assert (folder / collected.log).read_text() == "printed"


def test_a_visit_of_another_group_is_refused(folder):
    visit(folder, 1, "n1", CASES[2:])
    complete(folder, 1, "n1")
    with pytest.raises(UserError, match="not part 1"):
        collect(folder, Listener())


def test_without_a_plan_there_is_nothing_to_collect_and_show_says_what_to_do(tmp_path, call):
    create_spread(tmp_path / "run", SPREAD)
    assert collect(tmp_path / "run", Listener()) is None
    answer = call("show", str(tmp_path / "run"))
    assert answer.code == 2
    assert "rnnbench run --resume" in answer.err


def test_what_is_collected_is_not_added_to(folder):
    """The next collecting would lose it."""
    collect(folder, Listener())
    with pytest.raises(UserError, match="spread over a cluster"):
        profile_run(folder, Listener())


def test_a_record_of_an_unknown_node_is_damage(folder):
    collect(folder, Listener())
    append(folder, make_launch(CASES[0], 1.0, node="n7"))
    (line,) = read_folder(folder).damaged
    assert "no node here is named 'n7'" in line


# --- the queue ------------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Slurm's commands as shell scripts."""
    place = tmp_path / "programs"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def write(name, body):
        (place / name).write_text(f"#!/bin/sh\n{body}\n")
        (place / name).chmod(0o755)

    return write


def test_only_the_jobs_of_this_run_are_found_with_the_part_that_they_work_on(programs, folder):
    lines = (
        "7|0|COMPLETING|n1|rnnbench-abc-0|None",
        "8|2|RUNNING|n2|rnnbench-abc-0|None",
        "9|5|PENDING||rnnbench-abc-1000|Dependency",
        "10|1|RUNNING|n3|rnnbench-abcd-0|None",
        "11|N/A|RUNNING|n3|another|with | in it",
    )
    programs("squeue", "\n".join(f"echo '{line}'" for line in lines))
    jobs = slurm.find_jobs(SPREAD)
    assert [(job.part, job.state, job.node) for job in jobs] == [
        (0, "COMPLETING", "n1"), (2, "RUNNING", "n2"), (1005, "PENDING", ""),
    ]  # fmt: skip
    state = find_state(folder, SPREAD, jobs)
    assert [part.state for part in state.parts] == ["complete", "ended", "running"]
    assert state.planned_launches == 4 * 3
    assert state.parts[2].name == "ce-short · forward · cpu · fp32"


def test_launches_of_running_parts_are_counted(folder):
    visit(folder, 1, "n1", CASES[:2], make_launch(CASES[0], 1.0, log_tail='{"kind":"launch",'))
    state = find_state(folder, SPREAD, [slurm.Job("7", 1, "RUNNING", "n1", "")])
    assert (state.parts[1].launches, state.parts[1].planned_launches) == (1, 6)


def test_thousands_of_parts_are_submitted_in_arrays_that_slurm_takes(programs, tmp_path):
    programs("sbatch", f'echo "$@" >>{tmp_path}/asked; cat >>{tmp_path}/scripts; echo 5; true')
    parts = [1, 2, 3, 7, *range(1000, 2003)]
    assert slurm.submit(tmp_path, SPREAD, parts, after=["4"]) == ["5", "5", "5"]
    asked = (tmp_path / "asked").read_text().splitlines()
    arrays = [next(word for word in line.split() if word.startswith("--array=")) for line in asked]
    assert arrays == ["--array=1-3,7,1000", "--array=1-1000", "--array=1-2"]
    assert all("--dependency=afterok:4" in line and "--exclusive" in line and "--mem=0" in line for line in asked)
    scripts = (tmp_path / "scripts").read_text()
    assert [f"$(({offset} + SLURM_ARRAY_TASK_ID))" in scripts for offset in (0, 1000, 2000)] == [True] * 3


def test_every_part_has_a_file_of_its_own_for_what_its_job_prints(tmp_path):
    names = {slurm.output_of(tmp_path, part) for part in range(3001)}
    assert len(names) == 3001


def test_the_parts_with_the_most_work_are_first():
    sizes = ("ce-short[steps=2]", "ce-short[steps=90]", "ce-short[steps=40]")
    run = make_run([make_case(workload=name) for name in sizes] + [make_case("other", workload=sizes[2])] * 2)
    groups = groups_of(run)
    assert [group[0] for group in groups] == [sizes[2], sizes[1], sizes[0]]  # three cases of 40 steps are more than 90
    assert part_name(groups, 3).startswith("ce-short[steps=2]")


def test_groups_are_counted_before_there_is_a_plan():
    selection = Selection(phases=("train",), precisions=("fp32", "bf16"))
    assert count_groups(selection) == 5 * 2
    assert count_groups(msgspec.structs.replace(selection, headline=True)) == 2 * 2


# --- the driver -----------------------------------------------------------------------------------------


@pytest.fixture
def submitted(programs, tmp_path, monkeypatch):
    """What is submitted to a queue in which every job ends at once, without having done anything."""
    programs("sbatch", f'echo "$@" >>{tmp_path}/asked; echo 5')
    programs("squeue", "true")
    programs("scancel", "true")
    monkeypatch.setattr(driver, "_SETTLED_S", 0.0)
    monkeypatch.setattr(driver, "_LONGEST_S", 0.01)

    def arrays():
        try:
            lines = (tmp_path / "asked").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [word for line in lines for word in line.split() if word.startswith("--array=")]

    return arrays


def test_a_spread_run_is_the_last_one_from_its_beginning(submitted, private_folders):
    create_folder(Path("runs/older"), make_run(CASES[:2]))
    driver.begin_spread(SPREAD.request, (), Path("far/away"))
    assert newest_run() == Path("far/away")


def test_only_parts_that_are_neither_complete_nor_queued_are_submitted(folder, submitted, programs):
    visit(folder, 1, "n1", CASES[:2], *(make_launch(case, 1.0) for case in CASES[:2]))
    complete(folder, 1, "n1")
    state = driver.resume_spread(folder, Listener())
    assert submitted() == ["--array=2"]
    assert [part.state for part in state.parts] == ["complete", "complete", "ended"]
    (line,) = driver.describe_ended(folder, state)
    assert line.startswith("ce-short · forward · cpu · fp32: its job has ended")
    programs("squeue", "echo '8|2|RUNNING|n2|rnnbench-abc-0|None'")
    driver.resume_spread(folder, Listener(), detach=True)
    assert submitted() == ["--array=2"]


def test_the_jobs_of_a_run_are_cancelled_and_no_others(folder, submitted, programs, tmp_path, call):
    lines = ("8|1|RUNNING|n2|rnnbench-abc-0|", "8|2|PENDING||rnnbench-abc-0|", "9|1|RUNNING|n1|rnnbench-xyz-0|")
    programs("squeue", "\n".join(f"echo '{line}'" for line in lines))
    programs("scancel", f'echo "$@" >{tmp_path}/cancelled')
    answer = call("run", "--resume", str(folder), "--cancel")
    assert (answer.code, "cancelled 2 jobs" in answer.out) == (0, True)
    assert (tmp_path / "cancelled").read_text() == "8\n"
    assert submitted() == []


def test_parts_with_failures_are_submitted_again_on_request(folder, submitted):
    for part, cases, seconds in ((1, CASES[:2], ()), (2, CASES[2:], (1.0,))):
        visit(folder, part, "n1", cases, *(make_launch(case, *seconds) for case in cases))
        complete(folder, part, "n1")
    assert driver.resume_spread(folder, Listener()).is_complete
    assert submitted() == []
    resuming = Resuming(retry_failed=True, limit_seconds=9.0)
    state = driver.resume_spread(folder, Listener(), resuming=resuming, options=["--time=9"])
    assert submitted() == ["--array=1"]
    assert [part.state for part in state.parts] == ["complete", "ended", "complete"]
    assert (read_spread(folder).resuming, read_spread(folder).options) == (resuming, ("--time=9",))


def test_a_queue_that_does_not_answer_for_a_while_is_no_reason_to_end(folder, submitted, programs, tmp_path):
    """It answers when it is first asked, then fails twice."""
    programs(
        "squeue", f"echo x >>{tmp_path}/count; case $(wc -l <{tmp_path}/count) in 3|4) echo gone >&2; exit 1;; esac"
    )
    noted = []
    listener = Listener()
    listener.note = noted.append
    driver.resume_spread(folder, listener)
    assert len((tmp_path / "count").read_text().split()) == 5
    assert sum("the queue does not answer" in note for note in noted) == 1


# --- on a node ------------------------------------------------------------------------------------------


def test_an_environment_that_a_node_lacks_is_made_there_and_must_be_the_same(monkeypatch):
    planned = msgspec.structs.replace(
        ENVIRONMENT, framework="pytorch", external=False, distributions={"torch": "2"}, folder="/nowhere"
    )
    here = msgspec.structs.replace(planned, python="/bin/sh")
    made = []

    def resolve(spec, create_missing, report):
        made.append((spec.framework, create_missing))
        return here

    monkeypatch.setattr(nodes, "resolve", resolve)
    planned = msgspec.structs.replace(planned, version=nodes.parse_spec("pytorch").version)
    assert nodes._environment_here(here, "cpu", Listener()) is here
    assert made == []
    assert nodes._environment_here(planned, "cpu", Listener()) is here
    assert made == [("pytorch", True)]
    here = msgspec.structs.replace(here, distributions={"torch": "3"})
    with pytest.raises(UserError, match="other packages on this node"):
        nodes._environment_here(planned, "cpu", Listener())


def test_a_part_runs_only_in_a_job(folder, call, monkeypatch):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    answer = call("part", str(folder), "1")
    assert (answer.code, "not a job of Slurm" in answer.err) == (2, True)
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert "has the parts 0 to 2" in call("part", str(folder), "3").err


# --- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--on", "ray"], "allowed: local, slurm"),
        (["--on", "slurm", "--dry-run"], "--dry-run"),
        (["--on", "slurm", "--", "gpu"], "'gpu' is not an option of sbatch"),
        (["--on", "slurm", "--device", "tpu"], "'tpu' is not a device"),
        (["--on", "slurm", "--effort", "much"], "'much' is not a valid effort"),
        (["nothing/*", "--on", "slurm"], "no system matches"),
        (["--detach"], "give --on slurm"),
        (["--cancel"], "--cancel needs --resume"),
        (["--resume", "run", "--on", "slurm"], "keeps the options"),
    ],
)
def test_bad_input_is_refused_before_anything_is_submitted(private_folders, programs, call, words, what):
    for name in ("sbatch", "squeue", "scancel"):
        programs(name, f"touch {private_folders}/{name}-was-called")
    answer = call("run", "--out", "run", *words) if "--resume" not in words else call("run", *words)
    assert (answer.code, what in answer.err) == (2, True), answer.err
    assert not list(private_folders.glob("*-was-called"))
    assert not Path("run").exists()


def test_without_slurm_the_message_says_so(private_folders, call, monkeypatch):
    monkeypatch.setenv("PATH", str(private_folders))
    answer = call("run", "--on", "slurm", "--out", "run")
    assert (answer.code, "sbatch, squeue, scancel not found" in answer.err) == (2, True)
    assert not Path("run").exists()


def test_a_local_run_is_not_resumed_as_a_spread_one(tmp_path, call):
    create_folder(tmp_path / "run", make_run([make_case()]))
    answer = call("run", "--resume", str(tmp_path / "run"), "--cancel")
    assert (answer.code, "is not spread" in answer.err) == (2, True)


def test_rows_of_a_spread_run_get_no_more_launches(tmp_path, call):
    create_spread(tmp_path / "run", SPREAD)
    answer = call("run", "--resume", str(tmp_path / "run"), "--launches", "8")
    assert (answer.code, "of a spread run" in answer.err) == (2, True), answer.err


def test_a_damaged_request_is_reported(tmp_path):
    create_spread(tmp_path / "run", SPREAD)
    assert read_spread(tmp_path / "run") == SPREAD
    (tmp_path / "run" / "spread.json").write_text("{")
    with pytest.raises(UserError, match="damaged"):
        read_spread(tmp_path / "run")
