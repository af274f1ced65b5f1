"""What is refused from a worker is refused from a run folder, and what a method allows can be read again."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as any_

from made_up import make_case, make_launch, make_proof, make_run
from rnnbench.domain.catalog import override, parse_workload, validated
from rnnbench.domain.consistency import require_consistent
from rnnbench.domain.result import Record
from rnnbench.domain.run import Environment
from rnnbench.environments.external import external_interpreters
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON
from rnnbench.launch.events import parse_event
from rnnbench.manifests import read_manifest
from rnnbench.method import make_method
from rnnbench.verify.verifier import load_cached

DEEP = b"[" * 100_000
BAD_SAMPLES = ([[3, 0.0]], [[3, -1.0]], [[0, 1.0]], [[-1, 1.0]], [[3, 1e-12]], [[3, 1e300]], [[3]], [["3", 1.0]], [3])


@pytest.mark.parametrize("samples", BAD_SAMPLES)
def test_samples_are_refused_from_both(samples):
    with pytest.raises(msgspec.MsgspecError):
        parse_event(json.dumps({"event": "samples", "samples": samples}).encode())
    line = json.loads(msgspec.json.encode(make_launch(make_case(), 1.0)))
    with pytest.raises(msgspec.MsgspecError):
        msgspec.json.decode(json.dumps(line | {"samples": samples}).encode(), type=Record)


@pytest.mark.parametrize(
    "line",
    [
        {"event": "hello", "import_s": -1, "versions": {}, "device": "cpu"},
        {"event": "hello", "import_s": 1, "versions": {}, "device": "cpu", "threads": -1},
        {"event": "built", "seconds": 1, "parameters": -5, "device": "cpu"},
        {"event": "warm", "batches": -1, "seconds": 1},
        {"event": "memory", "host": -1},
        {"event": "rates", "products": [[1, 0.0]], "copies": [[1, 1.0]]},
        {"event": "first", "seconds": 1e300},
    ],
)
def test_numbers_that_could_not_be_stored_are_not_accepted(line):
    with pytest.raises(msgspec.MsgspecError):
        parse_event(json.dumps(line).encode())


@given(any_.binary() | any_.text().map(str.encode) | any_.sampled_from([DEEP, b'{"event":' * 50_000, b'{"a":' + DEEP]))
def test_whatever_a_worker_sends_is_an_event_or_one_kind_of_error(line):
    with pytest.raises((msgspec.MsgspecError, ValueError)):
        parse_event(line)


def test_a_proof_without_a_tolerance_is_refused():
    line = json.loads(msgspec.json.encode(make_proof(make_case())))
    for tolerance in (0, -1, 0.0, "1e-4", None):
        line["figures"][0]["tolerance"] = tolerance
        with pytest.raises(msgspec.MsgspecError):
            msgspec.json.decode(json.dumps(line).encode(), type=Record)


def test_deep_json_is_damage_wherever_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "rnnbench").mkdir()
    (tmp_path / "rnnbench" / "environments.json").write_bytes(DEEP)
    with pytest.raises(UserError, match="cannot read"):
        external_interpreters()
    (tmp_path / "verdict.json").write_bytes(DEEP)
    assert load_cached(tmp_path / "verdict.json") is None
    (tmp_path / "manifest.toml").write_text("framework = " + "[" * 50_000)
    with pytest.raises(UserError, match="manifest"):
        read_manifest(tmp_path)
    with pytest.raises(DAMAGED_JSON):
        msgspec.json.decode(DEEP, type=Environment)


@pytest.mark.parametrize(("name", "value"), [("layers", 10**7), ("batch", 10**8), ("hidden", 10**8), ("steps", 10**7)])
def test_absurd_sizes_are_refused_where_they_are_given_and_where_they_are_stored(name, value):
    with pytest.raises(UserError, match="at most"):
        parse_workload(f"ce-short[{name}={value}]")
    with pytest.raises(UserError, match="at most"):
        override(parse_workload("ce-short"), {name: value})
    run = make_run([make_case()])
    absurd = msgspec.structs.replace(run.workloads["ce-short"], **{name: value})
    with pytest.raises(UserError):
        validated(absurd)
    with pytest.raises(ValueError, match="at most"):
        require_consistent(msgspec.structs.replace(run, workloads={"ce-short": absurd}))


@pytest.mark.parametrize("options", [{"launches": 10**6}, {"limit_seconds": 1e12}, {"seed": 10**16}, {"ahead": 10**6}])
def test_a_method_that_could_not_be_read_again_is_refused(options):
    with pytest.raises(UserError):
        make_method(**options)
