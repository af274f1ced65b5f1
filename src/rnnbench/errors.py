"""Errors that a user can correct. The command line prints them without a traceback and exits with code 2."""

import difflib


class UserError(Exception):
    """`what` went wrong, and a `hint`: what is allowed or what to do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}\n{hint}" if hint else what)
        self.what = what
        self.hint = hint


def describe_os_error(error: OSError) -> str:
    """What went wrong, and with which file."""
    return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")


def nearest(name: str, names: list[str]) -> str:
    """A hint: the names most similar to the given one, or all names."""
    close = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    return f"nearest: {', '.join(close)}" if close else f"there are: {', '.join(names)}"
