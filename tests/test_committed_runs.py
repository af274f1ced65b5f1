"""The runs that this repository keeps: today's rnnbench reads them all, and calls those in `results` fit to publish."""

import json
from pathlib import Path

import pytest

from rnnbench.domain.result import Launch
from rnnbench.domain.run import current_names
from rnnbench.store import read_folder

ROOT = Path(__file__).parent.parent
PUBLISHED = sorted(path.parent for path in ROOT.glob("results/*/run.json"))
ARCHIVED = sorted(path.parent for path in ROOT.glob("archive/*/run.json"))
RUNS = [*PUBLISHED, *ARCHIVED]


def stored_lines(folder, kind):
    lines = (folder / "launches.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] == kind]


def test_there_are_some():
    assert len(PUBLISHED) > 1
    assert len(ARCHIVED) > 1


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_what_is_published_is_fit_to_be_and_what_is_archived_is_not(folder, call):
    answer = call("check", str(folder))
    assert answer.code == (0 if folder in PUBLISHED else 1), answer.out


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_a_run_of_an_earlier_version_is_read_whole_and_shown(folder, call):
    contents = read_folder(folder)
    assert contents.damaged == ()
    assert len([one for one in contents.records if isinstance(one, Launch)]) == len(stored_lines(folder, "launch"))
    answer = call("show", str(folder))
    assert answer.code == 0
    assert all(case.system in answer.out for case in contents.run.cases)


@pytest.mark.parametrize("folder", RUNS, ids=lambda folder: folder.name)
def test_fields_that_were_renamed_keep_their_values(folder):
    """`beside` became `concurrent_workers`, and an environment's `used` became `external`."""
    contents = read_folder(folder)
    launches = [one for one in contents.records if isinstance(one, Launch)]
    stored = stored_lines(folder, "launch")
    names = ("concurrent_workers", "beside")
    expected = [next((one[name] for name in names if name in one), 0) for one in stored]
    assert [one.concurrent_workers for one in launches] == expected
    environments = json.loads((folder / "run.json").read_text(encoding="utf-8"))["environments"]
    flags = {name: one.get("external", one.get("used")) for name, one in environments.items()}
    assert {name: one.external for name, one in contents.run.environments.items()} == flags


def test_only_the_renamed_fields_are_renamed():
    stored = b'{"used": true, "distributions": {"used":"1.0","beside":"2"}, "beside":3, "log": "\\"used\\": true"}'
    renamed = {b'{"used": true': b'{"external": true', b'"beside":3': b'"concurrent_workers":3'}
    expected = stored
    for former, current in renamed.items():
        expected = expected.replace(former, current)
    assert current_names(stored) == expected


def test_some_of_them_have_the_former_names():
    """Otherwise the test above would prove nothing."""
    assert any(one.get("beside") for folder in RUNS for one in stored_lines(folder, "launch"))
    text = "".join((folder / "run.json").read_text(encoding="utf-8") for folder in RUNS)
    assert '"used": true' in text
