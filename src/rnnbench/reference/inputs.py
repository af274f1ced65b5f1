"""Parameters and batches of a workload: random ones, or the words of the Penn Treebank."""

import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rnnbench_cells
from rnnbench.domain.workload import OwnCell, Workload, lengths, parameter_shapes, target_shape
from rnnbench.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

# Read-only and of any precision: workers report float32, the reference works in float64.
Parameters = Mapping[str, NDArray[Any]]

# `inputs`: ids [batch, steps], or numbers [batch, steps, features]; `targets`: see `target_shape`;
# `lengths` [batch]: only if the workload has variable lengths. A single step has `inputs` [batch, features]
# and `state` [batch, hidden].
Batch = dict[str, NDArray[Any]]

TREEBANK_FILE = "ptb.train.txt"
END_OF_LINE = "<eos>"
UNKNOWN = "<unk>"


def make_parameters(workload: Workload, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Every parameter in the canonical layout. Biases are not zero, so that verification notices a wrong one."""
    bound = 1 / np.sqrt(workload.hidden)
    if workload.own_class is not None:
        return _as_the_class_begins(workload.own_class, workload, seed)
    parameters = {
        name: _uniform(_random_generator(seed, name), shape, 1.0 if name == "embedding" else bound)
        for name, shape in parameter_shapes(workload).items()
    }
    middles = getattr(cell_of(workload), "GAINS", {})
    for name in parameters:
        if ".gain" in name:  # of a normalisation
            parameters[name] += np.float32(middles.get(name.rpartition(".")[2], 1))
    if not workload.one_step:
        _let_some_units_remember(parameters, workload)
    return parameters


def _as_the_class_begins(own: OwnCell, workload: Workload, seed: int) -> dict[str, NDArray[np.float32]]:
    """Drawn from where the class itself puts its weights. One that is constant is moved a little, so that it counts."""
    bound = 1 / np.sqrt(workload.hidden)
    parameters = {}
    for weight in own.weights:
        name = f"layer0.fwd.{weight.name}"
        middle, reach = (weight.high + weight.low) / 2, (weight.high - weight.low) / 2
        reach = reach or 0.05 * abs(middle) or bound
        parameters[name] = _uniform(_random_generator(seed, name), weight.shape, reach) + np.float32(middle)
    head = {name: shape for name, shape in parameter_shapes(workload).items() if name.startswith("head.")}
    return parameters | {name: _uniform(_random_generator(seed, name), shape, bound) for name, shape in head.items()}


#: One unit in so many remembers the whole sequence. All others have forgotten a step after thirty more: a system that
#: leaves out the beginning of a long sequence would compute the same numbers.
REMEMBERING = 16


def _let_some_units_remember(parameters: dict[str, NDArray[np.float32]], workload: Workload) -> None:
    """Their forget gate is about 1 − 1/steps, and their input gate 1/√steps, so that they sum up without overflowing.

    They hardly feed back into their own layer: with such long memories, feedback would amplify every rounding error.
    Which gates these are is the cell's to say.
    """
    hidden, steps = workload.hidden, max(2, workload.steps)
    units = np.arange(0, hidden, REMEMBERING)
    gates = cell_of(workload).REMEMBER
    for name, array in parameters.items():
        if not name.startswith("layer"):
            continue
        if name.endswith(".b"):
            for gate, share in gates.items():
                array[gate * hidden + units] += np.float32(share * np.log(steps - 1 if share > 0 else steps))
        elif gates and name.endswith((".u", ".v")):
            array[units] *= np.float32(0.01)


def cell_of(workload: Workload) -> ModuleType:
    """The module of the workload's cell: of a user's own, the file is imported, which only a run does."""
    return rnnbench_cells.find(workload.own.path if workload.own is not None else workload.cell)


def make_batches(workload: Workload, count: int, seed: int = 0, data: Path | None = None) -> list[Batch]:
    """`count` different batches. With `data`, those of a language model are windows of the text there.

    A batch depends only on the seed and its number, so the first few do not change with `count`. Two batches
    can be equal only if the vocabulary is tiny or the text is shorter than the batches.
    """
    if workload.one_step:
        return [_step_batch(workload, seed, k) for k in range(count)]
    if not workload.vocabulary:
        return [_labelled_batch(workload, seed, k) for k in range(count)]
    if data is None:
        return [_next_word_batch(_zipf_words(workload, seed, k)) for k in range(count)]
    text = read_treebank(data, workload.vocabulary)
    return [_next_word_batch(treebank_window(text, workload.batch, workload.steps, k)) for k in range(count)]


DISTINCT = 4
_SHARES = (0.4, 0.3, 0.2, 0.1)  # unequal, so that a system that leaves out a part of the batch has another loss


class FewSequences(NamedTuple):
    """A batch that repeats a few sequences. Its loss and its gradients are those of the few, with their shares."""

    batch: Batch
    distinct: Batch
    shares: Floats
    chosen: Integers  # for each sequence of the batch, which of the distinct ones it is


def few_sequences(batch: Batch) -> FewSequences:
    """The batch with most of its sequences replaced by copies of a few, so that the reference is quick.

    Where lengths vary, the longest sequence stays, and the others are spread over the lengths.
    """
    count = len(batch["inputs"])
    few = min(DISTINCT, count)
    order = np.argsort(-batch["lengths"], kind="stable") if "lengths" in batch else np.arange(count)
    kept = order[np.linspace(0, count - 1, few).round().astype(np.int64)]
    bounds = np.cumsum(_SHARES[:few]) / sum(_SHARES[:few])
    chosen = np.searchsorted(bounds, (np.arange(count) + 0.5) / count).clip(0, few - 1)
    chosen = _random_generator(0, "few").permutation(chosen)
    distinct = {name: values[kept] for name, values in batch.items()}
    shares = np.bincount(chosen, minlength=few) / count
    return FewSequences({name: values[chosen] for name, values in distinct.items()}, distinct, shares, chosen)


def write_inputs(path: Path, parameters: Parameters, batches: Sequence[Batch]) -> None:
    """Write an uncompressed .npz with keys `parameter/<name>` and `batch/<k>/<key>`.

    It is written entry by entry, because `numpy.savez` silently pickles what is not a plain array.
    """
    arrays = {f"parameter/{name}": array for name, array in parameters.items()}
    for k, batch in enumerate(batches):
        arrays |= {f"batch/{k}/{key}": array for key, array in batch.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _random_generator(seed: int, name: str) -> np.random.Generator:
    """Its numbers depend only on the seed and the name, not on what was drawn before."""
    return np.random.Generator(np.random.PCG64([seed, *name.encode()]))


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], bound: float) -> NDArray[np.float32]:
    return ((2 * generator.random(shape) - 1) * bound).astype(np.float32)


def _step_batch(workload: Workload, seed: int, k: int) -> Batch:
    """What a single step reads: its input and the previous state. There is no time axis and there are no targets."""
    generator = _random_generator(seed, f"batch/{k}")
    return {
        "inputs": _uniform(generator, (workload.batch, workload.features), 1.0),
        "state": _uniform(generator, (workload.batch, workload.hidden), 1.0),
    }


def _labelled_batch(workload: Workload, seed: int, k: int) -> Batch:
    """Noise as inputs, uniform labels as targets. Padded steps contain noise too: they must have no effect."""
    generator = _random_generator(seed, f"batch/{k}")
    lowest = 1 if workload.loss == "ctc" else 0  # class 0 is CTC's blank
    batch: Batch = {
        "inputs": _uniform(generator, (workload.batch, workload.steps, workload.features), 1.0),
        "targets": generator.integers(lowest, workload.classes, target_shape(workload)),
    }
    if workload.variable_length:
        # One shuffle, rotated by one place per batch: consecutive batches never have the same order.
        shuffled = _random_generator(seed, "lengths").permutation(np.array(lengths(workload), dtype=np.int64))
        batch["lengths"] = np.roll(shuffled, k)
    return batch


def _zipf_words(workload: Workload, seed: int, k: int) -> Integers:
    """Words as frequent as in real text: id n has a probability proportional to 1/(n + 1)."""
    weights = 1 / np.arange(1, workload.vocabulary + 1)
    shape = (workload.batch, workload.steps + 1)
    return _random_generator(seed, f"batch/{k}").choice(workload.vocabulary, shape, p=weights / weights.sum())


def _next_word_batch(words: Integers) -> Batch:
    """Each row has `steps + 1` consecutive words: all but the last are inputs, all but the first are targets."""
    return {
        "inputs": np.ascontiguousarray(words[:, :-1]),
        "targets": np.ascontiguousarray(words[:, 1:]),
    }


def read_treebank(folder: Path, vocabulary: int) -> Integers:
    """The words of the text as ids below `vocabulary`: 0 is the most frequent word, and so on."""
    words = _read_words(folder / TREEBANK_FILE)
    ids = _word_ids(words, vocabulary)
    # A rare word without an id becomes `<unk>`, or the last id if the text has no `<unk>`.
    unknown = ids.get(UNKNOWN, vocabulary - 1)
    return np.array([ids.get(word, unknown) for word in words], dtype=np.int64)


def treebank_window(text: Integers, batch: int, steps: int, k: int) -> Integers:
    """The `k`-th window `[batch, steps + 1]` of `batch` streams that start evenly spread over the text.

    A window begins with the last word of the previous one, which was a target there but not an input.
    A stream that reaches the end of the text continues at its start.
    """
    starts = np.arange(batch) * max(1, len(text) // batch)
    positions = starts[:, None] + k * steps + np.arange(steps + 1)
    window: Integers = text[positions % len(text)]
    return window


def _read_words(path: Path) -> list[str]:
    hint = f"name a folder that contains {TREEBANK_FILE}, or none: words are then drawn at random"
    try:
        with path.open(encoding="utf-8") as lines:
            words = [word for line in lines for word in (*line.split(), END_OF_LINE)]
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UserError(f"cannot read the Penn Treebank at {path}: {reason}", hint) from error
    if set(words) <= {END_OF_LINE}:
        raise UserError(f"the Penn Treebank at {path} has no words", hint)
    return words


def _word_ids(words: list[str], vocabulary: int) -> dict[str, int]:
    """Ids of the most frequent words; equally frequent ones are in alphabetical order."""
    counts = Counter(words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: id for id, word in enumerate(ranked[:vocabulary])}
