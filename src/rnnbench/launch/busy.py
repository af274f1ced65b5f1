"""What else runs on the machine, and whether it is as fast as before: said before anything is measured."""

import contextlib
import os
import time

import psutil

from rnnbench.domain.case import Method
from rnnbench.domain.noise import MOST_LOAD
from rnnbench.domain.run import Machine
from rnnbench.launch.probe import fastest_probe
from rnnbench.machine import allowed_cpus

_SECONDS = 0.3
_SHARE = 0.25  # of one processor, of all together: what wakes up now and then stays below
_LEAST_SHARE = 0.05  # of one that is named
_NAMED = 3


def describe_load(seconds: float = _SECONDS, named: int = _NAMED) -> str:
    """One line about the other processes that compute now; empty when there is none to speak of.

    The load average alone would not do: it still contains what this run has just done, such as creating environments.
    """
    before = _processor_times()
    start = time.monotonic()
    time.sleep(seconds)
    wall = time.monotonic() - start
    shares = {
        process: (spent - before[process]) / wall for process, spent in _processor_times().items() if process in before
    }
    busy = sorted((one for one in shares.items() if one[1] >= _LEAST_SHARE), key=lambda one: -one[1])
    total = sum(share for _, share in busy)
    if total < _SHARE:
        return ""
    names = ", ".join(f"{_name(process)} ({process.pid}) {share:.0%}" for process, share in busy[:named])
    more = f" and {len(busy) - named} more" if len(busy) > named else ""
    cpus = len(allowed_cpus())
    load = f"load {os.getloadavg()[0] / cpus:.1f} per processor; " if hasattr(os, "getloadavg") else ""
    return f"this machine is busy: {load}others use {total:.1f} of {cpus} processors: {names}{more}"


def describe_load_before(machine: Machine) -> str:
    """One line if so much ran here before a run that `rnnbench check` will call it unfit to publish."""
    if (machine.load_share or 0.0) <= MOST_LOAD:
        return ""
    return (
        f"the load of the minute before the run was {machine.load:.1f} on {machine.cpus} processors, for which "
        "`rnnbench check` will call it unfit to publish: stop it, wait a minute, and begin again"
    )


def describe_change(machine: Machine, method: Method) -> str:
    """One line if processors have another speed than when the run on this machine began; empty if not, or not known."""
    if not machine.probe_s:
        return ""
    times = fastest_probe(method.cpus) / machine.probe_s
    if max(times, 1 / times) <= 1 + method.noise_threshold:
        return ""
    return (
        f"the fastest processor takes {times:.2f} times as long as when this run began: another machine, or another "
        "clock. Rows that wait for processors will differ between launches"
    )


def _processor_times() -> dict[psutil.Process, float]:
    """The processor seconds of all processes but this one."""
    found: dict[psutil.Process, float] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid():
                times = process.cpu_times()
                found[process] = times.user + times.system
    return found


def _name(process: psutil.Process) -> str:
    """What the user would call it: the program, and of an interpreter what it runs."""
    try:
        words = process.cmdline()
        name = process.name()
    except psutil.Error:
        return "a process that has ended"
    script = next((os.path.basename(word) for word in words[1:] if not word.startswith("-")), "")
    return f"{name} {script}".strip()[:60]
