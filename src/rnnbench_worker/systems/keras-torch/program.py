"""A Keras model on PyTorch as a program. Imported only when the settings are made, because it imports Keras."""

import keras
import torch

from rnnbench_worker.canonical import layer_directions
from rnnbench_worker.shared.keras import KerasProgram, cell_of


class KerasTorchProgram(KerasProgram):
    def __init__(self, job, parameters):
        super(KerasTorchProgram, self).__init__(job, parameters)
        if job["phase"] == "train":
            self._prepare_as_after_a_step()

    def _prepare_as_after_a_step(self):
        """Create what a step leaves behind; otherwise a compiled step would be compiled again at its second call."""
        for layer, direction in layer_directions(self._workload):
            cell = cell_of(self._model, layer, direction)
            if hasattr(cell, "reset_dropout_mask"):  # Keras's own cells have masks
                cell.reset_dropout_mask()
                cell.reset_recurrent_dropout_mask()
        for variable in self._model.trainable_variables:
            variable.value.grad = torch.zeros_like(variable.value)

    @property
    def device(self):
        return self._model.trainable_variables[0].value.device.type

    def stage(self, batch):
        """As tensors; pinned, so that the host does not wait for the copy to the device."""
        staged = keras.tree.map_structure(torch.from_numpy, super(KerasTorchProgram, self).stage(batch))
        return keras.tree.map_structure(torch.Tensor.pin_memory, staged) if self._cuda else staged

    def to_device(self, tensor):
        return tensor.to("cuda", non_blocking=True) if self._cuda else tensor

    def sync(self, handle):
        if self._cuda:
            torch.cuda.synchronize()

    def peak_device_bytes(self):
        return torch.cuda.max_memory_reserved() if self._cuda else None
