"""The Penn Treebank reader, on a tiny text."""

import numpy as np
import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.errors import UserError
from rnnbench.reference.inputs import make_batches, read_treebank, treebank_window

# Four times b, three times <eos>, twice a and c, and once d.
TEXT = " b b c \n a b c \n a d b \n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ptb.train.txt").write_text(TEXT)
    return tmp_path


def test_words_are_numbered_by_frequency_then_alphabet_and_lines_end_with_a_word(folder):
    b, eos, a, c, d = range(5)
    assert list(read_treebank(folder, 10)) == [b, b, c, eos, a, b, c, eos, a, d, b, eos]


def test_rare_words_become_the_unknown_word(folder):
    (folder / "ptb.train.txt").write_text("<unk> <unk> <unk> x x y\n")
    assert list(read_treebank(folder, 2)) == [0, 0, 0, 1, 1, 0, 0]


def test_rare_words_become_the_last_id_where_there_is_no_unknown_word(folder):
    b, eos, a, c = range(4)
    assert list(read_treebank(folder, 3)) == [b, b, a, eos, a, b, a, eos, a, a, b, eos]
    assert list(read_treebank(folder, 4)) == [b, b, c, eos, a, b, c, eos, a, c, b, eos]


def test_batches_are_consecutive_windows_of_parallel_streams():
    text = np.arange(12)
    np.testing.assert_array_equal(treebank_window(text, batch=2, steps=2, k=0), [[0, 1, 2], [6, 7, 8]])
    np.testing.assert_array_equal(treebank_window(text, batch=2, steps=2, k=1), [[2, 3, 4], [8, 9, 10]])


def test_a_text_that_is_too_short_is_read_again_from_its_start():
    text = np.arange(3)
    np.testing.assert_array_equal(treebank_window(text, batch=2, steps=4, k=1), [[1, 2, 0, 1, 2], [2, 0, 1, 2, 0]])
    assert treebank_window(text, batch=5, steps=2, k=0).shape == (5, 3)


def test_a_language_model_is_fed_the_text(folder):
    workload = parse_workload("ptb-lm[batch=2,steps=3,vocabulary=10]")
    first, second = make_batches(workload, 2, data=folder)
    b, eos, a, c, d = range(5)
    np.testing.assert_array_equal(first["inputs"], [[b, b, c], [c, eos, a]])
    np.testing.assert_array_equal(first["targets"], [[b, c, eos], [eos, a, d]])
    np.testing.assert_array_equal(second["inputs"], [[eos, a, b], [d, b, eos]])


def test_other_workloads_do_not_read_the_text(tmp_path):
    workload = parse_workload("ce-short[batch=2,steps=2]")
    [with_data], [without] = make_batches(workload, 1, data=tmp_path / "nowhere"), make_batches(workload, 1)
    np.testing.assert_array_equal(with_data["inputs"], without["inputs"])


@pytest.mark.parametrize("where", ["", "no/such/folder", "ptb.train.txt"])
def test_a_missing_file_is_an_error_that_says_what_to_do(tmp_path, where):
    if where == "ptb.train.txt":  # a file instead of its folder
        (tmp_path / where).write_text(TEXT)
    with pytest.raises(UserError, match="cannot read the Penn Treebank") as caught:
        read_treebank(tmp_path / where, 10)
    assert "folder that contains ptb.train.txt" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"\n \n\n"], ids=["empty", "blank"])
def test_a_text_without_words_is_an_error(folder, content):
    (folder / "ptb.train.txt").write_bytes(content)
    with pytest.raises(UserError, match="has no words"):
        read_treebank(folder, 10)


def test_bytes_that_are_not_text_are_an_error(folder):
    (folder / "ptb.train.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(UserError, match="not UTF-8"):
        read_treebank(folder, 10)
