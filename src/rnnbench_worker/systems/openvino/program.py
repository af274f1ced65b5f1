"""A compiled model as a program. It reads batches where they lie and writes every result to the same place."""

import numpy as np
import openvino

from rnnbench_worker.systems.exported.program import ExportedProgram
from rnnbench_worker.systems.pytorch.executions import trace

from .compiling import compile_model


class CompiledProgram(ExportedProgram):
    """One infer request, used again and again."""

    def open_engine(self, network, arguments):
        shapes = [tuple(argument.shape) for argument in arguments]
        model = openvino.convert_model(trace(network, arguments), input=shapes)
        return compile_model(model, self._job).create_infer_request()

    def forward(self, fed):
        return self.engine().infer(list(fed.values()), share_inputs=True, share_outputs=True)[0]

    def logits(self, handle):
        return super(CompiledProgram, self).logits(np.array(handle))  # a copy: the next call writes there
