"""Progress: in place in a terminal, where only what must not be missed stays; line by line anywhere else."""

import io

import pytest
from rich.console import Console

from made_up import make_case, make_launch, make_proof
from rnnbench.cli.answers import show_verifications
from rnnbench.cli.progress import Progress
from rnnbench.verify.verifier import VerifiedPlan


@pytest.fixture
def shown(monkeypatch):
    """What stays on the screen when a progress has ended: lines drawn in place are removed."""

    def run(terminal, *steps):
        screen = io.StringIO()

        def console(**options):
            return Console(**{**options, "file": screen, "stderr": False, "force_terminal": terminal, "width": 200})

        monkeypatch.setattr("rnnbench.cli.progress.Console", console)
        with Progress() as progress:
            for step in steps:
                step(progress)
        return without_drawing(screen.getvalue())

    return run


def without_drawing(text):
    """The lines that were not erased again: after `\\x1b[2K` something is drawn over."""
    import re

    kept = [line.rpartition("\x1b[2K")[2] for line in text.split("\n")]
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line) for line in kept]
    return [line.strip() for line in plain if line.strip() and "━" not in line]


def launched(outcome="ok", **fields):
    launch = make_launch(make_case(), *([1.0] if outcome == "ok" else []), **fields)
    return lambda progress: progress.launched(launch)


STEPS = (
    lambda progress: progress.preparing("Downloading torch-2.13.0.whl"),
    lambda progress: progress.verifying(1),
    lambda progress: progress.verified(make_proof(make_case())),
    lambda progress: progress.timing(3),
    launched(),
    launched(noisy=True),
    launched("failed", reason="out of luck"),
    lambda progress: progress.note("warning: something else computes"),
)


def test_in_a_terminal_only_what_must_not_be_missed_stays(shown):
    lines = shown(True, *STEPS)
    assert len(lines) == 3
    assert "1.00 s a batch" in lines[0]
    assert ", noisy" in lines[0]
    assert "failed: out of luck" in lines[1]
    assert lines[2] == "warning: something else computes"


def test_elsewhere_every_result_is_a_line_and_pip_is_still_silent(shown):
    lines = shown(False, *STEPS)
    assert [line.partition(":")[0] for line in lines[:1]] == ["verifying 1 cases against the float64 reference"]
    assert sum("a batch" in line for line in lines) == 2
    assert not any("Downloading" in line for line in lines)


def test_a_verified_case_is_named_with_its_cell_and_without_the_sizes_of_its_small_version(shown):
    case = make_case(workload="ce-short[batch=3,cell=gru,steps=4]")
    lines = shown(False, lambda progress: progress.verified(make_proof(case)))
    assert "ce-short[cell=gru] train" in lines[-1]


def test_the_table_of_verifications_names_the_cell_too():
    cases = [make_case(workload=f"ce-short[batch=3{cell},steps=4]") for cell in ("", ",cell=gru")]
    table = show_verifications(VerifiedPlan(verifications=tuple(map(make_proof, cases)), left_out=()))
    assert [line.split()[0] for line in table.splitlines() if "toy/" in line] == ["ce-short", "ce-short[cell=gru]"]
