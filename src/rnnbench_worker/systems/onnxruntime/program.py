"""A session as a program. Arrays are bound to it where they lie, so that no run copies them once more."""

import onnxruntime

from rnnbench_worker.systems.exported.program import ExportedProgram, argument_names

from .export import onnx_bytes
from .sessions import open_session


class SessionProgram(ExportedProgram):
    """An InferenceSession, fed and read through bindings."""

    @property
    def device(self):
        return self._job["device"]  # found true by `describe`; a session elsewhere is refused when it is opened

    def open_engine(self, network, arguments):
        return open_session(onnx_bytes(network, arguments, argument_names(self._workload)), self._job)

    def feed(self, staged):
        """To the device's memory; on the CPU it is there already."""
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
