"""The worker's peak memory, without what only our own checks needed."""

import resource
import sys

_kept_peak = 0


def remember_peak():
    """Before a check: what the program itself has needed so far counts."""
    global _kept_peak
    _kept_peak = peak_host_bytes()


def forget_peak():
    """After a check: the kernel counts the peak anew, from the memory in use now."""
    try:
        with open("/proc/self/clear_refs", "w") as clear:
            clear.write("5")
    except (IOError, OSError):
        pass  # then the peak includes the arrays of the check


def peak_host_bytes():
    """Peak resident set size. /proc counts from exec on; getrusage would include the driver's own size."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return max(_kept_peak, int(line.split()[1]) * 1024)
    except (IOError, OSError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
