"""The order in which a worker may send its events, for each mode. A worker that sends them otherwise is broken.

A number is only what it claims to be in its place: samples without a warm-up, or a second warm-up that was never waited
for, must not become a row.
"""

from rnnbench.launch.events import (
    Arrays,
    Built,
    Delivered,
    Done,
    Event,
    Failed,
    First,
    Hello,
    Memory,
    Profiled,
    Rates,
    Reshaped,
    Samples,
    Sampling,
    Tried,
    Unprofiled,
    Unseen,
    Warm,
)

Kind = type[Event] | None  # None: nothing has been sent yet

#: What may follow each event. `error` may come at any time, also before `hello`.
ORDERS: dict[str, dict[Kind, tuple[type[Event], ...]]] = {
    "start": {None: (Hello,), Hello: (Done,)},
    "measure": {
        None: (Hello,),
        Hello: (Built,),
        Built: (First,),
        First: (Warm,),
        Warm: (Sampling,),
        Sampling: (Sampling, Samples),  # begun again where the first samples were still warm-up
        Samples: (Unseen, Memory),
        Unseen: (Memory,),
        Memory: (Done,),
    },
    "verify": {None: (Hello,), Hello: (Built,), Built: (Arrays,), Arrays: (Arrays, Built, Done)},
    # A framework's folder may offer no rates and no graphs.
    "limit": {None: (Hello,), Hello: (Rates, Done), Rates: (Done,)},
    "graph": {None: (Hello,), Hello: (Built, Delivered, Done), Built: (Built, Delivered), Delivered: (Done,)},
    "story": {None: (Hello,), Hello: (Delivered,), Delivered: (Done,)},
    "profile": {
        None: (Hello,),
        Hello: (Built, Unprofiled),
        Built: (First,),
        First: (Warm,),
        Warm: (Profiled,),
        Profiled: (Done,),
        Unprofiled: (Done,),
    },
    "abilities": {None: (Hello,), Hello: (Tried,), Tried: (Tried, Done)},
    "retrace": {
        None: (Hello,),
        Hello: (Built,),
        Built: (First,),
        First: (Warm,),
        Warm: (Reshaped,),
        Reshaped: (Reshaped, Done),
    },
}

#: Arrays to compare may come at any point after `built`, and change nothing about what is due.
_ASIDE: dict[str, tuple[type[Event], ...]] = {"measure": (Arrays,)}


class EventOrder:
    """Follows one worker's events, and says what is wrong with one that is out of order."""

    def __init__(self, mode: str) -> None:
        self._follows = ORDERS[mode]
        self._aside = _ASIDE.get(mode, ())
        self._last: Kind = None
        self._built = False

    def fault(self, event: Event) -> str:
        """Why this event cannot come now; empty if it can, and then it has come."""
        kind = type(event)
        if kind is Failed or (self._built and kind in self._aside):
            return ""
        due = self._follows.get(self._last, ())
        if kind not in due:
            expected = " or ".join(f"'{name_of(one)}'" for one in due)
            if kind is Done:
                return f"it said it was done, but sent no {expected}"
            after = "first" if self._last is None else f"after '{name_of(self._last)}'"
            return f"it sent '{name_of(kind)}' {after}, where {expected} was due"
        self._last = kind
        self._built = self._built or kind is Built
        return ""


def name_of(kind: type[Event]) -> str:
    """The event's name in the protocol."""
    return str(kind.__struct_config__.tag)
