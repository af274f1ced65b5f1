"""Workers that are no Python programs: they start in a millisecond, do one odd thing, and can be found by a mark."""

import os
import sys
import time
from pathlib import Path

import msgspec

from made_up import ENVIRONMENT

MARK = "RNNBENCH_TEST_MARK"

#: The events of a worker up to `warm`, and then to the end.
HELLO = '{"event": "hello", "import_s": 0, "versions": {}, "device": "cpu"}'
BUILT = '{"event": "built", "seconds": 0, "parameters": 1, "device": "cpu"}'
FIRST = '{"event": "first", "seconds": 0}'
WARM = '{"event": "warm", "batches": 1, "seconds": 0}'
SAMPLING = '{"event": "sampling"}'
SAMPLES = '{"event": "samples", "samples": [[1, 0.1]]}'
MEMORY = '{"event": "memory"}'
DONE = '{"event": "done"}'

#: A child in a session of its own, whose parent has ended at once, as daemons are made.
DAEMON = "(setsid sleep 600 </dev/null >/dev/null 2>&1 &)\n"


def say(*events):
    """Shell commands that send these events."""
    return "".join(f"echo '{event}' >/proc/self/fd/$RNNBENCH_CHANNEL\n" for event in events)


def await_turn():
    return 'test -z "$RNNBENCH_TURN" || head -c 1 </proc/self/fd/$RNNBENCH_TURN >/dev/null\n'


def worker(folder, body, name="worker"):
    """An environment whose interpreter is this shell script."""
    path = Path(folder) / name
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(0o755)
    return msgspec.structs.replace(ENVIRONMENT, python=str(path))


def python_worker(folder, body, name="worker.py"):
    """The same in Python, for what a shell cannot do: forking without replacing the program."""
    return worker(folder, f"exec {sys.executable} -I -S - <<'EOF'\nimport os, signal, time\n{body}\nEOF\n", name)


def job(mode="measure"):
    return {"mode": mode, "threads": 1}


def marked(mark):
    """The processes that were started, directly or not, with this mark among their variables."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
