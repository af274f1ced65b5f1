"""Tables checked against themselves: the published ones, any CSV or Markdown, and our own runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_up import make_case, make_launch, make_proof, make_run
from rnnbench.errors import UserError
from rnnbench.published.audit import PrintedNumber, TableLine, audit_table, read_table
from rnnbench.published.rows import TABLES
from rnnbench.store import append, create_folder

#: Found by hand in the published documents.
CONTRADICTORY = [
    "carrot-2019 with conclusions · CPU · ptb-lm · fine-grained operators · TF Eager · forward",
    "carrot-2019 with conclusions · CPU · ptb-lm · fine-grained operators · TF Graph · forward",
    "carrot-2019 tables alone · CPU · ptb-lm · static LSTM cell · TF Eager · train",
    "carrot-2019 tables alone · CPU · ptb-lm · static LSTM cell · TF Graph · train",
    "carrot-2019 tables alone · GPU · ptb-lm · static LSTM cell · TF Eager · forward",
]


def audit(path, tolerance=0.02):
    lines = read_table(path)
    return audit_table(path.name, lines, lines, tolerance)


def names(found):
    return [suspect.line.name for suspect in found.suspects]


# --- the published tables ---------------------------------------------------------------------------------


def test_the_tables_of_2019_contradict_themselves_in_exactly_five_rows():
    found = audit(TABLES[0])
    assert names(found) == CONTRADICTORY
    assert (found.checked, found.blank, found.unknown) == (66, 18, 0)


def test_the_likely_cause_of_a_contradiction_is_named():
    eager, graph, copied, also_copied, typo = (suspect.remarks for suspect in audit(TABLES[0]).suspects)
    assert eager == ("the wall time is wrong: the other two agree on 1.701 s a batch",)
    assert graph[0].startswith("the same elapsed as line 46: carrot-2019 tables alone · CPU")
    for remarks, line in ((copied, 73), (also_copied, 75)):
        assert remarks[0].startswith(f"the same elapsed and throughput as line {line}: carrot-2019 tables alone · GPU")
    assert typo == ("the throughput is wrong: the other two agree on 1.284 s a batch",)


def test_a_smaller_tolerance_finds_more_rows_and_a_larger_one_fewer():
    assert len(audit(TABLES[0], 0.001).suspects) > 5
    assert len(audit(TABLES[0], 0.06).suspects) == 4
    assert len(audit(TABLES[0], 100.0).suspects) == 0


def test_a_table_of_one_figure_a_row_cannot_contradict_itself():
    found = audit(TABLES[1])
    assert (found.checked, found.blank, found.suspects) == (0, 50, ())


# --- any table ------------------------------------------------------------------------------------------


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_has_its_own_columns_of_batches_and_batch_sizes(tmp_path):
    path = written(
        tmp_path,
        "results.csv",
        "workload,system,wall_s,elapsed_s,sequences_per_s,batches\n"
        "ce-short,right,0.5,5.0,128,10\n"
        '"ce-short[batch=32,steps=7]",right too,0.5,5.0,64,10\n'
        "ce-short,wrong,0.5,6.0,128,10\n"
        "ce-short,failed,,,,\n",
    )
    found = audit(path)
    assert (found.checked, found.blank) == (3, 1)
    (suspect,) = found.suspects
    assert (suspect.line.number, suspect.line.name) == (4, "ce-short · wrong")
    (contradiction,) = suspect.contradictions
    assert (contradiction.figure, contradiction.expected) == ("elapsed", 5.0)
    assert contradiction.off == pytest.approx(0.2)


def test_rows_without_batches_and_batch_size_are_not_checked(tmp_path):
    path = written(tmp_path, "a.csv", "workload,wall_s,elapsed_s,seq_per_s\nmine,0.5,5.0,64\n")
    assert (audit(path).checked, audit(path).unknown) == (0, 1)


MARKDOWN = """\
# Results

Some text | with a bar.

## CPU

|          | Wall Time (s) | Elapsed Time (s) | Sequence per Second |
|:---------|--------------:|:-----------------|:--------------------|
| right    | 0.5000        | 25.0000          | 1,280.0             |
| wrong    | 0.5000        | 25.0000          | 128.0               |
| empty    |               |                  |                     |

| something | else |
|---|---|
| 1 | 2 |
"""


def test_markdown_tables_are_read_with_their_line_numbers(tmp_path):
    lines = read_table(written(tmp_path, "README.md", MARKDOWN))
    assert [(line.number, line.name) for line in lines] == [
        (9, "CPU · right"),
        (10, "CPU · wrong"),
        (11, "CPU · empty"),
    ]
    assert lines[0].throughput == PrintedNumber(1280.0, 0.05)
    assert lines[2].wall is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "a,b\n1,2\n"),
        ("a.csv", ""),
        ("a.md", "no table"),
        ("a.csv", "wall_s\n"),
        ("a.md", "| a |\n|---|\n| 1 |"),
    ],
)
def test_a_file_without_times_is_refused(tmp_path, name, text):
    with pytest.raises(UserError, match="no table of times"):
        read_table(written(tmp_path, name, text))


def test_an_unreadable_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        read_table(tmp_path / "nowhere.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot read"):
        read_table(tmp_path / "binary.csv")


@pytest.mark.parametrize("cell", ["", "–", "nan", "inf", "-1", "0", "0.0000", "failed", "1e400"])
def test_cells_without_a_positive_number_are_blank(tmp_path, cell):
    (line,) = read_table(written(tmp_path, "a.csv", f"wall_s,elapsed_s\n{cell},1\n"))
    assert line.wall is None


def test_a_run_agrees_with_itself_to_the_last_digit(tmp_path):
    case = make_case(workload="ce-short[batch=7]")
    create_folder(tmp_path / "run", make_run([case]))
    append(tmp_path / "run", make_proof(case))
    append(tmp_path / "run", make_launch(case, 0.1, 0.2, 0.7, batches=3))
    found = audit(tmp_path / "run", tolerance=1e-12)
    assert (found.checked, found.suspects) == (1, ())


# --- rounding -------------------------------------------------------------------------------------------


def printed(value, places):
    text = f"{value:.{places}f}"
    return PrintedNumber(float(text), 0.5 * 10.0**-places)


@settings(deadline=None)
@given(st.floats(1e-3, 100.0), st.integers(1, 1000), st.integers(1, 512), st.integers(3, 6))
def test_rounding_alone_is_never_a_contradiction_and_a_real_one_always_is(wall, batches, batch, places):
    figures = {
        "wall": printed(wall, places),
        "elapsed": printed(wall * batches, places),
        "throughput": printed(batch / wall, places),
    }
    if any(figure.value == 0 for figure in figures.values()):
        return
    line = TableLine(number=1, name="", batches=batches, batch=batch, **figures)
    assert audit_table("", [line], []).suspects == ()
    far_off = PrintedNumber(4 * wall * batches, 0.0)
    line = TableLine(number=1, name="", batches=batches, batch=batch, **{**figures, "elapsed": far_off})
    (suspect,) = audit_table("", [line], []).suspects
    assert [one.figure for one in suspect.contradictions] == ["elapsed"]
