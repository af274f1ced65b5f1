"""Which code computed a row: each framework has its own hash, so that one can change without the others."""

import shutil

import msgspec
import pytest

from rnnbench.errors import UserError
from rnnbench.files import worker_package
from rnnbench.manifests import describe_tool, manifests, source_hash, system_sources


def test_every_framework_has_its_own_hash(sabotage):
    sources = describe_tool().sources
    assert set(sources) == set(manifests()) >= {"pytorch", "sabotage"}
    assert len(set(sources.values())) == len(sources)


def test_a_hash_changes_with_every_file_but_those_that_python_makes_of_them(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "code.py").write_text("1")
    before = source_hash(tmp_path)
    (tmp_path / "inside" / "code.pyc").write_text("anything")
    source_hash.cache_clear()
    assert source_hash(tmp_path) == before
    (tmp_path / "inside" / "code.py").write_text("2")
    source_hash.cache_clear()
    assert source_hash(tmp_path) != before
    assert source_hash(tmp_path, pattern="*") == source_hash(pattern="*")  # the folder itself contains no code


def test_shared_code_is_in_the_hashes_of_its_users_only(tmp_path, monkeypatch):
    copy = tmp_path / "rnnbench_worker"
    shutil.copytree(worker_package(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    manifests()  # fills its cache before the copy replaces the package
    monkeypatch.setattr("rnnbench.manifests.worker_package", lambda: copy)
    before = {name: system_sources(manifest) for name, manifest in manifests().items()}
    (copy / "shared" / "keras.py").write_text("changed")
    source_hash.cache_clear()
    after = {name: system_sources(manifest) for name, manifest in manifests().items()}
    assert {name for name in before if before[name] != after[name]} == {"keras-jax", "keras-tensorflow", "keras-torch"}


def test_what_a_manifest_uses_must_exist():
    manifest = msgspec.structs.replace(manifests()["jax"], uses=("shared/nothing",))
    with pytest.raises(UserError, match="shared/nothing"):
        system_sources(manifest)
