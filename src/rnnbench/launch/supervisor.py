"""A tiny process between the driver and one worker: it ends everything that the worker has started, whatever happens.

It is run as a script, by the driver's interpreter, and imports as little as it can, because it must start fast. It
holds one end of a socket whose other end only the driver has. When the driver dies, by whatever signal and at whatever
moment, the socket closes, and the worker and all its descendants are killed, also stopped ones. A parent-death signal
alone would not do: it is lost when the driver dies before the worker has asked for it, and a worker's children do not
get it.

As a child subreaper it is the new parent of every descendant whose own parent ends, so that neither `setsid` nor a
double fork leads out of its reach. While the worker is measured it sleeps in `poll`.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable

#: The driver's commands, one byte each. Each is answered by the same byte when it is done.
SUSPEND, RESUME = b"S", b"R"

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_SUSPENDING_S = 0.5  # a process that waits for a disk stops when the disk has answered


def main(control: int, report: int, passed: list[int], command: list[str]) -> None:
    """Run `command`, which inherits the descriptors `passed`, until it ends or the driver closes `control`."""
    for descriptor in (control, report):
        os.set_inheritable(descriptor, False)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_ENDING):
        signal.signal(number, lambda number, frame: None)
    parent = os.getpid()
    worker = os.fork()
    if worker == 0:
        _become(command, parent, report)
    # What only the worker shall hold: a pipe ends when the worker does, not when this process does.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2, *passed):
        os.dup2(nothing, descriptor, inheritable=False)
    _tell(report, f"started {worker}\n")
    _serve(worker, control, report, awake)
    _end_descendants(worker, report)


def _become(command: list[str], parent: int, report: int) -> None:
    """In the new process: turn into the worker, in a session of its own."""
    try:
        os.setsid()
        if sys.platform.startswith("linux"):
            # For the case that this supervisor is killed itself; it has one thread, so the signal is reliable.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and ignoring is inherited
            signal.signal(number, signal.SIG_DFL)
        # A dying framework of many gigabytes would be written to a disk first. One byte, not none: the kernel takes
        # it as "no dump" also where dumps go to a program, for which no other limit counts.
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (1 if hard == resource.RLIM_INFINITY else min(1, hard), hard))
        os.execve(command[0], command, os.environ)
    except OSError as error:
        _tell(report, f"unstartable {error.errno}\n")
    finally:
        os._exit(127)


def _serve(worker: int, control: int, report: int, awake: int) -> None:
    """Obey the driver until the worker has ended or is to be ended."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(awake, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == awake:
                signals = os.read(awake, 4096)
                if any(number in signals for number in _ENDING) or _reap(worker, report)[0]:
                    return
                continue
            try:
                commands = os.read(control, 64)
            except ConnectionError:
                commands = b""
            if not commands:
                return
            for number in commands:
                code = bytes([number])
                suspend_all() if code == SUSPEND else resume_all()
                try:
                    os.write(control, code)
                except OSError:
                    return


def _reap(worker: int, report: int) -> tuple[bool, bool]:
    """Bury all children that have ended, adopted ones too, and report how the worker did.

    Returns whether it was among them, and whether children are left.
    """
    worker_ended = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return worker_ended, False
        if pid == 0:
            return worker_ended, True
        if pid == worker:
            worker_ended = True
            _tell(report, f"ended {status}\n")


def _end_descendants(worker: int, report: int) -> None:
    """Kill until there is nothing left: a process may have been forked while others were killed."""
    if not os.path.isdir("/proc/self"):  # not Linux: its session is all that is known of it
        _attempt(os.killpg, worker, signal.SIGKILL)
    pause = 0.0
    while _reap(worker, report)[1]:
        time.sleep(pause)
        for process in descendants():
            process.send(signal.SIGKILL)
        pause = min(0.05, 2 * pause + 0.0005)


def suspend_all() -> None:
    """Stop the worker and its descendants, and those that they fork meanwhile."""
    give_up = time.monotonic() + _SUSPENDING_S
    while running := [process for process in descendants() if process.state not in "TtZXx"]:
        for process in running:
            process.send(signal.SIGSTOP)
        if time.monotonic() > give_up:
            return
        time.sleep(0.0005)


def resume_all() -> None:
    for process in descendants():
        process.send(signal.SIGCONT)


class Process:
    def __init__(self, pid: int, parent: int, state: str, started: str) -> None:
        self.pid, self.parent, self.state = pid, parent, state
        self.started = started  # in ticks since the machine started: with the pid it names one process for ever

    def send(self, number: int) -> None:
        """Send a signal to this process, and to no other that has got its number meanwhile."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except (OSError, AttributeError):  # it has ended, or the kernel is older than 5.3
            if self._is_same():
                _attempt(os.kill, self.pid, number)
            return
        if self._is_same():
            _attempt(signal.pidfd_send_signal, descriptor, number)
        os.close(descriptor)

    def _is_same(self) -> bool:
        now = _read_process(self.pid)
        return now is not None and now.started == self.started


def descendants() -> list[Process]:
    """All processes below this one, parents before their children; none where there is no /proc."""
    children: dict[int, list[Process]] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if name.isdigit() and (process := _read_process(int(name))):
            children.setdefault(process.parent, []).append(process)
    found = children.get(os.getpid(), [])
    for process in found:  # grows while it is walked
        found.extend(children.get(process.pid, ()))
    return found


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of a program, in parentheses, may contain anything.
            fields = file.read().rpartition(b")")[2].decode("ascii").split()
        return Process(pid, int(fields[1]), fields[0], fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _tell(report: int, line: str) -> None:
    _attempt(os.write, report, line.encode("ascii"))


def _attempt(call: Callable[..., object], *arguments: object) -> None:
    """For what cannot be done any more: the process has ended, or the driver is gone."""
    try:  # noqa: SIM105 - contextlib would take longer to import than all of this takes
        call(*arguments)
    except OSError:
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [int(one) for one in sys.argv[3].split(",")], sys.argv[4:])
