"""What the samples took of the processors, and what others took of the same ones meanwhile.

The kernel is asked twice, before the first sample and after the last, never in between.
"""

import os
import resource
import time


class Usage(object):
    """Counts from `start` to `fields`."""

    def __init__(self):
        self._cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._before = None

    def start(self):
        self._before = self._now()

    def fields(self):
        """Fields of the event `samples`. What cannot be known here is left out."""
        (wall, cpu, switches, busy), (wall_0, cpu_0, switches_0, busy_0) = self._now(), self._before
        found = {"usage_s": wall - wall_0, "cpu_s": cpu - cpu_0, "involuntary_switches": switches - switches_0}
        if busy is not None and busy_0 is not None:
            # The kernel counts these in hundredths of a second: a difference below nothing is rounding.
            found["others_cpu_s"] = max(0.0, busy - busy_0 - found["cpu_s"])
        return found

    def _now(self):
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu = sum(one.ru_utime + one.ru_stime for one in own)
        return time.perf_counter(), cpu, own[0].ru_nivcsw, busy_seconds(self._cpus)


def busy_seconds(cpus, path="/proc/stat"):
    """Seconds in which these processors were not idle, since the machine started; None where that is not counted.

    What a hypervisor took for other machines counts as well.
    """
    names, ticks, seen = ["cpu{}".format(cpu) for cpu in cpus], 0, 0
    try:
        with open(path) as file:
            for line in file:
                fields = line.split()
                if fields and fields[0] in names:
                    user, nice, system, _, _, irq, softirq, stolen = [int(field) for field in fields[1:9]]
                    ticks += user + nice + system + irq + softirq + stolen
                    seen += 1
    except (IOError, OSError, ValueError):
        return None
    return float(ticks) / os.sysconf("SC_CLK_TCK") if seen and seen == len(names) else None
