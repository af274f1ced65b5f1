"""A session of ONNX Runtime with the job's threads, device and precision; and what it says it then has."""

import os

import onnxruntime
import torch

from rnnbench_worker.systems.pytorch.settings import apply_settings as apply_torch_settings

from .export import onnx_bytes

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


def apply_settings(job):
    """PyTorch goes forward once, to be traced: with the same threads as the engine."""
    apply_torch_settings(job)
    if job["device"] == "cuda":
        # From the nvidia packages beside it: a session that cannot find its libraries goes to the CPU.
        onnxruntime.preload_dlls()


def open_session(model, job):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    if job["flush_denormals"]:
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    if job["mode"] == "profile":
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(job["arrays"], "session")
    provider = PROVIDERS[job["device"]]
    # On by default: fp32 would not be fp32.
    choices = {"use_tf32": str(int(job["precision"] == "tf32"))} if job["device"] == "cuda" else {}
    session = onnxruntime.InferenceSession(model, options, providers=[(provider, choices)])
    if session.get_providers()[0] != provider:
        raise RuntimeError("ONNX Runtime has no {}: it took {}".format(provider, session.get_providers()[0]))
    return session


def describe_device(job):
    """Read from a session of the smallest network there is."""
    session = open_session(onnx_bytes(torch.nn.Identity(), (torch.zeros(1),), ["inputs"]), job)
    provider = session.get_providers()[0]
    return {
        "versions": {"onnxruntime": onnxruntime.__version__, "torch": torch.__version__},
        "device": next(device for device, name in PROVIDERS.items() if name == provider),
        "device_name": provider,
        "threads": session.get_session_options().intra_op_num_threads,
    }
