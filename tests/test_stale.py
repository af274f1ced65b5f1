"""A verdict or a row of another program is never taken for that of this one."""

import shutil
from pathlib import Path

import msgspec
import pytest

import rnnbench
from conftest import SABOTAGE
from rnnbench.domain.case import Method
from rnnbench.environments.environment import arithmetic_variables
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.manifests import manifests, source_hash
from rnnbench.session import resume
from rnnbench.verify.proofs import proofs_for
from rnnbench.verify.verifier import cache_path

TINY = "ce-short[batch=3,hidden=4,steps=4]"


@pytest.fixture
def own_folder(sabotage, monkeypatch):
    """The sabotage framework in a folder that a test may change."""
    folder = sabotage / "systems" / "sabotage"
    shutil.copytree(SABOTAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(folder))
    forget()
    yield folder
    forget()


def forget():
    """What a new process would not know."""
    source_hash.cache_clear()
    if hasattr(manifests, "cache_clear"):
        manifests.cache_clear()


@pytest.fixture
def path_of(sabotage):
    """The cache file of the honest system's verdict."""

    def path(**changes):
        plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu", phases=["train"])
        from rnnbench.launch.prepare import prepare

        prepared = prepare(plan, Listener())
        [proof] = proofs_for(prepared.cases, plan.workloads, plan.systems, prepared.environments)
        [resolved] = proof.resolved_cases
        changed = msgspec.structs.replace(resolved.workload, **changes)
        return cache_path(msgspec.structs.replace(resolved, workload=changed), Method())

    return path


def test_a_workload_is_all_its_fields_and_not_its_name(path_of):
    assert path_of() == path_of()
    assert path_of(hidden=13) != path_of()


@pytest.mark.parametrize("name", ["kernel.cu", "weights.bin", "data/table.csv"])
def test_every_file_of_a_systems_folder_counts(own_folder, path_of, name):
    before = path_of()
    (own_folder / name).parent.mkdir(exist_ok=True)
    (own_folder / name).write_text("something that the code reads")
    forget()
    assert path_of() != before


def test_what_python_compiles_itself_does_not_count(own_folder, path_of):
    before = path_of()
    (own_folder / "__pycache__").mkdir(exist_ok=True)
    (own_folder / "__pycache__" / "honest.cpython-311.pyc").write_bytes(b"compiled")
    forget()
    assert path_of() == before


@pytest.mark.parametrize("name", ["NVIDIA_TF32_OVERRIDE", "DNNL_DEFAULT_FPMATH_MODE", "XLA_FLAGS", "TF_XLA_FLAGS"])
def test_a_variable_that_changes_arithmetic_counts(path_of, monkeypatch, name):
    monkeypatch.delenv(name, raising=False)
    before = path_of()
    monkeypatch.setenv(name, "1")
    assert arithmetic_variables()[name] == "1"
    assert path_of() != before


def finished_run():
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [TINY], device="cpu", phases=["forward"])
    rnnbench.run_plan(plan, "run", effort="quick", sample_seconds=0.05)


def test_a_run_is_not_resumed_with_another_source(own_folder):
    finished_run()
    resume(Path("run"), Listener())  # nothing has changed, and nothing is left
    with (own_folder / "honest.py").open("a") as source:
        source.write("\n# another program\n")
    forget()
    with pytest.raises(UserError, match=r"since this run began, the source of sabotage has changed"):
        resume(Path("run"), Listener())


def test_a_run_is_not_resumed_with_another_arithmetic(own_folder, monkeypatch):
    finished_run()
    monkeypatch.setenv("DNNL_DEFAULT_FPMATH_MODE", "BF16")
    with pytest.raises(UserError, match="the variable DNNL_DEFAULT_FPMATH_MODE has changed"):
        resume(Path("run"), Listener())


def test_a_run_is_not_resumed_with_another_reference(own_folder, monkeypatch):
    finished_run()
    monkeypatch.setattr("rnnbench.manifests.reference_sources", lambda: "another")
    with pytest.raises(UserError, match="the reference has changed"):
        resume(Path("run"), Listener())
