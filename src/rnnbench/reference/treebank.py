"""The Penn Treebank's training text as one long row of word ids."""

from collections import Counter
from pathlib import Path

import numpy as np

from rnnbench.errors import UserError
from rnnbench.reference.arrays import Integers

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
