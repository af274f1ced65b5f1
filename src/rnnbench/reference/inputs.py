"""The numbers every system starts from: parameters and batches, drawn from a seed or read from text."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.workload import Workload, lengths, parameter_shapes, target_shape
from rnnbench.reference.arrays import Integers, Parameters
from rnnbench.reference.treebank import read_treebank, treebank_window

# `inputs`: ids [batch, steps], or numbers [batch, steps, features]; `targets`: see `target_shape`;
# `lengths` [batch], only where the workload has sequences of different lengths. A single step has `inputs`
# [batch, features] and `state` [batch, hidden].
Batch = dict[str, NDArray[Any]]


def make_parameters(workload: Workload, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Every parameter in the canonical layout. Biases are not zero: a mixed-up one must be seen."""
    bound = 1 / np.sqrt(workload.hidden)
    return {
        name: _uniform(_generator(seed, name), shape, 1.0 if name == "embedding" else bound)
        for name, shape in parameter_shapes(workload).items()
    }


def make_batches(workload: Workload, count: int, seed: int = 0, data: Path | None = None) -> list[Batch]:
    """`count` batches, each drawn afresh; a language model's are stretches of the text in `data`, if given.

    A batch depends on the seed and its place alone, so that the first few are the same however many
    follow. No two are alike, unless a handful of ids or a text shorter than the batches leaves no choice.
    """
    if workload.one_step:
        return [_step_batch(workload, seed, k) for k in range(count)]
    if not workload.vocabulary:
        return [_labelled_batch(workload, seed, k) for k in range(count)]
    if data is None:
        return [_next_word_batch(_zipf(workload, seed, k)) for k in range(count)]
    text = read_treebank(data, workload.vocabulary)
    return [_next_word_batch(treebank_window(text, workload.batch, workload.steps, k)) for k in range(count)]


def write_inputs(path: Path, parameters: Parameters, batches: Sequence[Batch]) -> None:
    """An uncompressed .npz with keys `parameter/<name>` and `batch/<k>/<key>`.

    Written entry by entry, because `numpy.savez` would quietly pickle what is no plain array.
    """
    arrays = {f"parameter/{name}": array for name, array in parameters.items()}
    for k, batch in enumerate(batches):
        arrays |= {f"batch/{k}/{key}": array for key, array in batch.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _generator(seed: int, name: str) -> np.random.Generator:
    """Randomness that depends on the seed and the name only, not on what was drawn before."""
    return np.random.Generator(np.random.PCG64([seed, *name.encode()]))


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], bound: float) -> NDArray[np.float32]:
    return ((2 * generator.random(shape) - 1) * bound).astype(np.float32)


def _step_batch(workload: Workload, seed: int, k: int) -> Batch:
    """What a single step reads: its input and the state before it, no axis of time, nothing to compare with."""
    generator = _generator(seed, f"batch/{k}")
    return {
        "inputs": _uniform(generator, (workload.batch, workload.features), 1.0),
        "state": _uniform(generator, (workload.batch, workload.hidden), 1.0),
    }


def _labelled_batch(workload: Workload, seed: int, k: int) -> Batch:
    """Noise in, uniform labels out. There is noise beyond a sequence's end too: it must not matter."""
    generator = _generator(seed, f"batch/{k}")
    lowest = 1 if workload.loss == "ctc" else 0  # class 0 is CTC's blank
    batch: Batch = {
        "inputs": _uniform(generator, (workload.batch, workload.steps, workload.features), 1.0),
        "targets": generator.integers(lowest, workload.classes, target_shape(workload)),
    }
    if workload.variable_length:
        # One shuffle, moved on by one place a batch: neighbours never have the same order.
        shuffled = _generator(seed, "lengths").permutation(np.array(lengths(workload), dtype=np.int64))
        batch["lengths"] = np.roll(shuffled, k)
    return batch


def _zipf(workload: Workload, seed: int, k: int) -> Integers:
    """Words as frequent as in real text: the k-th most frequent comes with probability ∝ 1/(k + 1)."""
    weights = 1 / np.arange(1, workload.vocabulary + 1)
    shape = (workload.batch, workload.steps + 1)
    return _generator(seed, f"batch/{k}").choice(workload.vocabulary, shape, p=weights / weights.sum())


def _next_word_batch(stream: Integers) -> Batch:
    """Each row is `steps + 1` consecutive words: all but the last are read, all but the first foretold."""
    return {
        "inputs": np.ascontiguousarray(stream[:, :-1]),
        "targets": np.ascontiguousarray(stream[:, 1:]),
    }
