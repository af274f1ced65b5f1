"""Parameters and batches: their ranges, their reproducibility from a seed, and the file they are passed in."""

import itertools
import zipfile

import msgspec
import numpy as np
import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import lengths, parameter_shapes, target_shape
from rnnbench.reference.inputs import few_sequences, make_batches, make_parameters, write_inputs
from rnnbench.reference.network import logits

LANGUAGE = parse_workload("ptb-lm[batch=6,steps=20,vocabulary=50,embedding=8,hidden=16]")
LAST_STEP = parse_workload("ce-short[batch=64,steps=5,features=3]")
SPEECH = parse_workload("bi-ctc-long[batch=5,steps=12,features=3,hidden=4,labels=3,classes=4]")
ALL = pytest.mark.parametrize("workload", [LANGUAGE, LAST_STEP, SPEECH], ids=lambda workload: workload.id)


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


@ALL
def test_parameters_have_the_canonical_names_and_shapes_in_float32(workload):
    parameters = make_parameters(workload)
    assert {name: array.shape for name, array in parameters.items()} == parameter_shapes(workload)
    assert {array.dtype for array in parameters.values()} == {np.dtype(np.float32)}


def test_parameters_fill_their_range_biases_included():
    for name, array in make_parameters(LANGUAGE).items():
        bound = 1.0 if name == "embedding" else 0.25
        if name.endswith(".b") and name != "head.b":  # see below: some units remember
            array = np.delete(array.reshape(4, -1), 0, axis=1)
        assert 0.8 * bound < np.abs(array).max() <= bound, name
        assert array.min() < 0 < array.max(), name


def test_a_parameter_depends_on_seed_and_name_only():
    deep = make_parameters(LANGUAGE, seed=3)
    shallow = make_parameters(msgspec.structs.replace(LANGUAGE, layers=1), seed=3)
    for name, array in shallow.items():
        np.testing.assert_array_equal(array, deep[name])
    assert not np.array_equal(deep["head.w"], make_parameters(LANGUAGE, seed=4)["head.w"])
    assert not np.array_equal(deep["layer1.fwd.w"], deep["layer2.fwd.w"])


def test_a_few_units_remember_the_first_step_to_the_end():
    """Else a system that leaves out the beginning of a long sequence would compute the same."""
    workload = parse_workload("ce-long[batch=2]")
    parameters, [batch] = make_parameters(workload), make_batches(workload, 1)
    shorter = msgspec.structs.replace(workload, steps=workload.steps - 1)
    late = {**batch, "inputs": batch["inputs"][:, 1:]}
    whole, without_the_first = logits(workload, parameters, batch), logits(shorter, parameters, late)
    error = np.linalg.norm(whole - without_the_first) / np.linalg.norm(whole)
    assert 1e-3 < error < 1e-1


def test_a_batch_of_few_sequences_is_made_of_them_and_keeps_its_longest():
    workload = parse_workload("bi-ctc-long[batch=11,steps=30,shortest=12,labels=3,features=2]")
    [batch] = make_batches(workload, 1)
    few = few_sequences(batch)
    assert len(few.distinct["inputs"]) == 4
    assert few.shares.sum() == pytest.approx(1)
    assert len(set(few.shares)) > 2  # unequal
    assert few.batch["lengths"].max() == workload.steps
    for name, values in few.batch.items():
        np.testing.assert_array_equal(values, few.distinct[name][few.chosen])


@ALL
def test_batches_repeat_from_a_seed_and_differ_from_one_another(workload):
    batches = make_batches(workload, 6, seed=1)
    assert all(map(same, batches[:2], make_batches(workload, 2, seed=1)))
    for one, other in itertools.combinations([*batches, make_batches(workload, 1, seed=2)[0]], 2):
        assert not np.array_equal(one["inputs"], other["inputs"])
        assert not np.array_equal(one["targets"], other["targets"])


@ALL
def test_batches_have_the_documented_shapes_and_types(workload):
    for batch in make_batches(workload, 2):
        width = () if workload.vocabulary else (workload.features,)
        assert batch["inputs"].shape == (workload.batch, workload.steps, *width)
        assert batch["inputs"].dtype == (np.int64 if workload.vocabulary else np.float32)
        assert batch["targets"].shape == target_shape(workload)
        assert batch["targets"].dtype == np.int64
        assert ("lengths" in batch) == workload.variable_length


def test_a_language_models_targets_are_its_next_inputs():
    [batch] = make_batches(LANGUAGE, 1)
    np.testing.assert_array_equal(batch["targets"][:, :-1], batch["inputs"][:, 1:])


def test_drawn_words_follow_zipfs_law():
    [batch] = make_batches(parse_workload("ptb-lm[batch=200,steps=200,vocabulary=50]"), 1)
    shares = np.bincount(batch["inputs"].ravel(), minlength=50) / batch["inputs"].size
    ranks = np.arange(1, 51)
    np.testing.assert_allclose(shares * ranks, np.full(50, 1 / np.sum(1 / ranks)), rtol=0.3)


def test_features_are_uniform_between_minus_one_and_one():
    [batch] = make_batches(LAST_STEP, 1)
    assert -1 <= batch["inputs"].min() < -0.98
    assert 0.98 < batch["inputs"].max() <= 1


def test_classes_are_all_used_and_the_blank_is_never_a_label():
    assert set(make_batches(LAST_STEP, 1)[0]["targets"]) == set(range(10))
    assert set(make_batches(SPEECH, 1)[0]["targets"].ravel()) == {1, 2, 3}


def test_lengths_are_those_of_the_workload_in_an_order_that_changes_from_batch_to_batch():
    batches = make_batches(SPEECH, 4)
    for batch in batches:
        assert sorted(batch["lengths"], reverse=True) == lengths(SPEECH)
        assert batch["lengths"].dtype == np.int64
    for one, other in itertools.pairwise(batches):
        assert not np.array_equal(one["lengths"], other["lengths"])


def test_the_file_holds_everything_and_loads_without_pickle(tmp_path):
    parameters, batches = make_parameters(SPEECH), make_batches(SPEECH, 2)
    path = tmp_path / "inputs.npz"
    write_inputs(path, parameters, batches)
    wanted = {f"parameter/{name}": array for name, array in parameters.items()}
    for k, batch in enumerate(batches):
        wanted |= {f"batch/{k}/{key}": array for key, array in batch.items()}
    with np.load(path, allow_pickle=False) as loaded:
        assert set(loaded.files) == set(wanted)
        for key, array in wanted.items():
            np.testing.assert_array_equal(loaded[key], array, strict=True)


def test_what_would_need_pickle_is_refused(tmp_path):
    with pytest.raises(ValueError, match="allow_pickle"):
        write_inputs(tmp_path / "inputs.npz", {"head.w": np.array([None])}, [])


def test_the_file_is_neither_compressed_nor_dated_so_equal_inputs_are_equal_files(tmp_path):
    for name in ("one", "two"):
        write_inputs(tmp_path / name, make_parameters(SPEECH), make_batches(SPEECH, 1))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
