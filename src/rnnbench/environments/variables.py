"""The environment variables of a child interpreter: the driver's own Python must not leak into it."""

import os

# Set for the interpreter that runs the driver, and wrong for every other one.
_FOREIGN = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")


def child_variables(*, used: bool = False) -> dict[str, str]:
    """The user's variables without the driver's. PIP_* stays: it is how a user configures pip.

    A used interpreter keeps PYTHONPATH, because a cluster's modules put a framework on it.
    """
    dropped = [name for name in _FOREIGN if not (used and name == "PYTHONPATH")]
    return {name: value for name, value in os.environ.items() if name not in dropped}
