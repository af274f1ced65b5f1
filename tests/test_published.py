"""The published tables are in the package as printed, and systems find their published times."""

from collections import Counter

import pytest

from rnnbench.domain.catalog import CATALOG
from rnnbench.domain.system import DEVICES, PHASES
from rnnbench.manifests import manifests
from rnnbench.published.rows import SOURCES, WITH_CONCLUSIONS, find_published, published_rows


def test_every_row_is_there_including_blank_ones():
    rows = published_rows()
    assert Counter(row.year for row in rows) == {2019: 84, 2018: 50}
    assert Counter(row.source for row in rows if row.wall_s is None) == {"carrot-2019 tables alone": 18}


def test_rows_use_our_names():
    for row in published_rows():
        assert row.source in SOURCES
        assert row.workload in CATALOG
        assert row.phase in PHASES
        assert row.device in DEVICES


def test_a_row_of_2019_has_the_three_metrics_as_printed():
    row = next(row for row in published_rows() if row.source == WITH_CONCLUSIONS and row.device == "cuda")
    assert (row.wall_s, row.elapsed_s, row.sequences_per_s) == (1.6109, 79.4576, 80.5460)
    assert (row.label, row.granularity, row.phase, row.batch) == ("TF Eager", "fine-grained operators", "forward", 128)
    assert row.when_and_where == "2019, GeForce RTX 2080 Ti"
    assert SOURCES[row.source].batches == 50


def test_a_row_of_2018_is_in_seconds():
    row = next(row for row in published_rows() if row.implementation == "LSTMCell-basic" and row.wall_std_s)
    assert row.wall_s == pytest.approx(0.53412)
    assert row.wall_std_s == pytest.approx(0.01452)
    assert row.name == "PyTorch 0.1.12_2 LSTMCell-basic"
    assert row.elapsed_s is None


def test_misprints_are_kept_in_the_label_and_corrected_in_the_seed_label():
    printed = {row.label for row in published_rows()}
    assert {"TF-Egaer", "PyTroch JIT on outer scope"} <= printed
    meant = {row.seed_label for row in published_rows()}
    assert "TF-Eager (cuDNN LSTM)" in meant
    assert not any("Egaer" in label or "PyTroch" in label for label in meant)


def test_every_label_of_2019_in_a_manifest_was_published():
    """A misspelt label would silently show no published time."""
    rows = [row for row in published_rows() if row.year == 2019]
    tables = tuple({f"({row.granularity})".casefold() for row in rows})
    labels = {system.seed.casefold() for manifest in manifests().values() for system in manifest.system}
    of_2019 = {label for label in labels if label.endswith(tables)}
    assert of_2019
    assert of_2019 <= {row.seed_label.casefold() for row in rows}


def test_a_system_finds_its_published_times():
    found = find_published("ptb-lm", "train", "cuda", "PyTorch (CuDNN LSTM)")
    assert [row.wall_s for row in found] == [0.0236]  # blank in the tables alone
    assert find_published("ptb-lm[batch=16]", "train", "cuda", "PyTorch (CuDNN LSTM)") == []
    assert find_published("ptb-lm", "train", "cuda", "") == []
