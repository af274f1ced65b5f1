"""Keras on PyTorch."""

import keras
import torch

from rnnbench_worker.canonical import directions

from .network import cell_of
from .program import KerasProgram


class TorchProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(TorchProgram, self).__init__(job, parameters)
        if job["phase"] == "train":
            self._leave_as_after_a_step()

    def _leave_as_after_a_step(self):
        """What a step leaves behind must be there at the first, or a compiled step is compiled again at the second."""
        for layer, direction in directions(self._workload):
            cell = cell_of(self._model, layer, direction)
            cell.reset_dropout_mask()
            cell.reset_recurrent_dropout_mask()
        for variable in self._model.trainable_variables:
            variable.value.grad = torch.zeros_like(variable.value)

    @property
    def device(self):
        return self._model.trainable_variables[0].value.device.type

    def stage(self, batch):
        """As tensors; pinned, so that the copy to the device does not stop the host."""
        staged = keras.tree.map_structure(torch.from_numpy, super(TorchProgram, self).stage(batch))
        return keras.tree.map_structure(torch.Tensor.pin_memory, staged) if self._cuda else staged

    def put(self, tensor):
        return tensor.to("cuda", non_blocking=True) if self._cuda else tensor

    def sync(self, handle):
        if self._cuda:
            torch.cuda.synchronize()

    def peak_device_bytes(self):
        return torch.cuda.max_memory_reserved() if self._cuda else None
