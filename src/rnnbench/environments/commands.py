"""Running venv and pip: every line logged as it comes, and nothing left running when we stop."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from rnnbench.environments.variables import child_variables

_GRACE_SECONDS = 3.0  # for pip to delete its temporary files, which can be gigabytes

_running: set["subprocess.Popen[str]"] = set()


def run_logged(command: list[str], log: IO[str], hear: Callable[[str], None], lock: int) -> tuple[int, str]:
    """Run to the end: the exit status and the output. An exception from `hear` ends the command.

    The child keeps `lock` open, and has its own process group: a Ctrl-C reaches only us, and we end
    the whole group, compilers included, before anybody cleans up.
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
        # `user = true` in a pip configuration is meant for installs outside environments, and fails here.
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
                hear(line.strip())
        return child.wait(), "".join(output)
    except BaseException:
        _end_group(child)
        raise
    finally:
        _running.discard(child)


def end_all_commands() -> None:
    """For an interrupted driver: what other threads have started goes now. Their own threads clean up."""
    for child in list(_running):
        _end_group(child)


def _end_group(child: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE_SECONDS)
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
