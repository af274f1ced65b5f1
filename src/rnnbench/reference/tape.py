"""Derivatives of a cell's step in float64: every operator of the cells' vocabulary, recorded and run backwards."""

from collections.abc import Callable, Sequence

import numpy as np

from rnnbench.reference.inputs import Booleans, Floats
from rnnbench.reference.lstm import sigmoid

#: The gradient of an operator's result -> those of its inputs.
PullBack = Callable[[Floats], Sequence[Floats]]
EPSILON = 1e-5  # of layer_norm; as in rnnbench_cells


class Value:
    """A number array that knows how it was computed."""

    __slots__ = ("array", "gradient", "inputs", "pull_back")

    def __init__(self, array: Floats, inputs: "Sequence[Value]" = (), pull_back: PullBack | None = None) -> None:
        self.array, self.inputs, self.pull_back = array, inputs, pull_back
        self.gradient: Floats | None = None

    def add_gradient(self, gradient: Floats) -> None:
        """Summed over what was broadcast."""
        shape = self.array.shape
        extra = gradient.ndim - len(shape)
        gradient = gradient.sum(axis=tuple(range(extra))) if extra else gradient
        ones = tuple(k for k, size in enumerate(shape) if size == 1 and gradient.shape[k] != 1)
        gradient = gradient.sum(axis=ones, keepdims=True) if ones else gradient
        self.gradient = gradient if self.gradient is None else self.gradient + gradient

    def __add__(self, other: "Value | float") -> "Value":
        a, b = self, _value(other)
        return Value(a.array + b.array, (a, b), lambda d: (d, d))

    def __sub__(self, other: "Value | float") -> "Value":
        a, b = self, _value(other)
        return Value(a.array - b.array, (a, b), lambda d: (d, -d))

    def __rsub__(self, other: float) -> "Value":
        return _value(other) - self

    def __mul__(self, other: "Value | float") -> "Value":
        a, b = self, _value(other)
        return Value(a.array * b.array, (a, b), lambda d: (d * b.array, d * a.array))

    def __truediv__(self, other: "Value | float") -> "Value":
        a, b = self, _value(other)
        return Value(a.array / b.array, (a, b), lambda d: (d / b.array, -d * a.array / b.array**2))

    def __rtruediv__(self, other: float) -> "Value":
        return _value(other) / self

    def __neg__(self) -> "Value":
        return Value(-self.array, (self,), lambda d: (-d,))

    __radd__, __rmul__ = __add__, __mul__


def _value(operand: "Value | float") -> Value:
    return operand if isinstance(operand, Value) else Value(np.asarray(operand, np.float64))


class Operators:
    """The vocabulary of rnnbench_cells over Values."""

    @staticmethod
    def matmul(a: Value, b: Value) -> Value:
        return Value(a.array @ b.array, (a, b), lambda d: (d @ b.array.T, a.array.T @ d))

    @staticmethod
    def split(a: Value, count: int) -> list[Value]:
        width = a.array.shape[-1] // count

        def piece(k: int) -> Value:
            def pull_back(d: Floats) -> Sequence[Floats]:
                whole = np.zeros_like(a.array)
                whole[..., k * width : (k + 1) * width] = d
                return (whole,)

            return Value(a.array[..., k * width : (k + 1) * width], (a,), pull_back)

        return [piece(k) for k in range(count)]

    @staticmethod
    def concat(pieces: Sequence[Value]) -> Value:
        ends = np.cumsum([piece.array.shape[-1] for piece in pieces])[:-1]
        whole = np.concatenate([piece.array for piece in pieces], axis=-1)
        return Value(whole, tuple(pieces), lambda d: np.split(d, ends, axis=-1))

    @staticmethod
    def sigmoid(a: Value) -> Value:
        y = sigmoid(a.array)
        return Value(y, (a,), lambda d: (d * y * (1 - y),))

    @staticmethod
    def tanh(a: Value) -> Value:
        y = np.tanh(a.array)
        return Value(y, (a,), lambda d: (d * (1 - y**2),))

    @staticmethod
    def relu(a: Value) -> Value:
        return Value(np.maximum(a.array, 0.0), (a,), lambda d: (d * (a.array > 0),))

    @staticmethod
    def softplus(a: Value) -> Value:
        return Value(np.logaddexp(0.0, a.array), (a,), lambda d: (d * sigmoid(a.array),))

    @staticmethod
    def exp(a: Value) -> Value:
        y = np.exp(a.array)
        return Value(y, (a,), lambda d: (d * y,))

    @staticmethod
    def log(a: Value) -> Value:
        return Value(np.log(a.array), (a,), lambda d: (d / a.array,))

    @staticmethod
    def maximum(a: "Value | float", b: "Value | float") -> Value:
        a, b = _value(a), _value(b)
        return Value(np.maximum(a.array, b.array), (a, b), _of_the_chosen(a.array > b.array, a.array == b.array))

    @staticmethod
    def minimum(a: "Value | float", b: "Value | float") -> Value:
        a, b = _value(a), _value(b)
        return Value(np.minimum(a.array, b.array), (a, b), _of_the_chosen(a.array < b.array, a.array == b.array))

    @staticmethod
    def constant(a: Value) -> Value:
        return Value(a.array)

    @staticmethod
    def layer_norm(a: Value, gain: Value, bias: "Value | float") -> Value:
        bias = _value(bias)
        centred = a.array - a.array.mean(axis=-1, keepdims=True)
        scale = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
        y = centred * scale

        def pull_back(d: Floats) -> Sequence[Floats]:
            d_y = d * gain.array
            mean, along = d_y.mean(axis=-1, keepdims=True), (d_y * y).mean(axis=-1, keepdims=True)
            return scale * (d_y - mean - y * along), d * y, d

        return Value(y * gain.array + bias.array, (a, gain, bias), pull_back)


def _of_the_chosen(first: Booleans, equal: Booleans) -> PullBack:
    """Where both are equal, each gets half, as in most frameworks."""
    share = np.where(equal, 0.5, first)
    return lambda d: (d * share, d * (1 - share))


def run_backwards(ends: Sequence[tuple[Value, Floats]]) -> None:
    """Add up the gradients of all Values that these ends depend on, given those of the ends."""
    order: list[Value] = []
    seen: set[int] = set()
    waiting = [(end, False) for end, _ in ends]
    while waiting:  # inputs before what is made of them
        value, is_done = waiting.pop()
        if is_done:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            waiting.append((value, True))
            waiting += [(one, False) for one in value.inputs]
    for end, gradient in ends:
        end.add_gradient(gradient)
    for value in reversed(order):
        if value.pull_back is not None and value.gradient is not None:
            for one, gradient in zip(value.inputs, value.pull_back(value.gradient), strict=True):
                one.add_gradient(gradient)
