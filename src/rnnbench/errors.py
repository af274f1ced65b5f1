"""Errors a user can do something about. The command line prints them plainly and exits with 2."""

import difflib


class UserError(Exception):
    """Bad input: `what` went wrong, and `hint`, what is allowed or what to do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}\n{hint}" if hint else what)
        self.what = what
        self.hint = hint


def nearest(name: str, names: list[str]) -> str:
    """A hint: the names that look most like what was typed, or all of them."""
    close = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    return f"nearest: {', '.join(close)}" if close else f"there are: {', '.join(names)}"
