"""What is different when PyTensor compiles through JAX: where values are, and when a call is done."""

import jax

from rnnbench_worker.systems.jax.settings import device_name

from .program import PyTensorProgram


class JaxBackedProgram(PyTensorProgram):
    """Calls return before they are done, and what they replace stays on the device."""

    def __init__(self, job, mode, parameters):
        super(JaxBackedProgram, self).__init__(job, mode, parameters)
        for shared in self.state():
            # As an update leaves it; an array of the host would be moved anew at every forward call.
            shared.container.storage[0] = jax.device_put(shared.get_value())

    @property
    def device(self):
        return device_name(self._jax_device)

    @property
    def _jax_device(self):
        (device,) = self.state()[0].get_value(borrow=True).devices()
        return device

    def sync(self, handle):
        jax.block_until_ready([handle] + [shared.get_value(borrow=True) for shared in self.state()])

    def peak_device_bytes(self):
        statistics = self._jax_device.memory_stats()  # none on a CPU
        return statistics.get("peak_bytes_in_use") if statistics else None
