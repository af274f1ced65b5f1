"""Running venv and pip so that no process is left when rnnbench stops, and explaining why they failed."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from rnnbench.environments.environment import child_variables
from rnnbench.errors import UserError

_GRACE_SECONDS = 3.0  # time for pip to delete its temporary files, which can be gigabytes
_running: set["subprocess.Popen[str]"] = set()


def run_logged(command: list[str], log: IO[str], on_line: Callable[[str], None], lock: int) -> tuple[int, str]:
    """Run a command to its end; returns exit code and output. An exception from `on_line` ends the command.

    The child keeps `lock` open and has its own process group. Ctrl-C therefore reaches only the driver, which
    ends the whole group, compilers included, before it deletes any files.
    """
    log.write(f"$ {shlex.join(command)}\n")
    log.flush()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        # `user = true` in a pip configuration is meant for installations outside environments, and fails here.
        env=child_variables() | {"PIP_USER": "0"},
        start_new_session=True,
        pass_fds=(lock,),
    )
    assert child.stdout is not None
    output: list[str] = []
    _running.add(child)
    try:
        with child.stdout:
            for line in child.stdout:
                log.write(line)
                log.flush()
                output.append(line)
                on_line(line.strip())
        return child.wait(), "".join(output)
    except BaseException:
        _end_group(child)
        raise
    finally:
        _running.discard(child)


def end_all_commands() -> None:
    """End the commands of all threads, when the driver is interrupted. The threads that started them clean up."""
    for child in list(_running):
        _end_group(child)


def _end_group(child: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_SECONDS)
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


_DISK = re.compile(r"no space left on device|errno 28\b|disk quota exceeded|errno 122\b", re.IGNORECASE)
_NETWORK = re.compile(
    r"connection broken by|failed to establish a new connection|name resolution|max retries exceeded"
    r"|timed out|connection (refused|reset|aborted)|network is unreachable|proxyerror|certificate_verify",
    re.IGNORECASE,
)
_NO_MATCH = re.compile(r"no matching distribution found", re.IGNORECASE)
_VERSIONS = re.compile(r"\(from versions: (?P<list>[^)]*)\)")
_CONFLICT = re.compile(r"resolutionimpossible|conflicting dependencies", re.IGNORECASE)
_COMPLAINT = re.compile(r"^\s*(error\b|.*\berror:|.*not created successfully)", re.IGNORECASE)


def explain_failure(status: int, output: str, id: str, python: str, log: str) -> UserError:
    """The error for a creation in which venv or pip ended with this exit code and output."""
    reason, hint = _cause(status, output, python)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if _COMPLAINT.match(line)] or lines
    quoted = "".join(f"\n  {_shortened(line)}" for line in complaints[-3:])
    return UserError(f"cannot create {id}: {reason}{quoted}", f"{hint}\nthe whole output is in {log}")


def found_no_release(output: str) -> bool:
    """Whether pip ended because it knows no such release, for this machine or at all."""
    return _NO_MATCH.search(output) is not None


def _cause(status: int, output: str, python: str) -> tuple[str, str]:
    offered = [match["list"] for match in _VERSIONS.finditer(output)]
    nothing_offered = not offered or offered[-1] == "none"
    if _DISK.search(output):
        return (
            "the disk is full",
            "free some space, or set XDG_CACHE_HOME (and TMPDIR, where pip unpacks) to a larger disk",
        )
    # Without a connection pip also complains that no version matches, so this is checked first. If a list
    # of versions arrived, the connection worked in the end.
    if _NETWORK.search(output) and nothing_offered:
        return (
            "pip could not reach the package index",
            "check the network; behind a proxy, or with a mirror, configure pip (PIP_PROXY, PIP_INDEX_URL or "
            "pip.conf); without a network, name an interpreter that has the framework: rnnbench env use FRAMEWORK PATH",
        )
    if _NO_MATCH.search(output) and nothing_offered:
        return (
            f"pip found no release for Python {python} on this machine",
            "there is none for this kind of machine or this Python, or pip uses the wrong package index: "
            "see `pip config list`, and check the network",
        )
    if _NO_MATCH.search(output):
        return f"this version is not offered for Python {python}", "choose one of the versions that pip lists"
    if _CONFLICT.search(output):
        return (
            "the requirements contradict each other",
            "your own pip constraints (PIP_CONSTRAINT, pip.conf) may be the cause, or the manifest is wrong",
        )
    if status < 0:
        return f"the installer was killed by signal {-status}", "signal 9 often means that memory ran out"
    return f"a command ended with exit code {status}", "the last lines of its output are above"


def _shortened(line: str, length: int = 300) -> str:
    """Cut from the middle: pip lists every version of a package, and the newest ones come last."""
    return line if len(line) <= length else f"{line[: length // 3]} … {line[-2 * length // 3 :]}"
