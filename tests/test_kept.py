"""Files that workers leave for later ones."""

import platform

import pytest

import rnnbench
from fake_workers import DONE, HELLO, job, say, worker
from rnnbench.launch import kept
from rnnbench.launch.worker import run_worker
from systems_helpers import not_verified, verdicts

HERE = {"RNNBENCH_KEPT": "made_*/headers/*.h*"}
FOLDER = "$TMPDIR/made_by_me/headers"
MAKE = f"mkdir -p {FOLDER}; echo $1 > {FOLDER}/one.h.gch; echo other > {FOLDER}/unasked\n"
TELL = f"cat {FOLDER}/* >&2\n"


def run(folder, body, name, variables=HERE, mode="start"):
    return run_worker(worker(folder, body, name), job(mode), variables, 20)


def test_what_one_worker_made_the_next_one_has(private_folders):
    first = run(private_folders, MAKE.replace("$1", "compiled") + say(HELLO, DONE), "first")
    assert first.outcome == "ok", first.reason
    second = run(private_folders, TELL + MAKE.replace("$1", "again") + say(HELLO, DONE), "second")
    assert second.log.text().strip() == "compiled"  # and nothing that was not asked for
    kept = [path.name for path in private_folders.rglob("kept/**/*") if path.is_file()]
    assert kept == ["one.h.gch"]


def test_what_a_failing_worker_made_is_not_kept(private_folders):
    failed = run(private_folders, MAKE.replace("$1", "broken") + "exit 3\n", "failing")
    assert failed.outcome == "failed"
    assert "broken" not in run(private_folders, TELL + say(HELLO, DONE), "next").log.text()


def test_nothing_is_kept_unasked(private_folders):
    run(private_folders, MAKE.replace("$1", "compiled") + say(HELLO, DONE), "first", {})
    assert not [*private_folders.rglob("kept")]


def test_of_files_that_are_alike_those_are_kept_that_have_a_word_in_them(private_folders):
    make = f"mkdir -p {FOLDER}; echo what_is_tried > {FOLDER}/trial.so; echo program > {FOLDER}/program.so\n"
    asked = {"RNNBENCH_KEPT": "made_*/nothing/* made_*/headers/*.so~_tried made_*/headers/trial*~what"}
    run(private_folders, make + say(HELLO, DONE), "first", asked)
    assert run(private_folders, TELL + say(HELLO, DONE), "second", asked).log.text().strip() == "what_is_tried"


@pytest.mark.slow
@pytest.mark.torch
def test_of_what_inductor_makes_no_program_is_kept(pytorch, private_folders, monkeypatch):
    """Its own cache names what it tries out as it names programs."""
    monkeypatch.setattr(kept, "_folder", lambda: private_folders / "kept")
    plan = rnnbench.make_plan(["pytorch/packed/compile-cell"], ["ce-short"], device="cpu", phases=["forward"])
    assert not_verified(verdicts(plan)) == []
    files = [path for path in private_folders.glob("kept/**/*") if path.is_file()]
    assert {"precompiled_headers"} <= {path.parent.name for path in files}
    trials = [path for path in files if path.suffix == ".so"]
    assert trials or platform.machine() != "x86_64"
    assert all(b"_chk_kernel" in path.read_bytes() for path in trials)
