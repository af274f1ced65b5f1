"""A session of ONNX Runtime with the job's threads, device and precision, as a program; and what it then reports."""

import io
import os

import onnxruntime
import torch

from rnnbench_worker.shared.exported import ExportedProgram, argument_names
from rnnbench_worker.systems.pytorch.settings import apply_settings as apply_torch_settings

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}


def apply_settings(job):
    """PyTorch runs the network once, to trace it, with the same threads as the engine."""
    apply_torch_settings(job)
    if job["device"] == "cuda":
        # From NVIDIA's packages in the environment: a session that does not find its libraries uses the CPU.
        onnxruntime.preload_dlls()


def open_session(model, job):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    if job["flush_denormals"]:
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
    if job["profile_folder"]:
        options.enable_profiling = True
        options.profile_file_prefix = os.path.join(job["profile_folder"], "session")
    provider = PROVIDERS[job["device"]]
    # TF32 is on by default, so that fp32 would not be fp32.
    choices = {"use_tf32": str(int(job["precision"] == "tf32"))} if job["device"] == "cuda" else {}
    session = onnxruntime.InferenceSession(model, options, providers=[(provider, choices)])
    if session.get_providers()[0] != provider:
        raise RuntimeError("ONNX Runtime has no {}: it took {}".format(provider, session.get_providers()[0]))
    return session


def describe_device(job):
    """Read from a session of the smallest possible network."""
    session = open_session(onnx_bytes(torch.nn.Identity(), (torch.zeros(1),), ["inputs"]), job)
    provider = session.get_providers()[0]
    return {
        "versions": {"onnxruntime": onnxruntime.__version__, "torch": torch.__version__},
        "device": next(device for device, name in PROVIDERS.items() if name == provider),
        "device_name": provider,
        "threads": session.get_session_options().intra_op_num_threads,
    }


def onnx_bytes(network, arguments, names):
    """A PyTorch network as the bytes of an ONNX file.

    By the exporter that traces, because the one based on torch.export cannot express packed sequences. Each layer
    becomes one LSTM operator of ONNX, with sequence lengths where there are any.
    """
    file = io.BytesIO()
    torch.onnx.export(network, arguments, file, input_names=names, output_names=["logits"], dynamo=False)
    return file.getvalue()


class SessionProgram(ExportedProgram):
    """An InferenceSession. Arrays are bound to it in place, so that no run copies them once more."""

    @property
    def device(self):
        return self._job["device"]  # checked by `describe`; a session on another device is rejected when it is opened

    def open_engine(self, network, arguments):
        return open_session(onnx_bytes(network, arguments, argument_names(self._workload)), self._job)

    def feed(self, staged):
        """To the memory of the device; on the CPU the arrays are there already."""
        place = self.device
        return {name: onnxruntime.OrtValue.ortvalue_from_numpy(array, place) for name, array in staged.items()}

    def forward(self, fed):
        session = self.engine()
        binding = session.io_binding()
        for name, value in fed.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("logits", self.device)
        session.run_with_iobinding(binding)
        return binding

    def sync(self, handle):
        handle.synchronize_outputs()

    def logits(self, handle):
        return super(SessionProgram, self).logits(handle.copy_outputs_to_cpu()[0])
