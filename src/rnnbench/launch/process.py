"""The processes of workers: each under a supervisor of its own, and all known to one crew that can end them at once."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rnnbench.launch import supervisor
from rnnbench.launch.supervisor import RESUME, SUSPEND

_ENDING_S = 20.0  # after so long the driver goes on; the supervisor keeps trying
_ANSWER_S = 5.0


class WorkerProcess:
    """One worker and everything it starts. When the driver dies, all of that is killed; see `supervisor.py`."""

    def __init__(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], descriptors: Sequence[int]
    ) -> None:
        # Only this process has this end. That it closes is how the supervisor learns of our death, or of an exception
        # at any point from here on, even if nobody had the time to note that the worker was started.
        self._control, control = socket.socketpair()
        self.report, report = os.pipe()  # lines from the supervisor; it ends when nothing of the worker is left
        passed = (*descriptors, control.fileno(), report)
        listed = ",".join(map(str, descriptors))
        # -I and -S: nothing of the user's can make it slow or change what it does.
        start = [sys.executable, "-I", "-S", supervisor.__file__, str(control.fileno()), str(report), listed, *command]
        try:
            self._supervisor = subprocess.Popen(
                start,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=variables,
                pass_fds=passed,
                start_new_session=True,  # Ctrl-C is for the driver, which ends the worker itself
            )
        except BaseException:
            self._control.close()
            os.close(self.report)
            raise
        finally:
            control.close()
            os.close(report)
        assert self._supervisor.stdin is not None
        assert self._supervisor.stdout is not None
        self.stdin, self.stdout = self._supervisor.stdin, self._supervisor.stdout

    def suspend(self) -> None:
        """Stop the worker and its descendants; returns when they have stopped."""
        self._command(SUSPEND)

    def resume(self) -> None:
        self._command(RESUME)

    def _command(self, code: bytes) -> None:
        with contextlib.suppress(OSError):  # it has ended already
            self._control.settimeout(_ANSWER_S)
            self._control.sendall(code)
            self._control.recv(1)

    def end(self) -> None:
        """Have everything killed, without waiting until it is."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def wait(self) -> None:
        """Wait until nothing is left."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(_ENDING_S)

    def close(self) -> None:
        """Close what belongs to the driver, except the worker's output, of which there may be more to read."""
        self._control.close()
        os.close(self.report)
        with contextlib.suppress(OSError):
            self.stdin.close()


class Closed(Exception):
    """The driver is about to end: no worker may start, and none is waited for."""


class Crew:
    """All workers of the driver. It owns the lock under which they start, take turns and are ended."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self._running: set[WorkerProcess] = set()
        self._is_closed = False

    def start(self, make: Callable[[], WorkerProcess]) -> WorkerProcess:
        """Start a worker that `closing` will know of, or raise Closed."""
        with self.lock:
            self._require_open()
            process = make()
            self._running.add(process)
        return process

    def end(self, process: WorkerProcess) -> None:
        """End a worker and everything it has started. It is never signalled again."""
        try:
            process.end()
            process.wait()
        finally:
            with self.lock:
                self._running.discard(process)
                process.close()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait, with the lock held, or raise Closed."""
        self._require_open()
        while not condition():
            self.lock.wait()
            self._require_open()

    @contextlib.contextmanager
    def closing(self) -> Iterator[None]:
        """End all workers. Until the block has ended, none can be started, and nobody waits for a turn."""
        with self.lock:
            self._is_closed = True
            for process in self._running:
                process.end()
            self.lock.notify_all()
        yield
        self._is_closed = False  # not after an exception: then somebody may still be about to start one

    def _require_open(self) -> None:
        if self._is_closed:
            raise Closed


CREW = Crew()
