"""One job, one process: read the job, confine the process, import the framework, do the work, report the outcome."""

import importlib
import sys
import time
import traceback

from .protocol import confine, open_channel, read_job

#: The module and the function for each mode. Nothing else is imported: what a worker imports, its row pays for.
MODES = {
    "measure": ("measure", "measure"),
    "verify": ("verification", "verify"),
    "limit": ("limit", "measure_limit"),
    "profile": ("profile", "profile"),
    "retrace": ("retrace", "retrace"),
    "graph": ("graph", "take_graphs"),
    "story": ("story", "tell_story"),
    "abilities": ("abilities", "prove_abilities"),
    "start": ("loading", "do_nothing"),
}


def main():
    channel = open_channel()
    try:
        job = read_job()
        confine(job)
        # This imports NumPy, whose threads inherit the processors that they may use.
        from .loading import load_framework, told

        module, function = MODES[job["mode"]]
        work = getattr(importlib.import_module("rnnbench_worker." + module), function)
        start = time.perf_counter()
        framework = load_framework(job["folder"], job["framework"])
        hello = framework.describe(told(job))
        hello["versions"]["python"] = sys.version.split()[0]
        channel.send("hello", import_s=time.perf_counter() - start, **hello)
        work(job, framework, channel)
        channel.send("done")
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # whatever a framework raises is a result with a reason
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
