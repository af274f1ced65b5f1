"""The kinds of array that the reference passes around."""

import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnbench.domain.workload import Workload, lengths, parameter_shapes, target_shape
from rnnbench.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

# Read-only, and of any precision: workers report float32, the reference works in float64.
Parameters = Mapping[str, NDArray[Any]]


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


FILE = "ptb.train.txt"
END_OF_LINE = "<eos>"
UNKNOWN = "<unk>"


def read_treebank(folder: Path, vocabulary: int) -> Integers:
    """The text's words as ids below `vocabulary`: 0 is the most frequent word, and so on."""
    words = _words(folder / FILE)
    ids = _number(words, vocabulary)
    # A rare word without an id becomes `<unk>`, or the last id in a text that has no such word.
    unknown = ids.get(UNKNOWN, vocabulary - 1)
    return np.array([ids.get(word, unknown) for word in words], dtype=np.int64)


def treebank_window(text: Integers, batch: int, steps: int, k: int) -> Integers:
    """The `k`-th stretch `[batch, steps + 1]` of `batch` streams that start evenly over the text.

    A stretch begins with the last word of the one before, which was foretold there but not yet read.
    A stream that comes to the end of the text goes on at its start.
    """
    starts = np.arange(batch) * max(1, len(text) // batch)
    positions = starts[:, None] + k * steps + np.arange(steps + 1)
    stretch: Integers = text[positions % len(text)]
    return stretch


def _words(path: Path) -> list[str]:
    hint = f"give a folder that holds {FILE}, or none: words are then drawn at random"
    try:
        with path.open(encoding="utf-8") as lines:
            words = [word for line in lines for word in (*line.split(), END_OF_LINE)]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read the Penn Treebank at {path}: {reason}", hint) from error
    if set(words) <= {END_OF_LINE}:
        raise UserError(f"the Penn Treebank at {path} has no words", hint)
    return words


def _number(words: list[str], vocabulary: int) -> dict[str, int]:
    """Ids for the most frequent words, the alphabet deciding between equals."""
    counts = Counter(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(ranked[:vocabulary])}
