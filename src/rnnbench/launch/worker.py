"""One worker process: start it, read its events and its output, and end it whatever happens.

The driver sleeps in `select` while the worker runs, so that it takes no processor time from the measurement.
"""

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from rnnbench.domain.result import Outcome
from rnnbench.domain.run import Environment
from rnnbench.environments.environment import child_variables
from rnnbench.files import cells_package, fuse_package, worker_package
from rnnbench.launch import kept
from rnnbench.launch.events import (
    STAGES,
    Built,
    Done,
    Event,
    Failed,
    First,
    Hello,
    Samples,
    Unseen,
    Warm,
    parse_event,
)
from rnnbench.launch.exclusive import Turn
from rnnbench.launch.order import EventOrder
from rnnbench.launch.process import CREW, WorkerProcess
from rnnbench.scratch import scratch_folder

_HEAD_BYTES = 64 * 1024
_TAIL_BYTES = 192 * 1024


class BoundedLog:
    """Accepts any amount of output and keeps the first 64 KiB and the last 192 KiB."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self._dropped = 0

    def write(self, data: bytes) -> None:
        room = _HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * _TAIL_BYTES:
            self._dropped += len(self._tail) - _TAIL_BYTES
            self._tail = self._tail[-_TAIL_BYTES:]

    def text(self) -> str:
        gap = f"\n… {self._dropped} bytes left out …\n".encode() if self._dropped else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")

    def tail(self, characters: int = 2000) -> str:
        return self.text()[-characters:]


class WorkerResult(msgspec.Struct, kw_only=True):
    """How a worker ended: its events, and why it failed if it did."""

    events: list[Event]
    arrivals: list[float] = []  # of each event, by the driver's clock: seconds from the start, without suspensions
    outcome: Outcome
    reason: str
    stage: str
    seconds: float
    log: BoundedLog
    traceback: str = ""


def run_worker(
    environment: Environment,
    job: dict[str, object],
    variables: dict[str, str],
    limit_seconds: float,
    on_event: Callable[[Event], None] = lambda event: None,
    turn: Turn | None = None,
) -> WorkerResult:
    """Run one job until it ends or its time is up. A job that is timed needs a turn: the machine to itself."""
    with (
        scratch_folder("worker") as scratch,
        turn or contextlib.nullcontext(),
    ):
        reading_end, writing_end = os.pipe()
        try:
            process = CREW.start(lambda: _start(environment, job, variables, Path(scratch), writing_end, turn))
        except BaseException:
            os.close(reading_end)
            raise
        finally:
            os.close(writing_end)
        conversation = _Conversation(process, reading_end, job, on_event, turn)
        try:
            if turn is not None:
                turn.started(process)
            conversation.follow(msgspec.json.encode(job), limit_seconds)
        finally:
            CREW.end(process)
            conversation.close()
        result = conversation.result()
        if result.outcome == "ok":
            kept.keep(variables, Path(scratch))
        return result


def _start(
    environment: Environment,
    job: dict[str, object],
    variables: dict[str, str],
    scratch: Path,
    channel: int,
    turn: Turn | None,
) -> WorkerProcess:
    # Only the worker package and rnnfuse are put on the path: the driver's other packages are for another interpreter.
    for package in (worker_package().resolve(), cells_package(), fuse_package()):
        (scratch / package.name).symlink_to(package, target_is_directory=True)
    kept.lend(variables, scratch)
    inherited = child_variables(external=environment.external)
    threads = str(job["threads"])
    process_variables = {
        **inherited,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(scratch), inherited.get("PYTHONPATH", "")))),
        "PYTHONUNBUFFERED": "1",
        "RNNBENCH_CHANNEL": str(channel),
        "TMPDIR": str(scratch),
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        # Threads that spin while they wait would take time from each other when the machine is shared.
        "OMP_WAIT_POLICY": "PASSIVE",
        **{name: value.replace("{scratch}", str(scratch)) for name, value in variables.items()},
    }
    descriptors = [channel]
    if turn is not None and turn.descriptor is not None:
        process_variables["RNNBENCH_TURN"] = str(turn.descriptor)
        descriptors.append(turn.descriptor)
    return WorkerProcess([environment.python, "-m", "rnnbench_worker"], scratch, process_variables, descriptors)


_CHUNK_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 1 << 24
_EXIT_SECONDS = 5.0  # for a worker that has closed its pipe to exit


class _Conversation:
    """Reads a worker's events and its output until it ends or its time is up."""

    def __init__(
        self,
        process: WorkerProcess,
        channel: int,
        job: Mapping[str, object],
        on_event: Callable[[Event], None],
        turn: Turn | None,
    ) -> None:
        self._process = process
        self._channel = channel
        self._order = EventOrder(str(job["mode"]))
        self._last_timed = Unseen if job.get("check") else Samples
        self._on_event = on_event
        self._turn = turn
        self._suspended_s = 0.0  # up to the latest event
        self._partial_line = b""
        self._lines = 0
        self._events: list[Event] = []
        self._arrivals: list[float] = []
        self._log = BoundedLog()
        self._report = b""
        self._timed_out = False
        self._protocol_error = ""
        self._start = time.monotonic()
        self._limit_seconds = 0.0

    def follow(self, job: bytes, limit_seconds: float) -> None:
        self._limit_seconds = limit_seconds
        with contextlib.suppress(BrokenPipeError):  # it died before it read the job: its exit code and log say why
            self._process.stdin.write(job)
            self._process.stdin.close()
        output, report = self._process.stdout.fileno(), self._process.report
        exit_by = float("inf")
        with selectors.DefaultSelector() as selector:
            for descriptor in (self._channel, output, report):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                left = limit_seconds - self._active_seconds()
                if left <= 0:
                    self._timed_out = True
                    return
                left = min(left, exit_by - time.monotonic())
                if left <= 0:
                    return
                for key, _ in selector.select(left):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if key.fd == report:
                        self._report += chunk
                        if not chunk or self._exit_status() is not None:
                            # Not when its pipes close: a child that it has forked may hold them open for ever.
                            self._receive_rest()
                            return
                    elif not chunk:
                        selector.unregister(key.fd)
                        if key.fd == self._channel:
                            exit_by = time.monotonic() + _EXIT_SECONDS
                    elif key.fd == output:
                        self._log.write(chunk)
                    elif not self._receive(chunk):
                        return

    def _active_seconds(self) -> float:
        """Seconds since the start, without those in which the worker was suspended."""
        return time.monotonic() - self._start - (self._turn.suspended_seconds() if self._turn else 0.0)

    def _said(self, word: str) -> int | None:
        """The number that the supervisor has reported under this word."""
        for line in self._report.split(b"\n")[:-1]:
            name, _, number = line.decode("ascii").partition(" ")
            if name == word:
                return int(number)
        return None

    def _exit_status(self) -> int | None:
        status = self._said("ended")
        return None if status is None else os.waitstatus_to_exitcode(status)

    def _receive_rest(self) -> None:
        """The worker has exited: read what it had sent before."""
        os.set_blocking(self._channel, False)
        with contextlib.suppress(BlockingIOError):
            while (chunk := os.read(self._channel, _CHUNK_BYTES)) and self._receive(chunk):
                pass

    def _receive(self, chunk: bytes) -> bool:
        """Process the events in a chunk. False when no more are expected: the worker is done, or it is broken."""
        # While a worker is suspended its clock stands still, but for the moment between two readings of time.
        arrival = max(self._active_seconds(), *self._arrivals[-1:], 0.0)
        *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
        if len(self._partial_line) > _LONGEST_LINE_BYTES:
            lines.append(self._partial_line[:200])
        for line in lines:
            self._lines += 1
            try:
                event = parse_event(line)
            except (msgspec.MsgspecError, ValueError) as error:
                shown = line[:80].decode("utf-8", "replace")
                self._protocol_error = f"line {self._lines} of the protocol is not an event ({error}): {shown!r}"
                return False
            self._protocol_error = self._order.fault(event)
            if self._protocol_error:
                return False
            event = self._without_suspension(event)
            self._events.append(event)
            self._arrivals.append(arrival)
            self._on_event(event)
            if isinstance(event, Warm) and self._turn is not None:
                self._turn.warm()
            if isinstance(event, self._last_timed) and self._turn is not None:
                self._turn.sampled()
            if isinstance(event, Done | Failed):
                return False
        return True

    def _without_suspension(self, event: Event) -> Event:
        """The event, with its seconds reduced by those in which the worker was suspended."""
        suspended_s = self._turn.suspended_seconds() if self._turn else 0.0
        lost, self._suspended_s = suspended_s - self._suspended_s, suspended_s
        if isinstance(event, Hello):
            return msgspec.structs.replace(event, import_s=max(0.0, event.import_s - lost))
        if isinstance(event, Built | First | Warm):
            return msgspec.structs.replace(event, seconds=max(0.0, event.seconds - lost))
        return event

    def close(self) -> None:
        """Read the rest of the output, without waiting for a grandchild that still holds it open."""
        output = self._process.stdout.fileno()
        os.set_blocking(output, False)
        with contextlib.suppress(BlockingIOError):
            while rest := os.read(output, _CHUNK_BYTES):
                self._log.write(rest)
        self._process.stdout.close()
        os.close(self._channel)

    def result(self) -> WorkerResult:
        stage = STAGES[type(self._events[-1]) if self._events else None]
        failure = next((event for event in self._events if isinstance(event, Failed)), None)
        if failure is not None:
            stage = STAGES[type(self._events[-2]) if len(self._events) > 1 else None]
        outcome: Outcome = "failed"
        if self._timed_out:
            outcome = "timeout"
            reason = f"over {self._limit_seconds:.0f} s during {stage}"
        elif self._protocol_error:
            reason = self._protocol_error
        elif failure is not None:
            reason = _describe_failure(failure)
        elif not (self._events and isinstance(self._events[-1], Done)):
            reason = f"{self._describe_end()} during {stage}"
        else:
            outcome, reason = "ok", ""
        return WorkerResult(
            events=self._events,
            arrivals=self._arrivals,
            outcome=outcome,
            reason=reason,
            stage="" if outcome == "ok" else stage,
            seconds=self._active_seconds(),
            log=self._log,
            traceback=failure.traceback if failure else "",
        )

    def _describe_end(self) -> str:
        unstartable = self._said("unstartable")
        if unstartable is not None:
            return f"its interpreter cannot be started ({os.strerror(unstartable)})"
        status = self._exit_status()
        return "closed its pipe without an error message" if status is None else _describe_exit(status)


_OUT_OF_MEMORY_PHRASES = ("out of memory", "can't allocate memory", "cannot allocate memory", "unable to allocate")


def _describe_failure(failure: Failed) -> str:
    # Some frameworks give the cause only in the second line, after "backend='inductor' raised:".
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    text = ": ".join([failure.type, *(line.rstrip(":") for line in lines[:2])])[:300]
    message = failure.message.lower()
    if failure.type == "MemoryError" or any(phrase in message for phrase in _OUT_OF_MEMORY_PHRASES):
        return f"out of memory ({text})"
    return text


def _describe_exit(code: int) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = " (out of memory?)" if -code == signal.SIGKILL else ""
        return f"killed by {name}{hint}"
    return f"exited with code {code} without an error message"
