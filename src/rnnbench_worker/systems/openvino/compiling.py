"""Compiling for OpenVINO with the job's threads and precision; and what it says it then has."""

import sys

import torch

from rnnbench_worker.systems.pytorch.settings import apply_settings as apply_torch_settings

# OpenVINO tells its makers over the network when it is imported and when it converts. Without this module
# it takes a stub of its own instead.
sys.modules["openvino_telemetry"] = None

import openvino  # noqa: E402  only now

PRECISIONS = {"fp32": openvino.Type.f32, "bf16": openvino.Type.bf16}


def apply_settings(job):
    """PyTorch goes forward once, to be traced: with the same threads as the engine."""
    apply_torch_settings(job)


def compile_model(model, job):
    precision = PRECISIONS[job["precision"]]
    compiled = openvino.Core().compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": job["threads"],
            "NUM_STREAMS": 1,  # one batch after the other, all threads for each
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision,  # its own choice is bf16 wherever a CPU has it
            "ENABLE_CPU_PINNING": False,  # the process is pinned as a whole
            "CPU_DENORMALS_OPTIMIZATION": job["flush_denormals"],
            "PERF_COUNT": job["mode"] == "profile",
        },
    )
    found = compiled.get_property("INFERENCE_PRECISION_HINT")
    if found != precision:
        raise RuntimeError("OpenVINO was asked for {}, but computes in {} on this CPU".format(precision, found))
    return compiled


def describe_device(job):
    """Read from the smallest model there is."""
    values = openvino.opset13.parameter([1], openvino.Type.f32)
    compiled = compile_model(openvino.Model([openvino.opset13.relu(values)], [values]), job)
    (device,) = compiled.get_property("EXECUTION_DEVICES")
    return {
        "versions": {"openvino": openvino.__version__, "torch": torch.__version__},
        "device": device.lower(),
        "device_name": openvino.Core().get_property(device, "FULL_DEVICE_NAME"),
        "threads": compiled.get_property("INFERENCE_NUM_THREADS"),
    }
