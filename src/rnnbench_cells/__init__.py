"""The cells: each is one small file, written once for NumPy's reference and for every framework.

A file `<name>.py` has

- `STATES`: the names of the states; the first one is the output;
- `parameters(width, hidden)`: the shapes of its weights by name, for an input of this width. Names that begin with `w`
  multiply the input;
- `step(ops, weights, x, state)`: one step. `state` has the states by name, and so has the result. The arithmetic
  operators of Python and those of `ops` are all that it may use:

      matmul(a, b)    a product of [rows, n] and a weight [n, m]
      split(a, n)     n equal pieces along the last axis
      concat(pieces)  the inverse
      sigmoid, tanh, relu, softplus, exp, log
      maximum(a, b), minimum(a, b)
      layer_norm(a, gain, bias)   over the last axis
      constant(a)     the same numbers, through which no gradient goes

- `REMEMBER`: gates of the bias `b`, by their number, and how far the logarithm of the number of steps opens them in
  units that remember a whole sequence (reference/inputs.py);
- `SECOND_BIAS`: how many values per unit the second bias of vendors' layers adds;
- `GAINS`, if it has normalisations: around which number the gains are drawn that are not drawn around one.

A user's own file of this kind needs none of the last three.

This package is Python 3.6 and needs nothing else: the driver and every worker can use it.
"""

import importlib
import importlib.util
from types import ModuleType

#: The cells that come with rnnbench.
NAMES = ("lstm", "gru", "gru-before", "elman", "peephole", "layernorm-lstm", "slstm", "mgu")

#: The epsilon of `layer_norm`, in every framework.
EPSILON = 1e-5


_OF_USERS = {}  # path -> module


def find(name: str) -> ModuleType:
    """The module of a cell: by its name here, or a user's own file by its path."""
    if not name.endswith(".py"):
        return importlib.import_module("rnnbench_cells." + name.replace("-", "_"))
    if name not in _OF_USERS:
        spec = importlib.util.spec_from_file_location("rnnbench_cell_of_user", name)
        module = importlib.util.module_from_spec(spec)
        module.REMEMBER, module.SECOND_BIAS = {}, 0
        spec.loader.exec_module(module)
        _OF_USERS[name] = module
    return _OF_USERS[name]
