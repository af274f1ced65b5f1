"""Progress in the terminal: a bar and one line in place. Elsewhere, as in a file, every result is a line."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text

from rnnbench.progress.words import Narrator
from rnnbench.text import printable, shortened

_STYLES = {"verified": "green", "ok": "", "wrong": "bold red", "failed": "red", "timeout": "yellow", "none": "dim"}


_BAR_WIDTH = 16
_COUNT_WIDTH = 16  # of `1,234/1,234` and the blanks between


class Progress(Narrator):
    """Writes to standard error, so that standard output contains only the result."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._bar = Bar(
            BarColumn(bar_width=_BAR_WIDTH),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=self._console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the bar, before something else is printed."""
        self._bar.stop()

    def note(self, text: str) -> None:
        self._console.print(printable(text), markup=False)

    def preparing(self, text: str) -> None:
        self._bar.update(self._task, visible=True)
        super().preparing(text)

    def _can_draw(self) -> bool:
        return self._console.is_terminal

    def _begin_step(self, total: int, text: str) -> None:
        self._bar.update(self._task, visible=total > 0)
        super()._begin_step(total, text)

    def _keep(self, text: str, outcome: str) -> None:
        number = f"[{self._done:{len(str(self._total))}}/{self._total}] "
        self._console.print(
            Text(number) + Text(printable(text), style=_STYLES[outcome]) + Text(self._time_left(), style="dim")
        )

    def _draw(self, text: str | None) -> None:
        self._bar.update(self._task, completed=self._done, total=self._total or None)
        if text is not None:
            # Cut, since a second line could not be drawn over.
            left = self._time_left()
            room = max(10, self._console.width - _BAR_WIDTH - _COUNT_WIDTH - len(left))
            self._bar.update(self._task, description=shortened(printable(text), room) + left)
        self._bar.refresh()
