"""A model compiled by OpenVINO with the job's threads and precision, as a program; and what OpenVINO then reports."""

import sys

import numpy as np
import torch

from rnnbench_worker.shared.exported import ExportedProgram
from rnnbench_worker.systems.pytorch.executions import trace
from rnnbench_worker.systems.pytorch.settings import apply_settings as apply_torch_settings

# OpenVINO reports to its makers over the network when it is imported and when it converts a network. If this module
# cannot be imported, it uses a stub of its own instead.
sys.modules["openvino_telemetry"] = None

import openvino  # noqa: E402  only after that

PRECISIONS = {"fp32": openvino.Type.f32, "bf16": openvino.Type.bf16}


def apply_settings(job):
    """PyTorch runs the network once, to trace it, with the same threads as the engine."""
    apply_torch_settings(job)


def compile_model(model, job):
    precision = PRECISIONS[job["precision"]]
    compiled = openvino.Core().compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": job["threads"],
            "NUM_STREAMS": 1,  # one batch after the other, each with all threads
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision,  # OpenVINO's default is bf16 wherever a CPU has it
            "ENABLE_CPU_PINNING": False,  # the process is pinned as a whole
            "CPU_DENORMALS_OPTIMIZATION": job["flush_denormals"],
            "PERF_COUNT": bool(job["profile_folder"]),
        },
    )
    found = compiled.get_property("INFERENCE_PRECISION_HINT")
    if found != precision:
        raise RuntimeError("OpenVINO was asked for {}, but computes in {} on this CPU".format(precision, found))
    return compiled


def describe_device(job):
    """Read from the smallest possible model."""
    values = openvino.opset13.parameter([1], openvino.Type.f32)
    compiled = compile_model(openvino.Model([openvino.opset13.relu(values)], [values]), job)
    (device,) = compiled.get_property("EXECUTION_DEVICES")
    return {
        "versions": {"openvino": openvino.__version__, "torch": torch.__version__},
        "device": device.lower(),
        "device_name": openvino.Core().get_property(device, "FULL_DEVICE_NAME"),
        "threads": compiled.get_property("INFERENCE_NUM_THREADS"),
    }


class CompiledProgram(ExportedProgram):
    """One infer request for all batches. It reads them in place and writes every result to the same memory."""

    def open_engine(self, network, arguments):
        shapes = [tuple(argument.shape) for argument in arguments]
        model = openvino.convert_model(trace(network, arguments), input=shapes)
        return compile_model(model, self._job).create_infer_request()

    def forward(self, fed):
        return self.engine().infer(list(fed.values()), share_inputs=True, share_outputs=True)[0]

    def logits(self, handle):
        return super(CompiledProgram, self).logits(np.array(handle))  # a copy: the next call writes there
