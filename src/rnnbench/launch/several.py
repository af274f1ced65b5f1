"""Several workers at a time, and none of them left behind when something goes wrong."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from rnnbench.launch.worker import end_all_workers

Item = TypeVar("Item")
Result = TypeVar("Result")


def several(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, on_result: Callable[[Result], None]
) -> None:
    """`work` on every item, so many at a time; `on_result` as they end, always in the caller's thread.

    An interruption ends all workers; what comes of those is handed to nobody.
    """
    if jobs <= 1:
        for item in items:
            on_result(work(item))
        return
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            on_result(future.result())
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_all_workers()
        raise
    finally:
        pool.shutdown(wait=True)
