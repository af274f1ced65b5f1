"""One job, one process: read it, confine ourselves, import the framework, do it, say how it went."""

import importlib
import sys
import time
import traceback

from .confine import confine
from .protocol import open_channel, read_job

#: The module and the function for each mode. Nothing else is imported: what a worker imports, its row pays for.
MODES = {
    "measure": ("measure", "measure"),
    "verify": ("verification", "verify"),
    "limit": ("limit", "measure_limit"),
    "profile": ("profile", "profile"),
    "retrace": ("retrace", "retrace"),
    "graph": ("graph", "take_graphs"),
    "story": ("graph_story", "tell_story"),
    "start": ("loading", "nothing"),
}


def main():
    channel = open_channel()
    try:
        job = read_job()
        confine(job)
        # Only now NumPy: the threads it starts inherit the processors they may use.
        from .loading import load_framework

        module, function = MODES[job["mode"]]
        work = getattr(importlib.import_module("rnnbench_worker." + module), function)
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


if __name__ == "__main__":
    sys.exit(main())
