"""What is known of systems without trying it here: entries of abilities, in a file per framework, version and device.

They come with rnnbench, were written by `rnnbench abilities --update`, and are used for every run of the same version.
"""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from rnnbench.domain.ability import ABILITIES, Entry
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON, read_regular, write_atomically

FOLDER = Path(__file__).resolve().parent


def known_entries() -> tuple[Entry, ...]:
    """All that come with rnnbench."""
    return _read_folder(FOLDER)


@lru_cache(maxsize=8)
def _read_folder(folder: Path) -> tuple[Entry, ...]:
    return tuple(entry for path in sorted(folder.glob("*.json")) for entry in read_entries(path))


def read_entries(path: Path) -> tuple[Entry, ...]:
    try:
        entries = msgspec.json.decode(read_regular(path), type=tuple[Entry, ...])
    except DAMAGED_JSON as error:
        raise UserError(f"{path} is damaged: {error}", "make it again with `rnnbench abilities`") from error
    # An ability that this version does not know is not counted: it would be one of more than there are.
    return tuple(entry for entry in entries if entry.ability in ABILITIES)


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    write_atomically(path, msgspec.json.format(msgspec.json.encode(list(entries)), indent=1) + b"\n")


def update_known(entries: Iterable[Entry], folder: Path = FOLDER) -> list[Path]:
    """Replace what is known of these systems. What was not tried replaces nothing."""
    tried = [entry for entry in entries if entry.verdict != "not tried"]
    by_file: dict[Path, list[Entry]] = {}
    for entry in tried:
        framework = entry.system.partition("/")[0]
        by_file.setdefault(folder / f"{framework}-{entry.version}-{entry.device}.json", []).append(entry)
    for path, new in by_file.items():
        replaced = {(entry.system, entry.ability) for entry in new}
        before = read_entries(path) if path.exists() else ()
        kept = [entry for entry in before if (entry.system, entry.ability) not in replaced]
        write_entries(path, sorted((*kept, *new), key=lambda entry: (entry.system, ABILITIES.index(entry.ability))))
    _read_folder.cache_clear()
    return list(by_file)
