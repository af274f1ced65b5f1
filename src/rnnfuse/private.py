"""Everything private in PyTorch that rnnfuse uses. A version in which it differs needs a change here and nowhere else.

Where it cannot be used at all, `missing()` says why, and every layer runs as a plain loop.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, fx

aten = torch.ops.aten

try:
    from torch._decomp import get_decompositions
    from torch._inductor.compile_fx import compile_fx_inner
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    from torch.utils import _pytree as pytree

    _MISSING = ""
except ImportError as error:  # pragma: no cover - another version of PyTorch
    _MISSING = str(error)

#: Operators that are taken apart when a step is traced, so that products and pointwise operators become visible.
_TAKEN_APART = (
    "addmm", "baddbmm", "t", "sigmoid_backward", "tanh_backward", "silu", "silu_backward", "gelu", "gelu_backward",
    "threshold_backward", "softplus", "softplus_backward", "log_sigmoid_forward", "log_sigmoid_backward", "elu",
    "elu_backward", "leaky_relu", "leaky_relu_backward", "hardtanh", "hardtanh_backward", "_softmax",
    "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data", "native_dropout",
    "native_dropout_backward", "select_backward", "slice_backward", "addcmul", "addcdiv", "lerp", "rsub",
    "hardsigmoid", "hardsigmoid_backward", "hardswish", "hardswish_backward", "mish", "mish_backward",
)  # fmt: skip


def missing() -> str:
    """Why steps cannot be traced and compiled with this version of PyTorch; empty if they can."""
    return _MISSING


def trace(function: Callable[..., Any], arguments: Sequence[Any]) -> fx.GraphModule:
    """What a function does to tensors, as a graph without in-place operators."""
    traced = _trace(function, arguments)
    if any(_is_in_place(node) for node in traced.graph.nodes):
        # Functionalised only where it must be: it writes views as copies, or by strides, which hides what they are.
        traced = _trace(torch.func.functionalize(function, remove="mutations_and_views"), arguments)
        for node in traced.graph.nodes:
            _name_the_view(node)
    traced.graph.eliminate_dead_code()
    return traced


def _trace(function: Callable[..., Any], arguments: Sequence[Any]) -> fx.GraphModule:
    table: Any = get_decompositions([getattr(aten, name) for name in _TAKEN_APART if hasattr(aten, name)])
    return make_fx(function, decomposition_table=table, tracing_mode="fake")(*arguments)


def _is_in_place(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _name_the_view(node: fx.Node) -> None:
    """`view_copy` as `view`, and so on: the copy served functionalisation only."""
    if isinstance(node.target, torch._ops.OpOverload):
        name, _, overload = str(node.target).removeprefix("aten.").partition(".")
        if name.endswith("_copy") and name != "_to_copy" and hasattr(aten, name.removesuffix("_copy")):
            node.target = getattr(getattr(aten, name.removesuffix("_copy")), overload)


def compiled(function: Callable[..., Any], examples: Sequence[Tensor]) -> Callable[[list[Tensor]], Any]:
    """A function of tensors as one callable without guards, by Inductor and without Dynamo. Called with a list."""
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv() if keeps_graphs() else None)
    fakes = [mode.from_tensor(example, static_shapes=True) for example in examples]
    context = torch._guards.TracingContext(mode)
    with torch.no_grad(), mode:
        lowered = make_fx(function, decomposition_table=select_decomp_table(), tracing_mode="real")(*fakes)
    with torch.no_grad(), torch._guards.tracing(context):
        return compile_fx_inner(lowered, fakes)


def keeps_graphs() -> bool:
    """Whether Inductor keeps whole graphs on disk for whoever does not come from Dynamo. It does so where it is told of
    sizes that are not fixed, even if all are; before 2.9 (2.6.0 was tried) it then fails when it finds one."""
    return tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 9)


def load_source(text: str) -> Any:
    """A module of this source, in a file: Triton reads the source of its kernels."""
    from torch._inductor.codecache import PyCodeCache

    return PyCodeCache.load(text)


def hashed(text: str) -> str:
    """Of a text and the version of PyTorch."""
    from torch._inductor.codecache import code_hash

    return code_hash(text, torch.__version__)


def remembered(key: str) -> str | None:
    """What was measured for this key by an earlier process, beside what Inductor keeps on disk."""
    try:
        return _measured_file(key).read_text()
    except OSError:
        return None


def remember(key: str, text: str) -> None:
    path = _measured_file(key)
    with contextlib.suppress(OSError):  # a folder that cannot be written to only costs time
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.replace(path)  # at once: another process may read it


def _measured_file(key: str) -> Path:
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return Path(cache_dir()) / "rnnfuse" / f"{key}.json"


def copy_all(into: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copies between pairs of tensors, by as few kernels as possible."""
    if into:
        torch._foreach_copy_(list(into), list(values))


def copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    found = [torch.empty_like(one) for one in tensors]
    copy_all(found, tensors)
    return found


def zero_all(tensors: Sequence[Tensor]) -> None:
    if tensors:
        torch._foreach_zero_(list(tensors))


def end_failed_capture(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, pool: Any) -> None:
    """What PyTorch leaves undone where CUDA refuses a capture: its memory pool stays in use, and random numbers can no
    longer be drawn."""
    with contextlib.suppress(RuntimeError):
        graph.pool()
        return  # it did end: something else raised an error meanwhile
    # Another name before 2.8.
    end = getattr(torch._C, "_cuda_endAllocateToPool", None) or torch._C._cuda_endAllocateCurrentStreamToPool  # type: ignore[attr-defined]
    with contextlib.suppress(RuntimeError):  # it had not begun
        end(stream.device_index, pool)
        torch._C._cuda_releasePool(stream.device_index, pool)
    # The end of any capture that succeeds sets the generator back.
    another = torch.cuda.CUDAGraph()
    with torch.cuda.graph(another, stream=stream, capture_error_mode="thread_local"):
        torch.zeros(1, device=stream.device)


def is_transformed() -> bool:
    """Whether this runs inside torch.func's transforms (vmap, jvp, grad), which need plain operators."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return bool(active and active())


def without_hooks(function: Callable[[], Any], device_type: str) -> Any:
    """Call a function outside of all hooks on saved tensors, such as a checkpoint's: nothing is traced under them.

    They belong to a thread, so another one has none. It gets the autocast of this one.
    """
    # PyTorch 2.6 cannot say whether there are any.
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if top is not None and top(True) is None:
        return function()
    enabled, dtype = autocast_key(device_type)
    results: list[Any] = []

    def run() -> None:
        with torch.autocast(device_type, dtype, enabled=enabled):
            try:
                results.extend((function(), None))
            except BaseException as error:  # raised again where it belongs
                results.extend((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if results[1] is not None:
        raise results[1]
    return results[0]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    return pytree.tree_flatten(tree)


def unflatten(leaves: Sequence[Any], structure: Any) -> Any:
    return pytree.tree_unflatten(list(leaves), structure)


def no_autocast(device_type: str) -> Any:
    """A traced step has its casts already."""
    return torch.autocast(device_type, enabled=False)


def autocast_key(device_type: str) -> tuple[bool, torch.dtype | None]:
    enabled = torch.is_autocast_enabled(device_type)
    return enabled, torch.get_autocast_dtype(device_type) if enabled else None


def has_hooks(module: torch.nn.Module) -> bool:
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(module, name, None) for name in names)


def is_forward_mode() -> bool:
    """Whether a tensor can take part in forward-mode differentiation now."""
    return getattr(torch.autograd.forward_ad, "_current_level", 0) >= 0


def has_tangent(tensor: Tensor) -> bool:
    """Whether a tensor takes part in forward-mode differentiation."""
    dual: Any = torch.autograd.forward_ad.unpack_dual(tensor)  # type: ignore[no-untyped-call]
    return dual.tangent is not None
