"""A PyTorch network as the bytes of an ONNX file."""

import io

import torch


def onnx_bytes(network, arguments, names):
    """By the exporter that traces: the one on torch.export has no way to write packed sequences.

    Each layer becomes one LSTM operator of ONNX, with sequence lengths where there are any.
    """
    file = io.BytesIO()
    torch.onnx.export(network, arguments, file, input_names=names, output_names=["logits"], dynamo=False)
    return file.getvalue()
