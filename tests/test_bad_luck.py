"""Disks that are full, folders that are taken, names that are too long, and what killed processes leave behind."""

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from made_up import make_case, make_launch, make_proof, make_run
from rnnbench import scratch
from rnnbench.domain.result import Launch
from rnnbench.errors import UserError
from rnnbench.files import file_name
from rnnbench.scratch import scratch_folder, sweep
from rnnbench.store import RECORDS_FILE, append, create_folder, read_folder
from rnnbench.verify.verifier import store_cached

TINY = "ce-short[batch=3,hidden=4,steps=4]"
LONG = "x" * 300


def test_a_full_disk_is_named_and_what_was_stored_stays(tmp_path):
    folder = tmp_path / "run"
    create_folder(folder, make_run([make_case()]))
    (folder / RECORDS_FILE).unlink()
    (folder / RECORDS_FILE).symlink_to("/dev/full")
    with pytest.raises(UserError, match="No space left on device") as caught:
        append(folder, make_launch(make_case(), 1.0))
    assert "--resume" in caught.value.hint


def test_a_launch_is_stored_before_its_log_and_without_it(sabotage, call):
    options = ("-w", TINY, "--phase", "forward", "--no-verify", "--effort", "quick", "--out", "run")
    begun = call("run", "sabotage/packed/noise", *options)
    assert begun.code == 0
    assert [one.log for one in read_folder(Path("run")).records if isinstance(one, Launch)] != [""]
    Path("run", RECORDS_FILE).write_bytes(b"")
    for log in Path("run", "logs").iterdir():
        log.unlink()
    Path("run", "logs").rmdir()
    Path("run", "logs").write_text("a file in its place")
    resumed = call("run", "--resume", "run")
    assert resumed.code == 0
    assert "warning: cannot write logs/" in resumed.err
    assert len([one for one in read_folder(Path("run")).records if isinstance(one, Launch)]) == 1


def test_an_interpreter_that_is_gone_fails_its_rows_and_the_others_go_on(sabotage, monkeypatch, call):
    """It vanishes after the run has begun: each of its launches says so, and the run ends as usual."""

    def vanished(environment, *others, **named):
        raise FileNotFoundError(2, "No such file or directory", environment.python)

    for place in ("rnnbench.launch.launcher.run_worker", "rnnbench.verify.verifier.run_worker"):
        monkeypatch.setattr(place, vanished)
    answer = call("run", "sabotage/packed/honest", "-w", TINY, "--effort", "quick", "--out", "run")
    assert answer.code == 1  # no row succeeded
    records = read_folder(Path("run")).records
    assert len(records) == 5  # two verifications, a limit, two launches
    assert all("it cannot be started: No such file" in one.reason for one in records)


def test_a_command_of_any_bytes_can_be_stored(sabotage, call):
    answer = call("run", "sabotage/packed/honest", "-w", TINY, "--no-verify", "--effort", "quick", "--out", "r\udcff")
    assert answer.code == 0
    assert "r?" in read_folder(Path("r\udcff")).run.command


def test_of_runs_that_begin_in_one_folder_at_once_one_wins(tmp_path):
    for attempt in range(20):
        folder, outcomes = tmp_path / str(attempt), []
        together = threading.Barrier(6)

        def begin(folder=folder, outcomes=outcomes, together=together):
            together.wait()
            try:
                create_folder(folder, make_run([make_case()]))
                outcomes.append("won")
            except UserError as error:
                outcomes.append(error.hint)

        threads = [threading.Thread(target=begin) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count("won") == 1
        assert all("choose another folder" in hint for hint in outcomes if hint != "won")
        assert read_folder(folder).damaged == ()


@pytest.mark.parametrize("text", [LONG, "é" * 200 + ".log", f"{LONG}/{LONG}|{LONG}.json.gz"])
def test_a_long_name_is_cut_and_stays_distinct(tmp_path, text):
    name = file_name(text)
    assert len(name.encode()) < 220
    assert name != file_name(f"x{text}")
    assert name.endswith(text[-4:])
    (tmp_path / name).write_text("")


@pytest.mark.parametrize(
    "command",
    [
        ("show", LONG), ("check", LONG), ("compare", LONG, LONG), ("history", LONG), ("explain", LONG),
        ("report", LONG, "--out", "here"), ("run", "--resume", LONG), ("run", "pytorch/stack/eager", "--out", LONG),
    ],
)  # fmt: skip
def test_a_path_that_is_too_long_is_an_error_without_a_traceback(private_folders, call, command):
    answer = call(*command)
    assert answer.code == 2
    assert "too long" in answer.err


def test_a_folder_that_cannot_be_made_is_an_error(private_folders, call):
    Path("taken").write_text("a file")
    answer = call("run", "pytorch/stack/eager", "--out", "taken/run")
    assert answer.code == 2
    assert "Not a directory" in answer.err


def test_a_cache_that_cannot_be_written_to_costs_no_verdict(tmp_path):
    (tmp_path / "verified").write_text("a file where a folder should be")
    store_cached(tmp_path / "verified" / "x.json", make_proof(make_case()))


LEFT_BEHIND = """
import os, signal, sys
from rnnbench.scratch import scratch_folder
with scratch_folder("test") as folder:
    print(folder, flush=True)
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(scratch, "_YOUNGEST_S", -1.0)
    return tmp_path


def start(temporary, how):
    return subprocess.Popen(
        [sys.executable, "-c", LEFT_BEHIND, how],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_what_killed_processes_left_is_swept_and_what_is_in_use_stays(temporary):
    with start(temporary, "killed") as killed, start(temporary, "alive") as alive:
        left, used = Path(killed.stdout.readline().strip()), Path(alive.stdout.readline().strip())
        killed.wait()
        (left / "inside").write_text("x")
        other = temporary / "rnnbench-of-an-older-version"
        other.mkdir()
        (temporary / "rnnbench-held-link").symlink_to(other)
        with scratch_folder("own") as own:
            assert sweep() == [left]
            assert Path(own).is_dir()
        assert used.is_dir()
        assert other.is_dir()
        alive.stdin.close()
    assert not used.exists()


def test_a_folder_that_was_made_just_now_is_not_swept(temporary, monkeypatch):
    monkeypatch.setattr(scratch, "_YOUNGEST_S", 60.0)
    folder = temporary / "rnnbench-held-new"
    folder.mkdir()
    assert sweep() == []
    hour_ago = time.time() - 3600
    os.utime(folder, (hour_ago, hour_ago))
    assert sweep() == [folder]
