"""A run's folder: written so that it can be read after any crash, and read without trusting it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.domain.profile import ProfileRecord
from rnnbench.domain.result import Record
from rnnbench.domain.run import SCHEMA, Run, current_names
from rnnbench.errors import UserError
from rnnbench.files import locked, write_atomically

RUN_FILE = "run.json"
RECORDS_FILE = "launches.jsonl"
PROFILES_FILE = "profiles.jsonl"  # apart from what was timed
LOGS = "logs"


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """A run as read back: what was asked, what came of it, and which lines could not be read."""

    run: Run
    records: tuple[Record, ...]
    profiles: tuple[ProfileRecord, ...] = ()
    damaged: tuple[str, ...] = ()  # `line 7: …`


class _Schema(msgspec.Struct):
    schema: int


def require_empty(folder: Path) -> None:
    """A run never mixes with another, nor with anything else."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not an empty folder", "give another --out, or continue a run with --resume")


def create_folder(folder: Path, run: Run) -> None:
    """Begin a run."""
    require_empty(folder)
    (folder / LOGS).mkdir(parents=True, exist_ok=True)
    (folder / RECORDS_FILE).touch()
    write_atomically(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(run), indent=1))


@contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Nobody else goes on with this run meanwhile: they would do the same, and disturb each other's times."""
    with ExitStack() as held:
        if (folder / RUN_FILE).is_file():  # otherwise it is no run, and whoever reads it says so
            try:
                held.enter_context(locked(folder / RECORDS_FILE))
            except BlockingIOError:
                raise UserError(
                    f"{folder} is in use: another rnnbench goes on with it", "wait for that one to end, or stop it"
                ) from None
        yield


def append(folder: Path, record: Record | ProfileRecord) -> None:
    """One record, on disk before this returns. After a torn line a new one is begun, never glued to it."""
    path = folder / (PROFILES_FILE if isinstance(record, ProfileRecord) else RECORDS_FILE)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + msgspec.json.encode(record) + b"\n"
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_log(folder: Path, name: str, text: str) -> str:
    """Keep what a worker printed; returns where, relative to the run folder."""
    place = Path(LOGS) / name
    while (folder / place).exists():  # a retry has the number of the attempt that failed
        place = place.with_name(f"again-{place.name}")
    (folder / place).parent.mkdir(exist_ok=True)  # a folder that came through git has lost it while it was empty
    (folder / place).write_text(text, encoding="utf-8", errors="replace")
    return str(place)


def read_folder(folder: Path) -> Contents:
    """A run folder, as much of it as can be read; what cannot is named, never silently dropped."""
    try:
        raw = current_names((folder / RUN_FILE).read_bytes())
    except OSError as error:
        raise UserError(f"{folder} is no run: {error.strerror}", f"a run folder holds {RUN_FILE}") from error
    try:
        schema = msgspec.json.decode(raw, type=_Schema).schema
        if schema != SCHEMA:
            raise UserError(
                f"{folder} has schema {schema}; this rnnbench reads {SCHEMA}", "use the version that made it"
            )
        run = msgspec.json.decode(raw, type=Run)
    except (msgspec.MsgspecError, ValueError) as error:
        raise UserError(f"{folder / RUN_FILE} is damaged: {error}", "restore it from a copy") from error
    records, damaged = _read_lines(folder / RECORDS_FILE, msgspec.json.Decoder(Record))
    profiles: list[ProfileRecord] = []
    if (folder / PROFILES_FILE).exists():
        profiles, broken = _read_lines(folder / PROFILES_FILE, msgspec.json.Decoder(ProfileRecord))
        damaged += [f"{PROFILES_FILE}, {one}" for one in broken]
    return Contents(run=run, records=tuple(records), profiles=tuple(profiles), damaged=tuple(damaged))


def _read_lines(path: Path, decoder: msgspec.json.Decoder[Any]) -> tuple[list[Any], list[str]]:
    """What could be read of the lines, and which could not."""
    records: list[Any] = []
    damaged: list[str] = []
    try:
        lines = current_names(path.read_bytes()).split(b"\n")
    except OSError as error:
        return [], [f"all lines: {error.strerror}"]
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(decoder.decode(line))
        except (msgspec.MsgspecError, ValueError) as error:
            damaged.append(f"line {number}: {error}")
    return records, damaged
