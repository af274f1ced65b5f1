"""Several environments at a time: most of a creation is waiting for downloads. One that fails stops no other."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event, Lock

from rnnbench.environments.commands import end_all_commands
from rnnbench.environments.create import Report, silent
from rnnbench.environments.environment import Environment
from rnnbench.environments.spec import EnvironmentSpec
from rnnbench.errors import UserError

AT_A_TIME = 3  # more would share the same line and the same disk
_PATIENCE = 0.2  # seconds between two looks at whether all have ended

Make = Callable[[EnvironmentSpec, Report], Environment]


class Interrupted(Exception):
    """Raised inside a creation when the whole is given up: what it has made is deleted."""


def make_all(specs: Sequence[EnvironmentSpec], make: Make, report: Report = silent) -> list[Environment | UserError]:
    """For each spec its environment, or why there is none. What is reported of several begins with whose it is."""
    stopped, talking = Event(), Lock()

    def one(spec: EnvironmentSpec) -> Environment | UserError:
        said = ""

        def say(line: str) -> None:
            nonlocal said
            if stopped.is_set():
                raise Interrupted
            if line != said:  # who waits for another process says so at every look
                with talking:
                    report(line if len(specs) == 1 else f"{spec.id}: {line.strip()}")
            said = line

        try:
            return make(spec, say)
        except UserError as error:
            if len(specs) > 1 and not stopped.is_set():  # a single one is for the caller to tell
                with talking:
                    report("\n".join(filter(None, (f"{spec.id}: {error.what}", error.hint))))
            return error

    if len(specs) == 1:
        return [one(specs[0])]
    with ThreadPoolExecutor(max_workers=AT_A_TIME) as pool:
        futures = [pool.submit(one, spec) for spec in specs]
        try:
            return [future.result() for future in futures]
        except BaseException:  # an interruption, which reaches this thread alone
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            _end(futures)
            raise


def _end(futures: Sequence["Future[Environment | UserError]"]) -> None:
    """End what pips are at work until no creation is left: one may just be about to start another."""
    begun = [future for future in futures if not future.cancelled()]
    while wait(begun, timeout=_PATIENCE).not_done:
        end_all_commands()
