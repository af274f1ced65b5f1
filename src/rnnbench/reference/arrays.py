"""The kinds of array that the reference passes around."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

# Read-only, and of any precision: workers report float32, the reference works in float64.
Parameters = Mapping[str, NDArray[Any]]
