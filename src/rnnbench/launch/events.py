"""The events that a worker sends, as types. A worker that sends anything else is broken."""

from typing import Annotated, Literal

import msgspec

from rnnbench.domain.bounds import Count, Seconds, TimedSeconds
from rnnbench.domain.profile import Operator, Reshape
from rnnbench.domain.result import GpuState, Sample, Timed
from rnnbench.domain.workload import OwnWeight


class Hello(msgspec.Struct, tag_field="event", tag="hello"):
    import_s: Seconds
    versions: dict[str, str]
    device: str
    device_name: str = ""
    threads: Count | None = None


class Built(msgspec.Struct, tag_field="event", tag="built"):
    seconds: Seconds
    parameters: Count
    device: str


class First(msgspec.Struct, tag_field="event", tag="first"):
    seconds: Seconds


class Warm(msgspec.Struct, tag_field="event", tag="warm"):
    batches: Count
    seconds: Seconds


class Sampling(msgspec.Struct, tag_field="event", tag="sampling"):
    """The first sample begins now. From here to `samples` the driver's own clock checks the worker's.

    It is sent again where the first samples were still warm-up.
    """


class Samples(msgspec.Struct, tag_field="event", tag="samples"):
    samples: Annotated[tuple[Sample, ...], msgspec.Meta(min_length=1)]
    steady: bool | None = None  # whether the time per batch had stopped falling; None: not judged
    device_seconds: Seconds | None = None
    gpu_before: GpuState | None = None
    gpu_after: GpuState | None = None
    usage_s: Seconds | None = None
    cpu_s: Seconds | None = None
    involuntary_switches: Annotated[int, msgspec.Meta(ge=0)] | None = None
    others_cpu_s: Seconds | None = None
    quiet: bool | None = None  # the following only of a worker that is timed on quiet processors
    set_aside_blocks: Count = 0
    set_aside_s: Seconds = 0.0
    device_paced_blocks: Count = 0
    probe_before_s: Seconds | None = None
    probe_after_s: Seconds | None = None
    probe_best_s: Seconds | None = None
    full_speed_s: Seconds | None = None  # as this worker found it


class Memory(msgspec.Struct, tag_field="event", tag="memory"):
    host: Count | None = None
    device: Count | None = None
    how_it_ran: str = ""  # what the program chose while it ran, where it chooses


class Rates(msgspec.Struct, tag_field="event", tag="rates"):
    products: Annotated[tuple[Timed, ...], msgspec.Meta(min_length=1)]
    copies: Annotated[tuple[Timed, ...], msgspec.Meta(min_length=1)]


class Unseen(msgspec.Struct, tag_field="event", tag="unseen"):
    """Batches that the program had never seen, run after the samples."""

    seconds: Annotated[tuple[Seconds, ...], msgspec.Meta(min_length=1)]
    #: Of a batch that it had seen, alone and after a reading, as the unseen ones are: the slower of one before them and
    #: one after them.
    seen_s: Seconds
    left_over_s: Seconds  # how long it took to read the result of the last sampled batch
    read_s: Seconds  # the same for the seen batch, which nothing can be waiting behind
    check_s: Seconds = 0.0  # that the worker spent on checks at full size


class Arrays(msgspec.Struct, tag_field="event", tag="arrays"):
    name: str  # what they are: a phase, or "first" and "unseen" at full size
    path: str


class Cell(msgspec.Struct, tag_field="event", tag="cell"):
    """What follows from a user's class."""

    weights: Annotated[tuple[OwnWeight, ...], msgspec.Meta(min_length=1)]
    output_width: Annotated[int, msgspec.Meta(ge=1)]
    products: tuple[Count, Count]
    told: str


class Delivered(msgspec.Struct, tag_field="event", tag="file"):
    path: str


class Reshaped(Reshape, frozen=True, tag_field="event", tag="reshaped"):
    pass


class Profiled(msgspec.Struct, tag_field="event", tag="profiled"):
    batches: Annotated[int, msgspec.Meta(ge=1)]
    wall_s: TimedSeconds
    host_s: Seconds
    profiled_s: Seconds
    operators: tuple[Operator, ...]  # totals over all batches
    operators_s: Seconds
    kernels: tuple[Operator, ...]
    kernels_s: Seconds
    trace: str = ""


class Unprofiled(msgspec.Struct, tag_field="event", tag="unprofiled"):
    reason: str


class Tried(msgspec.Struct, tag_field="event", tag="tried"):
    """One ability: its arrays, or why there are none."""

    ability: str
    outcome: Literal["computed", "cannot", "refused"]
    reason: str = ""
    note: str = ""
    path: str = ""
    built: Count | None = None  # again, for another number of steps; None: not counted


class Done(msgspec.Struct, tag_field="event", tag="done"):
    pass


class Failed(msgspec.Struct, tag_field="event", tag="error"):
    type: str
    message: str
    traceback: str = ""


Event = (
    Hello | Built | First | Warm | Sampling | Samples | Unseen | Memory | Rates | Arrays | Cell | Delivered | Reshaped
    | Profiled | Unprofiled | Tried | Done | Failed
)  # fmt: skip

#: What a worker does after it has sent an event; None: before the first.
STAGES: dict[type[Event] | None, str] = {
    None: "import",
    Hello: "build",
    Built: "first call",
    First: "warm-up",
    Warm: "waiting",
    Sampling: "sampling",
    Samples: "checking",
    Unseen: "memory",
    Memory: "end",
    Rates: "end",
    Arrays: "after checking",
    Reshaped: "another shape",
    Cell: "end",
    Delivered: "end",
    Profiled: "end",
    Unprofiled: "end",
    Tried: "another ability",
    Done: "end",
    Failed: "end",
}

_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def parse_event(line: bytes) -> Event:
    """Parse one line of the protocol. Raises msgspec.MsgspecError or ValueError when it is not an event."""
    try:
        return _decoder.decode(line)
    except RecursionError as error:  # a thousand brackets are damage too, and no reason to end the run
        raise msgspec.DecodeError("nested too deeply") from error
