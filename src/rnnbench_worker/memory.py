"""The most host memory this process has had."""

import resource
import sys


def peak_host_bytes():
    """Peak resident set. /proc counts from exec on; getrusage would include the driver's own size."""
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (IOError, OSError):
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
