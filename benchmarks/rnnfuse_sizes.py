"""How long a step of an LSTM takes over its number of units: cuDNN, rnnfuse's loop, its one kernel, and the limit.

On a GPU, in the repository's root, with a Python that has PyTorch and Triton:

    PYTHONPATH=src:tests/rnnfuse PYTHON benchmarks/rnnfuse_sizes.py --out sizes.json [--precision bf16] [--batch 64]

then anywhere, with rnnbench's own Python: benchmarks/rnnfuse_sizes.py --draw sizes.json docs/rnnfuse-sizes.svg

Every program is a layer's forward and backward pass, written gate by gate, captured as a CUDA graph; all are timed in
turn. The limit is what a step cannot do without: the barriers of both passes, the products of state and weights at the
rate of a large product, and one reading of what was saved.
"""

import argparse
import gc
import json
import statistics
import sys
from pathlib import Path

sys.path.pop(0)  # this folder, where a file has the name of the library

BARRIER_US = 0.75  # of 16 programs; measured alone
STEPS = 1000
ROUNDS = 7
NAMES = {"cudnn": "cuDNN", "loop": "rnnfuse, loop", "kernel": "rnnfuse, one kernel", "limit": "limit"}


def measure(units, batch, precision):
    """Microseconds of a step, by program."""
    import torch
    from cells import FineLstm, tame
    from torch import nn

    import rnnfuse

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision, torch.float32)
    torch.cuda.set_stream(torch.cuda.Stream())  # what is captured later must not have run on the default stream
    torch.manual_seed(0)
    xs = torch.randn(STEPS, batch, units, device="cuda", dtype=dtype)

    def captured(layer):
        layer.to("cuda", dtype)

        def step():
            for parameter in layer.parameters():
                parameter.grad = None
            layer(xs)[0].float().square().mean().backward()

        for _ in range(2):
            step()
        gc.collect()  # graphs of the size before: the end of one would spoil the capture of another
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            step()
        return layer, graph

    made = {
        "cudnn": captured(nn.LSTM(units, units)),
        "loop": captured(rnnfuse.Recurrent(tame(FineLstm(units, units)), persistent=False)),
        "kernel": captured(rnnfuse.Recurrent(tame(FineLstm(units, units)), persistent=True)),
    }
    times = {name: [] for name in made}
    for _ in range(ROUNDS):
        for name, (_, graph) in made.items():
            times[name].append(seconds(graph.replay) * 1e6 / STEPS)
    found = {name: statistics.median(some) for name, some in times.items()}
    found["limit"] = limit(units, batch, dtype)
    return found


def limit(units, batch, dtype):
    """Of both passes, at the rates of a large product and a large copy here."""
    import torch

    side = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    flops = 2 * 8192**3 / min(seconds(lambda: side @ side) for _ in range(ROUNDS))
    bandwidth = 2 * side.numel() * side.element_size() / min(seconds(side.clone) for _ in range(ROUNDS))
    products = 2 * 2 * batch * units * 4 * units / flops
    saved = 2 * 6 * batch * units * side.element_size() / bandwidth  # gates, state and output: written and read
    return 2 * BARRIER_US + (products + saved) * 1e6


def seconds(call):
    """By the device's own clock."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def draw(measured, picture):
    import altair as alt
    import vl_convert

    told = json.loads(Path(measured).read_text())
    values = [
        {"units": int(units), "program": NAMES[name], "time": time}
        for units, times in told["times"].items()
        for name, time in times.items()
    ]
    chart = (
        alt.Chart(alt.Data(values=values), width=560, height=320)
        .mark_line(point=True)
        .encode(
            x=alt.X("units:Q", title="units", scale=alt.Scale(zero=False)),
            y=alt.Y("time:Q", title="µs a step, forward and backward", scale=alt.Scale(type="log")),
            color=alt.Color("program:N", title=None, sort=list(NAMES.values())),
            strokeDash=alt.condition(alt.datum.program == NAMES["limit"], alt.value([4, 4]), alt.value([1, 0])),
        )
        .properties(title=f"LSTM, batch {told['batch']}, {told['precision']}, {told['device']}")
    )
    Path(picture).write_text(vl_convert.vegalite_to_svg(chart.to_json()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, nargs="*", default=[64, 128, 192, 256, 320, 384, 512, 768])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16", "fp16"])
    parser.add_argument("--out", default="sizes.json")
    parser.add_argument("--draw", nargs=2, metavar=("MEASURED", "PICTURE"))
    chosen = parser.parse_args()
    if chosen.draw:
        draw(*chosen.draw)
        return
    import torch

    told = {"device": torch.cuda.get_device_name(), "batch": chosen.batch, "precision": chosen.precision, "times": {}}
    for units in chosen.units:
        told["times"][units] = measure(units, chosen.batch, chosen.precision)
        print(units, {name: round(time, 2) for name, time in told["times"][units].items()}, flush=True)
        Path(chosen.out).write_text(json.dumps(told, indent=1))  # nothing is lost when it is stopped


if __name__ == "__main__":
    main()
