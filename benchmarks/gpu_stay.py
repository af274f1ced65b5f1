"""A machine with a GPU for half an hour: rnnfuse's kernels are tested and timed, then the published runs are made.

    python benchmarks/gpu_stay.py FOLDER --seconds 1700 [--trees TREE …] [--ready FILE] [--steps NAME …]

Two checkouts may be given with `--trees`, the one that is hoped for first: both are timed, and the first is measured if
its tests pass, or else the second. What other frameworks need may still be on its way meanwhile: `--ready` names a file
that is there when it has come. A step begins if it has a chance to end in time. One that is cut off is interrupted, so
that nothing is lost: the same command in a later stay goes on with it. All that is printed lies in FOLDER/log, one line
about each step in FOLDER/log/steps.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

PATIENCE = 240.0  # seconds for what is on its way
GRACE = 25.0  # seconds for a step that is interrupted
MARGIN = 40.0  # seconds at the end: for such a step, and for copying the results


class Step(NamedTuple):
    name: str
    command: str  # in the root of a checkout
    shortest: float = 60.0  # seconds: with fewer left it does not begin
    longest: float = 1e6  # seconds: a kernel could wait forever
    parts: int = 1  # processes that share the work, each told its TESTS_PART: tests mostly wait for compilers
    of_every_tree: bool = False
    of_all: bool = False  # of all frameworks: it begins when what is on its way has come


def tests(names: str) -> str:
    path = "PYTHONPATH=../../src:.:$PYTHONPATH"
    return f"cd tests/rnnfuse && {path} {{python}} -m pytest -q -c /dev/null --rootdir . --confcutdir . {names}"


def with_cells(command: str) -> str:
    return f"PYTHONPATH=src:tests/rnnfuse:$PYTHONPATH {command}"


def times(workload: str) -> str:
    options = "--device cuda --modes --kernels-only --kernels --seconds 4 --cells 'fine LSTM' 'layer norm'"
    return with_cells(f"{{python}} benchmarks/rnnfuse.py {options} --workload {workload}")


def sanitizer(tool: str) -> str:
    return with_cells(f"compute-sanitizer --tool {tool} {{python}} benchmarks/rnnfuse_sanitizer.py")


def verification(systems: str) -> str:
    workloads = " ".join(f"-w {name}" for name in ("ptb-lm", "ce-short", "ce-long", "bi-ce-long", "bi-ctc-long"))
    precisions = " ".join(f"--precision {one}" for one in ("fp32", "tf32", "bf16"))
    options = f"--device cuda {workloads} {precisions} --jobs 12 --threads 1 --fresh --wide"
    return f"{{python}} -m rnnbench verify {systems} {options}"


def run(name: str, options: str) -> str:
    return f"{{python}} benchmarks/gpu.py {{folder}}/{name} {options} --chosen{{limits}}"


LIMITS = "results/h200-ptb-lm-forward"  # of this kind of machine: they take a minute, where a checkout came without it
#: Those that `results` does not have yet: their options, and seconds below which they do not begin. One that is cut off
#: can be resumed, but on another machine.
RUNS = {
    # CTC cannot be in a CUDA graph, and rnnfuse without one was not among the chosen rows.
    "bi-ctc-long-train-rnnfuse": ("bi-ctc-long --framework pytorch --without pytorch/fine/eager", 100),
    # What `results` has in fp32 is from before rnnfuse's kernels of today.
    "ptb-lm-train": ("ptb-lm", 350),
}
#: Each line at once; what is timed is alone.
STEPS = [
    [
        Step("tests", tests("test_cuda_persistent.py test_cuda_products.py"), longest=330, parts=8),
        Step("more-tests", tests("test_cuda_replayed.py test_cuda.py"), longest=330, parts=4),
        Step("memcheck", sanitizer("memcheck"), longest=330),
        Step("racecheck", sanitizer("racecheck"), longest=330),
        Step("verify", verification("'pytorch/*/rnnfuse*'"), longest=330),
    ],
    [Step("products", "{python} benchmarks/rnnfuse_products.py", longest=60)],
    [Step("exchange", with_cells("{python} benchmarks/rnnfuse_exchange.py"), longest=60)],
    [Step("times-ptb", times("ptb"), longest=120, of_every_tree=True)],
    [Step("times-ptb-fused-adam", times("ptb --fused-adam"), longest=120)],
    [Step("times-long", times("long-64"), longest=120, of_every_tree=True)],
    *[[Step(name, run(name, options), shortest=seconds, of_all=True)] for name, (options, seconds) in RUNS.items()],
    # Last: what it says is not published.
    [
        Step(
            "verify-cudnn",
            verification("'tensorflow/stack/*' keras-tensorflow/layer/graph-dense"),
            shortest=100,
            of_all=True,
        )
    ],
]
NAMES = [step.name for steps in STEPS for step in steps]


class Stay:
    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder, self._end = folder, time.monotonic() + seconds - MARGIN
        (folder / "log").mkdir(parents=True, exist_ok=True)
        self._running: list[tuple[str, Step, subprocess.Popen[bytes]]] = []

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def say(self, text: str) -> None:
        with (self._folder / "log" / "steps").open("a") as file:
            print(f"{self.left:5.0f} s left: {text}", file=file)
        print(text, flush=True)

    def begin(self, step: Step, tree: Path, name: str) -> None:
        if self.left < step.shortest:
            self.say(f"{name}: no time, it needs {step.shortest:.0f} s")
            return
        for part in range(step.parts):
            own = f"{name}-{part}" if step.parts > 1 else name
            self._running.append((own, step, self._process(step, tree, own, f"{part}/{step.parts}")))
        self.say(f"{name}: begins")

    def _process(self, step: Step, tree: Path, name: str, part: str) -> subprocess.Popen[bytes]:
        limits = f" --limits {LIMITS}" if (tree / LIMITS).exists() else ""
        command = step.command.format(python=sys.executable, folder=self._folder, limits=limits)
        path = f"{tree / 'src'}:{os.environ.get('PYTHONPATH', '')}"
        with (self._folder / "log" / name).open("ab") as log:
            return subprocess.Popen(
                ["bash", "-c", command], cwd=tree, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": path, "TESTS_PART": part}, start_new_session=True,
            )  # fmt: skip

    def finish(self) -> set[str]:
        """All that runs, or what of it is done at the end; the names of steps that failed."""
        begun, failed = time.monotonic(), set()
        for name, step, process in self._running:
            most = min(self.left, step.longest - (time.monotonic() - begun))
            try:
                code = process.wait(timeout=max(most, 0.1))
            except subprocess.TimeoutExpired:
                self._interrupt()
                code = process.wait()
            self.say(f"{name}: ended with {code}")
            failed |= {step.name} if code else set()
        self._running = []
        return failed

    def stop(self) -> None:
        self._interrupt()
        for name, _, process in self._running:
            self.say(f"{name}: interrupted, it ended with {process.wait()}")

    def _interrupt(self) -> None:
        """All that run, as by Ctrl-C and at once; what does not end then is killed."""
        for how, seconds in ((signal.SIGINT, GRACE), (signal.SIGKILL, None)):
            alive = [process for _, _, process in self._running if process.poll() is None]
            for process in alive:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, how)
            end = None if seconds is None else time.monotonic() + seconds
            for process in alive:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=None if end is None else max(end - time.monotonic(), 0.1))


def run_steps(stay: Stay, names: Sequence[str], trees: Sequence[Path], ready: Path | None) -> None:
    measured = trees[0]
    for steps in STEPS:
        chosen = [step for step in steps if step.name in names]
        if ready is not None and any(step.of_all for step in chosen):
            wait_for(ready, stay)
            ready = None
        compared = len(trees) > 1 and any(step.of_every_tree for step in chosen)
        for tree in trees if compared else [measured]:
            for step in chosen:
                stay.begin(step, tree, f"{step.name}-{tree.name}" if compared else step.name)
            if "tests" in stay.finish():
                measured = trees[-1]
                stay.say(f"{measured} is measured: tests of {trees[0]} failed")


def wait_for(ready: Path, stay: Stay) -> None:
    end = time.monotonic() + min(PATIENCE, stay.left)
    while not ready.exists() and time.monotonic() < end:
        time.sleep(0.5)
    stay.say(f"{ready} is {'there' if ready.exists() else 'not there: its frameworks fail'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, required=True, help="until the machine is taken back")
    parser.add_argument("--trees", type=Path, nargs="+", default=[Path()], help="checkouts; the second is not tested")
    parser.add_argument("--ready", type=Path, help="a file that is there when all frameworks are")
    parser.add_argument("--steps", nargs="+", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    # A shell lets what it starts in the background ignore Ctrl-C, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stay = Stay(given.folder.resolve(), given.seconds)
    try:
        run_steps(stay, given.steps, [tree.resolve() for tree in given.trees], given.ready)
    except KeyboardInterrupt:
        stay.stop()
        sys.exit(130)
    stay.say("end")


if __name__ == "__main__":
    main()
