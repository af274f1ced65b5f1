"""Progress in a notebook: one output of the cell that is drawn again, with a bar; what must not be missed stays in it.

IPython is no dependency and is never imported here. Where a notebook runs, its kernel has loaded it.
"""

import sys
from html import escape
from types import TracebackType
from typing import Any, Self

from rnnbench.progress.words import Narrator
from rnnbench.text import printable

_COLOURS = {"wrong": "#c62828", "failed": "#c62828", "timeout": "#b26a00"}


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython in a terminal is none."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel")


class NotebookProgress(Narrator):
    """Use it as a context: when it ends, the bar goes and the lines that were kept stay."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[str] = []
        self._text = ""
        self._output: Any = None  # made when there is something to show

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._output is not None:
            self._show(self._lines())

    def note(self, text: str) -> None:
        self._kept.append(_line(text))
        self._draw(None)

    def _keep(self, text: str, outcome: str) -> None:
        self._kept.append(_line(f"[{self._done}/{self._total}] {text}", _COLOURS.get(outcome, "")))

    def _draw(self, text: str | None) -> None:
        self._text = self._text if text is None else text
        bar = f'<progress value="{self._done}" max="{self._total}"></progress> ' if self._total else ""
        counted = f"{self._done}/{self._total} " if self._total else ""
        self._show(f"{self._lines()}<div>{bar}{_escaped(counted + self._text + self._time_left())}</div>")

    def _lines(self) -> str:
        return "".join(self._kept)

    def _show(self, html: str) -> None:
        display: Any = sys.modules["IPython.display"]
        content = display.HTML(html or "<div></div>")
        if self._output is None:
            self._output = display.display(content, display_id=True)
        else:
            self._output.update(content)


def _line(text: str, colour: str = "") -> str:
    style = f' style="color: {colour}"' if colour else ""
    return f"<div{style}>{_escaped(text)}</div>"


def _escaped(text: str) -> str:
    return escape(printable(text))
