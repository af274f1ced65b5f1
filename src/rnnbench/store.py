"""The folder of a run: it stays readable after any crash, and every line is checked when it is read."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from rnnbench.domain.ability import Entry
from rnnbench.domain.consistency import record_check, require_consistent
from rnnbench.domain.profile import ProfileRecord
from rnnbench.domain.result import Launch, Record
from rnnbench.domain.run import SCHEMA, Run, current_names
from rnnbench.errors import UserError
from rnnbench.files import DAMAGED_JSON, locked, read_regular, require_writable, write_atomically
from rnnbench.known import read_entries

RUN_FILE = "run.json"
RECORDS_FILE = "launches.jsonl"
PROFILES_FILE = "profiles.jsonl"  # separate from the timed launches
LOGS = "logs"
ABILITIES_FILE = "abilities.json"  # only where abilities were tried for this run
SPREAD_FILE = "spread.json"  # only in a run that is spread over the nodes of a cluster


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it was read: its plan, its results, and the lines that could not be read."""

    run: Run
    records: tuple[Record, ...]
    profiles: tuple[ProfileRecord, ...] = ()
    abilities: tuple[Entry, ...] = ()
    damaged: tuple[str, ...] = ()  # `line 7: …`


def require_empty(folder: Path) -> None:
    """Refuse a folder that contains anything: a run is never mixed with other files."""
    try:
        empty = not os.path.lexists(folder) or (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise UserError(f"cannot use {folder}: {error.strerror}", "choose another folder") from error
    if not empty:
        raise UserError(
            f"{folder} is not an empty folder",
            "choose another folder, or continue the run that is in it with `rnnbench run --resume`",
        )


def require_usable(folder: Path) -> None:
    """Refuse a folder for a new run that is not empty or cannot be written to."""
    require_empty(folder)
    require_writable(folder)


def create_folder(folder: Path, run: Run) -> None:
    """Create the folder of a new run."""
    require_empty(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Of two runs that begin here at the same moment, one creates this file, and the other is refused.
        os.close(os.open(folder / RECORDS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        (folder / LOGS).mkdir(exist_ok=True)
        write_atomically(folder / RUN_FILE, msgspec.json.format(msgspec.json.encode(run), indent=1))
    except FileExistsError:
        raise UserError(f"another run has just begun in {folder}", "choose another folder") from None
    except OSError as error:
        raise UserError(f"cannot begin a run in {folder}: {error.strerror}", "choose another folder") from error


@contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Lock a run: two processes that resume it would repeat the same cases and disturb each other's times.

    A spread run is refused: its files are collected from those of the nodes, and what is added to them would be lost.
    """
    if os.path.lexists(folder / SPREAD_FILE):
        raise UserError(f"{folder} is spread over a cluster", f"resume it with: rnnbench run --resume {folder}")
    with ExitStack() as stack:
        if os.path.isfile(folder / RUN_FILE):  # otherwise `read_folder` reports that it is not a run
            try:
                descriptor = stack.enter_context(locked(folder / RECORDS_FILE))
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise UserError(f"{folder / RECORDS_FILE} is not a regular file", "restore it from a copy")
            except BlockingIOError:
                raise UserError(
                    f"{folder} is in use: another rnnbench is running it", "wait for that one to end, or stop it"
                ) from None
            except OSError as error:
                raise UserError(
                    f"cannot continue {folder}: {RECORDS_FILE}: {error.strerror}", "it must be a file you can write to"
                ) from error
        yield


def append(folder: Path, record: Record | ProfileRecord) -> None:
    """Append one record; it is on disk before this returns. After an incomplete line it starts on a new line."""
    path = folder / (PROFILES_FILE if isinstance(record, ProfileRecord) else RECORDS_FILE)
    try:
        _append(path, msgspec.json.encode(record) + b"\n")
    except OSError as error:
        raise UserError(
            f"cannot store a result in {path}: {error.strerror}",
            f"what was stored before is kept; when it can be written to again: rnnbench run --resume {folder}",
        ) from error


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        incomplete = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if incomplete else b"") + line
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def log_name(folder: Path, name: str) -> str:
    """A path within the run folder for what a worker printed; no file has it yet."""
    path = Path(LOGS) / name
    while os.path.lexists(folder / path):  # a retry has the same name as the attempt that failed
        path = path.with_name(f"again-{path.name}")
    return str(path)


def write_log(folder: Path, path: str, text: str) -> None:
    """Keep what a worker printed, at a path that `log_name` gave."""
    if text:
        (folder / path).parent.mkdir(exist_ok=True)  # git does not keep an empty folder
        (folder / path).write_text(text, encoding="utf-8", errors="replace")


def read_run(folder: Path) -> Run:
    """A run without its results."""
    try:
        raw = current_names(read_regular(folder / RUN_FILE))
    except OSError as error:
        if os.path.lexists(folder / SPREAD_FILE):
            hint = f"see how far it is, and collect what is complete: rnnbench run --resume {folder}"
            raise UserError(f"{folder} is spread over a cluster, and has no plan yet", hint) from error
        raise UserError(f"{folder} is not a run: {error.strerror}", f"a run folder contains {RUN_FILE}") from error
    try:
        schema = msgspec.json.decode(raw, type=_Schema).schema
        if schema != SCHEMA:
            raise UserError(
                f"{folder} has schema {schema}; this rnnbench reads {SCHEMA}",
                "use the version of rnnbench that made it",
            )
        run = msgspec.json.decode(raw, type=Run)
        require_consistent(run)
    except DAMAGED_JSON as error:
        raise UserError(f"{folder / RUN_FILE} is damaged: {error}", "restore it from a copy") from error
    return run


def read_folder(folder: Path) -> Contents:
    """Everything in a run folder that can be read. Lines that cannot are reported, never silently dropped."""
    run = read_run(folder)
    check = record_check(run)
    records, damaged = _read_lines(folder / RECORDS_FILE, msgspec.json.Decoder(Record), check)
    profiles: list[ProfileRecord] = []
    if os.path.lexists(folder / PROFILES_FILE):
        decoder = msgspec.json.Decoder(ProfileRecord)
        profiles, damaged_profiles = _read_lines(folder / PROFILES_FILE, decoder, check)
        damaged += [f"{PROFILES_FILE}, {line}" for line in damaged_profiles]
    abilities: tuple[Entry, ...] = ()
    if os.path.lexists(folder / ABILITIES_FILE):
        try:
            abilities = read_entries(folder / ABILITIES_FILE)
        except (OSError, UserError) as error:
            damaged.append(f"{ABILITIES_FILE}, all lines: {_shortened(error)}")
    return Contents(
        run=run, records=tuple(records), profiles=tuple(profiles), abilities=abilities, damaged=tuple(damaged)
    )


class _Schema(msgspec.Struct):
    schema: int


def _read_lines(
    path: Path, decoder: msgspec.json.Decoder[Any], check: Callable[[Any], None]
) -> tuple[list[Any], list[str]]:
    """The records of the lines that can be read, and a message for each line that cannot."""
    records: list[Any] = []
    damaged: list[str] = []
    try:
        lines = current_names(read_regular(path)).split(b"\n")
    except OSError as error:
        return [], [f"all lines: {error.strerror}"]
    launches: dict[bytes, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
            check(record)
        except DAMAGED_JSON as error:
            damaged.append(f"line {number}: {_shortened(error)}")
            continue
        if isinstance(record, Launch) and launches.setdefault(line, number) != number:
            damaged.append(
                f"line {number}: the same launch as line {launches[line]}"
            )  # counted twice, it would weigh twice
        else:
            records.append(record)
    return records, damaged


def _shortened(error: Exception) -> str:
    """The message in one printable line: it may quote what is in the file."""
    text = str(error)
    return ascii(text[:300])[1:-1] if not text.isprintable() else text[:300]
