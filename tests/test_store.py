"""A run folder: what was written is read back; after any damage, everything that is left."""

import ast
import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import make_case, make_launch, make_proof, make_run
from rnnbench import store
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.case import LeftOut
from rnnbench.errors import UserError
from rnnbench.report.terminal import show_run
from rnnbench.store import RECORDS_FILE, RUN_FILE, append, create_folder, log_name, read_folder, write_log

CASES = [make_case("eager"), make_case("script", workload="ce-short[batch=8]")]
RUN = make_run(CASES, left_out=[LeftOut(case=make_case("trace"), reason="because")])
RECORDS = [
    make_proof(CASES[0]),
    make_launch(CASES[0], 0.25, 0.5, batches=3, first_call_s=1.5, versions={"toy": "1.0"}, log="logs/some.log"),
    make_launch(CASES[1], outcome="timeout", reason="over 3 s — or “so”\nin two lines", stage="first call"),
    make_proof(CASES[1], "wrong", None, reason="not finite"),
    make_launch(CASES[0], 0.125, round=1, attempt=2, noisy=True),
]


@pytest.fixture
def folder(tmp_path):
    create_folder(tmp_path / "run", RUN)
    return tmp_path / "run"


def fill(folder):
    for record in RECORDS:
        append(folder, record)
    return folder / RECORDS_FILE


def test_a_run_is_read_back_as_it_was_written(folder):
    fill(folder)
    contents = read_folder(folder)
    assert contents.run == RUN
    assert list(contents.records) == RECORDS
    assert contents.damaged == ()


def test_every_record_is_one_line(folder):
    assert fill(folder).read_bytes().count(b"\n") == len(RECORDS)


def test_a_new_run_has_no_records(folder):
    assert read_folder(folder).records == ()


def keep_log(folder, text):
    place = log_name(folder, "some.log")
    write_log(folder, place, text)
    return place


def test_what_a_worker_printed_is_kept_whatever_it_was(folder):
    place = keep_log(folder, "text \udcff of any kind\n")
    assert place == "logs/some.log"
    assert (folder / place).read_text() == "text ? of any kind\n"


def test_a_log_never_overwrites_an_earlier_one(folder):
    places = [keep_log(folder, text) for text in ("first", "second", "third")]
    assert [(folder / place).read_text() for place in places] == ["first", "second", "third"]


# --- damage ---------------------------------------------------------------------------------------------


def test_after_an_incomplete_line_the_next_record_starts_on_a_new_line(folder):
    path = fill(folder)
    path.write_bytes(path.read_bytes()[:-20])
    append(folder, RECORDS[0])
    contents = read_folder(folder)
    assert list(contents.records) == [*RECORDS[:-1], RECORDS[0]]
    (damage,) = contents.damaged
    assert damage.startswith(f"line {len(RECORDS)}: ")


DAMAGE = {
    "rubbish": b"rubbish",
    "zeros, as after a power cut": bytes(100),
    "half a record": msgspec.json.encode(RECORDS[1])[:99],
    "not UTF-8": msgspec.json.encode(RECORDS[1]).replace(b"logs", b"\xff\xfe"),
    "another kind": b'{"kind": "lunch"}',
    "a field of another type": msgspec.json.encode(RECORDS[1]).replace(b'"round":0', b'"round":"first"'),
    "a missing field": msgspec.json.encode(RECORDS[1]).replace(b'"outcome"', b'"result"'),
    "no object": b"[1, 2]",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_line_is_named_and_skipped_and_nothing_else_is(folder, kind):
    path = fill(folder)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], DAMAGE[kind], b"", *lines[2:], b""]))
    contents = read_folder(folder)
    assert list(contents.records) == RECORDS
    (damage,) = contents.damaged
    assert damage.startswith("line 3: ")


def test_damaged_lines_are_shown_with_the_tables(folder):
    path = fill(folder)
    path.write_bytes(b"rubbish\n" + path.read_bytes() + b"more rubbish")
    contents = read_folder(folder)
    text = show_run(contents, make_rows(contents))
    assert "damaged lines in launches.jsonl were skipped" in text
    assert "line 1: " in text
    assert f"line {len(RECORDS) + 2}: " in text
    assert "toy/fine/eager" in text


@settings(deadline=None)
@given(cut=st.integers(0, 4000))
def test_wherever_the_file_is_cut_all_complete_lines_are_read(cut):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        create_folder(folder, RUN)
        path = fill(folder)
        whole = path.read_bytes()
        kept = whole[: cut % (len(whole) + 1)]
        path.write_bytes(kept)
        complete = kept.count(b"\n")
        contents = read_folder(folder)
        # A cut that takes only the last line break leaves a complete record.
        assert contents.records[:complete] == tuple(RECORDS[:complete])
        assert len(contents.records) + len(contents.damaged) == complete + (not kept.endswith(b"\n") and kept != b"")
        # And the run can be resumed.
        append(folder, RECORDS[0])
        again = read_folder(folder)
        assert again.records == (*contents.records, RECORDS[0])
        assert again.damaged == contents.damaged


def test_missing_records_are_reported(folder):
    (folder / RECORDS_FILE).unlink()
    contents = read_folder(folder)
    assert contents.records == ()
    assert contents.damaged


# --- not a run ------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_empty_is_refused(folder, tmp_path):
    before = (folder / RUN_FILE).read_bytes()
    with pytest.raises(UserError, match="empty") as caught:
        create_folder(folder, RUN)
    assert "--resume" in caught.value.hint
    assert (folder / RUN_FILE).read_bytes() == before
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="empty"):
        create_folder(tmp_path / "file", RUN)


def test_an_empty_folder_can_be_used(tmp_path):
    (tmp_path / "there").mkdir()
    create_folder(tmp_path / "there", RUN)
    assert read_folder(tmp_path / "there").run == RUN


def test_a_folder_that_is_not_a_run_is_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="is not a run") as caught:
            read_folder(place)
        assert "run.json" in caught.value.hint


def test_a_run_of_another_schema_is_refused(folder):
    (folder / RUN_FILE).write_text('{"schema": 999, "and": "fields of the future"}')
    with pytest.raises(UserError, match="has schema 999; this rnnbench reads 1"):
        read_folder(folder)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"schema": 1}', b'{"schema": 1, "created": "\xff"}'])
def test_a_damaged_run_file_is_refused(folder, damage):
    (folder / RUN_FILE).write_bytes(damage)
    with pytest.raises(UserError, match=r"run.json is damaged"):
        read_folder(folder)


def test_the_run_file_is_complete_or_missing(tmp_path, monkeypatch):
    """If writing it is interrupted, the folder is not a run, and reading it says so."""

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create_folder(tmp_path / "run", RUN)
    with pytest.raises(UserError, match="is not a run"):
        read_folder(tmp_path / "run")


def test_nothing_is_ever_unpickled():
    for path in Path(store.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = getattr(node, "module", None) if isinstance(node, ast.ImportFrom) else None
            for name in filter(None, [*names, module]):
                assert name.partition(".")[0] not in ("pickle", "shelve", "marshal", "dill", "joblib"), path
