"""Files that workers leave for later ones."""

from fake_workers import DONE, HELLO, job, say, worker
from rnnbench.launch.worker import run_worker

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
