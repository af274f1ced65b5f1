"""The command of a row runs just that row: rnnbench itself parses it again."""

import json
import shlex
import sys

import msgspec
import pytest

from made_up import ENVIRONMENT, make_run, make_system
from report_runs import case
from rnnbench.analysis.rows import make_rows
from rnnbench.cli.main import main
from rnnbench.domain.case import Method
from rnnbench.domain.catalog import parse_workload
from rnnbench.manifests import manifests
from rnnbench.report.describe import command_for_row
from rnnbench.store import Contents


def command_of(one, method=None, **fields):
    run = make_run([one], method=method)
    place = msgspec.structs.replace(ENVIRONMENT, id=one.environment, framework=one.framework, external=False)
    systems = {one.system: make_system(one.system)}
    run = msgspec.structs.replace(run, environments={one.environment: place}, systems=systems, **fields)
    (row,) = make_rows(Contents(run=run, records=()))
    return command_for_row(run, row)


@pytest.mark.parametrize("workload", ["ce-short", "ptb-lm[batch=16,steps=20]"])
@pytest.mark.parametrize("phase", ["forward", "train"])
@pytest.mark.parametrize("effort", ["quick", "standard"])
def test_the_command_plans_exactly_its_row(pretend_processor, monkeypatch, capsys, workload, phase, effort):
    pretend_processor("x86_64")  # some processors have no bf16
    version = manifests()["pytorch"].version
    one = case("pytorch/stack/eager", phase, workload=workload, precision="bf16", version=version)
    method = Method(effort=effort, launches=7, threads=1, seed=3, timing="latency", protocol="2019", limit_seconds=60.0)
    words = shlex.split(command_of(one, method))
    monkeypatch.setattr(sys, "argv", [*words, "--dry-run", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cases"] == [msgspec.to_builtins(one)]
    found = plan["method"]
    for name in ("effort", "launches", "threads", "seed", "timing", "protocol", "limit_seconds", "verify"):
        assert found[name] == getattr(method, name), name


def test_defaults_are_left_out():
    words = command_of(case("pytorch/stack/eager"), Method(threads=2))
    assert words == (
        "rnnbench run pytorch/stack/eager -w ptb-lm --phase train --device cpu --precision fp32"
        " --versions 2.0 --threads 2"
    )


def test_names_with_brackets_are_quoted_for_the_shell():
    assert "-w 'ptb-lm[batch=4]'" in command_of(case("pytorch/stack/eager", workload="ptb-lm[batch=4]"))


def test_the_version_of_a_cuda_environment_is_its_frameworks():
    assert "--versions 2.0 " in command_of(case("pytorch/stack/eager", device="cuda", version="2.0-cuda"))


def test_an_external_environment_has_no_version_option():
    used = {"pytorch-2.0": msgspec.structs.replace(ENVIRONMENT, id="pytorch-2.0", framework="pytorch")}
    run = msgspec.structs.replace(make_run([case("pytorch/stack/eager")]), environments=used)
    (row,) = make_rows(Contents(run=run, records=()))
    assert "--versions" not in command_for_row(run, row)


def test_paths_that_a_run_does_not_keep_are_placeholders():
    own = msgspec.structs.replace(parse_workload("ptb-lm"), name="mine")
    one = case("pytorch/stack/eager")
    run = make_run([one])
    run = msgspec.structs.replace(
        run, cases=(msgspec.structs.replace(one, workload="mine"),), workloads={"mine": own},
        proved_on={"mine": "mine"}, data="/somebodys/text", environments={},
    )  # fmt: skip
    (row,) = make_rows(Contents(run=run, records=()))
    words = command_for_row(run, row)
    assert "--workloads-from FILE.toml" in words
    assert words.endswith("--data FOLDER")
    assert "/somebodys" not in words


def test_no_verify_is_part_of_the_command():
    assert command_of(case("pytorch/stack/eager"), Method(verify=False)).endswith("--no-verify")
