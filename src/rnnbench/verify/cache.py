"""Verification results kept between runs, for as long as environment and source stay the same."""

import hashlib
from pathlib import Path

import msgspec

from rnnbench.domain.case import Method
from rnnbench.domain.result import Verification
from rnnbench.files import write_atomically
from rnnbench.launch.subject import Subject
from rnnbench.paths import cache_folder
from rnnbench.source import source_hash, system_sources


def cache_path(subject: Subject, method: Method) -> Path:
    """Named by everything the result depends on: code of system, worker, reference and comparison too."""
    driver = Path(__file__).resolve().parent.parent
    judges = source_hash(driver / "reference", driver / "verify")
    case = subject.case
    parts = (
        case.workload,
        case.system,
        case.device,
        case.precision,
        case.phase,
        str(subject.system.biases),
        subject.environment.fingerprint,
        system_sources(subject.manifest),
        judges,
        str(method.threads),
        str(method.flush_denormals),
        str(method.seed),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    return cache_folder() / "verified" / f"{digest}.json"


def load_kept(path: Path) -> Verification | None:
    """A kept result; a damaged file is no result."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Verification)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None
    return msgspec.structs.replace(kept, cached=True)


def keep_verdict(path: Path, verification: Verification) -> None:
    """Only judgements are kept: a crash or a timeout may have been the machine's fault."""
    if verification.verdict not in ("verified", "wrong"):
        return
    write_atomically(path, msgspec.json.encode(verification))
