"""rnnfuse: a recurrent cell of your own, written in plain PyTorch for one step, run and trained over whole sequences.

    layer = rnnfuse.Recurrent(MyCell(123, 320))
    ys, last = layer(xs)

See `Recurrent` and `Stack`.
"""

from .recurrent import Recurrent
from .stack import Stack

__all__ = ["Recurrent", "Stack"]
