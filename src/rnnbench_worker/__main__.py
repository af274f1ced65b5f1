"""One job, one process: read it, confine ourselves, import the framework, do it, say how it went."""

import sys
import time
import traceback

from .confine import confine
from .protocol import open_channel, read_job


def main():
    channel = open_channel()
    try:
        job = read_job()
        confine(job)
        # Only now NumPy: the threads it starts inherit the processors they may use.
        from .limit import measure_limit
        from .loading import load_framework
        from .measure import measure
        from .profile import profile
        from .retrace import retrace
        from .verification import verify

        work = {
            "measure": measure,
            "verify": verify,
            "limit": measure_limit,
            "profile": profile,
            "retrace": retrace,
            "start": nothing,
        }[job["mode"]]
        start = time.perf_counter()
        framework = load_framework(job["folder"], job["framework"])
        hello = framework.describe(job)
        hello["versions"]["python"] = sys.version.split()[0]
        channel.send("hello", import_s=time.perf_counter() - start, **hello)
        work(job, framework, channel)
        channel.send("done")
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # whatever a framework raises is a result, with its reason
        channel.send(
            "error",
            type=type(error).__name__,
            message=str(error)[:4000],
            traceback=traceback.format_exc()[-8000:],
        )
        return 1
    return 0


def nothing(job, framework, channel):
    """To have started is all that was asked for."""


if __name__ == "__main__":
    sys.exit(main())
