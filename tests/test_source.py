"""Which code computed a row: told apart by framework, so that one may change without the others."""

from rnnbench.manifests import describe_tool, manifests, source_hash


def test_every_framework_has_a_hash_of_its_own(sabotage):
    sources = describe_tool().sources
    assert set(sources) == set(manifests()) >= {"pytorch", "sabotage"}
    assert len(set(sources.values())) == len(sources)


def test_a_hash_changes_with_what_is_written_and_not_with_anything_else(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "code.py").write_text("1")
    before = source_hash(tmp_path)
    (tmp_path / "inside" / "notes.txt").write_text("anything")
    source_hash.cache_clear()
    assert source_hash(tmp_path) == before
    (tmp_path / "inside" / "code.py").write_text("2")
    source_hash.cache_clear()
    assert source_hash(tmp_path) != before
    assert source_hash(tmp_path, pattern="*") == source_hash(pattern="*")  # nothing lies in the folder itself
