"""Errors a user can do something about. The command line prints them plainly and exits with 2."""


class UserError(Exception):
    """Bad input: `what` went wrong, and `hint`, what is allowed or what to do."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}\n{hint}" if hint else what)
        self.what = what
        self.hint = hint
